# SPDX-License-Identifier: Apache-2.0
"""What every command prints on terminals of 60, 80 and 200 columns, into a pipe and with NO_COLOR, compared with
tests/golden/commands/. After a change of a text, run this file with --renew, and read what changed."""
import concurrent.futures
import difflib
import fcntl
import os
import pathlib
import pty
import re
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import unittest

from command_cases import CASES
from harness import BUILD, FAKE_APP, FAKES, GPUFL, SOURCE, environment, run

GOLDEN = SOURCE / "tests" / "golden"
OUTPUTS = GOLDEN / "commands"
SESSION_ID = "0192f300-0000-7000-8000-00000000{:04x}"
COPIED = ("deep", "pc_sampling", "sass_metrics", "range_metrics", "two_gpus", "monitor", "degraded", "refused", "hostile",
          "amd_code", "killed")
HOST_CHECKS = ("recorder", "other tools", "container", "virtualization", "clock", "log directory", "counter permission", "variables",
               "CUPTI copies", "AMD driver")
DEADLINE_S = 600


class Machine:
    """A working directory with sessions beside it, good and bad, and the look-alike of a GPU."""

    def __init__(self, name, index):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-out-"))
        self.here = self.root / "here"
        self.here.mkdir()
        self.place("trace", self.here / "train" / SESSION_ID.format(1), "train-1")
        self.place("trace", self.here / "train" / SESSION_ID.format(2), "train-2")
        self.place("trace", self.root / "to_seal" / SESSION_ID.format(3), "train-3")
        self.place("trace", self.root / "train" / SESSION_ID.format(4), "train-1")
        for session in COPIED:
            shutil.copytree(GOLDEN / session, self.root / session)
        shutil.copytree(GOLDEN / "empty", self.root / "no_kernels")
        (self.root / "empty_dir").mkdir()
        self.place("trace", self.root / "damaged", "")
        self.damage(self.root / "damaged" / "device.log")
        self.place("trace", self.root / "newer", "")
        self.renumber(self.root / "newer")
        (self.here / "fakes").symlink_to(FAKES)
        (self.here / "recorder").symlink_to(BUILD / "lib" / "libgpufl_inject.so")
        tools = self.root / "tools"
        tools.mkdir()
        for tool in ("sh", "true", "false"):
            (tools / tool).symlink_to(shutil.which(tool))
        (tools / "fake_app").symlink_to(FAKE_APP)
        shutil.copy(FAKE_APP, self.here / "app")
        four = tools / "four_apps"
        four.write_text("#!/bin/sh\nfor i in 1 2 3 4; do fake_app --launches 10 >/dev/null & done; wait\n")
        four.chmod(0o755)
        (self.root / "home").mkdir()
        self.variables = environment(
            "fakes", PATH=tools, HOME=self.root / "home", TZ="UTC", TERM="xterm-256color", FAKE_MACHINE=os.getpid() + index,
            GPUFL_INJECT_LIB="./recorder", COLUMNS=None, LINES=None, PAGER=None, MANPAGER=None, DISPLAY=None, CI=None,
            SSH_CONNECTION=None, TMPDIR=None, XDG_RUNTIME_DIR=None, XDG_STATE_HOME=None, XDG_CONFIG_HOME=None,
            XDG_DATA_HOME=None, XDG_CACHE_HOME=None)
        self.name = name

    @staticmethod
    def place(session, path, name):
        shutil.copytree(GOLDEN / session, path)
        if name:
            (path / ".gpufl-session.lock").write_text(name)

    @staticmethod
    def damage(path):
        """One line is not JSON any more, and the last one is cut."""
        lines = path.read_text().splitlines()
        lines[2] = lines[2].replace('"type"', '"ty', 1)
        path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:40])

    @staticmethod
    def renumber(session):
        """As a gpufl that comes later would write it, with good checksums."""
        for log in session.glob("*.log"):
            lines = re.sub(r',"crc":"[0-9a-f]{8}"\}', "", log.read_text()).replace('{"version":1,', '{"version":2,')
            log.write_text("".join(f'{line},"crc":"{crc32c(line.encode()):08x}"}}\n' for line in lines.splitlines()))

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, case, mode):
        """Exit status, standard output and standard error."""
        words = [str(GPUFL), *case.words.split()] + (["--", *case.program.split()] if case.program else [])
        variables = dict(self.variables, **({"NO_COLOR": "1"} if mode == "no_color" else {}))
        pairs = [os.pipe() if mode == "piped" else terminal(80 if mode == "no_color" else int(mode)) for _ in range(2)]
        with subprocess.Popen(words, cwd=self.here, env=variables, stdin=subprocess.DEVNULL, stdout=pairs[0][1],
                              stderr=pairs[1][1]) as process:
            for _, writing in pairs:
                os.close(writing)
            try:
                texts = read_all([reading for reading, _ in pairs], process, case.stop_at.encode())
            finally:
                if process.poll() is None:
                    try:
                        process.wait(DEADLINE_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                for reading, _ in pairs:
                    os.close(reading)
        return process.returncode, *[text.decode().replace("\r\n", "\n") for text in texts]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def terminal(columns):
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return primary, secondary


def read_all(readings, process, stop_at):
    texts = {reading: b"" for reading in readings}
    deadline = time.monotonic() + DEADLINE_S
    is_stopped = not stop_at
    with selectors.DefaultSelector() as selector:
        for reading in readings:
            selector.register(reading, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(1):
                try:
                    chunk = os.read(key.fd, 65536)
                except OSError:  # the end of a terminal
                    chunk = b""
                texts[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
            if not is_stopped and any(stop_at in text for text in texts.values()):
                is_stopped = True
                process.send_signal(signal.SIGINT)
        if selector.get_map():
            process.kill()
    return [texts[reading] for reading in readings]


def without_color(text):
    return re.sub(r"\033\[[0-9;]*m", "", text)


def without_progress(text):
    """A line that is shown while something takes longer than a second."""
    return re.sub(r"\r\033\[K(gpufl: [^\r\n]*)?", "", text)


def width_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Normal:
    """Replaces what differs between runs and machines."""

    def __init__(self, machine):
        self.ids = {}
        self.version = re.search(r'GPUFL_VERSION_STRING "(.*)"',
                                 (SOURCE / "include/gpufl/gpufl.h").read_text()).group(1)
        self.root = str(machine.root)

    def of(self, case, text):
        command = case.words.split(" ")[0]
        text = text.replace(self.root, "ROOT").replace(str(BUILD), "BUILD").replace(self.version, "VERSION")
        text = re.sub(r"(?<!-)\b(?!0192f300)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID", text)
        text = re.sub(r"GPU-[0-9a-f-]{36}", "GPU-UUID", text)
        text = re.sub(r"127\.0\.0\.1:\d{5}", "127.0.0.1:PORT", text)
        if case.is_loose or (command == "trace" and case.program):  # where a line is broken depends on its numbers
            text = re.sub(r"\n +", " ", text)
        text = re.sub(r"slowed down by (a factor of )?(about |at least |less than )?\d+(\.\d+)?( %)?", "slowed down by N %", text)
        text = re.sub(r"after \d+ ms", "after N ms", text)
        text = re.sub(r"[\d.]+ kB · a.html", "N kB · a.html", text)
        text = re.sub(r"[\d.]+ \w+ GPU busy of [\d.]+ \w+,", "N us GPU busy of N ms,", text)
        if command == "ls":
            text = re.sub(r"STARTED +", "STARTED  ", text)
            text = re.sub(r"(\d{4}-\d\d-\d\d|\d\d-\d\d \d\d:\d\d) +", "DATE     ", text)
        if command == "doctor":
            checks = "|".join(HOST_CHECKS)
            text = re.sub(rf"(?m)^\w+ +({checks})(?:  .*)?\n(?: {{9,}}.*\n)*", r"\1: depends on the host" + "\n", text)
            text = re.sub(r"Trace .* here: .*", "Trace can or will not record here", text)
        if command == "version":
            text = re.sub(r'"?git"?.*', "git", text)
        if case.is_loose:
            text = re.sub(r"(?m)^.*(\bprocess \d+|^ *\d+ +[\d–]).*\n", "", text) if command != "cost" else text
            text = re.sub(r"[\u2580-\u259f]+", "", text)
            text = re.sub(r"\d[\d.,:]*", "N", text)
            text = re.sub(r" +", " ", text)
            text = re.sub(r"(gpufl top · |^)(\S+)( ·|  ?CPU)", r"\1HOST\3", text, flags=re.M)
        return text


def outputs_of(name, index):
    """The golden text of a command, and what is wrong with any output whatever the golden text says."""
    machine = Machine(name, index)
    normal = Normal(machine)
    blocks, faults = [], []
    try:
        for case in CASES[name]:
            title = f"gpufl {case.words}{' -- ' + case.program if case.program else ''}".rstrip()
            shown = {}
            for mode in case.modes:
                code, out, err = machine.run(case, mode)
                err = without_progress(err)
                for text in (out, err):
                    if mode in ("piped", "no_color") and "\033" in text:
                        faults.append(f"{title} ({mode}): there is colour")
                    columns = 80 if mode == "no_color" else int(mode) if mode.isdigit() else 0
                    for line in without_color("" if case.program and text == out else text).splitlines():
                        if columns and not case.is_exempt and width_of(line) > columns and " " in line.strip():
                            faults.append(f"{title} ({mode}): {width_of(line)} columns: {line}")
                if "\033[" in out + err:
                    shown.setdefault("colour", []).append(mode)
                text = f"exit {code}\n"
                text += "".join(f"| {line}".rstrip() + "\n" for line in normal.of(case, without_color(out)).splitlines())
                text += "".join(f"! {line}".rstrip() + "\n" for line in normal.of(case, without_color(err)).splitlines())
                shown.setdefault(text, []).append(mode)
            colour = shown.pop("colour", [])
            block = f"=== {title}\n"
            for text, modes in shown.items():
                marked = [mode + "*" if mode in colour else mode for mode in modes]
                block += f"--- {' '.join(marked)}: {text}"
            blocks.append(block)
    finally:
        machine.remove()
    return "\n".join(blocks), faults


def commands():
    listed = run(GPUFL, "help").stdout
    return re.findall(r"(?m)^  ([a-z]+) +\S", listed.split("\n\n")[2])


class Outputs(unittest.TestCase):
    maxDiff = None

    def test_every_command_has_cases_and_a_golden_file(self):
        self.assertEqual(sorted(CASES), sorted([*commands(), "help"]))
        self.assertEqual(sorted(path.stem for path in OUTPUTS.glob("*.txt")), sorted(CASES))

    def test_every_command_prints_its_golden_output_in_lines_that_fit_without_unasked_colour(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = dict(zip(CASES, pool.map(outputs_of, CASES, range(len(CASES)))))
        for name, (text, faults) in found.items():
            with self.subTest(name):
                golden = (OUTPUTS / f"{name}.txt").read_text()
                difference = difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "printed", lineterm="")
                self.assertEqual(text, golden, "\n" + "\n".join(difference) + "\nif it is right: --renew")
                self.assertEqual(faults, [])


def renew(names):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (text, faults) in zip(names, pool.map(outputs_of, names, map(list(CASES).index, names))):
            (OUTPUTS / f"{name}.txt").write_text(text)
            print("\n".join(faults), file=sys.stderr)


if __name__ == "__main__":
    if "--renew" in sys.argv:
        renew([name for name in sys.argv[1:] if name != "--renew"] or list(CASES))
    else:
        unittest.main(verbosity=2)
