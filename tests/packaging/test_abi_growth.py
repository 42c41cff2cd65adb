# SPDX-License-Identifier: Apache-2.0
"""Programs and libraries of different versions work together: each public structure grows by a member at its end, and a
program that was built with the present headers runs with the grown library, and the other way around."""
import json
import os
import re
import shutil
import subprocess
import unittest

from packages import BUILD, DIRECTORY, SOURCE

HEADERS = SOURCE / "include"
HERE = SOURCE / "tests/packaging"
STRUCTURES = re.compile(r"(typedef struct (gpufl_\w+) \{\n.*?)(\n\} \2;)", re.S)


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if result.returncode:
        raise AssertionError(f"{command}: {result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout


def environment():
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GPUFL_", "FAKE_"))}
    for library in ("CUDA", "CUPTI", "NVML"):
        variables[f"GPUFL_{library}_PATH"] = str(BUILD / "fakes")
    return {**variables, "GPUFL_MIN_FREE_BYTES": "0", "GPUFL_SYSFS_ROOT": "/nonexistent"}


def grown_headers(directory):
    """The public headers, with one more member in each structure; the names of the structures."""
    shutil.copytree(HEADERS, directory)
    grown = []
    for header in (directory / "gpufl").glob("*.h"):
        text, count = STRUCTURES.subn(r"\1\n    uint64_t grown[3];\3", header.read_text())
        grown += [match.group(2) for match in STRUCTURES.finditer(header.read_text())]
        header.write_text(text)
    return sorted(grown)


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = DIRECTORY / "growth"
        shutil.rmtree(cls.work, ignore_errors=True)
        source = cls.work / "source"
        source.mkdir(parents=True)
        for name in ("CMakeLists.txt", "CMakePresets.json", "cmake", "src", "schema", "packaging", "web"):
            (source / name).symlink_to(SOURCE / name)
        cls.structures = grown_headers(source / "include")
        cls.build = cls.work / "build"
        run("cmake", "-S", source, "-B", cls.build, "-G", "Ninja", "-DGPUFL_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug",
            "-DGPUFL_SERVER=OFF", "-DGPUFL_PYTHON=OFF",
            "-DGPUFL_DEMO_APP=OFF")
        run("ninja", "-C", cls.build, "gpufl", "gpufl_upload_so")
        cls.libraries = {"present": (HEADERS, BUILD / "lib"), "grown": (source / "include", cls.build / "lib")}

    def compile(self, name, headers, *files, compiler="gcc"):
        program = self.work / name
        libraries = self.libraries["present"][1]
        run(compiler, "-I", self.libraries[headers][0], *files, "-o", program, "-L", libraries, "-lgpufl")
        return program

    def output(self, program, libraries):
        log = self.work / "log"
        shutil.rmtree(log, ignore_errors=True)
        text = run(program, log, env={**environment(), "LD_LIBRARY_PATH": str(self.libraries[libraries][1])})
        return text, log

    def scopes(self, log):
        """(name, tag, repeat, warmup) of each scope that began."""
        lines = [json.loads(line) for line in next(log.glob("*/scope.log")).read_text().splitlines()]
        names, found = {}, []
        for line in lines:
            if line["type"] == "dictionary_update":
                for dictionary in ("scope_name_dict", "tag_dict"):
                    names.setdefault(dictionary, {}).update(line.get(dictionary, {}))
            elif line["type"] == "scope_event_batch":
                for cells in line["rows"]:
                    row = dict(zip(line["columns"], cells))
                    if row["event_type"] == 0:
                        tag = names.get("tag_dict", {}).get(str(row["tag_id"])) if "tag_id" in row else None
                        found.append((names["scope_name_dict"][str(row["name_id"])], tag, row["repeat"], row["warmup"]))
        return found

    def test_every_structure_of_the_headers_has_a_size(self):
        self.assertEqual(self.structures, ["gpufl_config_image", "gpufl_metric_properties", "gpufl_name_list",
                                           "gpufl_options", "gpufl_scope_meta", "gpufl_upload_options",
                                           "gpufl_upload_result"])
        for header in (HEADERS / "gpufl").glob("*.h"):
            for match in STRUCTURES.finditer(header.read_text()):
                self.assertRegex(match.group(1), r"\{\n    uint32_t struct_size;", match.group(2))

    def test_programs_and_libraries_of_two_versions_give_the_same(self):
        programs = {headers: self.compile(f"program-{headers}", headers, HERE / "grown.c")
                    for headers in self.libraries}
        answers = {}
        for headers, program in programs.items():
            for libraries in self.libraries:
                text, log = self.output(program, libraries)
                answers[headers, libraries] = text, self.scopes(log)
        expected = answers["present", "present"]
        self.assertIn("init 0\n", expected[0])
        self.assertRegex(expected[0], r"upload -\d+ success 0 uploaded 0 said 1 guard 1\n")
        self.assertRegex(expected[0], r"chips 0 \w+\nmetric 0 byte 0 image [1-9]\d* bytes, 1 passes\n")
        self.assertEqual(expected[1], [("scope", "the tag", 7, 3)])
        for versions, answer in answers.items():
            self.assertEqual(answer, expected, versions)

    def test_two_versions_of_the_cpp_header_live_in_one_program(self):
        newer = self.work / "newer"
        shutil.copytree(HEADERS, newer)
        header = newer / "gpufl/gpufl.hpp"
        text = header.read_text()
        self.assertIn("inline namespace v1 {", text)
        header.write_text(text.replace("inline namespace v1", "inline namespace v2")
                          .replace("struct InitOptions {\n", "struct InitOptions {\n    std::string before[4];\n"))
        objects = []
        for part, include in (("one", HEADERS), ("two", newer)):
            source = self.work / f"{part}.cpp"
            source.write_text(f'#include "{HERE}/versions.hpp"\nDEFINE_PART({part})\n')
            objects.append(self.work / f"{part}.o")
            run("g++", "-O0", "-std=c++17", "-I", include, "-c", source, "-o", objects[-1])
        source = self.work / "both.cpp"
        source.write_text("bool one_init(const char *); void one_work(); void two_work();\nextern \"C\" void gpufl_shutdown();\n"
                          "int main(int, char **argv) { bool good = one_init(argv[1]); one_work(); two_work();\n"
                          "gpufl_shutdown(); return !good; }\n")
        for order in (objects, objects[::-1]):
            _, log = self.output(self.compile("both", "present", source, *order, compiler="g++"), "present")
            self.assertEqual([(name.split("|")[-1], tag) for name, tag, *_ in self.scopes(log)],
                             [("gpufl", "one"), ("one", "bench"), ("gpufl", "two"), ("two", "bench")])


if __name__ == "__main__":
    unittest.main()
