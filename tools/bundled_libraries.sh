#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What portable programs contain, as static libraries: zlib, zstd, SQLite, libmicrohttpd (without TLS) and libcurl (HTTP
# alone, with Mbed TLS inside of libcurl.a), from the sources of this machine's Debian, so with its security updates.
# glibc of Debian 11 (2.31) or musl.
# usage: bundled_libraries.sh TRIPLET DIRECTORY    TRIPLET: x86_64-linux-gnu, aarch64-linux-gnu, x86_64-linux-musl or
#                                                  aarch64-linux-musl
# Writes DIRECTORY/toolchain.cmake, which cross-compiles for them, and DIRECTORY/bundled: include, lib and, for each
# library, share/NAME.version and share/NAME.copyright. Environment: JOBS (number of cores).
set -euo pipefail
umask 022

triplet=${1:-} directory=${2:-}
case $triplet in
x86_64-linux-gnu | x86_64-linux-musl) architecture=amd64 ;;
aarch64-linux-gnu | aarch64-linux-musl) architecture=arm64 ;;
*)
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
machine=${triplet%%-*}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$(dirname "$0")/.."
tools=$PWD/tools
sources=$directory/../sources # the same for all
sysroot=$directory/sysroot
prefix=$directory/bundled
compiler=$directory/compiler/$machine-linux-gnu-gcc # the machine's, with options
jobs=${JOBS:-$(nproc)}
stamp=$directory/.complete-$(cat "$0" tools/debian_files.sh | sha256sum | cut -c 1-12)
[ ! -f "$stamp" ] || exit 0

# A file of gcc's options by which it uses musl instead of the C library it was built for.
write_specs() {
    local libraries=$sysroot/usr/lib/$triplet headers="-nostdinc -isystem $sysroot/usr/include/$triplet -isystem include%s"
    # The kernel's headers; there are no others.
    headers+=" -idirafter $sysroot/usr/include -idirafter $sysroot/usr/include/$machine-linux-gnu"
    cat >"$directory/musl.specs" <<END
%rename cpp_options old_cpp_options

*cpp_options:
$headers %(old_cpp_options)

*cc1:
%(cc1_cpu) $headers

*link_libgcc:
-L$libraries -L .%s

*libgcc:
libgcc.a%s libgcc_eh.a%s

*startfile:
$libraries/rcrt1.o $libraries/crti.o crtbeginS.o%s

*endfile:
crtendS.o%s $libraries/crtn.o

*link:
-nostdlib -static -pie --no-dynamic-linker -z text

*esp_link:


*esp_options:


*esp_cpp_options:


END
}

make_sysroot() {
    case $triplet in
    *-gnu) "$tools/debian_files.sh" only "$sysroot" "$architecture" bullseye libc6 libc6-dev linux-libc-dev ;;
    *-musl)
        # shellcheck source=/dev/null
        "$tools/debian_files.sh" only "$sysroot" "$architecture" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
            musl-dev linux-libc-dev
        write_specs
        ;;
    esac
}

write_toolchain() {
    mkdir -p "$(dirname "$compiler")"
    case $triplet in
    # A native compiler looks into this machine's directories first, so -B names those of the sysroot.
    *-gnu) options="--sysroot=$sysroot -B$sysroot/usr/lib/$triplet -B$sysroot/lib/$triplet" ;;
    *-musl) options="-specs=$directory/musl.specs" ;;
    esac
    printf '#!/bin/sh\nexec %s-linux-gnu-gcc %s "$@"\n' "$machine" "$options" >"$compiler"
    chmod +x "$compiler"
    cat >"$directory/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $machine)
set(CMAKE_C_COMPILER $compiler)
set(CMAKE_FIND_ROOT_PATH $prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END
}

# with_cmake NAME SOURCE_DIRECTORY OPTION...
with_cmake() {
    local name=$1 source=$2
    shift 2
    cmake -S "$source" -B "$directory/build/$name" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$directory/toolchain.cmake" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="$flags" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "$@"
    ninja -C "$directory/build/$name" -j "$jobs" install
}

# noted PACKAGE: where it came from, for the bill of materials
noted() {
    mkdir -p "$prefix/share"
    cp "$sources/.packages/$1" "$prefix/share/$1.version"
    cp "$sources/$1/debian/copyright" "$prefix/share/$1.copyright"
}

