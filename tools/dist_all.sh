#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that a release publishes, in one directory with SHA256SUMS: source, Debian packages of this machine's
# architecture, the Helm chart, and for x86-64 and 64-bit Arm archives, debug symbols, wheels and static programs.
# usage: dist_all.sh [DIRECTORY]    (build/dist, which is emptied first)
# Environment: JOBS (number of cores).
set -euo pipefail
umask 022
directory=${1:-$(dirname "$0")/../build/dist}
rm -rf "$directory"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/.*GPUFL_VERSION_STRING "\(.*\)"/\1/p' include/gpufl/gpufl.h)
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)
export SOURCE_DATE_EPOCH

tools/build_dist.sh "$directory"
tools/build_deb.sh build/deb >/dev/null
cp build/deb/packages/*.deb "$directory/"
tar -C packaging/helm --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
    -cf - gpufl | gzip -9n >"$directory/gpufl-chart-$version.tgz"
for triplet in x86_64-linux-gnu x86_64-linux-musl aarch64-linux-gnu aarch64-linux-musl; do
    tools/build_portable.sh "$triplet"
    tools/check_hardening.py "build/portable/$triplet/compile_commands.json" "build/portable/$triplet/bin"
    tools/build_tarball.sh "$triplet" "$directory"
    case $triplet in
    *-gnu)
        tools/check_glibc.py 2.28 "build/portable/$triplet/bin" "build/portable/$triplet/lib" "build/portable/$triplet/python"
        tools/build_wheel.sh "$triplet" "$directory"
        ;;
    esac
done
cd "$directory"
sha256sum -- * >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
cat SHA256SUMS
