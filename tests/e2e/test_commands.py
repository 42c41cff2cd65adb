# SPDX-License-Identifier: Apache-2.0
"""Help, errors, completion and manual pages of the gpufl program."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess

from harness import GPUFL, SOURCE, TestCase, environment, gpufl, main, needs, run

COMMANDS = ["trace", "cost", "ls", "report", "view", "diff", "export", "mcp", "verify", "seal", "disassemble", "upload", "monitor", "agent", "serve", "top", "metrics", "info", "doctor", "demo", "version", "completion", "man"]


class Help(TestCase):
    def test_gpufl_alone_prints_help_that_fits_one_screen(self):
        result = gpufl()
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        lines = result.stdout.splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertLessEqual(max(map(len, lines)), 100)
        verbs = re.findall(r"^  (\w+) +\w", result.stdout, re.M)
        self.assertEqual(verbs[:len(COMMANDS)], COMMANDS)

    def test_every_command_that_takes_something_has_an_example_at_the_end_of_the_help(self):
        after = gpufl().stdout.split("For example:")[1]
        for command in set(COMMANDS) - {"ls", "top", "info", "doctor", "demo", "version"}:
            self.assertIn(f"gpufl {command}", after)

    def test_each_command_explains_itself(self):
        for command in COMMANDS:
            for arguments in ((command, "--help"), (command, "-h"), ("help", command)):
                result = gpufl(*arguments)
                self.assertEqual(result.returncode, 0, arguments)
                self.assertIn(f"usage: gpufl {command}", result.stdout)
                self.assertLessEqual(len(result.stdout.splitlines()), 40)

    def test_usage_and_the_list_show_the_same_options_within_100_columns(self):
        for command in COMMANDS:
            text = gpufl(command, "--help").stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            usage = re.search(r"^usage: (.*?)\n\n", text, re.M | re.S).group(1)
            in_usage = re.findall(r"\[(-[\w-]+)", usage)
            listed = [letter or name for letter, name in re.findall(r"^  (?:(-\w), |    )(--[\w-]+)", text, re.M)]
            self.assertEqual(in_usage, listed)


class WrongUse(TestCase):
    def check(self, arguments, message):
        result = gpufl(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.splitlines()[0], message)

    def test_an_unknown_command_names_the_nearest(self):
        self.check(["trce"], "gpufl: no command 'trce'; did you mean 'trace'?")
        self.check(["help", "vrify"], "gpufl: no command 'vrify'; did you mean 'verify'?")
        self.check(["frobnicate"], "gpufl: no command 'frobnicate'; for the list, run 'gpufl help'")

    def test_an_unknown_option_names_the_nearest(self):
        self.check(["trace", "--engin", "Trace", "--", "true"],
                   "gpufl trace: no option '--engin'; did you mean '--engine'?")
        self.check(["report", "--jsn", "x"], "gpufl report: no option '--jsn'; did you mean '--json'?")

    def test_an_unknown_engine_names_the_nearest(self):
        self.check(["trace", "--engine", "Trce", "--", "true"], "gpufl trace: no engine 'Trce'; did you mean 'Trace'?")

    def test_missing_operands_are_named(self):
        self.check(["trace"], "gpufl trace: CMD is missing")
        self.check(["trace", "--"], "gpufl trace: CMD is missing")
        self.check(["verify", "a", "b"], "gpufl verify: takes one SESSION; 'b' is one too many")
        self.check(["version", "x"], "gpufl version: takes no operand, but got 'x'")
        self.check(["trace", "--sample-ms", "fast", "--", "true"],
                   "gpufl trace: --sample-ms takes a whole number from 0 to 3600000, not 'fast'")

    def test_a_session_that_is_not_there_is_an_environment_error_that_names_it(self):
        for command in ("report", "verify", "seal"):
            result = gpufl(command, self.directory / "nowhere")
            self.assertEqual(result.returncode, 3, command)
            self.assertIn("nowhere", result.stderr)
            self.assertTrue(result.stderr.startswith(f"gpufl {command}: "), result.stderr)

    def test_a_full_standard_output_is_not_success_and_is_said_once(self):
        session = SOURCE / "tests" / "golden" / "trace"
        for command in (["version"], ["version", "--json"], ["man"], ["man", "trace"], ["doctor", "--json"], ["info"], [],
                        ["verify", session], ["verify", "--json", session], ["report", session], ["trace", "--help"],
                        ["diff", session, session], ["completion", "bash"],
                        ["export", session, "-o", "-", "--table", "kernels"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([GPUFL, *command], stdout=full, stderr=subprocess.PIPE, env=environment(),
                                        text=True, check=False, timeout=600)
            self.assertEqual(result.returncode, 3, command)
            self.assertRegex(result.stderr, r"^gpufl[ \w]*: cannot write to standard output: No space left on device\n$",
                             command)

    def test_a_reader_that_has_enough_ends_every_command_quietly(self):
        session = SOURCE / "tests" / "golden" / "launch_bound"
        for command in (["export", session, "-o", "-", "--table", "kernels"], ["report", session], ["man", "trace"]):
            reading, writing = os.pipe()
            os.close(reading)
            result = subprocess.run([GPUFL, *command], stdout=writing, stderr=subprocess.PIPE, env=environment(),
                                    text=True, check=False, timeout=600)
            os.close(writing)
            self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, ""), command)


class Variables(TestCase):
    def test_doctor_knows_every_variable_that_gpufl_reads(self):
        read = set()
        for file in (SOURCE / "src").rglob("*.c"):
            read |= set(re.findall(r'(?:getenv\(|", )"(GPUFL_[A-Z0-9_]+)"', file.read_text(encoding="utf-8")))
        self.assertIn("GPUFL_EXIT_TIMEOUT_MS", read)
        known = (SOURCE / "src/base/environment.c").read_text(encoding="utf-8")
        self.assertEqual([name for name in sorted(read) if f'"{name}"' not in known], [])


class Version(TestCase):
    def test_version_is_that_of_the_header(self):
        header = (SOURCE / "include/gpufl/gpufl.h").read_text()
        expected = re.search(r'GPUFL_VERSION_STRING "(.*)"', header).group(1)
        self.assertIn(expected, gpufl("version").stdout)
        self.assertEqual(gpufl("--version").stdout, gpufl("version").stdout)
        self.assertEqual(json.loads(gpufl("version", "--json").stdout)["version"], expected)


class Completion(TestCase):
    def complete(self, *words, cwd=None, **variables):
        script = self.directory / "complete.bash"
        script.write_text(gpufl("completion", "bash").stdout)
        line = " ".join(f"'{word}'" for word in words)
        result = run("bash", "-c", f'source "{script}"; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _gpufl; '
                     'printf "%s\\n" "${COMPREPLY[@]}"', cwd=cwd,
                     env=environment(PATH=f"{GPUFL.parent}:{os.environ['PATH']}", **variables))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines() if result.stdout.strip() else []

    def test_bash_completes_commands_options_and_engines(self):
        self.assertEqual(self.complete("gpufl", "tr"), ["trace"])
        self.assertEqual(self.complete("gpufl", ""), COMMANDS)
        self.assertEqual(self.complete("gpufl", "trace", "--eng"), ["--engine"])
        self.assertEqual(self.complete("gpufl", "trace", "--engine", "Pc"), ["PcSampling"])
        self.assertEqual(self.complete("gpufl", "completion", "z"), ["zsh"])

    def test_bash_completes_chips_and_metrics_of_this_machine(self):
        self.assertEqual(self.complete("gpufl", "metrics", "--chip", "GH"), ["GH100"])
        self.assertEqual(self.complete("gpufl", "metrics", "pa"), ["passes"])
        self.assertEqual(self.complete("gpufl", "metrics", "show", "sm__warps"), ["sm__warps_active"])
        self.assertIn("sm__warps_active.avg", self.complete("gpufl", "metrics", "show", "sm__warps_active"))
        self.assertEqual(self.complete("gpufl", "metrics", "--chip", "AD102", "list", "dram__bytes"), ["dram__bytes_read"])
        self.assertEqual(self.complete("gpufl", "trace", "--range-metrics", "memory,over"), ["memory,overview"])
        self.assertIn("links", self.complete("gpufl", "trace", "--pm", ""))

    def test_without_cupti_there_are_no_names_and_no_message(self):
        nothing = {name: "/nonexistent" for name in ("GPUFL_CUPTI_PATH", "LD_LIBRARY_PATH")}
        self.assertEqual(self.complete("gpufl", "metrics", "--chip", "GH", **nothing), [])
        for words in ([], ["nonsense"], ["chips"], ["metrics", "sm"], ["sessions"], ["sessions", "'"]):
            result = gpufl("completion", "words", *words, env=environment(**nothing), cwd=self.directory)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), words)

    def test_bash_completes_sessions_and_takes_their_names_literally(self):
        golden = SOURCE / "tests" / "golden"
        hostile = "we ird'$(touch ran)`touch ran`"
        for name in ("good", hostile):
            shutil.copytree(golden / "trace", self.directory / "here" / name)
        here = self.directory / "here"
        names = self.complete("gpufl", "report", "", cwd=here)
        self.assertEqual(sorted(set(names)), sorted(["latest", "latest~1", "good", hostile]))
        self.assertEqual(set(self.complete("gpufl", "diff", "good", "we", cwd=here)), {hostile})
        self.assertEqual(self.complete("gpufl", "view", "late", cwd=here), ["latest", "latest~1"])
        self.assertFalse((here / "ran").exists())

    @needs((GPUFL.parent.parent / "lib" / "libgpufl-server.so").exists(), "the server")
    def test_bash_completes_keys_of_a_server_that_are_not_revoked(self):
        data = self.directory / "data"
        self.assertEqual(self.complete("gpufl", "serve", "ke"), ["keys"])
        self.assertEqual(self.complete("gpufl", "serve", "--data", data, "keys", "r"), ["rotate", "revoke"])
        self.assertEqual(self.complete("gpufl", "serve", "--data", data, "keys", "revoke", ""), [])
        self.assertFalse(data.exists(), "completion must not create a server's data")
        for name in ("dashboard", "night job", "gone"):
            created = gpufl("serve", "keys", "create", "--scope", "read", "--name", name, "--data", data)
            self.assertEqual(created.returncode, 0, created.stderr)
        self.assertEqual(gpufl("serve", "keys", "revoke", "gone", "--data", data).returncode, 0)
        self.assertEqual(self.complete("gpufl", "serve", "--data", data, "keys", "revoke", ""),
                         ["1", "dashboard", "2", "night job"])
        self.assertEqual(self.complete("gpufl", "serve", "keys", "rotate", "--data", data, "ni"), ["night job"])

    def test_each_shell_accepts_its_script(self):
        for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
            script = self.directory / f"gpufl.{shell}"
            result = gpufl("completion", shell)
            self.assertEqual(result.returncode, 0)
            for command in COMMANDS:
                self.assertIn(command, result.stdout)
            script.write_text(result.stdout)
            if shutil.which(shell):
                self.assertEqual(run(*check, script).stderr, "")

    def test_an_unknown_shell_names_the_nearest(self):
        result = gpufl("completion", "bsh")
        self.assertEqual((result.returncode, result.stderr),
                         (2, "gpufl completion: no shell 'bsh'; did you mean 'bash'?\n"))


class Manual(TestCase):
    def test_shipped_manual_pages_are_what_the_program_prints(self):
        pages = {"gpufl.1": gpufl("man").stdout}
        for command in COMMANDS:
            pages[f"gpufl-{command}.1"] = gpufl("man", command).stdout
        shipped = {path.name: path.read_text() for path in (SOURCE / "docs/man").glob("*.1")}
        self.assertEqual(sorted(shipped), sorted(pages))
        for name, page in pages.items():
            self.assertEqual(shipped[name], page, f"{name} is stale: gpufl man {name[6:-2]} > docs/man/{name}")

    @needs(shutil.which("groff"), "groff")
    def test_manual_pages_are_good_roff(self):
        for page in (SOURCE / "docs/man").glob("*.1"):
            result = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
            self.assertEqual((result.returncode, result.stderr), (0, ""), page.name)


class Habits(TestCase):
    def test_the_words_of_other_tools_run_the_command_that_is_meant(self):
        for habit, command in (("record", "trace"), ("profile", "trace"), ("run", "trace"), ("open", "view"),
                               ("list", "ls"), ("compare", "diff"), ("stats", "report")):
            for words in ((habit, "--help"), ("help", habit)):
                result = gpufl(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(result.stdout.startswith(f"gpufl {command}: "), result.stdout)
        self.assertEqual(gpufl("run", "--", "true").returncode, 0)
        self.assertEqual(json.loads(gpufl("list", self.directory, "--json").stdout), [])

    def test_one_thing_has_one_spelling_in_every_command(self):
        options = {command: set(re.findall(r"--([a-z-]+)", gpufl(command, "--help").stdout)) for command in COMMANDS}
        everywhere = set().union(*options.values())
        for command in ("agent", "upload"):
            self.assertLessEqual({"server", "key-file", "api-path"}, options[command])
        for command in ("agent", "monitor", "top"):
            self.assertIn("interval", options[command])
        self.assertFalse(everywhere & {"url", "api-key-file", "interval-ms", "key", "api-key", "interval-s"}, everywhere)

    def test_the_spellings_of_1_0_0_still_work(self):
        for option in ("--server", "--url"):
            result = gpufl("upload", self.directory, option, "ftp://host")
            self.assertEqual(result.returncode, 2)
            self.assertIn("invalid server address 'ftp://host'", result.stderr)
        for old in ("--api-key-file", "--interval-ms"):
            self.assertNotIn("no option", gpufl("agent", "--once", old, "1").stderr)

    def test_letters_mean_the_same_option_in_every_command(self):
        names = {}
        for command in COMMANDS:
            for letter, name in re.findall(r"^  -(\w), --([a-z-]+)", gpufl(command, "--help").stdout, re.M):
                self.assertEqual(names.setdefault(letter, name), name, command)


class Terminal(TestCase):
    def on_terminal(self, *arguments, **variables):
        """What a command prints on a terminal."""
        primary, secondary = pty.openpty()
        result = subprocess.run([GPUFL, *arguments], stdin=subprocess.DEVNULL, stdout=secondary,
                                env=environment(**variables), check=False, timeout=600)
        os.close(secondary)
        text = b""
        try:
            while chunk := os.read(primary, 65536):
                text += chunk
        except OSError:  # the end of a terminal
            pass
        os.close(primary)
        self.assertEqual(result.returncode, 0)
        return text.decode()

    @needs(shutil.which("man") and shutil.which("groff"), "man")
    def test_a_manual_page_is_formatted_for_the_pager_of_the_environment(self):
        for variable in ("MANPAGER", "PAGER"):
            text = self.on_terminal("man", "trace", **{"MANPAGER": None, variable: "sed 's/^/| /'"})
            self.assertRegex(text, r"(?m)^\| *GPUFL-TRACE\(1\)")
            self.assertNotIn(".SH", text)

    def test_without_man_the_pager_gets_plain_text(self):
        tools = self.directory / "tools"
        tools.mkdir()
        for tool in ("sh", "sed", "cat"):
            (tools / tool).symlink_to(shutil.which(tool))
        (tools / "less").write_text("#!/bin/sh\nexec sed 's/^/less: /'\n")
        (tools / "less").chmod(0o755)
        paged = self.on_terminal("man", "ls", PATH=tools, MANPAGER="sed 's/^/| /'")
        self.assertRegex(paged, r"^\| Lists the sessions in DIR")
        self.assertLessEqual(max(map(len, paged.splitlines())), 102)
        self.assertRegex(self.on_terminal("man", PATH=tools, MANPAGER=None, PAGER=None), r"^less: gpufl records ")
        (tools / "less").unlink()
        self.assertRegex(self.on_terminal("man", "ls", PATH=tools, MANPAGER=None, PAGER=None), r"^Lists the sessions")

    def test_a_pipe_gets_the_page_as_roff(self):
        self.assertTrue(gpufl("man", "trace", env=environment(MANPAGER="false")).stdout.startswith(".TH GPUFL-TRACE 1"))

    def test_help_on_a_terminal_has_no_colour(self):
        primary, secondary = pty.openpty()
        result = subprocess.run([GPUFL], stdout=secondary, env=environment(), check=False, timeout=600)
        os.close(secondary)
        text = os.read(primary, 65536)
        os.close(primary)
        self.assertEqual(result.returncode, 0)
        self.assertNotIn(b"\033[", text)


if __name__ == "__main__":
    main()
