#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plain English: phrases that the repository does not use, in prose, messages, comments and identifiers.

usage: wording.py [--all] [--count] [PATH...]    PATH: a file or folder of the repository; everything

tools/wording.json lists each phrase with what to write instead, the files that are not checked (`data`), real uses of a
phrase that are correct (`exceptions`: file, phrase and reason), and folders that are still to be rewritten (`pending`).
--all also reports pending folders. --count prints the number of findings per folder. tools/tidy.py runs this check.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = "tools/wording.json"
SUFFIXES = {".c", ".h", ".hpp", ".cpp", ".cu", ".py", ".ts", ".tsx", ".mjs", ".js", ".css", ".html", ".sh", ".md", ".txt", ".cmake",
            ".json", ".yml", ".yaml", ".1", ".in", ".service", ".toml", ".tpl"}
NAMES = {"Makefile", "Dockerfile", "run"}
LINE_START = re.compile(r"^[ \t]*(?:\*(?!/)|//+|#+|>|\.\\\")?", re.M)


def plain(text):
    """The words of a text at their places: identifiers are split, and a phrase may continue on the next line of a comment."""
    text = re.sub(r"\\f[BIRP]|\\-", lambda match: " " * len(match.group()), text)  # of manual pages
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "\0", text.replace("_", " "))
    return LINE_START.sub(lambda match: " " * len(match.group()), text)


class Wording:
    def __init__(self, root):
        path = root / LIST
        rules = json.loads(path.read_text()) if path.exists() else {}
        self.root = root
        self.data = tuple(rules.get("data", ()))
        self.pending = tuple(rules.get("pending", ()))
        self.exceptions = {(entry["file"], entry["phrase"]) for entry in rules.get("exceptions", ())}
        self.used = set()
        self.phrases = [(entry["not"], entry["write"], re.compile(entry["pattern"].replace(" ", r"[\s\0]+"), re.I))
                        for entry in rules.get("phrases", ())]

    def is_checked(self, name):
        path = pathlib.PurePath(name)
        return (path.suffix in SUFFIXES or path.name in NAMES) and name != LIST and not name.startswith(self.data)

    def is_pending(self, name):
        return any(name == folder or folder == "." or name.startswith(folder.rstrip("/") + "/") for folder in self.pending)

    def text_check(self, name, text):
        """'FILE:LINE: ...' of each phrase in a text."""
        words = plain(text)
        found = []
        for phrase, write, pattern in self.phrases:
            for match in pattern.finditer(words):
                if (name, phrase) in self.exceptions:
                    self.used.add((name, phrase))
                    continue
                line = words.count("\n", 0, match.start()) + 1
                shown = re.sub(r"\s+", " ", match.group().replace("\0", ""))
                found.append((line, f"{name}:{line}: '{shown}': write {write}"))
        return [problem for _, problem in sorted(found)]

    def check(self, names, with_pending=False):
        problems = []
        for name in names:
            if self.is_checked(name) and (with_pending or not self.is_pending(name)):
                problems += self.text_check(name, (self.root / name).read_text(errors="replace"))
        return problems

    def idle_exceptions(self):
        return [f"{LIST}: the exception for '{phrase}' in {name} is not needed" for name, phrase in sorted(self.exceptions - self.used)]


def files_of(root, paths):
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *paths], cwd=root, capture_output=True, check=True)
    names = sorted({name for name in git.stdout.decode().split("\0") if name})
    return [name for name in names if (root / name).is_file() and not (root / name).is_symlink()]


def main():
    parser = argparse.ArgumentParser(description="report phrases that are not plain English")
    parser.add_argument("--all", action="store_true", help="also check folders that are still to be rewritten")
    parser.add_argument("--count", action="store_true", help="print the number of findings per folder")
    parser.add_argument("path", nargs="*")
    options = parser.parse_args()
    problems = Wording(ROOT).check(files_of(ROOT, options.path), options.all)
    if options.count:
        folders = collections.Counter(str(pathlib.PurePath(problem.split(":")[0]).parent) for problem in problems)
        for folder, count in folders.most_common():
            print(f"{count:6} {folder}")
        print(f"{len(problems):6} in all")
    else:
        print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
