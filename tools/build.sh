#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures build/ when needed and builds targets there, quietly unless something is wrong.
# usage: build.sh program|all [TARGET...]    program: what a user runs, without tests; all: tests and benchmarks too
set -eu
cd "$(dirname "$0")/.."

what=$1
shift
tests=OFF
if [ "$what" = all ]; then
    tests=ON
elif [ -f build/CMakeCache.txt ] && grep -q '^GPUFL_TESTS:.*=ON' build/CMakeCache.txt; then
    tests=ON # an earlier build of everything stays one
fi

mkdir -p build/logs
if ! cmake -S . -B build -G Ninja -DGPUFL_TESTS=$tests >build/logs/configure.log 2>&1; then
    cat build/logs/configure.log >&2
    exit 1
fi
[ $# -gt 0 ] || set -- all
if [ -t 1 ]; then
    exec ninja -C build "$@"
fi
if ! ninja -C build "$@" >build/logs/build.log 2>&1; then
    cat build/logs/build.log >&2
    exit 1
fi
