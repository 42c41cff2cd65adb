#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the files of web/dist as a C table that the server serves from: plain and compressed, sorted by path.
# usage: embed_dashboard.sh DIST OUT.c
set -eu
export LC_ALL=C
out=$2.part

# literal NAME: standard input as a string of escapes, which compiles faster than a list of numbers
literal() {
    echo "static const char $1[] ="
    od -An -v -tx1 -w32 | sed 's/ /\\x/g; s/.*/    "&"/'
    echo ";"
}

type_of() {
    case $1 in
    *.html) echo "text/html; charset=utf-8" ;;
    *.js) echo "text/javascript; charset=utf-8" ;;
    *.css) echo "text/css; charset=utf-8" ;;
    *.svg) echo "image/svg+xml" ;;
    *)
        echo "embed_dashboard: $1: the server has no type for this kind of file" >&2
        exit 1
        ;;
    esac
}

cat >"$out" <<'HEAD'
/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from web/dist. */
#include "server/dashboard.h"
/* Strings as long as these are beyond what the standard promises, and fine with every compiler that we use. */
#pragma GCC diagnostic ignored "-Woverlength-strings"
HEAD
rows="" count=0
for path in $(cd "$1" && find . -type f ! -name licenses.json | sed 's|^\./||' | sort); do
    type=$(type_of "$path")
    literal "data_$count" <"$1/$path" >>"$out"
    gzip -9nc "$1/$path" | literal "gzip_$count" >>"$out"
    case $path in assets/*) is_immutable=true ;; *) is_immutable=false ;; esac
    etag=$(sha256sum "$1/$path" | cut -c 1-16)
    rows="$rows
    {\"$path\", \"$type\", data_$count, sizeof data_$count - 1, gzip_$count, sizeof gzip_$count - 1, \"$etag\", $is_immutable},"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || {
    echo "embed_dashboard: $1 is empty; run 'make dashboard'" >&2
    exit 1
}
cat >>"$out" <<TABLE
const struct http_static_file dashboard_files[] = {$rows
};
const size_t dashboard_file_count = $count;
TABLE
mv "$out" "$2"
