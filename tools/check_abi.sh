#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds a built libgpufl.so against what the last release promised to programs that were linked with it.
# usage: check_abi.sh [--renew] [LIBRARY [DUMP [HEADERS]]]
#   (build/lib/libgpufl.so packaging/abi/libgpufl.so.1.abi include/gpufl); --renew writes the dump, at a release
set -eu
is_renewal=false
if [ "${1:-}" = --renew ]; then
    is_renewal=true
    shift
fi
source=$(cd "$(dirname "$0")/.." && pwd)
library=${1:-$source/build/lib/libgpufl.so}
dump=${2:-$source/packaging/abi/libgpufl.so.1.abi}
headers=${3:-$source/include/gpufl}

# Of a library without them only names could be compared.
if ! readelf -S "$library" | grep -q '\.debug_info'; then
    echo "check_abi: $library has no debugging information" >&2
    exit 2
fi

dump_write() { # FILE: what the headers show, and where none of it was built
    abidw --exported-interfaces-only --headers-dir "$headers" --drop-private-types --no-show-locs --no-corpus-path \
        --no-comp-dir-path --no-elf-needed --no-parameter-names --out-file "$1" "$library"
}

if $is_renewal; then
    dump_write "$dump"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dump_write "$work/current"
if abidiff --no-added-syms --no-show-locs "$dump" "$work/current" >"$work/report"; then
    exit 0
fi
# abidiff's exception for members at the end also lets pass that another member of the same structure changed.
exceptions=$source/packaging/abi/libgpufl.abignore
if abidiff --no-added-syms --suppressions "$exceptions" "$dump" "$work/current" >"$work/rest" &&
    ! grep -qE 'data member (change|deletion)' "$work/report"; then
    exit 0
fi
cat "$work/report"
echo "check_abi: programs linked with the last release may break; undo that, or make it a new major version" >&2
exit 1
