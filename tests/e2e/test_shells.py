# SPDX-License-Identifier: Apache-2.0
"""zsh and fish load their completion scripts and complete with them; bash is in test_commands.py."""
import os
import pty
import re
import select
import shutil
import signal
import time

from harness import GPUFL, SOURCE, TIMEOUT_S, TestCase, environment, gpufl, main, needs, run
from test_commands import COMMANDS

SHELLS_PATH = f"{GPUFL.parent}:{os.environ['PATH']}"
# An interactive zsh with the widgets a user has. What compadd is given goes to a file instead of to the screen, one
# match a line, and a line END when the key's work is done.
ZSHRC = """\
fpath=({functions} $fpath)
autoload -Uz compinit && compinit -u -d {directory}/dump
setopt no_auto_list no_auto_menu no_beep
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a matches
    builtin compadd -A matches "$@"
    (( $#matches )) && print -rl -- $matches >>{directory}/found
    builtin compadd "$@"
}}
finished() {{ zle complete-word; print END >>{directory}/found }}
zle -N finished
bindkey '^I' finished
zle-line-init() {{ print END >>{directory}/found }}
zle -N zle-line-init
"""


class Zsh:
    """One interactive shell on a separate terminal."""

    def __init__(self, directory, functions, more=""):
        self.found = directory / "found"
        (directory / ".zshrc").write_text(ZSHRC.format(directory=directory, functions=functions) + more)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe("zsh", ["zsh", "-i", "-o", "no_global_rcs"],
                       environment(ZDOTDIR=directory, PATH=SHELLS_PATH, TERM="dumb", HOME=directory))
        self.wait()

    def wait(self):
        """Matches that were found when END came. Reads what the shell draws, which has no room forever."""
        deadline = time.monotonic() + TIMEOUT_S
        drawn = b""
        while time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.02)[0]:
                drawn += os.read(self.terminal, 65536)
            text = self.found.read_text() if self.found.exists() else ""
            if text.endswith("END\n"):
                self.found.unlink()
                return text.splitlines()[:-1]
        raise AssertionError(f"zsh did not answer: {drawn.decode(errors='replace')}")

    def complete(self, line):
        os.write(self.terminal, line.encode() + b"\t")
        found = self.wait()
        os.write(self.terminal, b"\x15")  # delete the line
        return found

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Completes:
    """What both shells do; `complete` returns the set of words offered at the end of a line."""

    def options_of(self, command):
        return set(re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", gpufl(command, "--help").stdout, re.M)) - {"--help"}

    def test_commands_are_those_of_the_help(self):
        self.assertEqual(self.complete("gpufl "), set(COMMANDS))
        self.assertEqual(self.complete("gpufl tr"), {"trace"})

    def test_options_of_each_command_are_those_of_its_help(self):
        for command in COMMANDS:
            offered = {word for word in self.complete(f"gpufl {command} --") if word != "--help"}
            self.assertEqual(offered, self.options_of(command), command)

    def test_options_belong_to_the_command_and_not_to_a_later_word(self):
        self.assertNotIn("--range-mode", self.complete("gpufl report trace --"))

    def test_values_of_options_are_completed(self):
        self.assertEqual(self.complete("gpufl trace --engine Pc"), {"PcSampling"})
        self.assertEqual(self.complete("gpufl metrics --chip GH"), {"GH100"})
        self.assertEqual(self.complete("gpufl completion z"), {"zsh"})

    def test_operands_are_completed(self):
        self.assertEqual(self.complete("gpufl metrics pa"), {"passes"})
        self.assertEqual(self.complete("gpufl metrics show sm__warps"), {"sm__warps_active"})
        self.assertEqual(self.complete("gpufl report go"), {"good"})
        self.assertIn("latest", self.complete("gpufl view la"))

    def test_a_traced_program_is_completed_as_a_command(self):
        self.assertIn("cmake", self.complete("gpufl trace -- cmak"))


@needs(shutil.which("zsh"), "zsh")
class ZshCompletes(Completes, TestCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(SOURCE / "tests/golden/trace", self.directory / "good")
        functions = self.directory / "functions"
        functions.mkdir()
        (functions / "_gpufl").write_text(gpufl("completion", "zsh").stdout)
        self.shell = Zsh(self.directory, functions)
        self.addCleanup(self.shell.end)

    def complete(self, line):
        return {word.rstrip("/") for word in self.shell.complete(line)}

    def test_a_sourced_script_completes_too(self):
        (self.directory / "functions/_gpufl").unlink()
        (self.directory / "dump").unlink()
        shell = Zsh(self.directory, self.directory / "functions", "source <(gpufl completion zsh)\n")
        self.addCleanup(shell.end)
        self.assertEqual(shell.complete("gpufl tr"), ["trace"])


@needs(shutil.which("fish"), "fish")
class FishCompletes(Completes, TestCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(SOURCE / "tests/golden/trace", self.directory / "good")
        self.script = self.directory / "gpufl.fish"
        self.script.write_text(gpufl("completion", "fish").stdout)

    def complete(self, line):
        result = run("fish", "--no-config", "-c", f"source {self.script}; complete -C '{line}'", cwd=self.directory,
                     env=environment(PATH=SHELLS_PATH, HOME=self.directory))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {word.split("\t")[0].rstrip("/") for word in result.stdout.splitlines()}


if __name__ == "__main__":
    main()
