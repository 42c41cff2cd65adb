#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds web/ and writes it as a C table of files. AUTO: where that is not possible, an empty table; ON: an error.
# usage: build_dashboard.sh AUTO|ON|OFF DIRECTORY    writes DIRECTORY/dist and DIRECTORY/dashboard_files.c
set -eu
mode=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../web"

# without REASON: the server gets no dashboard, or the build ends
without() {
    if [ "$mode" = ON ]; then
        echo "build_dashboard: $1" >&2
        exit 1
    fi
    [ "$mode" = OFF ] || echo "build_dashboard: $1; the server is built without the dashboard" >&2
    rm -rf "$out/dist" "$out/licenses.json"
    cat >"$out/dashboard_files.c" <<'TABLE'
/* SPDX-License-Identifier: Apache-2.0 */
#include "server/dashboard.h"

const struct http_static_file dashboard_files[] = {{0}};
const size_t dashboard_file_count = 0;
TABLE
    [ -n "$1" ] || set -- "it was switched off (GPUFL_DASHBOARD=OFF)"
    printf 'const char dashboard_missing[] = "%s";\n' "$(printf %s "$1" | tr -d '\\\\"')" >>"$out/dashboard_files.c"
    exit 0
}

[ "$mode" != OFF ] || without ""
for tool in node npm; do
    command -v $tool >/dev/null 2>&1 || without "there is no $tool"
done
# Distributions carry an older Node.js than the bundler needs; npm has a newer one.
export PATH="$out/node/node_modules/.bin:$PATH"
is_new_enough() {
    node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a == 20 && +b >= 19) ? 0 : 1)'
}
is_new_enough || npm install --prefix "$out/node" --no-save --no-audit --no-fund node@22 >"$out/node.log" 2>&1 || true
hash -r
is_new_enough || without "Node.js $(node --version) is too old: 20.19 is needed"

# One at a time, also from several build directories.
packages_install() {
    ! cmp -s package-lock.json node_modules/.installed || return 0
    # Not `npm ci`: it refuses a lock without the bundler's binaries for other platforms. Versions and checksums of the
    # lock hold here too.
    npm install --no-save --no-audit --no-fund >"$out/npm.log" 2>&1 && cp package-lock.json node_modules/.installed
}
exec 9<.
flock 9 2>/dev/null || true
packages_install || {
    tail -n 20 "$out/npm.log" >&2
    without "npm could not install what web/package-lock.json lists"
}
node_modules/.bin/vite build --logLevel warn --outDir "$out/dist" --emptyOutDir >"$out/vite.log" 2>&1 || {
    tail -n 40 "$out/vite.log" >&2
    without "vite could not build web/"
}
mv "$out/dist/.vite/licenses.json" "$out/licenses.json"
rmdir "$out/dist/.vite"
node tools/embed.mjs "$out/dist" "$out/dashboard_files.c"
