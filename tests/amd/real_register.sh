#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a stub HIP program under `gpufl trace` with AMD's own librocprofiler-register, with and without rocprofiler-sdk.
#   tests/amd/real_register.sh SOURCE [BUILD]
# SOURCE: a checkout of ROCm/rocprofiler-register (it is built in a temporary directory, and not changed). Needs cmake, ninja,
# glog and fmt (Debian: libgoogle-glog-dev libfmt-dev). BUILD: gpufl's build directory (build). Not part of CI, which has no
# such checkout. HIP and rocprofiler-sdk are the look-alikes of tests/fakes.
# shellcheck disable=SC2317 # functions are called by name
set -euo pipefail
source=$(realpath "${1:?usage: $0 SOURCE [BUILD]}")
build=$(realpath "${2:-$(dirname "$0")/../../build}")
fakes=$build/fakes work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 'include(CPackComponent)' >"$work/modules.cmake" # its packaging file forgets to
cmake -S "$source" -B "$work/register" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PROJECT_INCLUDE="$work/modules.cmake" \
  -DCMAKE_FIND_PACKAGE_TARGETS_GLOBAL=ON -DROCPROFILER_REGISTER_BUILD_GLOG=OFF -DROCPROFILER_REGISTER_BUILD_FMT=OFF \
  >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log" >&2; exit 1; }
ninja -C "$work/register" >"$work/ninja.log" 2>&1 || { cat "$work/ninja.log" >&2; exit 1; }
register=$work/register/lib
echo "rocprofiler-register $(cat "$source/VERSION") ($(git -C "$source" rev-parse --short HEAD 2>/dev/null || echo "no commit"))"

unset ROCP_TOOL_LIBRARIES ROCPROFILER_REGISTER_LIBRARY ROCPROFILER_REGISTER_FORCE_LOAD ROCM_PATH GPUFL_ROCPROFILER_PATH
export GPUFL_CUDA_PATH=$fakes/hip GPUFL_CUPTI_PATH=$fakes/hip GPUFL_NVML_PATH=$fakes/hip GPUFL_SYSFS_ROOT=/nonexistent
failures=0

# check NAME WANTED_STATUS WANTED_KERNELS COMMAND...: the status, and how many kernels were recorded, with nothing lost
check() {
  local name=$1 status=$2 kernels=$3 got=0 found
  shift 3
  rm -rf "$work/log"
  "$@" >"$work/out" 2>&1 || got=$?
  found=$(sed -n -E 's/^(gpufl|complete): ([0-9,]+) kernels,.* 0 lost.*/\2/p' "$work/out")
  if [[ $got = "$status" && ${found:-0} = "$kernels" ]]; then
    echo "ok   $name: status $got, ${found:-0} kernels"
  else
    echo "FAIL $name: status $got (expected $status), ${found:-0} kernels (expected $kernels)"
    sed 's/^/     /' "$work/out"
    failures=$((failures + 1))
  fi
}
trace() { "$build/bin/gpufl" trace -o "$work/log" -- "$fakes/fake_hip_app" --launches 20 --copies "$@"; }
init() {
  GPUFL_LOG_DIR=$work/log GPUFL_PROFILING_ENGINE=Trace \
    "$fakes/fake_hip_app" --launches 20 --gpufl "$build/lib/libgpufl.so" --init before && "$build/bin/gpufl" verify "$work/log"
}
with() { (export "${1?}"; shift; "$@"); }

export LD_LIBRARY_PATH=$register:$fakes/hip
check "no rocprofiler-sdk, a tool is named: HIP aborts" 134 0 \
  with ROCP_TOOL_LIBRARIES="$build/lib/libgpufl_inject.so" bash -c '"$@"; exit $?' - "$fakes/fake_hip_app"
check "no rocprofiler-sdk, gpufl trace" 0 0 trace
check "rocprofiler-sdk outside the loader's path" 0 20 with GPUFL_ROCPROFILER_PATH="$fakes/rocm" trace
check "gpufl_init, rocprofiler-sdk outside the loader's path" 0 20 with GPUFL_ROCPROFILER_PATH="$fakes/rocm" init
for release in rocm rocm6; do
  export LD_LIBRARY_PATH=$register:$fakes/$release:$fakes/hip
  check "rocprofiler-sdk of fakes/$release" 0 20 trace
done
for late_us in 100 1000 10000 50000; do
  check "records $late_us us late" 0 20 with FAKE_FAULTS="rocprofiler_late_us=$late_us" trace
done
exit $((failures > 0))
