#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the CUDA example that `gpufl demo` traces. The example is optional: if the CUDA compiler cannot build it
# (too old, or the wrong host compiler), the problem is reported and the build continues.
# usage: build_demo_app.sh NVCC SOURCE INCLUDE_DIR LIBRARY_DIR OUTPUT
set -u
nvcc=$1 source=$2 include=$3 libraries=$4 output=$5
# shellcheck disable=SC2016 # $ORIGIN is for the loader
for arch in -arch=all-major -arch=native ''; do
    # shellcheck disable=SC2086 # an empty arch is no argument
    if "$nvcc" -O2 -std=c++17 $arch -I"$include" "$source" -o "$output" -L"$libraries" -lgpufl \
        -Xcompiler=-fPIE,-fstack-protector-strong,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=2 \
        -Xlinker '-rpath,$ORIGIN/../lib,-z,relro,-z,now' 2>"$output.log"; then
        rm -f "$output.log"
        exit 0
    fi
done
echo "gpufl-demo-app was not built ($nvcc: see $output.log); gpufl demo shows a recording instead"
exit 0
