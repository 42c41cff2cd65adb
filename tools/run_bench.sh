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
if [ -e build/python/gpufl/_native.abi3.so ] && /usr/bin/python3 -c 'import pandas' 2>/dev/null; then
    echo "== bench_python.py"
    /usr/bin/python3 -B bench/bench_python.py
fi
if [ $found = 0 ]; then
    echo "bench: nothing in build/bench; run make bench" >&2
    exit 1
fi
