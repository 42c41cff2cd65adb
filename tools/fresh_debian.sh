#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A fresh, minimal Debian in a directory: installs one from the mirror that this machine's apt uses (debootstrap), and
# runs commands in it as root with this machine's network. Needs root.
# usage: fresh_debian.sh make ROOT [SUITE [MIRROR]]    (bookworm)
#        fresh_debian.sh run ROOT COMMAND...
set -eu

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "fresh_debian: needs root and debootstrap (apt-get install debootstrap)" >&2
    exit 3
fi

# Prints this machine's package sources of Debian as "URI SUITE COMPONENT" lines, without those of other vendors.
debian_sources() {
    # shellcheck disable=SC2016 # apt replaces these names
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n "s/^Debian //p" | grep -E "^http[^ ]* $1(-updates|-security)? main\$" | sort -u || true
}

make_root() {
    root=$1 suite=${2:-bookworm} mirror=${3:-}
    sources=$(debian_sources "$suite")
    if [ -z "$mirror" ] && [ -z "$sources" ]; then
        apt-get -q update >&2 # apt knows the vendor only after it fetched the index
        sources=$(debian_sources "$suite")
    fi
    [ -n "$mirror" ] || mirror=$(printf '%s\n' "$sources" | sed -n "s/ $suite main\$//p" | head -n 1)
    # debootstrap downloads with wget, which does not read apt's proxy setting.
    proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy)
    case $proxy in '' | DIRECT) ;; *) export http_proxy="${http_proxy:-$proxy}" ;; esac
    mkdir -p "$(dirname "$root")"
    rm -rf --one-file-system "$root.new"
    # The root can be made again after a crash, so dpkg need not wait for the disk.
    mkdir -p "$root.new/etc/dpkg/dpkg.cfg.d"
    echo force-unsafe-io >"$root.new/etc/dpkg/dpkg.cfg.d/unsafe-io"
    if ! debootstrap --variant=minbase "$suite" "$root.new" ${mirror:+"$mirror"} >"$root.log" 2>&1; then
        tail -n 20 "$root.log" >&2
        exit 1
    fi
    rm "$root.log"
    [ -z "$sources" ] || printf '%s\n' "$sources" | sed 's/^/deb /' >"$root.new/etc/apt/sources.list"
    apt-config dump | grep '^Acquire::http' >"$root.new/etc/apt/apt.conf.d/90mirror" || true
    # apt needs it for an HTTPS mirror; the package ca-certificates replaces it.
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        mkdir -p "$root.new/etc/ssl/certs"
        cp /etc/ssl/certs/ca-certificates.crt "$root.new/etc/ssl/certs/"
    fi
    mv "$root.new" "$root"
}

run_in() {
    root=$1
    shift
    cat /etc/resolv.conf >"$root/etc/resolv.conf"
    # shellcheck disable=SC2016 # expanded by the shell in the namespaces
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        unshare --mount --pid --fork --kill-child sh -euc '
            mount -t proc proc "$0/proc"
            mount --rbind /sys "$0/sys"
            mount --rbind /dev "$0/dev"
            mount -t tmpfs tmpfs "$0/run"
            exec chroot "$0" "$@"' "$root" "$@"
}

what=${1:-}
[ $# -lt 2 ] || shift
case $what in
make) make_root "$@" ;;
run) run_in "$@" ;;
*)
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
