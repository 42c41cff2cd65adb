#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records a program and fails when its kernels or scopes became slower than in the baseline.
# usage: gate.sh BASELINE CMD...
#   BASELINE: a directory that CI keeps between runs, for example in a cache or as an artifact of the main branch. The
#   first run, which finds none, makes it; GATE_UPDATE=1 makes it anew from this run, once a change is meant.
# GATE_THRESHOLD (5): ignore changes below this percentage. GATE_REPORT: a file for the comparison as JSON.
# GPUFL (gpufl): the program. Exit status 0: no regression. 1: a regression, printed. 2: wrong usage. 3: nothing to
# compare: the program failed, its recording is not complete or without kernels, or the baseline is of another program.
set -u
gpufl=${GPUFL:-gpufl}
if [ $# -lt 2 ]; then
    echo "usage: gate.sh BASELINE CMD..." >&2
    exit 2
fi
baseline=$1
shift
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT

"$gpufl" trace --quiet --name gate --output "$work/new" -- "$@" || {
    echo "gate: the program failed with status $?: $*" >&2
    exit 3
}
verified=$("$gpufl" verify "$work/new") || {
    echo "gate: the recording is not complete: $verified" >&2
    exit 3
}
case $verified in
*" kernels,"*) ;;
*)
    echo "gate: no kernels were recorded; \`gpufl doctor\` says what is missing here" >&2
    exit 3
    ;;
esac

keep() { # one session, compressed
    rm -rf "$baseline" && mkdir -p "$(dirname "$baseline")" && "$gpufl" seal "$work/new" >/dev/null &&
        mv "$work/new" "$baseline" && echo "gate: $baseline is the baseline now"
}

if [ ! -d "$baseline" ]; then
    keep || exit 3
    exit 0
fi
if [ -n "${GATE_REPORT:-}" ]; then
    "$gpufl" diff --threshold "${GATE_THRESHOLD:-5}" --json "$baseline" "$work/new" >"$GATE_REPORT"
fi
"$gpufl" diff --threshold "${GATE_THRESHOLD:-5}" "$baseline" "$work/new"
status=$?
if [ "$status" -ne 2 ] && [ -n "${GATE_UPDATE:-}" ]; then
    keep || exit 3
    exit 0
fi
exit "$status"
