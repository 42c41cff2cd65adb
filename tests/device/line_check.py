# SPDX-License-Identifier: Apache-2.0
"""Compares the source lines that gpufl finds for each instruction of cubins with those that nvdisasm prints.
usage: line_check.py DUMP_LINES CUBIN... Exit 1 when one differs, 2 when there is nothing to compare."""
import os
import re
import shutil
import subprocess
import sys

SECTION = re.compile(r"^\s*\.section\s+(\.text\.[^,\s]+)")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+\S")
PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
PTX = ".nv_debug_ptx_txt"


def nvdisasm_lines(text):
    """{(section, offset): [(file, line), ...]}, innermost first, of the output of nvdisasm -c with -g or -gi."""
    result, section, chain, outer = {}, None, [], None
    for line in text.splitlines():
        if found := SECTION.match(line):
            section, chain, outer = found[1], [], None
        elif found := PLACE.search(line):
            place = (os.path.normpath(found[1]), int(found[2]))
            if place[0] == PTX:
                continue
            # Where the one above was inlined; else a new place, and the last one before an instruction counts.
            chain = chain + [place] if place == outer else [place]
            outer = (os.path.normpath(found[3]), int(found[4])) if found[3] else None
        elif section and (found := INSTRUCTION.match(line)):
            result[section, int(found[1], 16)] = chain
    return result


def gpufl_lines(text):
    result = {}
    for line in text.splitlines():
        section, offset, *places = line.split("\t")
        split = (place.rsplit(":", 1) for place in places)
        result[section, int(offset)] = [(os.path.normpath(path), int(number)) for path, number in split]
    return result


def differences(ours, theirs, with_inlined):
    """Instructions whose places differ, with both; an instruction that we do not have differs."""
    depth = None if with_inlined else 1
    return [(where, ours.get(where), places) for where, places in sorted(theirs.items())
            if (ours.get(where) or [])[:depth] != places[:depth]]


def compare(dump_lines, cubin):
    """Number of instructions and how many differ: in the line, and in the calls that it was inlined into."""
    run = lambda *command: subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    dumped = run(dump_lines, cubin)
    if dumped.returncode:
        print(f"  {dumped.stderr.strip()}")
    ours, counts = gpufl_lines(dumped.stdout), []
    for option in ("-g", "-gi"):
        printed = run("nvdisasm", "-c", option, cubin)
        theirs = nvdisasm_lines(printed.stdout)
        if printed.returncode:
            print(f"  nvdisasm {option} {cubin}: exit {printed.returncode} {printed.stderr[-300:]}")
        wrong = differences(ours, theirs, option == "-gi")
        known = sum(1 for places in theirs.values() if places)
        print(f"  {os.path.basename(cubin):28} nvdisasm {option:3}: {len(theirs):5} instructions, "
              f"{known:5} with a line, {len(wrong):4} differ")
        for where, mine, other in wrong[:4]:
            print(f"      {where[0]}+{where[1]:#x}: gpufl {mine}, nvdisasm {other}")
        counts.append((len(theirs), known, len(wrong)))
    return counts


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which("nvdisasm"):
        print("nvdisasm is not in PATH")
        return 2
    compared = [compare(sys.argv[1], cubin) for cubin in sys.argv[2:]]
    instructions, known, wrong = (sum(column) for column in zip(*(by_line for by_line, _ in compared)))
    wrong_chains = sum(differ for _, (_, _, differ) in compared)
    print(f"{len(sys.argv) - 2} cubins, {instructions} instructions, {known} with a line, {wrong} differ in it, "
          f"{wrong_chains} in the calls they were inlined into")
    return 2 if not known else 1 if wrong or wrong_chains else 0


if __name__ == "__main__":
    sys.exit(main())
