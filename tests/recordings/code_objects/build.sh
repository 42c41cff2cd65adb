#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the code objects of this directory from the sources beside them; needs clang, lld and llvm-strip of LLVM 14 and
# clang, lld, llvm-objdump and llvm-symbolizer of LLVM 16 (for gfx1100, and as a second opinion on lines).
set -eu
cd "$(dirname "$0")"

source=kernels
build() { # VERSION TARGET NAME OPTIONS...
    version=$1 target=$2 name=$3
    shift 3
    # No machine's path gets into the line tables.
    "clang-$version" --target=amdgcn-amd-amdhsa "-mcpu=$target" -nogpulib -x cl -cl-std=CL2.0 -O2 \
        -fdebug-compilation-dir=/kernels "$@" "$source.cl" -o "$name.co"
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

source=inlined
build 14 gfx90a inlined.gfx90a -g
build 16 gfx90a inlined_4.gfx90a -gdwarf-4
# frames NAME: "address line line...", innermost first, for every word of the code
frames() {
    begin=$(llvm-readelf-16 -S "$1.co" | sed -n 's/.* \.text *PROGBITS *0*\([0-9a-f]*\) .*/\1/p')
    size=$(llvm-readelf-16 -s "$1.co" | sed -n 's/.* \([0-9]*\) FUNC .* blur$/\1/p' | head -n 1)
    seq "$((0x$begin))" 4 "$((0x$begin + size - 4))" | while read -r address; do
        llvm-symbolizer-16 --obj="$1.co" --inlines "$(printf '0x%x' "$address")" |
            sed -n 's/.*:\([0-9]*\):[0-9]*$/\1/p' | tr '\n' ' ' | sed "s/^/$(printf '%x' $((address - 0x$begin))) /; s/ $/\n/"
    done
}
for name in inlined.gfx90a inlined_4.gfx90a; do
    frames "$name" >"$name.frames.txt"
done
