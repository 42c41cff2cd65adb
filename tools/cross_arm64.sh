#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds gpufl for 64-bit Arm in build/arm64 and tests it under qemu: unit tests, and sessions that are recorded on one
# architecture and read on the other. The libraries come from the mirror that this machine's apt uses.
# usage: cross_arm64.sh sysroot | build | test     each needs the one before it
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/arm64
sysroot=$build/sysroot
packages=(libc6-dev libstdc++-12-dev linux-libc-dev libzstd-dev zlib1g-dev libcurl4-gnutls-dev libmicrohttpd-dev libsqlite3-dev libcmocka-dev)
# Of data, not of processes, vendors' tools or the real clock, which qemu does not have or is too slow for.
tests='^test_(activity_joiner|agent_state|amdgpu.*|base64|batch|batch_damage|column_codec|compare|cubin|cupti_decode|export|golden_reports'
tests+='|gpuflight_conformance|insights|instruction_counts|intern_cache|json|key_runs|log_reader|names|occupancy|recovery|report'
tests+='|report_table|rocprofiler_decode|scope_.*|segment|session_model|sha256|stack_frame|stacks|stalls|statistics'
tests+='|store_(catalog|contract|layouts|rollups|sqlite)|tracks|v1_reader|verify)$'

arm() { # VARIABLE=VALUE... -- PROGRAM ARGUMENT...: under qemu
    local variables=()
    while [ "$1" != -- ]; do
        variables+=(-E "$1")
        shift
    done
    shift
    qemu-aarch64-static -L "$sysroot" "${variables[@]}" "$@"
}

# apt with a separate package database: this machine's stays as it is.
make_sysroot() {
    [ ! -f "$sysroot/.complete" ] || return 0
    local state=$build/apt options
    mkdir -p "$state/lists/partial" "$state/archives/partial" "$sysroot"
    : >"$state/status"
    options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state" -o "Dir::State::lists=$state/lists"
        -o "Dir::State::status=$state/status" -o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives"
        -o APT::Sandbox::User=root -o Acquire::Languages=none)
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "${packages[@]}"
    for package in "$state"/archives/*.deb; do
        dpkg-deb -x "$package" "$sysroot"
    done
    rm -rf "$state"
    touch "$sysroot/.complete"
}

make_build() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/aarch64-linux-gnu.cmake" \
        -DGPUFL_SYSROOT="$sysroot" -DGPUFL_WERROR=ON -DGPUFL_PYTHON=OFF
    ninja -C "$build"
}

# Reports of one session by both programs must be the same to the byte.
same_report() { # SESSION
    build/bin/gpufl report "$1" >"$work/x86_64.txt"
    arm -- "$build/bin/gpufl" report "$1" >"$work/aarch64.txt"
    cmp "$work/x86_64.txt" "$work/aarch64.txt"
}

record_there() { # DIRECTORY
    arm "LD_LIBRARY_PATH=$build/fakes" "GPUFL_CUDA_PATH=$build/fakes" "GPUFL_CUPTI_PATH=$build/fakes" \
        "GPUFL_NVML_PATH=$build/fakes" GPUFL_MIN_FREE_BYTES=0 "CUDA_INJECTION64_PATH=$build/lib/libgpufl_inject.so" \
        GPUFL_PROFILING_ENGINE=Trace "GPUFL_LOG_DIR=$1" -- "$build/fakes/fake_app" --launches 500 --scopes
}

# What is printed by the command itself is printed under qemu.
installs() { # DIRECTORY
    DESTDIR=$1 cmake --install "$build" --prefix /usr >/dev/null
    readelf -h "$1/usr/lib/libgpufl.so" | grep -q AArch64
    readelf -h "$1/usr/lib/libgpufl.a" | grep -q AArch64
    grep -q trace "$1/usr/share/bash-completion/completions/gpufl"
}

run_tests() {
    ctest --test-dir "$build" -R "$tests" -j"$(nproc)" --output-on-failure --no-tests=error --timeout 300
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    record_there "$work/recorded"
    build/bin/gpufl verify "$work/recorded"
    arm -- "$build/bin/gpufl" verify "$work/recorded"
    same_report "$work/recorded"
    build/bin/gpufl seal "$work/recorded"
    arm -- "$build/bin/gpufl" verify "$work/recorded"
    same_report "$work/recorded"
    installs "$work/root"
    for session in tests/golden/trace tests/golden/deep tests/golden/hostile examples/recorded/h200-gemm-deep; do
        same_report "$session"
    done
}

case ${1:-} in
sysroot) make_sysroot ;;
build) make_build ;;
test) run_tests ;;
*)
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
