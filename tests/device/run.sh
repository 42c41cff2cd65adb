#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what tests/device/check.py needs and runs it. Needs a GPU, nvcc and a gpufl build.
# usage: tests/device/run.sh BUILD_DIR WORK_DIR [OUT_DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
out=${3:-$work}
cuda=${CUDA_HOME:-/usr/local/cuda}
nvcc -O2 -std=c++17 -arch=sm_90 "$here/launch_rate.cu" -o "$work/launch_rate" &
nvcc -O2 -std=c++17 -arch=sm_90 -I"$root/include" "$here/scope_threads.cu" -o "$work/scope_threads" -L"$build/lib" -lgpufl &
gcc -O2 -std=c17 -D_GNU_SOURCE -fPIC -shared -I"$root/src" -I"$root/include" "$here/floor_inject.c" -o "$work/libfloor.so" \
    "$build/lib/libgpufl_driver.a" "$build/lib/libgpufl_base.a" -ldl -lpthread -Wl,--exclude-libs,ALL
gcc -O2 -std=c17 -D_GNU_SOURCE -fPIC -shared -I"$root/src" -I"$root/include" "$here/cupti_tap.c" -o "$work/libcupti_tap.so" -ldl -lpthread
if [ -d "$cuda/extras/CUPTI/samples" ] && [ ! -d "$work/samples" ]; then
    cp -r "$cuda/extras/CUPTI/samples" "$work/samples"
    for dir in "$work"/samples/*/; do
        # Samples find their headers relative to the toolkit; a sample that does not build is left out.
        make -C "$dir" CUDA_INSTALL_PATH="$cuda" \
            INCLUDES="-I$cuda/include -I$cuda/extras/CUPTI/include -I$work/samples/common" >/dev/null 2>&1 &
    done
fi
wait
REAL_CUPTI=${REAL_CUPTI:-$(find "$cuda/" -name 'libcupti.so.1[23]' | head -n 1)}
CUPTI_SAMPLES=$work/samples
export REAL_CUPTI CUPTI_SAMPLES
exec python3 "$here/check.py" "$build" "$work" "$out"
