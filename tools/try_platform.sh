#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpufl on another distribution, in a root directory with its packages and as root: plain `make`, the unit tests, a recording
# on the look-alike GPU, report, view, installation and removal. Writes one line "STEP yes" for each that works, and the
# versions that it met, to build/platforms/NAME.txt; tools/gen_platforms.py makes the table of docs/install.md of them.
# usage: try_platform.sh SUITE | ROOT_DIRECTORY    a suite of Debian, whose root is kept in build/platforms/SUITE
set -euo pipefail
cd "$(dirname "$0")/.."
place=${1:?usage: try_platform.sh SUITE | ROOT_DIRECTORY}
mkdir -p build/platforms
case $place in
*/*) root=$place ;;
*)
    root=$PWD/build/platforms/$place
    [ -d "$root" ] || tools/fresh_debian.sh make "$root" "$place"
    ;;
esac
platform=$(basename "$root")
result=$PWD/build/platforms/$platform.txt
: >"$result"

inside() { tools/fresh_debian.sh run "$root" env -C /gpufl DEBIAN_FRONTEND=noninteractive "$@"; }

step() { # NAME COMMAND...: quiet unless it fails
    local name=$1 log=build/platforms/$platform.log
    shift
    if "$@" >"$log" 2>&1; then
        echo "$name yes" >>"$result"
        echo "   $name: yes"
        return 0
    fi
    echo "$name no" >>"$result"
    echo "   $name: no"
    tail -n 60 "$log"
    exit 1
}

copy_source() {
    rm -rf "$root/gpufl"
    mkdir "$root/gpufl"
    git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
        [ ! -f "$file" ] || printf '%s\0' "$file"
    done | tar --create --null --files-from=- | tar --extract --no-same-owner --directory "$root/gpufl"
}

build() { inside sh -euc 'apt-get -q update; apt-get -q install -y --no-install-recommends make; make'; }

# Not bench, and not the tests that need other tools: these are the same programs.
unit_tests() {
    # shellcheck disable=SC2016 # expanded inside
    inside sh -euc 'tools/setup.sh unit
        cmake -S . -B build -DGPUFL_TESTS=ON
        ninja -C build
        cd build
        ctest -j"$(($(nproc) * 2))" --output-on-failure -LE "e2e|python|docs"'
}

with_fake_gpu() {
    # shellcheck disable=SC2016 # expanded inside
    inside sh -euc 'fakes=/gpufl/build/fakes
        export LD_LIBRARY_PATH=$fakes GPUFL_CUDA_PATH=$fakes GPUFL_CUPTI_PATH=$fakes GPUFL_NVML_PATH=$fakes
        export GPUFL_MIN_FREE_BYTES=0 PATH=/gpufl/build/bin:$PATH
        eval "$0"' "$1"
}

record() {
    with_fake_gpu 'rm -rf /recorded; gpufl trace -o /recorded -- build/fakes/fake_app --launches 500 --scopes
        gpufl verify /recorded'
}

report() { with_fake_gpu 'gpufl report /recorded | tee /report.txt; grep "500 executions" /report.txt'; }

view() {
    # shellcheck disable=SC2016 # expanded inside
    with_fake_gpu 'mkfifo /url 2>/dev/null || true
        gpufl view --no-browser /recorded >/url & viewer=$!
        read -r url </url
        python3 -c "import sys, urllib.request as u; assert b\"<html\" in u.urlopen(sys.argv[1]).read().lower()" "$url"
        kill -INT "$viewer"; wait "$viewer"'
}

install_and_remove() {
    inside sh -euc 'find /usr/local ! -type d | sort >/before.txt
        cmake --install build --prefix /usr/local
        ldconfig
        /usr/local/bin/gpufl version
        cmake --build build --target uninstall
        find /usr/local ! -type d | sort | diff /before.txt -'
}

versions() {
    # shellcheck disable=SC2016 # expanded inside
    inside sh -euc '. /etc/os-release
        echo "distribution $NAME $VERSION_ID"
        echo "architecture $(uname -m)"
        echo "compiler gcc $(gcc -dumpfullversion | cut -d. -f1)"
        dpkg-query -W -f "\${Package} \${Version}\n" libc6 libcurl4-gnutls-dev libmicrohttpd-dev libsqlite3-dev' |
        sed -E 's/^(lib[^ ]*) ([0-9]+:)?(0\.[0-9]+\.[0-9]+|[0-9]+\.[0-9]+).*/\1 \3/'
}

echo "== $platform"
step "source" copy_source
step "builds" build
step "unit-tests" unit_tests
step "record" record
step "report" report
step "view" view
step "install-and-remove" install_and_remove
versions >>"$result"
