# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of a page, and the instructions to the test runner in comments before them.

<!-- run: COMMANDS -->      runs at this point, like a sh block, but is not shown to the reader;
                           it may check or add, but not remove or change what the reader has
<!-- python: CODE -->       is prepended to every later Python block; `c:` and `cpp:` do the same for those languages
<!-- given: NAME ... -->    a precondition of the page (given.py)
<!-- file: NAME -->         the next block is the content of this file
<!-- status: N -->          the exit status of the next block
"""
import dataclasses
import re

FENCE = re.compile(r"^( *)(`{3,})([\w+-]*)[^`]*$")
COMMENT_KINDS = ("run", "python", "c", "cpp", "given", "file", "status")
# As the first word of a command; a reader, who does not run it, would see something else afterwards.
CHANGES = re.compile(r"(?:^|[;&|(]|\b(?:do|then|else)\b)\s*(rm|rmdir|mv|cp|ln|unset|export|kill|deactivate)\b", re.M)
OF_NEXT_BLOCK = ("file", "status")


class PageError(Exception):
    """The page cannot be parsed; the message has the line."""


@dataclasses.dataclass
class Step:
    kind: str  # "block", or one of COMMENT_KINDS that acts in place
    line: int
    text: str
    language: str = ""
    file: str = ""
    status: int = 0


def comment_parse(text, line):
    """(kind, text) of an instruction; None for any other comment."""
    match = re.match(r"<!--\s*(\w+):\s*(.*?)\s*-->$", text, re.S)
    if not match:
        return None
    if match.group(1) not in COMMENT_KINDS:
        raise PageError(f"line {line}: no instruction '{match.group(1)}'; known: {', '.join(COMMENT_KINDS)}")
    if not match.group(2):
        raise PageError(f"line {line}: '{match.group(1)}' is empty")
    change = match.group(1) == "run" and CHANGES.search(match.group(2))
    if change:
        raise PageError(f"line {line}: '{change.group(1)}' in a hidden command changes what the reader has; show it, or "
                        "use `given`")
    return match.group(1), match.group(2)


def block_make(line, language, text, waiting):
    """The step of a fenced block, with the instructions before it."""
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
            raise PageError(f"line {at + 1}: expected a block after the comment before this line")
        at += 1
    if waiting:
        raise PageError("expected a block after the last comment")
    return steps
