#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that CI runs, in sections; stops at the first that fails and shows the end of its log.
# usage: run_tests.sh [SECTION...]    check headers gcc python web packages roots portable symbols no-cuda arm64 asan tsan fuzz lint
# Environment: FUZZ_SECONDS (30; for the readers of code twice as long) per fuzzer, JOBS (number of cores).
# shellcheck disable=SC2317 # sections are called by name
set -u
cd "$(dirname "$0")/.." || exit 1

fuzz_seconds=${FUZZ_SECONDS:-30}
jobs=${JOBS:-$(nproc)}
logs=$PWD/build/logs
export PATH=$PWD/build/dashboard/node/node_modules/.bin:$PATH # where build_dashboard.sh puts Node.js when it is too old
passed=0
failed=0
mkdir -p "$logs"

# Sanitizers of this age do not know the address layout of newer kernels; fixed addresses suit both.
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses=(setarch "$(uname -m)" -R)
fi

finish() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
    exit
}

# step NAME COMMAND...: one check, its output in a log that is shown when it fails
step() {
    local name=$1 log
    shift
    log=$logs/${name//[^a-zA-Z0-9]/-}.log
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf '   ok   %s\n' "$name"
        return 0
    fi
    failed=$((failed + 1))
    printf '   FAIL %s: the end of %s\n' "$name" "${log#"$PWD"/}"
    tail -n 80 "$log"
    return 1
}

# ctest_step NAME DIRECTORY [CTEST OPTION...]: counts each test
ctest_step() {
    local name=$1 directory=$2 log total bad status
    shift 2
    log=$logs/ctest-$name.log
    # Two for each core: most end-to-end tests wait for something most of the time.
    "${fixed_addresses[@]}" ctest --test-dir "$directory" -j"$((jobs * 2))" --output-on-failure --no-tests=error "$@" >"$log" 2>&1
    status=$?
    read -r bad total < <(sed -n 's/.* \([0-9]*\) tests\? failed out of \([0-9]*\).*/\1 \2/p' "$log" | tail -n 1)
    if [ -z "${total:-}" ]; then
        total=1
        bad=1
    fi
    passed=$((passed + total - bad))
    failed=$((failed + bad))
    grep 'tests passed' "$log" | sed 's/^/   /'
    if [ "$status" != 0 ]; then
        [ "$bad" != 0 ] || failed=$((failed + 1))
        printf '   FAIL %s: the end of %s\n' "$name" "${log#"$PWD"/}"
        tail -n 120 "$log"
        return 1
    fi
}

# build_preset PRESET [TARGET...]
build_preset() {
    local preset=$1 directory=build/$1
    shift
    [ "$preset" != default ] || directory=build
    cmake --preset "$preset" && ninja -C "$directory" -j "$jobs" "$@"
}

section_check() {
    step "layers" tools/check_layers.py &&
        step "tidy" tools/tidy.py &&
        step "generated files are fresh" tools/gen_schema.py --check &&
        step "the page of options is fresh" tools/gen_options.py --check &&
        step "the table of platforms is fresh" tools/gen_platforms.py --check &&
        step "every vendor function is watched" tools/gen_watched_calls.py --check &&
        step "the kinds of kernels are fresh" tools/gen_kernel_kinds.py --check &&
        step "the book" tools/build_book.py --check &&
        step "tests of the checks" /usr/bin/python3 -B tests/tools/test_checks.py &&
        step "test of the hardening check" /usr/bin/python3 -B tests/tools/test_hardening.py &&
        step "test of the language check" /usr/bin/python3 -B tests/tools/test_wording.py &&
        step "formatting" tools/format.sh --check &&
        step "shellcheck" shellcheck tools/*.sh tests/packaging/*.sh packaging/debian/*.p* packaging/tarball/*.sh .ci/run
}

section_headers() {
    step "public headers are self-contained" tools/check_headers.sh
}

section_gcc() {
    step "gcc build" build_preset default &&
        step "hardening" tools/check_hardening.py build/compile_commands.json build/bin build/lib build/python && ctest_step gcc build -LE '^python$'
}

section_python() {
    step "flake8" flake8 --select=F python tests/python bench/bench_python.py &&
        step "Python build" build_preset default && ctest_step python build -L '^python$'
}

# node_step NAME FILE...: browser tests, each counted
node_step() {
    local name=$1 log good bad
    shift
    log=$logs/${name//[^a-zA-Z0-9]/-}.log
    GPUFL_BUILD_DIR=$PWD/build node --test --test-concurrency=1 --test-reporter=tap "$@" >"$log" 2>&1
    local status=$?
    good=$(sed -n 's/^# pass //p' "$log") bad=$(sed -n 's/^# fail //p' "$log")
    passed=$((passed + ${good:-0}))
    printf '   %s: %s passed, %s failed\n' "$name" "${good:-0}" "${bad:-all}"
    [ "$status" = 0 ] && return 0
    failed=$((failed + ${bad:-1}))
    printf '   FAIL %s: the failures of %s\n' "$name" "${log#"$PWD"/}"
    grep -A 30 '^ *not ok' "$log" | head -n 120
    return 1
}

# Lock files must not say where packages come from.
locks_are_portable() {
    ! grep -n '"resolved"' web/package-lock.json tests/*/package-lock.json
}

section_web() {
    step "web: lock files name no host" locks_are_portable &&
        step "web: the committed bundle is up to date" tools/build_dashboard.sh --check &&
        step "web: the server" tools/build.sh all gpufl_cli gpufl_server_so gpufl_upload_so &&
        step "web: types" npm --prefix web run check &&
        step "web: logic" npm --prefix web test &&
        step "web: size" node web/tools/bundle-size.mjs web/dist &&
        step "web: the official MCP client" npm --prefix tests/mcp ci --no-audit --no-fund &&
        node_step "web: MCP" tests/mcp/*.test.mjs &&
        node_step "web: browser" tests/ui/*.test.mjs
}

# package_step NAME: the tests in tests/packaging/test_NAME.py, on what cmake --install makes of build/, or on the packages
package_step() {
    step "packages: $1" env GPUFL_BUILD_DIR="$PWD/build" GPUFL_DEB_DIR="$PWD/build/deb" /usr/bin/python3 -B "tests/packaging/test_$1.py"
}

section_packages() {
    step "packages: build" build_preset default && package_step install && package_step outside && package_step dependency && package_step languages && package_step units &&
        package_step images && package_step cluster && package_step abi && package_step abi_growth || return 1
    step "packages: Debian packages" tools/build_deb.sh build/deb &&
        step "packages: hardening" tools/check_hardening.py build/deb/stage && package_step deb && package_step sbom && package_step reproducible &&
        step "packages: documentation" env GPUFL_BUILD_DIR="$PWD/build" /usr/bin/python3 -B tests/docs/test_packaged_blocks.py &&
        step "packages: README and quick starts in a fresh Debian" env GPUFL_BUILD_DIR="$PWD/build" /usr/bin/python3 -B tests/docs/test_fresh_root.py
}

# portable_step TRIPLET: builds it, and checks what can be checked without running it
portable_step() {
    local build=build/portable/$1
    step "portable: $1" tools/build_portable.sh "$1" &&
        step "portable: hardening of $1" tools/check_hardening.py "$build/compile_commands.json" "$build/bin" "$build/lib" || return 1
    case $1 in
    *-gnu) step "portable: $1 needs glibc 2.28 alone" tools/check_glibc.py 2.28 "$build/bin" "$build/lib" "$build/python" ;;
    esac
}

# The wheel in a fresh system on every run; which one, and which of the other portable builds, by the day of the year.
section_portable() {
    local others=(x86_64-linux-musl aarch64-linux-gnu aarch64-linux-musl) suites=(bullseye bookworm trixie) other suite day
    day=$((10#$(date +%j)))
    other=${others[$((day % ${#others[@]}))]} suite=${suites[$((day % ${#suites[@]}))]}
    printf '   of %s today: %s; of %s: %s\n' "${others[*]}" "$other" "${suites[*]}" "$suite"
    step "portable: look-alikes" build_preset default && portable_step x86_64-linux-gnu && step "portable: wheel" tools/build_wheel.sh x86_64-linux-gnu &&
        GPUFL_WHEEL_SUITES=$suite package_step wheel_roots && package_step tarball && portable_step "$other" || return 1
    case $other in
    *-musl) step "portable: static program" env GPUFL_BUILD_DIR="$PWD/build" GPUFL_STATIC_TRIPLET="$other" \
        /usr/bin/python3 -B tests/packaging/test_static.py ;;
    esac
}

# The oldest and the newest Debian: build, unit tests, recording, report and view there. Their roots are kept in build/platforms.
section_roots() {
    local suite
    for suite in bullseye trixie; do
        step "roots: $suite" tools/try_platform.sh "$suite" || return 1
    done
    step "roots: docs/install.md says what ran" tools/gen_platforms.py --agree build/platforms/bullseye.txt build/platforms/trixie.txt
}

section_symbols() {
    step "exported symbols" tools/check_symbols.sh build/lib
}

section_no-cuda() {
    step "build without a CUDA toolkit" build_preset no-cuda gpufl gpufl_inject gpufl_cli
}

# 64-bit Arm, cross-built and under qemu.
section_arm64() {
    step "arm64: libraries" tools/cross_arm64.sh sysroot && step "arm64: build" tools/cross_arm64.sh build &&
        step "arm64: hardening" tools/check_hardening.py build/arm64/compile_commands.json build/arm64/bin build/arm64/lib &&
        step "arm64: unit tests, and sessions across architectures" tools/cross_arm64.sh test
}

# sanitized_step NAME OPTIONS: the tests of build/NAME; a report of any of their processes counts, also of one whose
# exit status nobody looked at
sanitized_step() {
    local name=$1 options=$2 reports=$logs/reports-$1 status=0
    rm -rf "$reports"
    mkdir -p "$reports"
    options=$options:log_path=$reports/report
    ASAN_OPTIONS=$options UBSAN_OPTIONS=$options TSAN_OPTIONS=$options ctest_step "$name" "build/$name" -LE "no_$name" ||
        status=1
    # The notice comes from forked children, in which the leak checker misses the parent's threads; there it may also fail itself.
    if grep -rhvE 'was not suspended. False leaks are possible|Tracer caught signal|LeakSanitizer has encountered|HINT: ' "$reports" |
        grep -q .; then
        failed=$((failed + 1)) status=1
        printf '   FAIL %s: the start of %s\n' "$name" "${reports#"$PWD"/}/*"
        head -qn 40 "$reports"/* | head -n 120
    fi
    return "$status"
}

section_asan() {
    step "clang build with address and undefined-behaviour sanitizers" build_preset asan &&
        sanitized_step asan print_stacktrace=1
}

# By default each of a thousand processes waits a second at its end for races.
section_tsan() {
    step "build with the thread sanitizer" build_preset tsan &&
        sanitized_step tsan halt_on_error=1:atexit_sleep_ms=100
}

# Two fuzzers write a session directory per run: in memory that is twice as many runs.
fuzz_tmp=${TMPDIR:-/tmp}
[ ! -w /dev/shm ] || fuzz_tmp=/dev/shm

# What these read, others read on their way: a third of the time is enough.
fuzz_seconds_of() {
    case $1 in
    fuzz_batch | fuzz_column_codec | fuzz_http_parse | fuzz_json) echo $(((fuzz_seconds + 2) / 3)) ;;
    fuzz_cubin | fuzz_line_table) echo $((fuzz_seconds * 2)) ;;
    *) echo "$fuzz_seconds" ;;
    esac
}

# fuzz_one PROGRAM: exit status of libFuzzer, its log beside the others
fuzz_one() {
    local name corpus
    name=$(basename "$1")
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus"
    TMPDIR=$fuzz_tmp "${fixed_addresses[@]}" "$1" -max_total_time="$(fuzz_seconds_of "$name")" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -dict=tests/fuzz/words.dict \
        -artifact_prefix="build/fuzz/finding-$name-" "$corpus" "tests/fuzz/corpus/${name#fuzz_}" \
        >"$logs/$name.log" 2>&1
}

# fuzz_report NAME STATUS
fuzz_report() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        printf '   ok   %s: %s runs, no finding\n' "$1" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$1.log")"
    else
        failed=$((failed + 1))
        printf '   FAIL %s: the end of build/logs/%s.log\n' "$1" "$1"
        grep -v $'\t\\(REDUCE\\|NEW\\|pulse\\) ' "$logs/$1.log" | tail -n 60
    fi
}

section_fuzz() {
    step "fuzzers build" build_preset fuzz fuzzers || return 1
    local programs=(build/fuzz/fuzzers/fuzz_*) at_once=$((jobs * 2)) before=$failed program pid status
    [ -x "${programs[0]}" ] || { echo "   FAIL no fuzzers were built"; failed=$((failed + 1)); return 1; }
    printf '   %d fuzzers, up to %s s each, %d at a time\n' "${#programs[@]}" "$fuzz_seconds" "$at_once"
    local -A names=()
    for program in "${programs[@]}" ""; do
        while [ "${#names[@]}" -ge "$at_once" ] || { [ -z "$program" ] && [ "${#names[@]}" -gt 0 ]; }; do
            status=0
            wait -n -p pid "${!names[@]}" || status=$?
            fuzz_report "${names[$pid]}" "$status"
            unset "names[$pid]"
        done
        [ -z "$program" ] || { fuzz_one "$program" & names[$!]=$(basename "$program"); }
    done
    [ "$failed" -eq "$before" ]
}

section_lint() {
    step "cppcheck" tools/lint.sh cppcheck && step "clang-tidy" tools/lint.sh clang-tidy
}

sections=("$@")
[ $# -gt 0 ] || sections=(check headers gcc python web packages roots portable symbols no-cuda arm64 asan tsan fuzz lint)
for section in "${sections[@]}"; do
    if ! declare -F "section_$section" >/dev/null; then
        echo "run_tests: no section '$section'; sections are check headers gcc python web packages roots portable symbols no-cuda arm64 asan tsan fuzz lint" >&2
        exit 2
    fi
done
for section in "${sections[@]}"; do
    printf '== %s (at %d:%02d)\n' "$section" $((SECONDS / 60)) $((SECONDS % 60))
    "section_$section" || finish
done
printf '== done (at %d:%02d)\n' $((SECONDS / 60)) $((SECONDS % 60))
finish
