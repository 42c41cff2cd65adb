#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bundles web/ into web/dist, which is committed, so that building gpufl needs no Node.js.
# usage: build_dashboard.sh [--check]    --check: fail if web/dist is not what web/ gives, and leave it alone
set -eu
cd "$(dirname "$0")/../web"
mkdir -p ../build/dashboard
out=$(cd ../build/dashboard && pwd)

fail() { # MESSAGE [LOG]
    [ $# = 1 ] || tail -n 40 "$2" >&2
    echo "build_dashboard: $1" >&2
    exit 1
}

for tool in node npm; do
    command -v $tool >/dev/null 2>&1 || fail "$tool is missing; run tools/setup.sh npm"
done
# Debian 12 has an older Node.js than the bundler needs; npm has a newer one.
export PATH="$out/node/node_modules/.bin:$PATH"
is_new_enough() {
    node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a == 20 && +b >= 19) ? 0 : 1)'
}
is_new_enough || npm install --prefix "$out/node" --no-save --no-audit --no-fund node@22 >"$out/node.log" 2>&1 ||
    fail "Node.js $(node --version) is too old (20.19 is needed), and npm could not install a newer one" "$out/node.log"

if ! cmp -s package-lock.json node_modules/.installed; then
    # Not `npm ci`: it refuses a lock without the bundler's binaries for other platforms. Versions and checksums of the
    # lock hold here too.
    npm install --no-save --no-audit --no-fund >"$out/npm.log" 2>&1 ||
        fail "npm could not install what web/package-lock.json lists" "$out/npm.log"
    cp package-lock.json node_modules/.installed
fi
node_modules/.bin/vite build --logLevel warn --outDir "$out/dist" --emptyOutDir >"$out/vite.log" 2>&1 ||
    fail "vite could not build web/" "$out/vite.log"
mv "$out/dist/.vite/licenses.json" "$out/dist/licenses.json"
rmdir "$out/dist/.vite"

if [ "${1:-}" = --check ]; then
    diff -rq "$out/dist" dist || fail "web/dist is out of date: run 'make dashboard' and commit web/dist"
else
    rm -rf dist
    cp -r "$out/dist" dist
fi
