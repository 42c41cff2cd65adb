#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Archives of a portable build (tools/build_portable.sh), the same bytes from the same build: with glibc, programs,
# libraries and headers with install.sh, and separately their debug symbols; with musl, the static program.
# usage: build_tarball.sh TRIPLET [DIRECTORY]    (build/dist)
set -euo pipefail
umask 022
triplet=${1:-}
directory=${2:-$(dirname "$0")/../build/dist}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$(dirname "$0")/.."
build=build/portable/$triplet
[ -x "$build/bin/gpufl" ] || {
    echo "build_tarball: there is no $build/bin/gpufl; run tools/build_portable.sh TRIPLET first" >&2
    exit 2
}
machine=${triplet%%-*}
version=$(sed -n 's/.*GPUFL_VERSION_STRING "\(.*\)"/\1/p' include/gpufl/gpufl.h)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)}
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
strip=$machine-linux-gnu-strip objcopy=$machine-linux-gnu-objcopy

pack() { # NAME: the directory NAME below the stage
    tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$1" | xz -T1 -6 >"$directory/$1.tar.xz"
    echo "$directory/$1.tar.xz"
}

# Debuggers find the symbols by build id, wherever the programs are.
split_symbols() { # FILE
    local id
    id=$(readelf -n "$1" | sed -n 's/.*Build ID: //p')
    if [ -n "$id" ]; then
        mkdir -p "$stage/$symbols/.build-id/${id:0:2}"
        "$objcopy" --only-keep-debug "$1" "$stage/$symbols/.build-id/${id:0:2}/${id:2}.debug"
    fi
    "$strip" --strip-unneeded "$1"
}

name=gpufl-$version-linux-$machine
symbols=$name-debug
case $triplet in
*-musl)
    name=gpufl-$version-static-$machine
    symbols=$name-debug
    mkdir "$stage/$name" "$stage/$symbols"
    cp "$build/bin/gpufl" LICENSE "$stage/$name/"
    /usr/bin/python3 -B tools/sbom.py "$build" "$stage/$name"
    ;;
*)
    mkdir "$stage/$name" "$stage/$symbols"
    # Without systemd's units, which name the prefix.
    for component in runtime server devel; do
        cmake --install "$build" --component "$component" --prefix "$stage/$name/prefix" >/dev/null
    done
    cp packaging/tarball/install.sh LICENSE README.md "$stage/$name/"
    ;;
esac
find "$stage/$name" -type f | while read -r file; do
    case $(head -c 4 "$file" | tr -d '\0') in
    ?ELF) split_symbols "$file" ;;
    esac
done
pack "$name"
pack "$symbols"
