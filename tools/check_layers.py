#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the laws of ARCHITECTURE.md: who may include whom, who may link what.

usage: check_layers.py [ROOT]    exit 1 when a law is broken, each place on its own line
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
TABLE_ROW = re.compile(r"^\|\s*(src/\w+)\s*\|[^|]*\|\s*([^|]*?)\s*\|\s*$")
VENDOR = re.compile(r"(^|/)(cuda\w*|cupti\w*|nvml|nvperf\w*|nvPTXCompiler|nvtx3|nvToolsExt\w*|hip|hsa|rocprofiler\w*)(\.h|/)")
# Third-party headers and the folders that may see them; everything else is refused by name.
THIRD_PARTY = {
    "zstd": {"logfile", "upload", "http", "store", "server"}, "zlib": {"logfile", "upload", "http", "server", "export"}, "libunwind": {"capture"}, "elfutils": {"analysis", "capture"},
    "libelf": {"analysis", "capture"}, "gelf": {"analysis", "capture"}, "dwarf": {"analysis", "capture"},
    "curl": {"upload", "store"}, "microhttpd": {"http"}, "sqlite3": {"store"}, "openssl": set(), "cjson": set(), "yyjson": set(),
}
STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split())
STANDARD_CXX = set("""algorithm array atomic chrono cstddef cstdint cstdio cstdlib cstring exception functional initializer_list
iosfwd limits map memory mutex new optional ostream stdexcept string string_view thread tuple type_traits utility vector""".split())
# Programs that must never load a GPU library.
GPU_FREE_TARGETS = ("gpufl_agent", "gpufl_server")


def closure(direct):
    """Arrows point down: using a folder means being allowed what it uses."""
    reached = {}

    def visit(name, path):
        if name in path:
            raise SystemExit("layers in a circle: " + " -> ".join(path + (name,)))
        if name not in reached:
            below = set(direct.get(name, ()))
            for other in direct.get(name, ()):
                below |= visit(other, path + (name,))
            reached[name] = below
        return reached[name]

    for name in direct:
        visit(name, ())
    return reached


def read_table(root):
    direct = {}
    for line in (root / "ARCHITECTURE.md").read_text().splitlines():
        row = TABLE_ROW.match(line)
        if row:
            direct[row.group(1).removeprefix("src/")] = row.group(2)
    return {name: {word for word in re.findall(r"\w+", uses) if word in direct and word != name}
            for name, uses in direct.items()}


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def check_source(root, path, folder, allowed, problems):
    place = path.relative_to(root)
    for number, is_quoted, name in includes(path):
        first = name.split("/")[0]
        stem = re.split(r"[/.]", name)[0].lower()
        if is_quoted:
            if not (root / "src" / name).exists():
                problems.append(f'{place}:{number}: "{name}": write the path below src/, e.g. "base/status.h"')
            elif first != folder and first not in allowed:
                problems.append(f"{place}:{number}: {folder} may not use {first} ({name}); see the table in ARCHITECTURE.md")
        elif VENDOR.search(name):
            problems.append(f"{place}:{number}: vendor header <{name}>: src/ uses our own declarations in src/driver")
        elif stem in THIRD_PARTY and folder not in THIRD_PARTY[stem]:
            where = " and ".join(sorted(THIRD_PARTY[stem])) or "no layer of libgpufl"
            problems.append(f"{place}:{number}: <{name}> belongs to {where}, not to {folder}")


def check_public_header(root, path, problems):
    place = path.relative_to(root)
    for number, _, name in includes(path):
        stem = name.removesuffix(".h")
        is_own = (root / "include" / name).exists() or (path.parent / name).exists()
        is_standard = ((name.endswith(".h") and stem in STANDARD) or (path.suffix == ".hpp" and name in STANDARD_CXX) or
                       (path.name == "client.h" and name == "dlfcn.h"))  # it looks the library up at run time
        if not is_own and not is_standard:
            problems.append(f"{place}:{number}: <{name}>: installed headers use only the standard library and each other")


def read_links(root):
    """target -> targets of ours that CMakeLists.txt links it with"""
    text = (root / "CMakeLists.txt").read_text()
    links = {}
    for body in re.findall(r"^\s*gpufl_layer\(([^)]*)\)", text, re.M):
        words = body.split()
        links.setdefault("gpufl_" + words[0], set()).update(w for w in words[1:] if w.startswith("gpufl"))
    for body in re.findall(r"^\s*target_link_libraries\(([^)]*)\)", text, re.M):
        words = body.split()
        links.setdefault(words[0], set()).update(w for w in words[1:] if w.startswith("gpufl"))
    return {target: uses for target, uses in links.items() if "$" not in target}


def check_links(root, below, problems):
    links = read_links(root)
    for target, uses in links.items():
        folder = target.removeprefix("gpufl_")
        for other in uses:
            other_folder = other.removeprefix("gpufl_")
            if folder in below and other_folder in below and other_folder not in below[folder] | {folder}:
                problems.append(f"CMakeLists.txt: {target} links {other}, which the table in ARCHITECTURE.md does not allow")
    reached = closure(links)
    for target in GPU_FREE_TARGETS:
        if "gpufl_driver" in reached.get(target, ()):
            problems.append(f"CMakeLists.txt: {target} reaches gpufl_driver; agent and server never load a GPU library")


def check(root):
    problems = []
    direct = read_table(root)
    if not direct:
        return ["ARCHITECTURE.md: the table of folders was not found"]
    below = closure(direct)
    for path in sorted((root / "src").rglob("*.[ch]")):
        folder = path.relative_to(root / "src").parts[0]
        if folder not in below:
            problems.append(f"{path.relative_to(root)}: folder src/{folder} is not in the table of ARCHITECTURE.md")
            continue
        check_source(root, path, folder, below[folder], problems)
    for path in sorted((root / "include").rglob("*.h*")):
        check_public_header(root, path, problems)
    check_links(root, below, problems)
    return problems


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    problems = check(root.resolve())
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
