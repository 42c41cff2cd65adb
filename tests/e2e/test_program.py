# SPDX-License-Identifier: Apache-2.0
"""Tracing does not affect a program's exit status, signals, streams, terminal and environment."""
import json
import os
import pty
import shutil
import signal
import subprocess

from harness import GPUFL, RECORDER, TIMEOUT_S, TestCase, environment, gpufl, main, needs, run

PYTHON = "/usr/bin/python3"
PRINT_ENVIRONMENT = "import os, json; print(json.dumps(dict(os.environ)))"


class Status(TestCase):
    def test_exit_codes_are_the_programs(self):
        for code in (0, 1, 2, 42, 255):
            self.assertEqual(self.trace("-c", f"exit {code}", app="sh").returncode, code)

    def test_death_by_a_signal_is_128_plus_its_number(self):
        for name in ("TERM", "KILL", "SEGV", "ABRT", "INT"):
            expected = 128 + getattr(signal, "SIG" + name)
            self.assertEqual(self.trace("-c", f"ulimit -c 0; kill -{name} $$", app="sh").returncode, expected, name)

    def test_a_missing_program_is_127_and_leaves_no_directory(self):
        result = gpufl("trace", "--", "./x", cwd=self.directory)
        self.assertEqual((result.returncode, result.stderr),
                         (127, "gpufl trace: cannot run './x': No such file or directory\n"))
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_program_that_is_not_executable_is_126(self):
        (self.directory / "data").write_text("no program")
        result = gpufl("trace", "-o", "log", "--", "./data", cwd=self.directory)
        self.assertEqual((result.returncode, result.stderr),
                         (126, "gpufl trace: cannot run './data': Permission denied\n"))

    def test_options_of_the_program_are_not_options_of_gpufl(self):
        traced = self.trace("-c", "import sys; print(sys.argv[1:])", "--engine", "-q", "--help", app=PYTHON)
        self.assertEqual(traced.stdout, "['--engine', '-q', '--help']\n")


class Streams(TestCase):
    def test_standard_streams_pass_through_untouched(self):
        command = [GPUFL, "trace", "-q", "-o", self.directory / "log", "--", "sh", "-c", "cat; echo err >&2"]
        result = subprocess.run(command, input="some\ninput", text=True, capture_output=True, env=environment(),
                                timeout=TIMEOUT_S, check=False)
        self.assertEqual((result.stdout, result.stderr), ("some\ninput", "err\n"))

    def test_the_program_gets_no_descriptor_but_the_message_socket(self):
        code = ("import json, os; print(json.dumps([sorted(map(int, os.listdir('/proc/self/fd'))), "
                "os.environ.get('GPUFL_MESSAGE_FD')]))")
        plain, _ = json.loads(run(PYTHON, "-c", code).stdout)
        descriptors, socket = json.loads(self.trace("-c", code, app=PYTHON).stdout)
        self.assertEqual(sorted(set(descriptors) - set(plain)), [int(socket)])

    def test_the_program_keeps_the_terminal(self):
        primary, secondary = pty.openpty()
        code = "import os, sys; print(os.isatty(0), os.isatty(1), os.isatty(2), os.getpgrp() == os.tcgetpgrp(0))"
        command = [GPUFL, "trace", "-q", "-o", self.directory / "log", "--", PYTHON, "-c", code]
        process = subprocess.Popen([PYTHON, "-c", "import os, sys, pty, fcntl, termios; os.setsid(); "
                                    "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
                                    *map(str, command)], stdin=secondary, stdout=secondary, stderr=secondary,
                                   env=environment())
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        os.close(secondary)
        self.assertEqual(os.read(primary, 1000).strip(), b"True True True True")
        os.close(primary)


