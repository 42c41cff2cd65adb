#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that no compiler checks: sizes, banned calls, leftovers, names, language. A ratchet.

usage: tidy.py [--shrink] [ROOT]

Above a soft limit a file or function must be listed in tools/tidy_allow.json with its size; above a hard limit nothing
helps. An entry that is larger than what it allows, or allows nothing, is an error too: the list may only shrink.
--shrink lowers and removes such entries; it never adds one. The language rules are those of tools/wording.py.
"""
import ast
import json
import pathlib
import re
import subprocess
import sys

import wording

FILE_LINES = (500, 600)  # soft, hard
FUNCTION_LINES = (70, 150)
ALLOW_FILE = "tools/tidy_allow.json"
CODE = {".c", ".h", ".hpp", ".py", ".ts", ".sh"}
TEXT = CODE | {".md", ".txt", ".cmake", ".json", ".yml", ".cu", ".cpp"}
SIZED = {".c", ".h", ".py", ".ts"}
GENERATED = {"src/format/catalogue.c", "src/format/catalogue.h", "docs/format.md", "python/gpufl/records.py",
             "web/src/api/records.ts", "LICENSE"}
DATA = ("web/dist/", "tests/fuzz/corpus/", "tests/golden/", "tests/recordings/", "examples/sessions/")
IN_PROCESS = ("base", "format", "logfile", "driver", "code", "capture", "sdk", "inject", "analysis")
BANNED = {
    "strcpy": "memcpy with a known size, or snprintf", "strcat": "bytes_append or snprintf", "sprintf": "snprintf",
    "vsprintf": "vsnprintf", "gets": "getline", "atoi": "strtol with errno and end checked", "atof": "strtod with its end checked",
    "atol": "strtol with errno and end checked", "strtok": "strtok_r or strcspn", "system": "posix_spawn",
    "alloca": "a bounded array or malloc",
    "gettid": "current_thread_id: glibc 2.28 has no gettid", "hypot": "sqrt: hypot needs glibc 2.35 where it is built with that",
    "pthread_mutex_timedlock": "mutex_lock_in_time, which a step of the wall clock does not change",
}
BANNED_IN_PROCESS = {
    "exit": "returning a gpufl_status", "abort": "returning a gpufl_status", "assert": "returning a gpufl_status or _Static_assert",
    "printf": "log_message, or bytes_append_format", "puts": "log_message", "perror": "problem_set with strerror_r",
}
LEFTOVERS = re.compile("|".join(("TO" + "DO", "FIX" + "ME", r"\bXX" + r"X\b", "not imple" + "mented")), re.I)
MACHINE_PATHS = re.compile("|".join(("/wo" + "rk/", "/ho" + "me/", r"/ro" + "ot/")))
BAD_NAME_PARTS = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}
STRINGS_AND_COMMENTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def list_files(root):
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=False)
    if git.returncode == 0:
        names = [name for name in git.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not {".git", "build", "node_modules", "__pycache__"} & set(path.relative_to(root).parts)]
    return sorted(name for name in set(names) if (root / name).is_file() and not (root / name).is_symlink())


def blank(match):
    """Keeps line numbers while removing what a call search must not see."""
    return re.sub(r"[^\n]", " ", match.group())


def c_functions(lines):
    """(name, first line, length) of functions in the house style: brace alone at column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif start and line.startswith("}"):
            head = start - 1
            while head > 1 and lines[head - 1].startswith((" ", "\t")):
                head -= 1
            name = re.search(r"(\w+)\s*\(", lines[head - 1])
            yield (name.group(1) if name else f"line {head}"), head, number - start + 1
            start = None


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


