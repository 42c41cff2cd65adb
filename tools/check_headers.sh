#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each installed header compiles alone, in the oldest language it promises, with both compilers and every warning.
set -eu
cd "$(dirname "$0")/.."

check() { # COMPILER LANGUAGE STANDARD HEADER
    echo "$1 $3 $4"
    printf '#include <gpufl/%s>\n#include <gpufl/%s>\n%s\n' "$4" "$4" "int main(void) { return 0; }" |
        sed "s/main(void)/main($([ "$2" = c ] && echo void))/" |
        "$1" -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -
}

for compiler in gcc clang; do
    for header in include/gpufl/*.h; do
        check $compiler c c99 "$(basename "$header")"
        check $compiler c c17 "$(basename "$header")"
    done
done
for compiler in g++ clang++; do
    for header in include/gpufl/*.h; do
        check $compiler c++ c++17 "$(basename "$header")"
    done
    for header in include/gpufl/*.hpp; do
        check $compiler c++ c++17 "$(basename "$header")"
        check $compiler c++ c++20 "$(basename "$header")"
    done
done
