#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a disposable copy of this machine's root directory: what it writes stays in memory. Run it as
# root, with `unshare -m`.
# usage: scratch_root.sh DIRECTORY COMMAND...    DIRECTORY/packages is mounted as /packages, DIRECTORY/result as /result
set -eu
directory=$1
shift
mkdir -p "$directory/scratch"
mount -t tmpfs tmpfs "$directory/scratch"
mkdir "$directory/scratch/upper" "$directory/scratch/work" "$directory/scratch/root"
root=$directory/scratch/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/scratch/upper,workdir=$directory/scratch/work" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mkdir "$root/packages" "$root/result"
mount --bind "$directory/packages" "$root/packages"
mount --bind "$directory/result" "$root/result"
# Nobody reads manuals there, and installed packages must not start services.
rm -f "$root/var/lib/man-db/auto-update"
mount -t tmpfs tmpfs "$root/run"
status=0
chroot "$root" "$@" || status=$?
(cd "$directory/scratch/upper" && find . ! -type d | sed 's|^\.||' | sort) >"$directory/result/changed.files"
exit "$status"