class Tidy:
    def __init__(self, root):
        self.root = root
        path = root / ALLOW_FILE
        self.allowed = json.loads(path.read_text()) if path.exists() else {}
        self.needed = {}
        self.problems = []

    def measure(self, key, place, what, size, limits):
        soft, hard = limits
        if size > hard:
            self.problems.append(f"{place}: {what} has {size} lines; {hard} is the hard limit, so split it")
        elif size > soft:
            self.needed[key] = size
            if size > self.allowed.get(key, 0):
                self.problems.append(f"{place}: {what} has {size} lines (soft limit {soft}); split it")

    def check_sizes(self, name, text, suffix):
        lines = text.splitlines()
        self.measure(name, name, "the file", len(lines), FILE_LINES)
        functions = ()
        if suffix in (".c", ".h"):
            functions = c_functions(lines)
        elif suffix == ".py":
            functions = python_functions(text)
        for function, line, size in functions:
            self.measure(f"{name}:{function}", f"{name}:{line}", f"{function}()", size, FUNCTION_LINES)

    def check_calls(self, name, text):
        banned = dict(BANNED)
        parts = name.split("/")
        if parts[0] == "src" and parts[1] in IN_PROCESS:
            banned.update(BANNED_IN_PROCESS)
        elif parts[0] in ("tests", "bench"):
            del banned["system"]  # their commands are constants
        code = STRINGS_AND_COMMENTS.sub(blank, text)
        pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned) + r")\s*\(")
        for number, line in enumerate(code.splitlines(), 1):
            for call in pattern.findall(line):
                self.problems.append(f"{name}:{number}: {call}() is banned here; use {banned[call]}")

    def check_lines(self, name, text):
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{name}:{number}"
            if "\t" in line and not name.endswith("Makefile"):
                self.problems.append(f"{place}: tab")
            if line != line.rstrip():
                self.problems.append(f"{place}: space at the end of the line")
            if LEFTOVERS.search(line):
                self.problems.append(f"{place}: leftover note: do it, or open an issue")
            if MACHINE_PATHS.search(line):
                self.problems.append(f"{place}: path of one machine; use a relative one")

    def check_file(self, name):
        path = self.root / name
        suffix = path.suffix
        if BAD_NAME_PARTS & set(re.split(r"[_\-.]", path.stem.lower())):
            self.problems.append(f"{name}: a file is named after the one thing it holds")
        if name.startswith(DATA) or name in GENERATED or (suffix not in TEXT and path.name not in ("Makefile", "run")):
            return
        text = path.read_text(errors="replace")
        self.check_lines(name, text)
        needs_licence = suffix in CODE | {".cmake", ".cu", ".cpp"} or path.name in ("CMakeLists.txt", "Makefile", "run")
        if needs_licence and not any("SPDX-License-Identifier: Apache-2.0" in line for line in text.splitlines()[:3]):
            self.problems.append(f"{name}:1: SPDX-License-Identifier: Apache-2.0 is missing")
        if suffix in SIZED:
            self.check_sizes(name, text, suffix)
        if suffix in (".c", ".h", ".hpp"):
            self.check_calls(name, text)

    def run(self):
        names = list_files(self.root)
        for name in names:
            self.check_file(name)
        language = wording.Wording(self.root)
        self.problems += language.check(names)
        self.problems += language.idle_exceptions()

    def loose_entries(self):
        return {key: self.needed.get(key, 0) for key, size in self.allowed.items() if self.needed.get(key, 0) < size}


def main():
    arguments = [a for a in sys.argv[1:] if a != "--shrink"]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    tidy = Tidy(root.resolve())
    tidy.run()
    loose = tidy.loose_entries()
    if "--shrink" in sys.argv[1:] and loose:
        kept = {key: min(size, tidy.needed[key]) for key, size in tidy.allowed.items() if key in tidy.needed}
        (root / ALLOW_FILE).write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    else:
        tidy.problems += [f"{ALLOW_FILE}: '{key}' needs only {size}: run tools/tidy.py --shrink" for key, size in loose.items()]
    for problem in tidy.problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if tidy.problems else 0)


if __name__ == "__main__":
    main()
