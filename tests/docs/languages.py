# SPDX-License-Identifier: Apache-2.0
"""What is done with a block of each language. A rule returns None or the complaint; see RULES at the end."""
import configparser
import fnmatch
import functools
import json
import pathlib
import re
import shlex
import tomllib

from scratch import harness

HERE = pathlib.Path(__file__).resolve().parent
SHELL_HEAD = "set -euo pipefail\nif [ -f \"$HOME/.docs-environment\" ]; then . \"$HOME/.docs-environment\"; fi\n"
SHELL_TAIL = "\nexport -p >\"$HOME/.docs-environment\"\n"
INCLUDES = re.compile(r"^#.*$", re.M)


def complaint(what, output, status):
    return f"{what} ended with {status}:\n{output.strip()[-3000:]}"


def shell_run(scratch, text, expected=0):
    output, status = scratch.run(["bash"], SHELL_HEAD + text + SHELL_TAIL)
    if status != expected:
        return complaint("it" if expected == 0 else f"it should have ended with {expected}, but", output, status)
    return None


def variables_set(scratch, variables):
    """For all that follows, also for shells that have noted how the one before them ended."""
    scratch.variables.update(variables)
    note = pathlib.Path(scratch.variables["HOME"]) / ".docs-environment"
    if note.exists():
        with note.open("a") as out:
            out.writelines(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())


def run_sh(scratch, step, preludes):
    return shell_run(scratch, step.text, step.status)


def lines_match(expected, actual):
    """Whether the lines are the same; a line `...` stands for any number of lines, `...` inside of one for any text."""
    if not expected:
        return not actual
    if expected[0].strip() in ("...", "…"):
        return any(lines_match(expected[1:], actual[at:]) for at in range(len(actual) + 1))
    if not actual:
        return False
    pattern = "*".join(re.sub(r"([\[\]?*])", r"[\1]", part) for part in expected[0].rstrip().split("..."))
    return fnmatch.fnmatchcase(actual[0].rstrip(), pattern) and lines_match(expected[1:], actual[1:])


def run_console(scratch, step, preludes):
    """`$ command`, then what it prints; with no lines after it, whatever it prints."""
    turns = re.split(r"^\$ ", step.text, flags=re.M)
    if turns[0].strip() or len(turns) < 2:
        return "a console block begins with a prompt: $ command"
    for number, turn in enumerate(turns[1:]):
        command, _, expected = turn.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command += "\n" + more.removeprefix("> ")
        is_last = number == len(turns) - 2
        output, status = scratch.run(["bash"], SHELL_HEAD + command + SHELL_TAIL)
        if status != (step.status if is_last else 0):
            return complaint(f"$ {command}", output, status)
        wanted, got = expected.rstrip("\n").split("\n"), output.rstrip("\n").split("\n")
        if expected.strip() and not lines_match(wanted, got):
            return f"$ {command}\nshould print\n{expected}but printed\n{output}"
    return None


def program_text(step, prelude):
    """A whole program; statements become the body of main."""
    head = '#include "gpu_work.h"\n'
    if re.search(r"\bint main\(", step.text):
        return head + prelude + step.text
    code = prelude + step.text
    return (head + "\n".join(INCLUDES.findall(code)) + "\nint main(void)\n{\n" + INCLUDES.sub("", code) +
            "\nreturn 0;\n}\n")


def compiled_run(scratch, step, prelude, compiler, suffix):
    source, program = scratch.base / f"program{suffix}", scratch.base / "program"
    source.write_text(program_text(step, prelude))
    work = scratch.base / "gpu_work.o"
    fakes = [f"-I{harness.SOURCE / 'tests' / 'fakes'}", f"-I{harness.SOURCE / 'src'}"]
    libraries = [harness.FAKES / "libcudart.so.13", harness.FAKES / "libcuda.so.1",
                 f"-L{harness.BUILD / 'lib'}", "-lgpufl"]
    for command in (["gcc", "-std=c17", "-D_GNU_SOURCE", *fakes, "-c", HERE / "gpu_work.c", "-o", work],
                    [*compiler, "-Wall", "-Wextra", "-Werror", f"-I{HERE}", f"-I{harness.SOURCE / 'include'}", source,
                     work, "-o", program, *libraries],
                    [program]):
        output, status = scratch.run(command)
        if status:
            return complaint(pathlib.Path(command[0]).name, output, status)
    return None


def run_c(scratch, step, preludes):
    return compiled_run(scratch, step, preludes["c"], ["gcc", "-std=c17"], ".c")


def run_cpp(scratch, step, preludes):
    return compiled_run(scratch, step, preludes["cpp"], ["g++", "-std=c++17"], ".cpp")


def run_python(scratch, step, preludes):
    # An indented "..." is a body, one at the beginning of a line stands for the program's work.
    text = preludes["python"] + re.sub(r"^\.\.\.$", "work()", step.text, flags=re.M)
    output, status = scratch.run(["/usr/bin/python3", "-W", "error::DeprecationWarning:__main__", "-"], text)
    return complaint("python", output, status) if status else None


def check_json(scratch, step):
    json.loads(step.text)


def check_ini(scratch, step):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(step.text)
    for section in parser.sections():
        for name, value in parser[section].items():
            if name.startswith("Exec"):
                check_options(scratch, shlex.split(value))


def check_yaml(scratch, step):
    import yaml
    list(yaml.safe_load_all(step.text))


def check_toml(scratch, step):
    tomllib.loads(step.text)


def check_cuda(scratch, step):
    """The host compiler's half: there is no CUDA toolkit."""
    source = scratch.base / "block.cu"
    source.write_text(f'#include "{HERE / "cuda_words.h"}"\n{step.text}')
    output, status = scratch.run(["clang++", "-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-std=c++17",
                                  "-fsyntax-only", f"-I{harness.SOURCE / 'include'}", source])
    if status:
        raise ValueError(complaint("clang++", output, status))


@functools.cache
def commands(run):
    """gpufl's commands and their options, from gpufl itself."""
    names = re.findall(r"^  ([a-z]+) ", run([harness.GPUFL])[0], re.M)
    return {name: set(re.findall(r"--[a-z-]+", run([harness.GPUFL, name, "--help"])[0])) for name in names}


def check_options(scratch, words):
    """Every --option of a gpufl command is one that its --help knows."""
    names = [pathlib.Path(word).name for word in words]
    for at, name in enumerate(names):
        rest = words[at + 1:]
        if name in ("gpufl-agent", "gpufl-monitor"):
            rest = [name.removeprefix("gpufl-"), *rest]
        elif name != "gpufl" or not rest or rest[0] not in commands(scratch.run):
            continue
        own = rest[:rest.index("--")] if "--" in rest else rest
        for word in own:
            if word.startswith("--") and word.partition("=")[0] not in commands(scratch.run)[rest[0]]:
                raise ValueError(f"gpufl {rest[0]} has no option {word}")
        return


def checked(check):
    """A rule out of a check that raises."""
    def rule(scratch, step, preludes=None):
        try:
            check(scratch, step)
        except Exception as problem:  # whatever the parser of that language raises
            return f"{type(problem).__name__}: {problem}"
        return None
    return rule


RUN = {"sh": run_sh, "bash": run_sh, "console": run_console, "c": run_c, "cpp": run_cpp, "python": run_python}
PARSE = {name: checked(check) for name, check in (
    ("json", check_json), ("ini", check_ini), ("yaml", check_yaml), ("toml", check_toml), ("cuda", check_cuda))}
SHOWN = ("text",)
