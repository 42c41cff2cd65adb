#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each installed header compiles alone, and tests/headers uses all of it, without a warning: in the oldest and newest
# languages, with both compilers, without optimization, linked, as a client without the library, and disabled.
set -euo pipefail
cd "$(dirname "$0")/.."
warnings=(-O0 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() { # COMPILER LANGUAGE STANDARD FILE [OPTION...]
    local compiler=$1 language=$2 standard=$3 file=$4
    shift 4
    if ! "$compiler" -x "$language" -std="$standard" "${warnings[@]}" "$@" -c -o "$work/object" "$file"; then
        echo "check_headers: $compiler -std=$standard $* $file" >&2
        exit 1
    fi
}

standalone() { # COMPILER LANGUAGE STANDARD HEADER
    printf '#include <gpufl/%s>\n#include <gpufl/%s>\n' "$4" "$4" >"$work/alone"
    compile "$1" "$2" "$3" "$work/alone" -fsyntax-only
}

for header in include/gpufl/*.h; do
    standalone gcc c c99 "${header##*/}"
    standalone clang c c17 "${header##*/}"
    standalone g++ c++ c++17 "${header##*/}"
done
for mode in -UGPUFL_CLIENT -DGPUFL_CLIENT -DGPUFL_DISABLE; do
    for compiler in gcc clang; do
        compile $compiler c c99 tests/headers/uses.c $mode
        compile $compiler c gnu17 tests/headers/uses.c $mode
    done
    for compiler in g++ clang++; do
        for standard in c++17 c++20 c++2b; do
            compile $compiler c++ $standard tests/headers/uses.cpp $mode
        done
        compile $compiler c++ c++17 tests/headers/uses.cpp $mode -fno-exceptions -fno-rtti
    done
done
if command -v nvcc >/dev/null; then
    nvcc -x cu -std=c++17 -Werror all-warnings -Iinclude -c -o "$work/object" tests/headers/uses.cpp
fi

# Disabled, a program refers to nothing of gpufl; as a client, to nothing that must be linked.
for mode in -DGPUFL_DISABLE -DGPUFL_CLIENT; do
    compile g++ c++ c++17 tests/headers/uses.cpp $mode -O1
    if nm "$work/object" | grep ' U gpufl'; then
        echo "check_headers: with $mode a program needs libgpufl" >&2
        exit 1
    fi
done
nm "$work/object" | grep -q ' V gpufl_client_state_' # one for all files of a program

# A scope without a block is refused as C++23, and gcc warns of it before.
for compiler in g++ clang++; do
    if $compiler -std=c++2b -Iinclude -fsyntax-only tests/headers/statement.cpp 2>/dev/null; then
        echo "check_headers: $compiler accepts GFL_SCOPE without a block" >&2
        exit 1
    fi
done
g++ -std=c++17 -Wextra -Iinclude -fsyntax-only tests/headers/statement.cpp 2>&1 | grep -q -e '-Wempty-body'
