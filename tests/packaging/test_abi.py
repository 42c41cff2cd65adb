# SPDX-License-Identifier: Apache-2.0
"""libgpufl.so keeps the interface of the last release, and the check detects changes."""
import subprocess
import unittest

from packages import BUILD, DIRECTORY, SOURCE

CHECK = SOURCE / "tools/check_abi.sh"
FIXTURE = SOURCE / "tests/packaging/abi_fixture.c"
COMPATIBLE = ("FUNCTION_ADDED", "MEMBER_APPENDED", "ENUMERATOR_ADDED")
INCOMPATIBLE = ("FUNCTION_REMOVED", "MEMBER_INSERTED", "MEMBER_RETYPED", "UNSIZED_APPENDED", "PARAMETER_CHANGED",
                "ENUMERATOR_RENUMBERED")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def library(change=None, soname="libsmall.so.1", *options):
    path = DIRECTORY / f"{change}-{soname}"
    result = run("cc", "-g", "-shared", "-fPIC", f"-Wl,-soname,{soname}", f"-D{change or 'UNCHANGED'}", *options,
                 FIXTURE, "-o", path)
    if result.returncode:
        raise AssertionError(result.stderr)
    return path


class LastRelease(unittest.TestCase):
    def test_the_library_keeps_its_interface(self):
        result = run(CHECK, BUILD / "lib/libgpufl.so")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_dump_is_of_the_library_and_of_nothing_private(self):
        text = (SOURCE / "packaging/abi/libgpufl.so.1.abi").read_text()
        self.assertIn("soname='libgpufl.so.1'", text)
        self.assertIn("name='gpufl_init'", text)
        self.assertNotIn(str(SOURCE), text)


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dump = DIRECTORY / "small.abi"
        result = run(CHECK, "--renew", library(), cls.dump, FIXTURE.parent)
        if result.returncode:
            raise AssertionError(result.stderr)

    def status(self, path):
        result = run(CHECK, path, self.dump, FIXTURE.parent)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result.returncode, result.stdout + result.stderr

    def test_additions_pass(self):
        for change in (None, *COMPATIBLE):
            status, text = self.status(library(change))
            self.assertEqual(status, 0, f"{change}: {text}")

    def test_incompatible_changes_are_refused(self):
        for change in INCOMPATIBLE:
            status, text = self.status(library(change))
            self.assertEqual(status, 1, f"{change}: {text}")

    def test_another_soname_is_refused(self):
        self.assertEqual(self.status(library(None, "libsmall.so.2"))[0], 1)

    def test_a_library_without_debug_information_is_an_error(self):
        result = run(CHECK, library(None, "libbare.so.1", "-g0"), self.dump, FIXTURE.parent)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
