#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of gpufl.cupti against the toolkit's headers, and that the extension and its stub agree."""
import ast
import enum
import pathlib
import re
import shutil
import subprocess

import fixture
import harness

INCLUDE = pathlib.Path("/usr/local/cuda/include")
HEADERS = ("cupti.h", "cupti_pmsampling.h", "cupti_profiler_host.h", "cupti_profiler_target.h",
           "cupti_range_profiler.h",
           "cupti_pcsampling.h", "cupti_sass_metrics.h", "cupti_target.h")
PARSED = (*HEADERS, "cupti_activity.h", "cupti_callbacks.h", "cupti_metrics.h", "cupti_result.h")
# Not in CUDA 13.0; compared where a newer toolkit is installed.
NEWER = {"Profiler_Host_GetSinglePassSets_Params", "Profiler_Host_GetMetricsInSinglePassSet_Params"}
# Unions that are flattened.
SKIPPED = {"StateData", "PCSamplingConfigurationInfo"}


def header_text():
    text = "".join((INCLUDE / name).read_text(errors="replace") for name in PARSED)
    return re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*$", "", text, flags=re.S | re.M)


def snake(name):
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def struct_fields(text, name):
    """snake_case: C name of the fields of a struct; None when there is no such struct."""
    end = re.search(r"\}\s*CUpti_" + name + r"\s*;", text)
    if not end:
        return None
    depth, at = 0, end.start()
    while True:
        depth += {"}": 1, "{": -1}.get(text[at], 0)
        if depth == 0:
            break
        at -= 1
    body = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", text[at + 1:end.start()]))
    names = re.findall(r"(\w+)\s*(?:\[[^\]]*\])*\s*;", body)
    return {snake(one): one for one in names}


def run_c(test, lines):
    """What a C++ program with the toolkit's headers prints."""
    source = "#include <cstddef>\n#include <cstdio>\n#include <string>\n#include <cuda.h>\n"
    source += "".join(f"#include <{name}>\n" for name in HEADERS) + "int main() {\n" + "\n".join(lines) + "\n}\n"
    (test.directory / "layout.cpp").write_text(source)
    made = harness.run("g++", "-w", "-I", INCLUDE, test.directory / "layout.cpp", "-o", test.directory / "layout")
    test.assertEqual(made.returncode, 0, made.stderr[:3000])
    return harness.run(test.directory / "layout").stdout.splitlines()


