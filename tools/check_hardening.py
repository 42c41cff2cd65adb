#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names shipped programs and libraries that lack protection against memory errors.

usage: check_hardening.py FILE|DIRECTORY...    all ELF files below a directory

What is checked in each file: relocations that are read-only once loaded (full RELRO), position independence, a stack
that is not executable, no writable code, stack protector, checked C library calls (FORTIFY), landing pads for indirect
calls (CET on x86-64, BTI or PAC on 64-bit Arm). A build directory's compile_commands.json, where given, is checked for
stack clash protection, which leaves no mark in a file.
"""
import json
import pathlib
import re
import subprocess
import sys

# What a file may lack, and why. Names are file names without version.
EXCEPTIONS = {
    ("libgpufl_preload.so", "FORTIFY"): "calls nothing that could be checked",
    ("gpufl-demo-app", "landing pads"): "contains NVIDIA's static runtime, which has none",
    ("libgpufl_inject.so", "FORTIFY"): "calls nothing that could be checked",
    ("libgpufl_inject.so", "stack protector"): "has no function with an array on its stack",
}
LANDING_PADS = {"x86-64": (b"\xf3\x0f\x1e\xfa",), "AArch64": (b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5")}
TEXT_BYTES_PER_PAD = 8192  # far fewer in code that was compiled with landing pads


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def has_pads(path, machine, sections):
    text = re.search(r"\s\.text\s+PROGBITS\s+\w+ (\w+) (\w+)", sections)
    if not text or machine not in LANDING_PADS:
        return machine not in LANDING_PADS
    start, size = (int(number, 16) for number in text.groups())
    code = path.read_bytes()[start:start + size]
    return sum(code.count(pad) for pad in LANDING_PADS[machine]) * TEXT_BYTES_PER_PAD >= size


def missing(path):
    """What a file lacks."""
    header = readelf(path, "-h")
    if not re.search(r"Type:\s+(DYN|EXEC)", header):
        return []
    segments, dynamic = readelf(path, "-l"), readelf(path, "-d")
    symbols, sections = readelf(path, "-s"), readelf(path, "-S")
    machine = "x86-64" if "X86-64" in header else "AArch64" if "AArch64" in header else "other"
    # Without a loader nothing is bound later; the names of the C library's functions are in a static program's
    # symbol table, where it was not stripped, and musl has no checked variants.
    is_static = "INTERP" not in segments and "NEEDED" not in dynamic
    found = {
        "PIE": "DYN" in header,
        "RELRO": "GNU_RELRO" in segments,
        "BIND_NOW": is_static or bool(re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic)),
        "non-executable stack": bool(re.search(r"GNU_STACK.* RW ", segments)),
        "code that is not writable": not re.search(r"LOAD.* RWE ", segments),
        "stack protector": is_static or "__stack_chk_" in symbols,
        "FORTIFY": is_static or bool(re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_", ""))),
        "landing pads": has_pads(path, machine, sections),
    }
    name = re.sub(r"\.so\.[\d.]+$", ".so", path.name)
    return [what for what, is_there in found.items() if not is_there and (name, what) not in EXCEPTIONS]


def uncompiled(commands):
    """Source files of a build that were compiled without stack clash protection."""
    for entry in json.loads(commands.read_text()):
        words = entry["command"].split()
        if "-fstack-clash-protection" not in words and not any(word.startswith("-fsanitize=") for word in words):
            yield entry["file"]


def elf_files(place):
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    checked = 0
    problems = []
    for place in map(pathlib.Path, arguments):
        if place.name == "compile_commands.json":
            problems += [f"{name}: compiled without -fstack-clash-protection" for name in uncompiled(place)]
            continue
        if not place.exists():
            sys.exit(f"check_hardening: {place}: no such file")
        for path in elf_files(place):
            checked += 1
            problems += [f"{path}: no {what}" for what in missing(path)]
    for problem in problems:
        print(f"check_hardening: {problem}", file=sys.stderr)
    if not checked:
        sys.exit("check_hardening: no ELF file was found")
    print(f"{checked} files checked")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
