# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of one page, inside of the namespaces that test_blocks.py made, and prints a line of JSON for each.
usage: page_run.py PAGE DIRECTORY"""
import json
import pathlib
import subprocess
import sys

import blocks
import given
import languages
import scratch


def outcome(step, what, reason="", output=""):
    print(json.dumps({"line": step.line, "language": step.language or step.kind, "outcome": what, "reason": reason,
                      "output": output}), flush=True)
    return what != "failed"


def block_do(machine, step, preludes):
    if step.file:
        path = machine.work / step.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
    if step.language in languages.SHOWN:
        return outcome(step, "shown")
    if step.language in languages.RUN:
        problem = languages.RUN[step.language](machine, step, preludes)
        return outcome(step, "failed" if problem else "executed", output=problem or "")
    if step.language in languages.PARSE:
        problem = languages.PARSE[step.language](machine, step)
        return outcome(step, "failed" if problem else "executed", "parsed", problem or "")
    if step.file:  # its use is in the commands that follow
        return outcome(step, "executed", f"as {step.file}")
    return outcome(step, "failed", output=f"no rule for blocks of '{step.language}'; see tests/docs/languages.py")


def step_do(machine, step, preludes):
    if step.kind == "block":
        return block_do(machine, step, preludes)
    if step.kind in preludes:
        preludes[step.kind] += step.text
        return True
    if step.kind == "given":
        languages.variables_set(machine, given.provide(step.text.strip(), machine))
        return True
    problem = languages.shell_run(machine, step.text)
    return outcome(step, "failed", output=problem) if problem else True


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    machine = scratch.Scratch(sys.argv[2])
    preludes = {"python": "", "c": "", "cpp": ""}
    last = blocks.Step("page", 1, "")
    try:
        for step in blocks.steps_of(text):
            last = step
            step_do(machine, step, preludes)
    except (blocks.PageError, given.UnknownError, RuntimeError, subprocess.SubprocessError) as problem:
        outcome(last, "failed", output=str(problem))
    finally:
        for complaint in machine.end_services():
            outcome(last, "failed", output=complaint)


if __name__ == "__main__":
    main()
