#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the current ClickHouse that package-lock.json names, and prints the path of its library. Does nothing, quickly,
# when it is there. One at a time, also from several tests.
set -eu
cd "$(dirname "$0")"
exec 9<.
flock 9
case $(uname -m) in
x86_64) library=$PWD/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so ;;
aarch64) library=$PWD/node_modules/@chdb/lib-linux-arm64-gnu/libchdb.so ;;
*)
    echo "install: there is no ClickHouse for $(uname -m)" >&2
    exit 3
    ;;
esac
if ! cmp -s package-lock.json node_modules/.installed || [ ! -f "$library" ]; then
    command -v npm >/dev/null 2>&1 || {
        echo "install: npm is missing; run tools/setup.sh npm" >&2
        exit 3
    }
    npm install --no-save --no-audit --no-fund >&2
    [ -f "$library" ] || {
        echo "install: npm did not install $library" >&2
        exit 3
    }
    cp package-lock.json node_modules/.installed
fi
echo "$library"
