#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python wheel of a portable build (tools/build_portable.sh): one for CPython 3.9 and newer, with server and dashboard,
# for every Linux with glibc 2.28 or newer.
# usage: build_wheel.sh TRIPLET [DIRECTORY]    TRIPLET: x86_64-linux-gnu or aarch64-linux-gnu; DIRECTORY: build/dist
set -euo pipefail
umask 022
case ${1:-} in
x86_64-linux-gnu | aarch64-linux-gnu) ;;
*)
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
directory=${2:-$(dirname "$0")/../build/dist}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)}
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=python/build_backend /usr/bin/python3 - "$1" "$directory" <<'END' >"$directory/wheel.log"
import sys

import gpufl_build

triplet, directory = sys.argv[1:]
settings = {"build-dir": f"build/portable/{triplet}", "platform": "linux_" + triplet.split("-")[0]}
name = gpufl_build.build_wheel(directory, settings)
if "manylinux" not in name:
    sys.exit(f"build_wheel: {name} needs more than the C library")
print(name)
END
tail -n 1 "$directory/wheel.log"
rm "$directory/wheel.log"