make_zlib() {
    cp -r "$sources/zlib" "$directory/build/zlib"
    (cd "$directory/build/zlib" && CC=$compiler CFLAGS="-O2 -fPIC $flags" ./configure --static --prefix="$prefix" &&
        make -j "$jobs" install)
}

make_zstd() {
    with_cmake zstd "$sources/libzstd/build/cmake" -DZSTD_BUILD_SHARED=OFF -DZSTD_BUILD_PROGRAMS=OFF \
        -DZSTD_LEGACY_SUPPORT=OFF
}

make_sqlite() {
    local build=$directory/build/sqlite
    mkdir -p "$build"
    # The one big file is generated; SQLite's own build does that with Tcl.
    (cd "$build" && "$sources/sqlite3/configure" --disable-tcl --disable-readline && make sqlite3.c sqlite3.h) >/dev/null
    # shellcheck disable=SC2086
    $compiler $flags -O2 -fPIC -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DQS=0 -DHAVE_USLEEP=1 \
        -c "$build/sqlite3.c" -o "$build/sqlite3.o"
    ar rcsD "$prefix/lib/libsqlite3.a" "$build/sqlite3.o"
    cp "$build/sqlite3.h" "$prefix/include/"
}

make_microhttpd() {
    local build=$directory/build/microhttpd
    mkdir -p "$build"
    (cd "$build" && "$sources/libmicrohttpd/configure" --host="$machine-linux-gnu" --prefix="$prefix" --disable-shared \
        --disable-https --disable-doc --disable-examples --disable-curl --disable-dauth --disable-bauth --with-pic \
        CC="$compiler" CFLAGS="-O2 $flags" && make -j "$jobs" -C src/microhttpd install && make -C src/include install)
}

make_curl() {
    with_cmake mbedtls "$sources/mbedtls" -DENABLE_PROGRAMS=OFF -DENABLE_TESTING=OFF -DUSE_SHARED_MBEDTLS_LIBRARY=OFF \
        -DMBEDTLS_FATAL_WARNINGS=OFF
    # Certificates are looked for at run time (base/ca_file.h): each distribution has them elsewhere.
    with_cmake curl "$sources/curl" -DHTTP_ONLY=ON -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DCURL_USE_MBEDTLS=ON \
        -DCURL_USE_OPENSSL=OFF -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_ZLIB=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF \
        -DENABLE_MANUAL=OFF -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DHAVE_FSETXATTR=0
    # One archive: whoever links libcurl.a needs nothing else.
    printf 'create %s/all.a\naddlib %s/libcurl.a\naddlib %s/libmbedtls.a\naddlib %s/libmbedx509.a\naddlib %s/libmbedcrypto.a\nsave\nend\n' \
        "$prefix/lib" "$prefix/lib" "$prefix/lib" "$prefix/lib" "$prefix/lib" | ar -MD
    mv "$prefix/lib/all.a" "$prefix/lib/libcurl.a"
    rm -rf "$prefix"/lib/libmbed* "$prefix/lib/cmake/CURL" "$prefix/bin/curl-config"
}

make_sysroot
"$tools/debian_files.sh" sources "$sources" zlib libzstd sqlite3 libmicrohttpd curl mbedtls
rm -rf "$prefix" "$directory/build" "$directory/CMakeCache.txt" "$directory/CMakeFiles" # of an older toolchain
mkdir -p "$prefix/lib" "$prefix/include" "$directory/build"
write_toolchain
flags="-fstack-protector-strong -fstack-clash-protection -ffile-prefix-map=$directory=/bundled"
case $machine in
x86_64) flags+=" -fcf-protection=full" ;;
aarch64) flags+=" -mbranch-protection=standard" ;;
esac
case $triplet in
*-gnu) flags+=" -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" ;;
*-musl) flags+=" -U_FORTIFY_SOURCE" ;; # musl has no checked calls
esac
for library in zlib zstd sqlite microhttpd curl; do
    echo "bundled_libraries: $library for $triplet"
    set +e # a condition around the function would switch it off inside of it
    (set -e && "make_$library") >"$directory/$library.log" 2>&1
    status=$?
    set -e
    [ "$status" = 0 ] || {
        tail -n 40 "$directory/$library.log" >&2
        exit 1
    }
done
for package in zlib libzstd sqlite3 libmicrohttpd curl mbedtls; do
    noted "$package"
done
rm -rf "$directory/build"
rm -f "$directory"/.complete-*
touch "$stamp"
