#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what a check needs and runs it. Needs a GPU, nvcc and a gpufl build.
# usage: tests/device/run.sh BUILD_DIR WORK_DIR [OUT_DIR [check.py|deep_check.py|monitor_check.py]]
# STEPS=a,b,c: only these steps. check.py proves the Trace engine; deep_check.py the engines above it, whose steps
# are, in this order: records streams cosine sass range lines deep launches neighbours step pm; and memory, only when asked for.
# monitor_check.py: the monitor beside nvidia-smi.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2" "${3:-$2}"
work=$(cd "$2" && pwd)
out=$(cd "${3:-$2}" && pwd)
check=${4:-check.py}
cuda=${CUDA_HOME:-/usr/local/cuda}
export PATH="$cuda/bin:$PATH"
REAL_CUPTI=${REAL_CUPTI:-$(find "$cuda/" -name 'libcupti.so.1[23]' | head -n 1)}
export REAL_CUPTI

is_fresh() { # SOURCE RESULT
    [ "$2" -nt "$1" ] && [ "$2" -nt "$build/lib/libgpufl.so" ]
}
# What does not build is missing in its step, which says so.
cuda_build() { # SOURCE PROGRAM [OPTION...]
    is_fresh "$1" "$work/$2" || nvcc -O2 -std=c++17 -lineinfo -arch=sm_90 "$1" -o "$work/$2" "${@:3}" &
}
library_build() { # SOURCE LIBRARY [OPTION...]
    is_fresh "$1" "$work/$2" || gcc -O2 -std=gnu17 -D_GNU_SOURCE -fPIC -shared -I"$root/src" -I"$root/include" "$1" \
        -o "$work/$2" "${@:3}" -ldl -lpthread &
}
layers=("$build/lib/libgpufl_driver.a" "$build/lib/libgpufl_base.a")
cuda_build "$here/launch_rate.cu" launch_rate
cuda_build "$here/two_kernels.cu" two_kernels
library_build "$here/floor_inject.c" libfloor.so "${layers[@]}" -Wl,--exclude-libs,ALL

if [ "$check" = check.py ]; then
    cuda_build "$here/scope_threads.cu" scope_threads -I"$root/include" -L"$build/lib" -lgpufl
    library_build "$here/cupti_tap.c" libcupti_tap.so
    if [ -d "$cuda/extras/CUPTI/samples" ] && [ ! -d "$work/samples" ]; then
        cp -r "$cuda/extras/CUPTI/samples" "$work/samples"
        for dir in "$work"/samples/*/; do
            # Samples find their headers relative to the toolkit; a sample that does not build is left out.
            make -C "$dir" CUDA_INSTALL_PATH="$cuda" \
                INCLUDES="-I$cuda/include -I$cuda/extras/CUPTI/include -I$work/samples/common" >/dev/null 2>&1 &
        done
    fi
    export CUPTI_SAMPLES="$work/samples"
elif [ "$check" = deep_check.py ]; then
    library_build "$here/crash_stack.c" libcrash_stack.so
    cuda_build "$here/stream_overlap.cu" stream_overlap
    cuda_build "$here/sass_kernels.cu" sass_kernels
    gcc -O2 -std=gnu17 -I"$root/src" -I"$root/include" "$here/dump_lines.c" -o "$work/dump_lines" \
        "$build/lib/libgpufl_code.a" "$build/lib/libgpufl_base.a" -lpthread &
    recordings=$root/tests/recordings
    vendor=(-I"$cuda/include" -I"$cuda/extras/CUPTI/include" "$REAL_CUPTI" "-Wl,-rpath,$(dirname "$REAL_CUPTI")"
        -L"$cuda/lib64/stubs" -lcuda)
    library_build "$recordings/record_pc_sampling.c" record_pc_sampling.so "${vendor[@]}"
    library_build "$recordings/record_sass_metrics.c" record_sass_metrics.so "${vendor[@]}"
    cuda_build "$recordings/record_range.cu" record_range -I"$root/src" -I"$root/include" "${layers[@]}" \
        -L"$cuda/lib64/stubs" -lcuda -ldl -lpthread
    gcc -O2 -std=gnu17 -D_GNU_SOURCE -I"$root/src" -I"$root/include" "$recordings/record_pm_sampling.c" \
        -o "$work/record_pm_sampling" "${layers[@]}" -ldl -lpthread -lm &
    for source in "$here/sass_kernels.cu" "$here/range_kernels.cu" "$root/examples/demo_app.cu"; do
        nvcc -O2 -std=c++17 -lineinfo -arch=sm_90 -cubin -I"$root/include" "$source" \
            -o "$work/$(basename "$source" .cu).cubin" &
    done
fi
wait
echo "  -- built after $SECONDS s"
exec python3 -u "$here/$check" "$build" "$work" "$out"
