#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The life of the Debian packages, as root in a disposable root directory: install, use, remove, purge. Afterwards the
# output and exit status of each step are in /result.
# usage: deb_life.sh INSTALL_COMMAND...    e.g. dpkg -i; the packages in /packages are appended
# shellcheck disable=SC2016,SC2086 # dpkg's own variables; names are words
set -u
export LC_ALL=C.UTF-8 HOME=/result/home DEBIAN_FRONTEND=noninteractive
mkdir -p /result/home
cd /result || exit 1
names=$(for file in /packages/*.deb; do dpkg-deb -f "$file" Package; done)

attempt() { # NAME COMMAND...
    name=$1
    shift
    "$@" >"/result/$name.out" 2>"/result/$name.err" </dev/null
    echo $? >"/result/$name.status"
}

everything() {  # lists all files in the directories that packages write to
    find /etc /opt /srv /usr /var -xdev ! -type d | sort
}

everything >/result/before.files
attempt install "$@" /packages/*.deb
attempt state dpkg-query -W -f '${Package} ${db:Status-Status}\n' $names
attempt version gpufl version --json
attempt doctor gpufl doctor
attempt demo gpufl demo --once
attempt monitor gpufl-monitor --once --json
attempt python /usr/bin/python3 -c 'import gpufl, sys; sys.stdout.write(gpufl.__file__)'
attempt nvtx /usr/bin/python3 -c 'import gpufl.frameworks.nvtx as nvtx, sys; sys.exit(not nvtx.enable())'
attempt python_command /usr/bin/python3 -m gpufl version
attempt linked ldd /usr/bin/gpufl /usr/lib/libgpufl.so.1 /usr/lib/gpufl/*.so*
attempt user getent passwd gpufl
attempt enabled find /etc -path '*/systemd/*' -name 'gpufl*'
attempt again dpkg -i /packages/*.deb
[ ! -x /result/also.sh ] || attempt also /result/also.sh

# Files that an administrator and the units leave behind.
mkdir -p /etc/default /etc/gpufl /etc/systemd/system/multi-user.target.wants /var/lib/gpufl/monitor
echo 'OPTIONS=--listen :9400' >/etc/default/gpufl-monitor
echo secret >/etc/gpufl/api-key
ln -s /usr/lib/systemd/system/gpufl-monitor.service /etc/systemd/system/multi-user.target.wants/
echo recorded >/var/lib/gpufl/monitor/device.log

attempt remove dpkg --remove $names
everything | grep gpufl >/result/removed.files
attempt purge dpkg --purge $names
everything >/result/after.files
