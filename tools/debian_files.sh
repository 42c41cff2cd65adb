#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of Debian packages in a directory, from the mirror that this machine's apt uses. This machine's packages and
# package database stay as they are.
# usage: debian_files.sh packages DIRECTORY ARCHITECTURE SUITE PACKAGE...    packages with their dependencies, unpacked
#        debian_files.sh only DIRECTORY ARCHITECTURE SUITE PACKAGE...        without their dependencies
#        debian_files.sh sources DIRECTORY PACKAGE...                        sources of this machine's suite, with patches
# Each package's control file or version is in DIRECTORY/.packages. Does nothing when DIRECTORY has them all.
set -euo pipefail

what=${1:-}
directory=${2:-}
[ $# -ge 3 ] || {
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
}
shift 2
wanted="$what $*"
[ "$(cat "$directory/.complete" 2>/dev/null)" != "$wanted" ] || exit 0
rm -rf --one-file-system "$directory"
mkdir -p "$directory/.packages"
directory=$(cd "$directory" && pwd)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/archives/partial"
: >"$state/status"

# This machine's suites of Debian, as "URI SUITE" lines.
own_suites() {
    # shellcheck disable=SC2016 # apt replaces these names
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n 's/^Debian \(http[^ ]* [^ ]*\) main$/\1/p' | sort -u
}

# write_sources KIND [SUITE]: apt's list of sources. Another suite is on the same mirror as this machine's; of it only
# what was released is asked for, because mirrors drop the updates of old releases first.
write_sources() {
    local own updates='-(updates|security)'
    # shellcheck source=/dev/null
    own=$(. /etc/os-release && echo "$VERSION_CODENAME")
    [ "${2:-$own}" = "$own" ] || updates=none
    [ -n "$(own_suites)" ] || apt-get -q update >&2 # apt knows the vendor only after it fetched the index
    # The suite itself first: of what both have, its mirror still has the files.
    { own_suites | grep " $own\$" && { own_suites | grep -E " $own$updates\$" || true; }; } |
        sed "s/^/$1 /; s/ $own/ ${2:-$own}/; s/\$/ main/" >"$state/sources.list"
}

apt_() {
    apt-get -q -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" \
        -o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null "$@"
}

get_packages() {
    local architecture=$1 suite=$2 package options
    shift 2
    options=(-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture")
    write_sources deb "$suite"
    apt_ "${options[@]}" update >&2
    if [ "$what" = only ]; then
        (cd "$state/archives" && apt_ "${options[@]}" download "$@" >&2)
    else
        apt_ "${options[@]}" install -y --no-install-recommends --download-only "$@" >&2
    fi
    for package in "$state"/archives/*.deb; do
        dpkg-deb -x "$package" "$directory"
        dpkg-deb -f "$package" >"$directory/.packages/$(dpkg-deb -f "$package" Package)"
    done
}

get_sources() {
    local description
    write_sources deb-src
    apt_ update >&2
    (cd "$state" && apt_ source "$@" >&2)
    for description in "$state"/*.dsc; do
        name=$(sed -n 's/^Source: //p' "$description")
        sed -n 's/^Version: //p' "$description" >"$directory/.packages/$name"
        mv "$state/$name"-*/ "$directory/$name"
    done
}

case $what in
packages | only) get_packages "$@" ;;
sources) get_sources "$@" ;;
*)
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
# Absolute links stay inside of the directory.
find "$directory" -type l -lname '/*' | while read -r link; do
    target=$directory$(readlink "$link")
    ln -sfnr "$target" "$link"
done
echo "$wanted" >"$directory/.complete"
