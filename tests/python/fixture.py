# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the built package, programs run beside the fake GPU, sessions at hand."""
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))
import harness  # noqa: E402

PACKAGE = harness.BUILD / "python"
GOLDEN = SOURCE / "tests" / "golden"
# Each golden session has a report next to it.
GOLDEN_SESSIONS = sorted(path for path in GOLDEN.iterdir() if path.is_dir() and (GOLDEN / f"{path.name}.txt").exists())
sys.path.insert(0, str(PACKAGE))

# Programs run in separate processes, because a process has one session and reads the environment once.
PROGRAM_HEAD = f"""
import sys
sys.path[:0] = [{str(PACKAGE)!r}, {str(SOURCE / "tests" / "python")!r}]
"""


class TestCase(harness.TestCase):
    """A test with its own directory, in which its programs run."""

    def program(self, text, interpreter=sys.executable, **variables):
        """Runs Python text with the fake GPU; the process that ended."""
        file = self.directory / "program.py"
        file.write_text(PROGRAM_HEAD + text)
        return harness.run(interpreter, "-B", "-W", "always", file, env=harness.environment(**variables),
                           cwd=self.directory)

    def output(self, text, **variables):
        """What the program printed; it must end well."""
        result = self.program(text, **variables)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def recorded(self, text, log_path="log", **variables):
        """The one session that the program left in log_path, read without the product."""
        self.output(text, **variables)
        found = harness.sessions(self.directory / log_path)
        self.assertEqual(len(found), 1, found)
        return harness.Session(found[0])


main = harness.main
