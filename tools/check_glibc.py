#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names what programs and libraries need beyond an old C library: newer symbols, and other libraries.

usage: check_glibc.py VERSION FILE|DIRECTORY...    e.g. check_glibc.py 2.28 build/portable/x86_64-linux-gnu/lib
"""
import pathlib
import re
import sys

from check_hardening import elf_files, readelf

# Parts of the C library, and our own.
ALLOWED = re.compile(r"^(libc|libm|libdl|librt|libpthread|ld-linux-[\w-]+)\.so\.\d+$|^libgpufl")


def beyond(path, newest):
    """What a file needs that a machine with that C library lacks."""
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")):
        if not ALLOWED.match(name):
            yield f"needs {name}"
    for name, version in sorted(set(re.findall(r"UND (\w+)@GLIBC_([\d.]+)", readelf(path, "--dyn-syms")))):
        if tuple(map(int, version.split("."))) > newest:
            yield f"needs {name} of glibc {version}"


def main(arguments):
    if len(arguments) < 2 or not re.fullmatch(r"\d+\.\d+", arguments[0]):
        sys.exit(__doc__)
    newest = tuple(map(int, arguments[0].split(".")))
    files = [path for place in arguments[1:] for path in elf_files(pathlib.Path(place))]
    if not files:
        sys.exit("check_glibc: no ELF file was found")
    problems = [f"{path}: {problem}" for path in files for problem in beyond(path, newest)]
    for problem in problems:
        print(f"check_glibc: {problem}", file=sys.stderr)
    print(f"{len(files)} files checked")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
