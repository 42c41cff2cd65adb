#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static analysis of src/ and python/native/; needs no build. usage: lint.sh cppcheck|clang-tidy
set -eu
cd "$(dirname "$0")/.."
# What CMake defines for single files.
set -- "$1" '-DGPUFL_LIBRARY_DIR="../lib"' '-DGPUFL_SERVER_LACKS=""' '-DGPUFL_UPLOAD_LACKS=""'

case $1 in
cppcheck)
    mkdir -p build/cppcheck
    cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 \
        --cppcheck-build-dir=build/cppcheck -j "$(nproc)" -D_GNU_SOURCE -D__x86_64__ -Isrc -Iinclude src
    ;;
clang-tidy)
    find src -name '*.c' ! -name catalogue.c -print0 |
        xargs -0 -r -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- -std=c17 -D_GNU_SOURCE \
            "$2" "$3" "$4" -Isrc -Iinclude
    python_include=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ ! -e "$python_include/Python.h" ] || find python/native -name '*.c' -print0 |
        xargs -0 -r -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- -std=c17 -D_GNU_SOURCE \
            -DPy_LIMITED_API=0x030b0000 -Isrc -Iinclude -Ipython/native -isystem "$python_include"
    ;;
*)
    echo "lint: no tool '$1'; tools are cppcheck and clang-tidy" >&2
    exit 2
    ;;
esac
