#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What our libraries show to, and want from, the program they are loaded into. usage: check_symbols.sh LIBRARY_DIRECTORY
set -eu
directory=$1
status=0

fail() {
    echo "$1" >&2
    status=1
}

exported() { # names without version, without the version's own absolute symbol
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

library=$directory/libgpufl.so
inject=$directory/libgpufl_inject.so

include=$(dirname "$0")/../include/gpufl
# Functions that a header declares or defines inline; those that end in _ are the macros'.
declared() { # HEADER KIND: GPUFL_API, or "static inline"
    sed -n "s/^\\($2\\) [^(]*[ *]\\(gpufl_[a-z_]*[a-z]\\)(.*/\\2/p" "$1" | sort -u
}
api=$({
    declared "$include/gpufl.h" "GPUFL_API\|static inline"
    declared "$include/profiler_host.h" GPUFL_API
    echo gpufl_recording # data; gpufl_is_recording reads it
    echo gpufl_private   # for libgpufl_inject: src/sdk/injected.h
} | sort -u)
different=$(printf '%s\n%s\n' "$api" "$(exported "$library")" | sort | uniq -u)
[ -z "$different" ] || fail "either declared by an installed header or exported by libgpufl.so, and not both: $(echo "$different" | tr '\n' ' ')"
[ "$(echo "$api" | wc -l)" -gt 40 ] || fail "the installed headers declare too few functions: $(echo "$api" | tr '\n' ' ')"

[ "$(exported "$inject" | tr '\n' ' ')" = "InitializeInjection InitializeInjectionNvtx2 rocprofiler_configure " ] ||
    fail "libgpufl_inject.so must export InitializeInjection, InitializeInjectionNvtx2 and rocprofiler_configure only: $(exported "$inject" | tr '\n' ' ')"

preload=$directory/libgpufl_preload.so
strange=$(exported "$preload" | grep -vE '^(cupti[A-Z].*|dlsym|_exit|_Exit|gpufl_preload_[a-z]+)$' || true)
[ -z "$strange" ] || fail "libgpufl_preload.so exports more than CUPTI's functions, dlsym, _exit, _Exit and gpufl_preload_*: $(echo "$strange" | tr '\n' ' ')"

for file in "$library" "$inject" "$preload"; do
    wanted=$(nm -D --undefined-only "$file" | awk '$1 == "U" { print $2 }' |
        grep -E '^(ZSTD_|deflate|inflate|gz[a-z]+$|crc32$|curl_|SSL_|sqlite3_|cu[A-Z]|cupti|nvml|hip[A-Z]|hsa_|roctx|rocprofiler_)' || true)
    [ -z "$wanted" ] || fail "$file wants symbols it must bring itself or look up at run time: $(echo "$wanted" | tr '\n' ' ')"
    # The program's own libraries must never be replaced by ours.
    needed=$(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux.*|libgcc_s\.so\.1|libgpufl\.so\.[0-9]+)$' || true)
    [ -z "$needed" ] || fail "$file needs libraries beyond libc: $(echo "$needed" | tr '\n' ' ')"
done
# Uploads are in a separate library, the only one that may need HTTP; a build without libcurl does not have it.
upload=$directory/libgpufl-upload.so
if [ -e "$upload" ]; then
    [ "$(exported "$upload" | tr '\n' ' ')" = "gpufl_agent_run gpufl_config_fetch gpufl_upload_check gpufl_upload_post gpufl_upload_run " ] ||
        fail "libgpufl-upload.so must export its five entry points only: $(exported "$upload" | tr '\n' ' ')"
fi
# The server is in a separate library too, the only one that may need SQL and an HTTP server.
server=$directory/libgpufl-server.so
if [ -e "$server" ]; then
    [ "$(exported "$server" | tr '\n' ' ')" = "gpufl_server_main " ] ||
        fail "libgpufl-server.so must export gpufl_server_main only: $(exported "$server" | tr '\n' ' ')"
fi
for name in $(declared "$include/gpufl.h" GPUFL_API); do
    grep -q "[ (]$name," "$include/client.h" || fail "client.h has no body for $name"
done
exit $status
