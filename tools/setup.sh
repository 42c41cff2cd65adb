#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a job needs and that are missing. Does nothing, quickly, when all are there.
# A package that this distribution does not have is named and left out, unless the build needs it.
# usage: setup.sh build|unit|test|check|docs|format|web|npm|packages|deb|arm64|portable ...
set -eu

needed="cmake ninja-build gcc g++ libzstd-dev zlib1g-dev libcurl4-gnutls-dev libmicrohttpd-dev libsqlite3-dev python3-dev" # by the build
packages=""
for job in "$@"; do
    case $job in
    build) packages="$packages $needed" ;;
    # For web/, tests/mcp and a current ClickHouse (tests/clickhouse/install.sh). tools/build_dashboard.sh brings a newer Node.js.
    npm) command -v npm >/dev/null 2>&1 || packages="$packages nodejs npm" ;;
    unit) packages="$packages libcmocka-dev openssl" ;; # of the tests in tests/unit
    test) packages="$packages python3-pip python3-venv python3-numpy python3-pandas python3-matplotlib mypy flake8 clang lld llvm libclang-rt-dev libcmocka-dev librocm-smi-dev libunwind8 libdw1 python3 zsh fish zstd binutils util-linux locales groff-base openssl prometheus clickhouse-server libzookeeper-java default-jre-headless" ;;
    check) packages="$packages gcc g++ clang-tidy clang-format cppcheck shellcheck python3 git" ;;
    docs) packages="$packages golang-go rustc cmark-gfm curl python3 python3-yaml pkg-config util-linux mount openssl prometheus" ;;
    format) packages="$packages clang-format python3" ;;
    web) packages="$packages chromium fonts-dejavu-core" ;;
    packages)
        packages="$packages pkg-config systemd wget yamllint python3-yaml python3-kubernetes docker-compose golang-go rustc"
        packages="$packages golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev abigail-tools debootstrap"
        ;;
    deb) packages="$packages dpkg-dev lintian xz-utils" ;;
    arm64) packages="$packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user-static" ;;
    portable) packages="$packages gcc-aarch64-linux-gnu qemu-user-static dpkg-dev make tcl debootstrap python3" ;;
    *)
        echo "setup: no job '$job'; jobs are build, unit, test, check, docs, format, web, npm, packages, deb, arm64, portable" >&2
        exit 2
        ;;
    esac
done

[ -n "$packages" ] || exit 0
if ! command -v dpkg-query >/dev/null 2>&1; then
    # Not Debian: the names differ, the tools do not. The build names what it lacks.
    exit 0
fi

missing=""
# One query for all; packages it never heard of are absent from its answer.
# shellcheck disable=SC2086
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages 2>/dev/null | sed -n 's/^installed //p' || true)
for package in $packages; do
    case "
$installed
" in
    *"
$package
"*) ;;
    *) case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup: these packages are missing; install them and run make again:" >&2
    echo "  sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 3
fi

echo "setup: installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Servers are installed for the tests, which start their own; the packages must not start theirs.
export RUNLEVEL=1
fail() {
    tail -n 20 "$log" >&2
    echo "setup: apt-get could not install:$missing" >&2
    echo "  check the network and the package sources, then run make again" >&2
    exit 3
}

apt-get update -q >"$log" 2>&1 || fail
there=""
for package in $missing; do
    case " $needed " in
    *" $package "*) there="$there $package" ;;
    *) if apt-cache show "$package" >/dev/null 2>&1; then
        there="$there $package"
    else
        echo "setup: this distribution has no $package: tests that need it are skipped" >&2
    fi ;;
    esac
done
[ -n "$there" ] || exit 0
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $there >"$log" 2>&1 || fail
