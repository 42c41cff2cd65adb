#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that a machine with a GPU has to prove or to record, in order, each step under a time limit. Call it
# again, with the same words, until nothing remains: what is done is noted in WORK_DIR and not done again.
# usage: tests/device/all.sh [BUILD_DIR [WORK_DIR [OUT_DIR [STEP...]]]]
#   BUILD_DIR (build/device) is built when there is no gpufl in it; WORK_DIR: build/device-work; OUT_DIR: $OUT or
#   build/device-out. STEP: only these, even if they were done before; `list` prints them.
# LIMIT_S (570): of this call. A step that cannot begin, or does not end, in time remains and is named at the end.
# OUT_DIR/table.txt: each step's table, of all calls. gemm.md belongs to docs/, recorded.tar.gz into
# examples/recorded, files.tar.gz has the logs and all that the steps left. Exit status 0: everything held. 1:
# something did not, or remains.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/device
limit=${LIMIT_S:-570}

# name, its limit in seconds, the least time worth a start
steps=(
    "deep-neighbours 130 60" "sampling-cost 400 250" "sampling-windows 150 130" "deep-launches 110 70" "deep-step 180 120"
    "deep-streams 80 40" "deep-cosine 80 40" "deep-sass 90 50" "deep-deep 200 120" "deep-range 150 60" "deep-pm 130 60"
    "deep-records 90 40" "step-cost 200 100" "monitor 140 100" "python 200 90" "scope-owner 400 120" "cupti-python 200 60" "examples 180 60"
    "gemm-story 370 150" "record-demo 420 150" "memory 640 120" "matrix 560 300" "slowdown 500 300"
)
if [ "${1:-}" = list ]; then
    printf '%s\n' "${steps[@]}"
    exit 0
fi
build=$(realpath -m "${1:-build/device}") work=$(realpath -m "${2:-build/device-work}")
out=$(realpath -m "${3:-${OUT:-build/device-out}}")
wanted=" ${*:4} "
mkdir -p "$work/examples" "$out" || exit 1
touch "$work/done"
export PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH" PYTHONUNBUFFERED=1
table=$work/table.txt # of all calls
remaining=()
failures=0

step_command() { # NAME SECONDS: runs it
    local mine=$work/out-$1
    mkdir -p "$mine"
    case $1 in
    step-cost) STEPS=added,floor python3 "$here/step_cost.py" "$build" "$work" "$mine" ;;
    sampling-*) STEPS=${1#sampling-} && STEPS=${STEPS/cost/sampling} python3 "$here/step_cost.py" "$build" "$work" "$mine" ;;
    deep-*) STEPS=${1#deep-} "$here/run.sh" "$build" "$work" "$mine" deep_check.py ;;
    memory) STEPS=memory MEMORY_S=$(($2 - 60)) "$here/run.sh" "$build" "$work" "$mine" deep_check.py ;;
    matrix | slowdown) python3 "$here/${1/slowdown/slowdown_check}.py" "$build" "$work" "$mine" ;;
    monitor) "$here/run.sh" "$build" "$work" "$mine" monitor_check.py ;;
    coexist) python3 "$here/coexist_check.py" "$build" "$work/coexist" ;;
    python) PYTHONPATH=$build/python python3 "$here/python_check.py" "$mine" ;;
    scope-owner) PYTHONPATH=$build/python python3 "$here/scope_owner_check.py" "$mine" ;;
    cupti-python) PYTHONPATH=$build/python python3 "$here/cupti_python_check.py" ;;
    examples) python3 "$here/examples_check.py" "$build" "$work/examples" "$mine" ;;
    gemm-story) python3 "$here/gemm_story.py" "$build" "$work/examples" "$mine" ;;
    record-demo) python3 "$here/record_demo.py" "$build" "$work/examples" "$mine" ;;
    esac
}

process_tree() { # PID: the process and everything it started, also in other sessions
    local child
    echo "$1"
    # shellcheck disable=SC2013 # words of one line
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        process_tree "$child"
    done
}

step_run() { # NAME SECONDS: exit status of the step, 124 when it did not end in time
    local step timer first status
    step_command "$1" "$2" >"$work/log-$1" 2>&1 &
    step=$!
    sleep "$2" &
    timer=$!
    wait -n -p first "$step" "$timer"
    status=$?
    if [ "$first" = "$timer" ]; then
        # shellcheck disable=SC2046 # a word each
        kill -KILL $(process_tree "$step") 2>/dev/null
        status=124
    else
        kill "$timer" 2>/dev/null
    fi
    wait "$step" "$timer" 2>/dev/null
    return "$status"
}

step_note() { # NAME STATUS SECONDS: what it said, into the table
    {
        printf '\n## %s: exit %s after %s s\n' "$@"
        grep '^|' "$work/log-$1" || tail -n 100 "$work/log-$1"
    } >>"$table"
    printf -- '-- %s: exit %s after %s s\n' "$@"
    if grep -q '^|' "$work/log-$1"; then
        grep '^|.*DOES NOT HOLD' "$work/log-$1"
    else
        tail -n 12 "$work/log-$1"
    fi
    # At once, and few files: whoever ends this call early still gets them.
    cp "$table" "$out/"
    [ ! -f "$work/out-gemm-story/gemm.md" ] || cp "$work/out-gemm-story/gemm.md" "$out/gemm.md"
    [ ! -f "$work/out-record-demo/recorded.tar.gz" ] || cp "$work/out-record-demo/recorded.tar.gz" "$out/"
    (cd "$work" && tar czf files.tar.gz --exclude=recorded.tar.gz --exclude='*.log*' log-* out-*) &&
        mv "$work/files.tar.gz" "$out/"
}

if [ ! -x "$build/bin/gpufl" ]; then
    if ! { cmake -S . -B "$build" -G Ninja -DGPUFL_SERVER=OFF -DGPUFL_TESTS=OFF -DGPUFL_DEMO_APP=OFF &&
        cmake --build "$build"; } >"$work/log-build" 2>&1; then
        tail -n 40 "$work/log-build"
        exit 1
    fi
    echo "-- built after $SECONDS s"
fi
{
    date -u +'# %Y-%m-%d %H:%M UTC'
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
} >>"$table"

for line in "${steps[@]}"; do
    read -r name most least <<<"$line"
    if [ "$wanted" != "  " ]; then
        [[ $wanted == *" $name "* ]] || continue
    elif grep -qx "$name" "$work/done"; then
        continue
    fi
    left=$((limit - SECONDS - 10))
    if [ "$left" -lt "$least" ]; then
        remaining+=("$name")
        continue
    fi
    began=$SECONDS
    seconds=$((left < most ? left : most))
    step_run "$name" "$seconds"
    status=$?
    step_note "$name" "$status" "$((SECONDS - began))"
    [ "$status" = 0 ] || failures=$((failures + 1))
    if [ "$status" = 124 ] && [ "$seconds" -lt "$most" ]; then
        remaining+=("$name") # its own limit was not reached: it is worth another call
    else
        echo "$name" >>"$work/done"
    fi
done

echo "-- ${#remaining[@]} steps remain: ${remaining[*]:-none}; $failures did not end well; $SECONDS s" | tee -a "$table"
cp "$table" "$out/"
[ "$failures" = 0 ] && [ ${#remaining[@]} = 0 ]