class Signals(TestCase):
    """Each program prints "ready", waits for a signal and exits with a status that identifies the signal."""

    PROGRAM = ("import signal, sys, time\n"
               "for n in (1, 2, 3, 10, 12, 15): signal.signal(n, lambda s, f: sys.exit(100 + s))\n"
               "print('ready', flush=True)\n"
               "time.sleep(50)\n")

    def start(self, program, **options):
        process = subprocess.Popen([GPUFL, "trace", "-q", "-o", self.directory / "log", "--", PYTHON, "-c", program],
                                   stdout=subprocess.PIPE, text=True, env=environment(), **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_signals_sent_to_gpufl_reach_the_program(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
            process = self.start(self.PROGRAM)
            process.send_signal(number)
            self.assertEqual(process.wait(TIMEOUT_S), 100 + number)

    def test_ctrl_c_reaches_the_program_once_and_gpufl_stays(self):
        program = ("import os, signal, sys, time\n"
                   "seen = []\n"
                   "signal.signal(2, lambda s, f: seen.append(s))\n"
                   "print('ready', flush=True)\n"
                   "while not seen: time.sleep(0.01)\n"
                   "time.sleep(0.2)\n"
                   "sys.exit(50 + len(seen))\n")
        primary, secondary = pty.openpty()
        command = [GPUFL, "trace", "-q", "-o", self.directory / "log", "--", PYTHON, "-c", program]
        process = subprocess.Popen([PYTHON, "-c", "import os, sys, fcntl, termios; os.setsid(); "
                                    "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
                                    *map(str, command)], stdin=secondary, stdout=subprocess.PIPE, env=environment())
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        os.write(primary, b"\x03")
        self.assertEqual(process.wait(TIMEOUT_S), 51)
        os.close(primary)
        os.close(secondary)

    def test_signals_that_were_ignored_stay_ignored_and_no_signal_is_blocked(self):
        code = ("import signal; "
                "print(signal.getsignal(1) == signal.SIG_IGN, signal.pthread_sigmask(signal.SIG_BLOCK, []))")
        result = run("sh", "-c", 'trap "" HUP; exec "$@"', "sh", GPUFL, "trace", "-q", "-o", self.directory / "log",
                     "--", PYTHON, "-c", code)
        self.assertEqual(result.stdout, "True set()\n")


class Environment(TestCase):
    def child(self, *options, **variables):
        result = gpufl("trace", "-q", *options, "--", PYTHON, "-c", PRINT_ENVIRONMENT, cwd=self.directory,
                       env=environment(**variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_defaults(self):
        child = self.child()
        self.assertEqual(child["CUDA_INJECTION64_PATH"], str(RECORDER.resolve()))
        self.assertEqual(child["NVTX_INJECTION64_PATH"], str(RECORDER.resolve()))
        self.assertEqual(child["GPUFL_INJECT"], "1")
        self.assertEqual(child["GPUFL_APP_NAME"], "python3")
        self.assertEqual(child["GPUFL_LOG_DIR"], str(self.directory.resolve() / "python3"))
        self.assertEqual(child["GPUFL_PROFILING_ENGINE"], "Trace")
        self.assertEqual(child["GPUFL_SYSTEM_SAMPLE_RATE_MS"], "100")
        self.assertEqual(child["GPUFL_CONTINUOUS_SYSTEM_SAMPLING"], "1")
        for name in ("STACK_TRACE", "MEMORY_TRACKING", "CUDA_GRAPHS_TRACKING", "SYNCHRONIZATION"):
            self.assertNotIn("GPUFL_ENABLE_" + name, child)

    def test_flags_become_variables(self):
        child = self.child("--engine", "monitor", "--name", "me", "-o", "logs/a", "--stacks", "--memory", "--graphs",
                           "--no-sync", "--sample-ms", "7")
        self.assertEqual(child["GPUFL_PROFILING_ENGINE"], "Monitor")
        self.assertEqual(child["GPUFL_APP_NAME"], "me")
        self.assertEqual(child["GPUFL_LOG_DIR"], str(self.directory.resolve() / "logs/a"))
        self.assertEqual(child["GPUFL_SYSTEM_SAMPLE_RATE_MS"], "7")
        switches = ("STACK_TRACE", "MEMORY_TRACKING", "CUDA_GRAPHS_TRACKING", "SYNCHRONIZATION")
        self.assertEqual([child["GPUFL_ENABLE_" + name] for name in switches], ["1", "1", "1", "0"])

    def test_the_users_own_variables_win_over_defaults_but_not_over_flags(self):
        own = {"GPUFL_PROFILING_ENGINE": "Monitor", "GPUFL_APP_NAME": "mine", "GPUFL_SYSTEM_SAMPLE_RATE_MS": "33",
               "GPUFL_LOG_DIR": str(self.directory / "own")}
        child = self.child(**own)
        self.assertEqual({name: child[name] for name in own}, own)
        child = self.child("--engine", "Trace", "-n", "flag", "--sample-ms", "5", "-o", "there", **own)
        names = ("GPUFL_PROFILING_ENGINE", "GPUFL_APP_NAME", "GPUFL_SYSTEM_SAMPLE_RATE_MS")
        self.assertEqual([child[name] for name in names], ["Trace", "flag", "5"])
        self.assertEqual(child["GPUFL_LOG_DIR"], str(self.directory.resolve() / "there"))

    def test_a_script_is_known_by_its_own_name(self):
        (self.directory / "train.py").write_text(PRINT_ENVIRONMENT)
        result = gpufl("trace", "-q", "--", PYTHON, "-u", "train.py", cwd=self.directory)
        child = json.loads(result.stdout)
        self.assertEqual(child["GPUFL_APP_NAME"], "train.py")
        self.assertEqual(child["GPUFL_LOG_DIR"], str(self.directory.resolve() / "train"))

    def test_the_default_directory_does_not_collide_with_the_program_itself(self):
        program = self.directory / "app"
        program.write_text("#!/bin/sh\necho $GPUFL_LOG_DIR\n")
        program.chmod(0o755)
        result = gpufl("trace", "-q", "--", "./app", cwd=self.directory)
        self.assertEqual(result.stdout, str(self.directory.resolve() / "app.gpufl") + "\n")

    def test_another_injection_is_named_and_replaced(self):
        result = gpufl("trace", "-o", "log", "--", PYTHON, "-c", PRINT_ENVIRONMENT, cwd=self.directory,
                       env=environment(CUDA_INJECTION64_PATH="/opt/other.so"))
        self.assertIn("CUDA_INJECTION64_PATH was already set, to '/opt/other.so'", result.stderr)
        self.assertEqual(json.loads(result.stdout)["CUDA_INJECTION64_PATH"], str(RECORDER.resolve()))

    def test_disabled_means_that_nothing_is_injected(self):
        result = gpufl("trace", "--", PYTHON, "-c", PRINT_ENVIRONMENT, cwd=self.directory,
                       env=environment(GPUFL_DISABLED="yes"))
        self.assertNotIn("CUDA_INJECTION64_PATH", json.loads(result.stdout))
        self.assertEqual(result.stderr, "gpufl: no GPU work was recorded: GPUFL_DISABLED is set\n")
        self.assertEqual(list(self.directory.iterdir()), [])


class Directories(TestCase):
    def check_unrecorded(self, directory, reason, program=GPUFL, **options):
        result = run(program, "trace", "-o", directory, "--", "sh", "-c", "echo ran; exit 7", cwd=self.directory, **options)
        self.assertEqual((result.returncode, result.stdout), (7, "ran\n"))
        lines = result.stderr.splitlines()
        self.assertEqual(lines[0], f"gpufl trace: cannot record into '{directory}': {reason}")
        self.assertEqual(len(lines), 3, result.stderr)

    def test_an_unwritable_path_gives_one_message_and_the_program_runs(self):
        (self.directory / "file").write_text("")
        self.check_unrecorded("file/below", "Not a directory")
        self.check_unrecorded("file", "Not a directory")
        self.check_unrecorded("/proc/gpufl", "No such file or directory")

    @needs(os.geteuid() == 0, "root, to become a user who is refused")
    def test_a_read_only_directory_gives_one_message_and_the_program_runs(self):
        closed = self.directory / "closed"
        closed.mkdir(mode=0o555)
        self.directory.chmod(0o755)
        # The other user may not have access to the build directory.
        for part in ("bin/gpufl", "lib/libgpufl_inject.so", "lib/libgpufl.so.1"):
            copy = self.directory / "install" / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(GPUFL.parent.parent / part, copy)
        for directory in ("closed", "closed/below"):
            self.check_unrecorded(directory, "Permission denied", program=self.directory / "install/bin/gpufl",
                                  user=65534, group=65534, extra_groups=[])

    def test_parents_are_made_for_the_user_only(self):
        code = "import os; print(oct(os.stat('a').st_mode & 0o777), oct(os.stat('a/b').st_mode & 0o777))"
        result = gpufl("trace", "-q", "-o", "a/b", "--", PYTHON, "-c", code, cwd=self.directory)
        self.assertEqual(result.stdout, "0o700 0o700\n")


class NothingRecorded(TestCase):
    def test_a_program_without_cuda_gets_a_different_message(self):
        traced = self.trace(app="true")
        self.assertEqual((traced.returncode, traced.stderr),
                         (0, "gpufl: no GPU work was recorded: the program never initialized CUDA; "
                          "if it should have, see `gpufl doctor`\n"))
        self.assertFalse(traced.directory.exists())

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.trace(app="true", options=["--quiet"]).stderr, "")

    def test_messages_are_printed_once_each_without_control_characters(self):
        code = ("import os, socket\n"
                "s = socket.socket(fileno=int(os.environ['GPUFL_MESSAGE_FD']))\n"
                "for text in (b'warning low disk', b'warning low disk', b'info hidden', b'error bad \\x1b[31m thing',\n"
                "             b'junk'):\n"
                "    s.send(text)\n"
                "s.detach()\n")
        stderr = self.trace("-c", code, app=PYTHON).stderr
        self.assertEqual(stderr, "gpufl trace: low disk\ngpufl trace: bad ?[31m thing\n"
                                 "gpufl: no GPU work was recorded: see the error above\n")
        self.assertEqual(self.trace("-c", code, app=PYTHON, options=["-q"]).stderr, "gpufl trace: bad ?[31m thing\n")


if __name__ == "__main__":
    main()
