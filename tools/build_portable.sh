#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpufl for other systems than this one, in build/portable/TRIPLET. With glibc: programs, libraries and the Python
# package, which need glibc 2.28 or newer and nothing else. With musl: one static program, bin/gpufl, which reads, serves
# and sends sessions on any Linux, and records nothing.
# usage: build_portable.sh TRIPLET    x86_64-linux-gnu, aarch64-linux-gnu, x86_64-linux-musl or aarch64-linux-musl
# Environment: JOBS (number of cores).
set -euo pipefail
umask 022
triplet=${1:-}
cd "$(dirname "$0")/.."
build=$PWD/build/portable/$triplet
tools/bundled_libraries.sh "$triplet" "$build"

options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr/local "-DCMAKE_TOOLCHAIN_FILE=$build/toolchain.cmake"
    "-DCMAKE_PREFIX_PATH=$build/bundled" "-DCMAKE_C_FLAGS=-isystem $build/bundled/include -isystem $build/python-headers/usr/include" -DGPUFL_BUNDLED=ON -DGPUFL_TESTS=OFF
    -DGPUFL_DEMO_APP=OFF -DGPUFL_UPLOAD=ON -DGPUFL_SERVER=ON)
case $triplet in
*-musl)
    options+=(-DGPUFL_STATIC=ON -DGPUFL_PYTHON=OFF -DGPUFL_INSTALL=OFF)
    targets=(gpufl_cli)
    ;;
*)
    architecture=amd64
    [ "${triplet%%-*}" = x86_64 ] || architecture=arm64
    # shellcheck source=/dev/null
    tools/debian_files.sh only "$build/python-headers" "$architecture" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
        libpython3.11-dev
    options+=(-DGPUFL_PYTHON=ON "-DGPUFL_PYTHON_INCLUDE_DIR=$build/python-headers/usr/include/python3.11")
    # By which the program prints its own completion scripts when it is installed.
    emulator=/usr/bin/env
    [ "$architecture" = "$(dpkg --print-architecture)" ] || emulator="qemu-${triplet%%-*}-static;-L;$build/sysroot"
    options+=("-DCMAKE_CROSSCOMPILING_EMULATOR=$emulator")
    targets=(all)
    ;;
esac
if ! { cmake -S . -B "$build" -G Ninja "${options[@]}" && ninja -C "$build" -j "${JOBS:-$(nproc)}" "${targets[@]}"; } \
    >"$build/build.log" 2>&1; then
    tail -n 60 "$build/build.log" >&2
    exit 1
fi
