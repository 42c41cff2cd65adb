#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a monitor at 1 Hz costs: CPU time and resident memory, on the real driver where there is one, else on the look-alike
# NVML with 8 GPUs (then it is our own part of the cost). nvidia-smi dmon runs beside it where it is installed.
# usage: bench_monitor.sh [BUILD_DIR] [SECONDS]
set -eu
build=${1:-$(dirname "$0")/../build}
seconds=${2:-20}
dir=$(mktemp -d)
pids=""
# shellcheck disable=SC2086
trap 'kill $pids 2>/dev/null || true; rm -rf "$dir"' EXIT

if [ -e /dev/nvidiactl ]; then
    where="the driver of this machine"
else
    where="the look-alike NVML, 8 GPUs"
    export GPUFL_NVML_PATH="$build/fakes" FAKE_GPU_COUNT=8
fi
cost() { # PID NAME: CPU since its start, resident memory and its peak
    ticks=$(sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}')
    awk -v name="$2" -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v s="$seconds" '
        /^VmRSS/ {rss = $2} /^VmHWM/ {peak = $2}
        END {printf "%-16s %6.2f %% of a core  %6.2f MiB resident  %6.2f MiB at most\n", name, 100 * ticks / hz / s, rss / 1024, peak / 1024}
    ' "/proc/$1/status"
}

"$build/bin/gpufl" monitor -o "$dir/log" -i 1000 --listen 127.0.0.1:0 2>"$dir/messages" &
monitor=$!
pids=$monitor
dmon=""
if command -v nvidia-smi >/dev/null 2>&1; then
    nvidia-smi dmon -d 1 >/dev/null &
    dmon=$!
    pids="$pids $dmon"
fi
sleep "$seconds"
echo "gpufl monitor, 1 Hz, $seconds s, $where; budget 0.3 % of a core and 12 MiB"
cost "$monitor" "gpufl monitor"
[ -z "$dmon" ] || cost "$dmon" "nvidia-smi dmon"
