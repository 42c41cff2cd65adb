#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages in a fresh Debian: makes one (debootstrap, about 200 MB from the mirror), installs the packages
# there with apt, uses, removes and purges them, and says what is left. As root.
# usage: try_deb.sh [PACKAGE_DIRECTORY [SUITE [MIRROR]]]    (build/deb/packages bookworm, the mirror of this machine)
set -eu
cd "$(dirname "$0")/.."
packages=${1:-build/deb/packages}
suite=${2:-bookworm}
mirror=${3:-}

ls "$packages"/*.deb >/dev/null # or says that there is none
directory=$(mktemp -d)
chmod 755 "$directory"
root=$directory/root
trap 'rm -rf --one-file-system "$directory"' EXIT
echo "try_deb: making $suite"
tools/fresh_debian.sh make "$root" "$suite" ${mirror:+"$mirror"}
mkdir "$root/packages" "$root/result"
cp "$packages"/*.deb "$root/packages/"
cp tests/packaging/deb_life.sh "$root/result/"
# The mirror's index of packages, and dependencies of ours that a minimal system lacks.
tools/fresh_debian.sh run "$root" apt-get -qq update
tools/fresh_debian.sh run "$root" /result/deb_life.sh apt-get install -q -y --no-install-recommends

failed=0
for step in install state version doctor demo monitor python nvtx python_command linked again remove purge; do
    status=$(cat "$root/result/$step.status")
    printf '%-16s %s\n' "$step" "exit status $status"
    # A machine without a GPU has something to complain about, and doctor must say so.
    [ "$step" != doctor ] || [ "$status" -gt 1 ] || continue
    [ "$status" = 0 ] || {
        failed=1
        tail -n 20 "$root/result/$step.out" "$root/result/$step.err"
    }
done
grep -E '^(ok|problem|warning) ' "$root/result/doctor.out" || failed=1
head -n 3 "$root/result/demo.out"
left=$(comm -13 "$root/result/before.files" "$root/result/after.files" | grep gpufl || true)
echo "left after the purge: $left"
[ "$left" = /var/lib/gpufl/monitor/device.log ] || failed=1 # data, which the trial itself put there
[ "$failed" = 0 ] && echo "try_deb: all well"
exit "$failed"
