#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures build/ when needed and builds targets there, quietly unless something is wrong.
# usage: build.sh program|all|dashboard [TARGET...]    program: what a user runs, without tests; all: tests and
# benchmarks too; dashboard: the program, and an error where the dashboard cannot be part of it
set -eu
cd "$(dirname "$0")/.."

what=$1
shift
tests=OFF
if [ "$what" = all ]; then
    tests=ON
elif [ -f build/CMakeCache.txt ] && grep -q '^GPUFL_TESTS:BOOL=ON' build/CMakeCache.txt; then
    tests=ON # an earlier build of everything stays one
fi

dashboard=AUTO
if [ "$what" = dashboard ]; then
    dashboard=ON
    rm -f build/dashboard/dashboard_files.c # may be the empty one
fi

# A table that was made where Node.js was missing is made again where it is not.
if [ -f build/dashboard/dashboard_files.c ] && grep -q 'dashboard_missing\[\] = "there is no ' build/dashboard/dashboard_files.c &&
    command -v npm >/dev/null 2>&1; then
    rm -f build/dashboard/dashboard_files.c
fi

mkdir -p build/logs
if ! cmake -S . -B build -G Ninja -DGPUFL_TESTS=$tests -DGPUFL_DASHBOARD=$dashboard >build/logs/configure.log 2>&1; then
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
