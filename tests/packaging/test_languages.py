# SPDX-License-Identifier: Apache-2.0
"""The examples in other languages record, and declare every function as gpufl.h does."""
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import stage
from harness import FAKES, Session, environment, gpufl, main, needs, run, sessions
from serve_process import ServeTest

FFI = stage.SOURCE / "examples/ffi"
RUSTC = shutil.which("rustc", path="/usr/bin") or shutil.which("rustc")
# What a type is to a call, in each language.
C_KINDS = {"void": "void", "int": "i32", "gpufl_status": "i32", "gpufl_engine": "i32", "uint32_t": "u32",
           "uint64_t": "u64", "size_t": "usize", "double": "f64"}
RUST_KINDS = {"": "void", "c_int": "i32", "u32": "u32", "u64": "u64", "usize": "usize", "f64": "f64"}
JULIA_KINDS = {"Cvoid": "void", "Cint": "i32", "UInt32": "u32", "UInt64": "u64", "Csize_t": "usize", "Cdouble": "f64",
               "Cstring": "pointer"}
# Calls each function as it was declared: {function: [kind of the result, kinds of the parameters...]}.
CALLER = """\
import ctypes, json, sys
kinds = {"void": None, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
         "usize": ctypes.c_size_t, "f64": ctypes.c_double, "pointer": ctypes.c_char_p}
values = {"u32": 0, "u64": 0, "usize": 4, "f64": 1.5, "pointer": b"step"}
library = ctypes.CDLL("libgpufl.so.1")
functions = json.loads(sys.argv[1])

def call(name, *arguments):
    result, *parameters = functions.pop(name)
    function = getattr(library, name)
    function.restype, function.argtypes = kinds[result], [kinds[kind] for kind in parameters]
    return function(*(arguments or [values[kind] for kind in parameters]))

end, shutdown = functions.pop("gpufl_scope_end"), functions.pop("gpufl_shutdown")
assert call("gpufl_init", None) == 0, call("gpufl_last_error")
assert call("gpufl_is_recording") == 1
for name in list(functions):
    call(name)
functions |= {"gpufl_scope_end": end, "gpufl_shutdown": shutdown}
call("gpufl_scope_end"), call("gpufl_shutdown")
"""


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def declared_in_c():
    text = re.sub(r"/\*.*?\*/", "", (stage.SOURCE / "include/gpufl/gpufl.h").read_text(), flags=re.S)

    def kind(type_):
        return "pointer" if "*" in type_ else C_KINDS.get(type_.strip(), type_)
    found = re.findall(r"^(?:GPUFL_API|static inline) ([\w *]+?)(gpufl_\w+[a-z])\(([^)]*)\)", text, re.M)
    return {name: [kind(result), *(kind(re.sub(r"\w+$", "", word)) for word in words(parameters) if word != "void")]
            for result, name, parameters in found}


def declared_in_rust():
    def kind(declaration):
        word = declaration.split(":")[-1].strip()
        return "pointer" if word.startswith("*") else RUST_KINDS[word]
    found = re.findall(r"^    fn (gpufl_\w+)\(([^)]*)\)(?: -> ([^;]*))?;", (FFI / "scopes.rs").read_text(), re.M)
    return {name: [kind(result), *map(kind, words(parameters))] for name, parameters, result in found}


def declared_in_julia():
    def kind(word):
        return "pointer" if word.startswith("Ptr{") else JULIA_KINDS[word]
    found = re.findall(r"ccall\(\(:(gpufl_\w+), libgpufl\), (\w+), \(([^)]*)\)", (FFI / "scopes.jl").read_text())
    return {name: [kind(result), *map(kind, words(parameters))] for name, result, parameters in found}


class Languages(ServeTest):
    def assert_records(self, *command):
        log = self.directory / "log"
        result = run(*command, env=environment(LD_LIBRARY_PATH=f"{stage.PREFIX}/lib:{FAKES}", GPUFL_LOG_DIR=log,
                                               GPUFL_PROFILING_ENGINE="Trace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        session, = sessions(log)
        self.assertEqual(result.stdout.strip(), str(session))
        self.assertEqual(gpufl("verify", session).returncode, 0)
        self.assertEqual(set(Session(session).dictionary("scope_name_dict").values()),
                         {"request", "epoch", "epoch|step", "epoch|step|queue length", "trained"})

    def compile(self, *command, **variables):
        result = run(*command, env={**os.environ, "HOME": str(self.directory), **variables})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @needs(RUSTC, "rustc")
    def test_rust_records(self):
        program = self.directory / "rust"
        self.compile(RUSTC, "--edition", "2021", "-D", "warnings", FFI / "scopes.rs", "-L", stage.PREFIX / "lib", "-o", program,
                     HOME=os.environ.get("HOME", "/"))
        self.assert_records(program)

    @needs(shutil.which("go"), "go")
    def test_go_records(self):
        program = self.directory / "go"
        self.compile("go", "build", "-o", program, FFI / "scopes.go", PKG_CONFIG_PATH=str(stage.PREFIX / "lib/pkgconfig"))
        self.assert_records(program)

    @unittest.skipUnless(shutil.which("julia"), "Debian 12 has no Julia")
    def test_julia_records(self):
        self.assert_records("julia", FFI / "scopes.jl")

    def test_every_signature_is_that_of_the_header(self):
        header = declared_in_c()
        self.assertGreater(len(header), 25)
        for functions in (declared_in_rust(), declared_in_julia()):
            self.assertGreaterEqual(len(functions), 11)
            for name, kinds in functions.items():
                self.assertEqual(kinds, header[name], name)

    def test_every_call_works_with_the_declared_types(self):
        for functions in (declared_in_rust(), declared_in_julia()):
            log = self.directory / f"log{len(functions)}"
            result = run(sys.executable, "-c", CALLER, json.dumps(functions), env=environment(
                LD_LIBRARY_PATH=f"{stage.PREFIX}/lib:{FAKES}", GPUFL_LOG_DIR=log, GPUFL_PROFILING_ENGINE="Trace"))
            self.assertEqual(result.returncode, 0, result.stderr)
            session, = sessions(log)
            self.assertIn("step", Session(session).dictionary("scope_name_dict").values())
            shutil.rmtree(log)

    def test_the_page_shows_the_examples(self):
        page = (stage.SOURCE / "docs/languages.md").read_text()
        for path in FFI.iterdir():
            self.assertIn(f"examples/ffi/{path.name}", page)
            for line in re.findall(r"(?m)^(?://|#)\s+((?:rustc|LD_|PKG_).*)$", path.read_text()):
                self.assertIn(pathlib.Path(line.split()[-1]).name, page)


if __name__ == "__main__":
    main()
