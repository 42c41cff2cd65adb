#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs gpufl from this directory: programs, libraries, headers, manual pages, completion for bash, zsh and fish.
# usage: ./install.sh [--prefix DIR]                 default: /usr/local as root, ~/.local otherwise
#        ./install.sh --uninstall [--prefix DIR]     removes what this script installed there, and nothing else
set -eu

usage() {
    sed -n 's/^# usage: /usage: /p; s/^#  *\(.\/install.sh --uninstall\)/       \1/p' "$0" >&2
    exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local
[ "$(id -u)" = 0 ] || prefix=$HOME/.local
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || usage
        prefix=$2
        shift
        ;;
    --prefix=*) prefix=${1#*=} ;;
    --uninstall) uninstall=yes ;;
    *) usage ;;
    esac
    shift
done
list=$prefix/share/gpufl/installed-files

remove_installed() {
    while read -r file; do
        rm -f "$prefix/$file"
    done <"$list"
    # Directories that are empty now, from the inside out.
    sed 's|/[^/]*$||' "$list" | sort -u | while read -r directory; do
        while [ "$directory" != . ] && rmdir "$prefix/$directory" 2>/dev/null; do
            directory=$(dirname "$directory")
        done
    done
}

if [ -n "$uninstall" ]; then
    [ -f "$list" ] || {
        echo "install.sh: nothing is installed in $prefix by this script ($list is missing)" >&2
        exit 3
    }
    remove_installed
    echo "gpufl was removed from $prefix; recorded sessions stay where they are"
    exit 0
fi

if ! mkdir -p "$prefix" 2>/dev/null || [ ! -w "$prefix" ]; then
    echo "install.sh: cannot write to $prefix; choose another directory with --prefix, or run this as root" >&2
    exit 3
fi
[ ! -f "$list" ] || remove_installed # of another version
(cd "$here/prefix" && tar -cf - .) | (cd "$prefix" && tar -xpof -)
mkdir -p "$(dirname "$list")"
(cd "$here/prefix" && find . ! -type d | sed 's|^\./||' | sort && echo share/gpufl/installed-files) >"$list"
echo "gpufl was installed in $prefix; ./install.sh --uninstall --prefix $prefix removes it"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "add $prefix/bin to PATH" ;;
esac
