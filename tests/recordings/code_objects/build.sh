#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the code objects of this directory from the source beside them; needs clang, lld and llvm-strip of LLVM 14 and
# clang and lld of LLVM 16 (for gfx1100).
set -eu
cd "$(dirname "$0")"

build() { # VERSION TARGET NAME OPTIONS...
    version=$1 target=$2 name=$3
    shift 3
    # No machine's path gets into the line tables.
    "clang-$version" --target=amdgcn-amd-amdhsa "-mcpu=$target" -nogpulib -x cl -cl-std=CL2.0 -O2 \
        -fdebug-compilation-dir=/kernels "$@" kernels.cl -o "$name.co"
    chmod 644 "$name.co"
}
build 14 gfx906 kernels.gfx906 -g
build 14 gfx90a:sramecc+:xnack- kernels.gfx90a -g
build 14 gfx1030 kernels.gfx1030 -g
build 16 gfx1100 kernels.gfx1100 -g
build 14 gfx906 dwarf_4.gfx906 -gdwarf-4
build 14 gfx90a stripped.gfx90a
llvm-strip-14 --strip-all stripped.gfx90a.co
llvm-objdump-14 --disassemble --mcpu=gfx90a kernels.gfx90a.co >listing.gfx90a.txt
llvm-objdump-16 --disassemble --mcpu=gfx1100 kernels.gfx1100.co >listing.gfx1100.txt
