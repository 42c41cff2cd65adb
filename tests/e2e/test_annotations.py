# SPDX-License-Identifier: Apache-2.0
"""Ranges, marks, counters and names of a program, and the client that finds libgpufl at run time."""
import pathlib
import subprocess
import sys

from harness import BUILD, SOURCE, Session, TestCase, environment, main, run, sessions

LIBRARY = BUILD / "lib" / "libgpufl.so"
PROGRAM = pathlib.Path(__file__).with_name("annotations.c")
NAMES = ["outer", "sized", "in_function", "block"]


class Program(TestCase):
    def build(self, *options):
        program = self.directory / "program"
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-I", SOURCE / "include", PROGRAM, "-o", program,
                        *options, "-ldl", "-lpthread"], check=True)
        return program

    def linked(self):
        return self.build("-L", LIBRARY.parent, "-lgpufl", f"-Wl,-rpath,{LIBRARY.parent}")

    def client(self):
        return self.build("-DGPUFL_CLIENT")

    def init(self, program, **variables):
        result = run(program, "init", self.directory / "log", env=environment(**variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        found = sessions(self.directory / "log")
        return result.stdout, Session(found[0]) if found else None

    def assert_everything_is_there(self, session):
        names = session.dictionary("scope_name_dict")
        rows = [(names[row["name_id"]].split("|")[-1], row) for row in session.rows("scope_event_batch")]
        begun = [name for name, row in rows if row["event_type"] == 0]
        for name in NAMES:
            self.assertIn(name, begun)
        by_source = {source: [(name, row) for name, row in rows if row["source"] == source] for source in (7, 8, 9)}
        threads = {row["event_type"]: row for _, row in by_source[7]}
        self.assertEqual([name for name, _ in by_source[7]], ["request"] * 2)
        self.assertEqual(len(threads), 2)
        self.assertGreaterEqual(threads[1]["time_ns"], threads[0]["time_ns"])
        self.assertEqual({name for name, _ in by_source[8]}, {"moment"})
        values = [row["payload_real"] for name, row in by_source[9] if row["event_type"] == 0]
        self.assertEqual(values, [2.5, 0.0])
        self.assertIn("main thread", [record["name"] for record in session.records("given_name")])


class Linked(Program):
    def test_a_linked_program_records_what_it_says(self):
        output, session = self.init(self.linked())
        self.assertIn("recording 1, range 1", output)
        self.assert_everything_is_there(session)

    def test_without_a_session_nothing_happens(self):
        result = run(self.linked())
        self.assertIn("recording 0, range 0", result.stdout)


class Client(Program):
    def test_without_the_library_every_call_is_inert(self):
        result = run(self.client())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "recording 0, range 0, version ''\n")

    def test_init_without_the_library_says_what_to_do(self):
        output, session = self.init(self.client(), GPUFL_LIBRARY="/nonexistent/libgpufl.so.1")
        self.assertIn("set GPUFL_LIBRARY", output)
        self.assertIsNone(session)

    def test_init_loads_the_library_that_the_environment_names(self):
        output, session = self.init(self.client(), GPUFL_LIBRARY=LIBRARY)
        self.assertIn("recording 1, range 1", output)
        self.assert_everything_is_there(session)

    def test_under_trace_the_recorder_of_the_process_is_found(self):
        traced = self.trace(app=self.client())
        self.assertIn("recording 1, range 1", traced.stdout)
        self.assert_everything_is_there(traced.session)

    def test_a_disabled_program_needs_and_finds_nothing(self):
        traced = self.trace(app=self.build("-DGPUFL_DISABLE"))
        self.assertEqual(traced.stdout, "recording 0, range 0, version ''\n")


class ForeignLanguages(TestCase):
    def test_inline_functions_are_exported_for_languages_without_the_header(self):
        code = (f"import ctypes; gpufl = ctypes.CDLL({str(LIBRARY)!r}); gpufl.gpufl_scope_begin(b'x'); "
                "gpufl.gpufl_scope_begin_meta(b'x', None); gpufl.gpufl_scope_end_counted(1); gpufl.gpufl_scope_end(); "
                "print(gpufl.gpufl_is_recording())")
        result = run(sys.executable, "-c", code)
        self.assertEqual((result.returncode, result.stdout), (0, "0\n"), result.stderr)


if __name__ == "__main__":
    main()