class Layout(fixture.TestCase):
    @harness.needs((INCLUDE / "cupti.h").exists() and shutil.which("g++"), "CUPTI's headers and g++")
    def setUp(self):
        super().setUp()

    def compare(self, wanted):
        """wanted: {(struct, field): (offset, bytes)} with field None for the whole struct"""
        text, lines, keys = header_text(), [], []
        for name, field in wanted:
            known = struct_fields(text, name)
            self.assertIsNotNone(known, name)
            c_type = f"CUpti_{name}"
            if field is None:
                lines.append(f'printf("0 %zu\\n", sizeof({c_type}));')
            else:
                self.assertIn(field, known, name)
                place = f"(({c_type} *)0)->{known[field]}"
                lines.append(f'printf("%zu %zu\\n", offsetof({c_type}, {known[field]}), sizeof({place}));')
            keys.append((name, field))
        found = dict(zip(keys, (tuple(map(int, line.split())) for line in run_c(self, lines))))
        self.assertEqual(found, wanted)

    def test_every_field_of_every_record_is_where_cupti_writes_it(self):
        from gpufl.cupti import _layouts
        import numpy
        from gpufl.cupti import _records
        wanted = {}
        for name, (struct, size, _) in _layouts.RECORDS.items():
            if struct in SKIPPED:
                continue
            wanted[struct, None] = 0, size
            for field, offset, code, _ in _records.LAYOUTS[name].fields:
                kind = _records._NUMPY.get(code) or f"V{code[1:].partition('.')[0]}"
                wanted[struct, field] = offset, numpy.dtype(kind).itemsize
        self.assertGreater(len(wanted), 400)
        self.compare(wanted)

    def test_every_field_of_every_parameter_struct_is_where_cupti_expects_it(self):
        from gpufl.cupti import _structs
        wanted = {}
        for name, made in _structs.CLASSES.items():
            if name in SKIPPED | NEWER:
                continue
            for field, (_, since) in made.layout().items():
                place = getattr(made, "_" + field)
                if since == 0:
                    wanted[name, field] = place.offset, place.size
        self.assertGreater(len(wanted), 250)
        self.compare(wanted)

    def test_sizes_are_those_of_cuptis_macros(self):
        from gpufl.cupti import _structs
        text = "".join((INCLUDE / name).read_text(errors="replace") for name in HEADERS)
        macros = sorted(set(re.findall(r"#define\s+CUpti_(\w+?)_?(?:STRUCT_)?SIZE\b", text)) & set(_structs.CLASSES))
        self.assertGreater(len(macros), 40)
        lines = [f'printf("%zu\\n", (size_t)CUpti_{name}{"_STRUCT_SIZE" if name + "_STRUCT_SIZE" in text else "Size"});'
                 for name in macros]
        sizes = dict(zip(macros, map(int, run_c(self, lines))))
        # The macro stops one field short; gpufl.cupti.sass_metrics knows.
        sizes["SassMetricsFlushData_Params"] = 48
        self.assertEqual({name: _structs.CLASSES[name].struct_bytes(130001) for name in macros}, sizes)

    def test_enumerators_have_cuptis_numbers(self):
        from gpufl.cupti import _activity_enums, _enums
        ours = {name: one for module in (_activity_enums, _enums) for name, one in vars(module).items()
                if isinstance(one, type) and issubclass(one, enum.IntEnum) and one is not enum.IntEnum}
        text, names = header_text(), []
        for body, name in re.findall(r"typedef\s+enum\s*\w*\s*\{(.*?)\}\s*(\w+)\s*;", text, re.S):
            python = "Result" if name == "CUptiResult" else name.removeprefix("CUpti_")
            if python in ours:
                names += [(python, word) for word in re.findall(r"(?:^|,)\s*(\w+)", body)]
        self.assertEqual({python for python, _ in names}, set(ours))
        values = run_c(self, [f'printf("%lld\\n", (long long){word});' for _, word in names])
        compared = 0
        for (python, word), value in zip(names, map(int, values)):
            members = [member for member in ours[python].__members__ if word.endswith(member)]
            if not members:
                self.assertRegex(word, r"FORCE_INT$|_COUNT$|_SIZE$")
                continue
            self.assertEqual(int(ours[python][max(members, key=len)]), value, word)
            compared += 1
        self.assertGreater(compared, 350)


class Extension(fixture.TestCase):
    def test_the_stub_names_exactly_what_the_extension_has(self):
        from gpufl import _cupti
        tree = ast.parse((fixture.PACKAGE / "gpufl" / "_cupti.pyi").read_text())
        named = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(named, {name for name in vars(_cupti) if not name.startswith("__")})

    def test_the_extension_shows_its_entry_alone_and_uses_the_stable_abi(self):
        extension = fixture.PACKAGE / "gpufl" / "_cupti.abi3.so"
        shown = subprocess.run(["nm", "-D", "--defined-only", extension], capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual([line.split()[-1] for line in shown.splitlines()], ["PyInit__cupti"])
        wanted = subprocess.run(["nm", "-D", "--undefined-only", extension], capture_output=True, text=True,
                                check=True).stdout
        private = {line.split()[-1] for line in wanted.splitlines() if line.split()[-1].startswith("_Py")}
        self.assertLessEqual(private, {"_Py_NoneStruct", "_Py_Dealloc", "_Py_TrueStruct", "_Py_FalseStruct"})

    def test_importing_loads_no_library_of_nvidias(self):
        self.output("""
import gpufl.cupti
from gpufl.cupti import cupti, profiler_host, pm_sampling, range_profiler, pc_sampling, sass_metrics, checkpoint
maps = open("/proc/self/maps").read()
assert "libcupti" not in maps and "libcuda" not in maps and "libnvperf" not in maps
""", LD_LIBRARY_PATH=None)

    def test_records_and_callbacks_need_no_numpy_and_the_rest_says_so(self):
        out = self.output("""
import sys
sys.modules["numpy"] = None
from gpufl.cupti import cupti, checkpoint, pc_sampling, sass_metrics
assert cupti.get_version() and cupti.ActivityKernel(bytes(216)).start == 0
try:
    from gpufl.cupti import profiler_host
except ImportError as error:
    print(error)
""")
        self.assertIn("apt-get install python3-numpy", out)


if __name__ == "__main__":
    fixture.main()
