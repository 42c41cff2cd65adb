# SPDX-License-Identifier: Apache-2.0
"""tools/check_hardening.py names what a program lacks."""
import json
import pathlib
import platform
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
int main(int count, char **words)
{
    char text[64];
    strcpy(text, words[count - 1]);
    return puts(text) < 0;
}
"""
PADS = {"x86_64": "-fcf-protection=%s:full:none", "aarch64": "-mbranch-protection=%s:standard:none"}
FLAGS = {  # what is found missing: the flags with it and without it
    "PIE": ("-fPIE -pie", "-fno-pie -no-pie"),
    "RELRO": ("-Wl,-z,relro", "-Wl,-z,norelro"),
    "BIND_NOW": ("-Wl,-z,now", "-Wl,-z,lazy"),
    "non-executable stack": ("-Wl,-z,noexecstack", "-Wl,-z,execstack"),
    "stack protector": ("-fstack-protector-strong", "-fno-stack-protector"),
    "FORTIFY": ("-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2", "-U_FORTIFY_SOURCE"),
}
if platform.machine() in PADS:
    FLAG, WITH, WITHOUT = PADS[platform.machine()].split(":")
    FLAGS["landing pads"] = (FLAG % WITH, FLAG % WITHOUT)


class Hardening(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpufl-hardening-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, *files):
        return subprocess.run([SOURCE / "tools/check_hardening.py", *files], capture_output=True, text=True, check=False)

    def program(self, without=None):
        flags = " ".join(words[name == without] for name, words in FLAGS.items()).split()
        if without == "landing pads":  # what the C library's start-up code has must not count
            flags += ["-nostartfiles", "-Wl,-e,main"]
        path = self.folder / "program"
        subprocess.run(["gcc", "-O2", *flags, "-o", path, "-x", "c", "-"], input=PROGRAM, text=True, check=True,
                       capture_output=True)
        return path

    def test_a_protected_program_is_accepted(self):
        result = self.check(self.program())
        self.assertEqual((result.returncode, result.stdout), (0, "1 files checked\n"), result.stderr)

    def test_each_missing_protection_is_named(self):
        for what in FLAGS:
            with self.subTest(what):
                path = self.program(what)
                result = self.check(self.folder)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr, f"check_hardening: {path}: no {what}\n")

    def test_sources_without_stack_clash_protection_are_named(self):
        commands = self.folder / "compile_commands.json"
        commands.write_text(json.dumps([{"file": "with.c", "command": "cc -fstack-clash-protection -c with.c"},
                                        {"file": "without.c", "command": "cc -c without.c"}]))
        result = self.check(commands, self.program())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         "check_hardening: without.c: compiled without -fstack-clash-protection\n")

    def test_a_directory_without_programs_is_an_error(self):
        self.assertEqual(self.check(self.folder).returncode, 1)


if __name__ == "__main__":
    unittest.main()
