#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the cubins of this directory from the sources beside them; needs nvcc 13.0.
# usage: build.sh [NVCC]
set -eu
cd "$(dirname "$0")"
nvcc=${1:-nvcc}
# The sources are compiled where no machine's path gets into the line tables.
copy=/tmp/gpufl-cubins
rm -rf "$copy"
mkdir "$copy"
cp ./*.cu ./*.cuh "$copy"
# Times of files are in the line tables, too.
touch -d 2026-01-01T00:00:00Z "$copy"/*
here=$PWD
cd "$copy"
for arch in 80 90 100; do
    "$nvcc" -cubin -arch=sm_$arch -lineinfo vector_add.cu -o "$here/vector_add.sm_$arch.cubin"
    "$nvcc" -cubin -arch=sm_$arch -lineinfo reduction.cu -o "$here/reduction.sm_$arch.cubin"
    "$nvcc" -cubin -arch=sm_$arch -lineinfo inlined.cu -o "$here/inlined.sm_$arch.cubin"
done
"$nvcc" -cubin -arch=sm_90 vector_add.cu -o "$here/no_lines.sm_90.cubin"
"$nvcc" -cubin -arch=sm_90 -G inlined.cu -o "$here/debug.sm_90.cubin"
"$nvcc" -arch=sm_90 -lineinfo -dc linked_caller.cu linked_callee.cu
"$nvcc" -arch=sm_90 -lineinfo -dlink -cubin linked_caller.o linked_callee.o -o "$here/linked.sm_90.cubin"
rm -r "$copy"
