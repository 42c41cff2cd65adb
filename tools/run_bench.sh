#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark that was built; stops at the first that misses its budget.
set -eu
cd "$(dirname "$0")/.."

found=0
for bench in build/bench/bench_*; do
    [ -x "$bench" ] || continue
    found=1
    echo "== $(basename "$bench")"
    "$bench"
done
if [ $found = 0 ]; then
    echo "bench: nothing in build/bench; run make bench" >&2
    exit 1
fi
