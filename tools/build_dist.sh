#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The source of the latest commit as gpufl-VERSION.tar.gz; the same commit gives the same bytes.
# usage: build_dist.sh [DIRECTORY]    (build)
set -eu
cd "$(dirname "$0")/.."
directory=${1:-build}
version=$(git show HEAD:include/gpufl/gpufl.h | sed -n 's/.*GPUFL_VERSION_STRING "\(.*\)"/\1/p')
file=$directory/gpufl-$version.tar.gz
mkdir -p "$directory"
git archive --format=tar --prefix="gpufl-$version/" HEAD | gzip -9n >"$file"
echo "$file"
