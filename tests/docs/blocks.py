# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of a page, and the instructions to the runner that stand in comments before them.

<!-- run: COMMANDS -->      runs in place, as a sh block would, unseen by the reader
<!-- python: CODE -->       goes before every Python block from here on; `c:` and `cpp:` likewise for those languages
<!-- given: NAME -->        something that the page takes for granted (given.py)
<!-- file: NAME -->         the next block is the content of this file
<!-- status: N -->          the next block ends with this exit status
"""
import dataclasses
import re

FENCE = re.compile(r"^( *)(`{3,})([\w+-]*)[^`]*$")
COMMENT_KINDS = ("run", "python", "c", "cpp", "given", "file", "status")
OF_NEXT_BLOCK = ("file", "status")


class PageError(Exception):
    """The page cannot be understood; the message has the line."""


@dataclasses.dataclass
class Step:
    kind: str  # "block", or one of COMMENT_KINDS that acts in place
    line: int
    text: str
    language: str = ""
    file: str = ""
    status: int = 0


def comment_parse(text, line):
    """(kind, text) of an instruction, None of any other comment."""
    match = re.match(r"<!--\s*(\w+):\s*(.*?)\s*-->$", text, re.S)
    if not match:
        return None
    if match.group(1) not in COMMENT_KINDS:
        raise PageError(f"line {line}: no instruction '{match.group(1)}'; known: {', '.join(COMMENT_KINDS)}")
    if not match.group(2):
        raise PageError(f"line {line}: '{match.group(1)}' says nothing")
    return match.group(1), match.group(2)


def block_make(line, language, text, waiting):
    """The step of a fenced block, with what the comments before it said."""
    step = Step("block", line, text, language)
    for kind, value in waiting.items():
        setattr(step, kind, int(value) if kind == "status" else value)
    return step


def steps_of(text):
    """Blocks and instructions of a page, in their order."""
    lines = text.split("\n")
    steps, waiting, at = [], {}, 0
    while at < len(lines):
        line = lines[at]
        fence = FENCE.match(line)
        if fence:
            end = at + 1
            while end < len(lines) and lines[end].strip() != fence.group(2):
                end += 1
            if end == len(lines):
                raise PageError(f"line {at + 1}: the block does not end")
            indent = len(fence.group(1))
            body = "".join(one[indent:] + "\n" for one in lines[at + 1:end])
            steps.append(block_make(at + 2, fence.group(3), body, waiting))
            waiting, at = {}, end + 1
            continue
        if line.lstrip().startswith("<!--"):
            end = at
            while end < len(lines) and "-->" not in lines[end]:
                end += 1
            if end == len(lines):
                raise PageError(f"line {at + 1}: the comment does not end")
            found = comment_parse("\n".join(lines[at:end + 1]).strip(), at + 1)
            if found and found[0] in OF_NEXT_BLOCK:
                waiting[found[0]] = found[1]
            elif found:
                steps.append(Step(found[0], at + 1, found[1] + "\n"))
            at = end
        elif line.strip() and waiting:
            raise PageError(f"line {at + 1}: a comment before it speaks of a block, and here is none")
        at += 1
    if waiting:
        raise PageError("the last comment speaks of a block that does not follow")
    return steps
