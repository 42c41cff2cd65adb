#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages: an ordinary build, installed into a directory, split and described by packaging/debian.
# The same source gives the same bytes, wherever and whenever it is built.
# usage: build_deb.sh [DIRECTORY]    (build/deb) the build, with the packages in DIRECTORY/packages
# Environment: JOBS (number of cores).
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8 TZ=UTC

directory=${1:-$(dirname "$0")/../build/deb}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$(dirname "$0")/.."
source=$PWD
metadata=$source/packaging/debian
stage=$directory/stage # what dpkg's tools take for a source package: debian/control below it
log=$directory/build.log

version=$(sed -n 's/.*GPUFL_VERSION_STRING "\(.*\)"/\1/p' include/gpufl/gpufl.h)
described=$(dpkg-parsechangelog -l "$metadata/changelog" -S Version)
if [ "$described" != "$version" ]; then
    echo "build_deb: gpufl.h says version $version, packaging/debian/changelog says $described" >&2
    exit 1
fi
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$metadata/changelog" -S Timestamp)
export SOURCE_DATE_EPOCH

# Libraries are in the loader's default directories: no extra search paths.
build() {
    export DEB_BUILD_MAINT_OPTIONS=hardening=+all
    local flags link
    flags="$(dpkg-buildflags --get CPPFLAGS) $(dpkg-buildflags --get CFLAGS)"
    link=$(dpkg-buildflags --get LDFLAGS)
    cmake -S . -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_SKIP_RPATH=ON -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$link" \
        -DCMAKE_MODULE_LINKER_FLAGS="$link" -DCMAKE_EXE_LINKER_FLAGS="$link" -DGPUFL_TESTS=OFF \
        -DGPUFL_DEMO_APP=OFF -DGPUFL_UPLOAD=ON -DGPUFL_SERVER=ON -DGPUFL_PYTHON=ON &&
        ninja -C "$directory" -j "${JOBS:-$(nproc)}"
}

# Everything, as it is to lie below /.
install_all() {
    local root=$stage/debian/tmp
    DESTDIR=$root cmake --install "$directory" >/dev/null
    mkdir -p "$root/usr/lib/python3/dist-packages"
    cp -r "$directory/python/gpufl" "$root/usr/lib/python3/dist-packages/"
    find "$root" -name __pycache__ -prune -exec rm -r {} +
    # Nobody links with these: they are loaded by our own code, or by CUDA, and need no place in the loader's path.
    mkdir -p "$root/usr/lib/gpufl" "$root/usr/share/doc/libgpufl1"
    mv "$root"/usr/lib/libgpufl[-_]* "$root/usr/lib/gpufl/"
    rm "$root"/usr/lib/gpufl/libgpufl-*.so
    mv "$root/usr/lib/pkgconfig" "$root/usr/share/"
    mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" # where Debian's zsh looks
    mv "$root/usr/share/doc/gpufl/third-party-licenses.txt" "$root/usr/share/doc/libgpufl1/"
    # Debian has the text of the licence once for all packages, and pages for people below share/doc only.
    rm "$root/usr/share/doc/gpufl/LICENSE"
    find "$root/usr/share/gpufl" -name README.md -delete
    find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
    strip --strip-debug --remove-section=.comment --enable-deterministic-archives "$root/usr/lib/libgpufl.a"
    find "$root/usr/bin" "$root/usr/lib" -type f | while read -r file; do
        case $(head -c 4 "$file" | tr -d '\0') in
        ?ELF) strip --strip-unneeded --remove-section=.comment --remove-section=.note "$file" ;;
        esac
    done
}

# Moves what packaging/debian/PACKAGE.install names; what remains belongs to nobody, and is an error.
split() {
    local root=$stage/debian/tmp package pattern file files
    for package in $packages; do
        while read -r pattern; do
            # shellcheck disable=SC2086
            files=$(cd "$root" && ls -d $pattern)
            for file in $files; do
                mkdir -p "$stage/debian/$package/$(dirname "$file")"
                mv "$root/$file" "$stage/debian/$package/$file"
            done
        done <"$metadata/$package.install"
    done
    find "$root" -type f -o -type l | sed 's/^.*debian.tmp/build_deb: in no package: /' >&2
    find "$root" -depth -type d -exec rmdir {} +
}

describe() { # PACKAGE
    local package=$1 root=$stage/debian/$1 script binaries
    mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$package"
    install -m 644 "$metadata/copyright" "$root/usr/share/doc/$package/copyright"
    gzip -9nc "$metadata/changelog" >"$root/usr/share/doc/$package/changelog.gz"
    if [ -e "$metadata/$package.lintian-overrides" ]; then
        install -D -m 644 "$metadata/$package.lintian-overrides" "$root/usr/share/lintian/overrides/$package"
    fi
    for script in postinst prerm postrm; do
        [ ! -e "$metadata/$package.$script" ] || install -m 755 "$metadata/$package.$script" "$root/DEBIAN/$script"
    done
    [ ! -e "$metadata/$package.triggers" ] || install -m 644 "$metadata/$package.triggers" "$root/DEBIAN/triggers"
    mapfile -t binaries < <(find "$root/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \) ! -name '*-upload*' | sort)
    local options=()
    if [ "$package" = libgpufl1 ]; then
        dpkg-gensymbols -c1 -q -v"$version" -p"$package" -P"debian/$package" -I"debian/$package.symbols" \
            -e"$root/usr/lib/libgpufl.so.$version" -O"$root/DEBIAN/symbols"
        # The one part that needs more than the C library, and is loaded only when it is asked for.
        options=(-dRecommends "-e$root/usr/lib/gpufl/libgpufl-upload.so.$version")
        echo "libgpufl ${version%%.*} $package (>= $version)" >"$root/DEBIAN/shlibs"
    fi
    [ "${#binaries[@]}" = 0 ] ||
        dpkg-shlibdeps -T"debian/$package.substvars" -l"$stage/debian/libgpufl1/usr/lib" \
            -Sdebian/libgpufl1 "${binaries[@]/#/-e}" "${options[@]}"
    echo "misc:Depends=" >>"debian/$package.substvars"
    dpkg-gencontrol -p"$package" -P"debian/$package" -T"debian/$package.substvars" -fdebian/files
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    # Times and permissions of the source directory are nobody's business.
    chmod -R u=rwX,go=rX "$root"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$directory/packages" >/dev/null
}

build >"$log" 2>&1 || {
    tail -n 60 "$log" >&2
    exit 1
}
packages=$(sed -n 's/^Package: //p' "$metadata/control")
rm -rf "$stage" "$directory/packages"
mkdir -p "$stage/debian" "$directory/packages"
cp "$metadata"/* "$stage/debian/"
install_all
split
[ ! -e "$stage/debian/tmp" ] || exit 1
cd "$stage"
for package in libgpufl1 $packages; do
    [ -e "$directory/packages/${package}_${version}_$(dpkg --print-architecture).deb" ] || describe "$package"
done
ls "$directory/packages"/*.deb
