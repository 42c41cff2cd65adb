#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Applies .clang-format to all C and C++ that people write. usage: format.sh [--check]
set -eu
cd "$(dirname "$0")/.."

sources() { # generated tables are laid out by their generator
    find src include tests bench examples python \( -name '*.[ch]' -o -name '*.hpp' -o -name '*.cpp' \) ! -name 'catalogue.[ch]' -print0
}

if [ "${1:-}" = --check ]; then
    sources | xargs -0 -r clang-format --dry-run -Werror
else
    # clang-format 14 indents an enum wrongly when a comment follows its brace; such a comment goes before the enum.
    sources | xargs -0 -r sed -i 's|^\(enum [a-z_ ]*{\) \(/\*.*\*/\)$|\2\n\1|'
    sources | xargs -0 -r clang-format -i
fi
