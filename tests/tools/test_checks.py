#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are there to find: each on a small tree with one fault planted."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402
import gen_schema  # noqa: E402
import tidy  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
TABLE = """| folder | what it is | may use |
| --- | --- | --- |
| src/base | bytes | libc |
| src/format | text | base |
| src/driver | GPU | base |
| src/inject | entry | gpufl.h |
"""


class Tree(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        self.write("ARCHITECTURE.md", TABLE)
        self.write("CMakeLists.txt", "# SPDX-License-Identifier: Apache-2.0\n"
                   "gpufl_layer(base)\ngpufl_layer(format gpufl_base)\ngpufl_layer(driver gpufl_base)\n")
        self.write("src/base/bytes.h", SPDX)
        self.write("include/gpufl/gpufl.h", SPDX + "#include <stdint.h>\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def assert_one(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class Layers(Tree):
    def test_a_lawful_tree_passes(self):
        self.write("src/format/text.c", SPDX + '#include "base/bytes.h"\n#include <gpufl/gpufl.h>\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_an_upward_include_is_refused(self):
        self.write("src/format/text.h", SPDX)
        self.write("src/base/bytes.c", SPDX + '#include "format/text.h"\n')
        self.assert_one(check_layers.check(self.root), "src/base/bytes.c:2", "base may not use format")

    def test_inject_may_use_the_public_header_only(self):
        self.write("src/inject/entry.c", SPDX + '#include "base/bytes.h"\n')
        self.assert_one(check_layers.check(self.root), "inject may not use base")

    def test_vendor_headers_are_refused_everywhere_in_src(self):
        self.write("src/driver/cupti.c", SPDX + "#include <cupti.h>\n")
        self.assert_one(check_layers.check(self.root), "vendor header <cupti.h>")

    def test_compression_belongs_to_the_log_files(self):
        self.write("src/format/text.c", SPDX + "#include <zstd.h>\n")
        self.assert_one(check_layers.check(self.root), "<zstd.h> belongs to", "logfile", "not to format")

    def test_installed_headers_use_the_standard_library_only(self):
        self.write("include/gpufl/gpufl.h", SPDX + "#include <unistd.h>\n")
        self.assert_one(check_layers.check(self.root), "<unistd.h>")

    def test_an_upward_link_is_refused(self):
        self.write("CMakeLists.txt", "gpufl_layer(base gpufl_format)\n")
        self.assert_one(check_layers.check(self.root), "gpufl_base links gpufl_format")

    def test_the_agent_never_reaches_the_driver(self):
        self.write("CMakeLists.txt", "gpufl_layer(driver gpufl_base)\ntarget_link_libraries(gpufl_agent PRIVATE gpufl_driver)\n")
        self.assert_one(check_layers.check(self.root), "gpufl_agent reaches gpufl_driver")


class House(Tree):
    def problems(self, name, text, allowed=None):
        self.write(name, text)
        if allowed is not None:
            self.write(tidy.ALLOW_FILE, json.dumps(allowed))
        checker = tidy.Tidy(self.root)
        checker.run()
        self.checker = checker
        return checker.problems

    @staticmethod
    def function(lines):
        return SPDX + "int f(void)\n{\n" + "    ;\n" * (lines - 2) + "}\n"

    def test_a_clean_file_passes(self):
        self.assertEqual(self.problems("src/base/a.c", self.function(70)), [])

    def test_a_long_function_needs_an_entry_of_its_size(self):
        self.assert_one(self.problems("src/base/a.c", self.function(80)), "src/base/a.c:2", "f() has 80 lines")
        self.assertEqual(self.problems("src/base/a.c", self.function(80), {"src/base/a.c:f": 80}), [])
        self.assertEqual(self.checker.loose_entries(), {})

    def test_an_entry_that_allows_too_much_is_loose(self):
        self.problems("src/base/a.c", self.function(80), {"src/base/a.c:f": 90, "src/base/gone.c": 550})
        self.assertEqual(self.checker.loose_entries(), {"src/base/a.c:f": 80, "src/base/gone.c": 0})

    def test_no_entry_helps_above_the_hard_limit(self):
        self.assert_one(self.problems("src/base/a.c", SPDX + "int x;\n" * 600, {"src/base/a.c": 700}), "hard limit")

    def test_a_banned_call_is_named_with_its_replacement(self):
        self.assert_one(self.problems("src/cli/a.c", SPDX + "void f(void) { strcpy(a, b); }\n"), "strcpy()", "snprintf")

    def test_printing_is_banned_in_the_users_process_only(self):
        text = SPDX + 'void f(void) { printf("x"); }\n'
        self.assert_one(self.problems("src/sdk/a.c", text), "printf()")
        (self.root / "src/sdk/a.c").unlink()
        self.assertEqual(self.problems("src/cli/a.c", text), [])

    def test_comments_strings_and_longer_names_are_no_calls(self):
        text = SPDX + '/* exit() */ const char *s = "abort()"; void f(void) { snprintf(x); on_exit(y); p->exit(); }\n'
        self.assertEqual(self.problems("src/base/a.c", text), [])

    def test_leftovers_tabs_spaces_paths_and_missing_licences_are_found(self):
        self.assert_one(self.problems("src/base/a.c", SPDX + "/* TO" + "DO */\n"), "leftover")
        self.assert_one(self.problems("src/base/a.c", SPDX + "\tint x;\n"), "tab")
        self.assert_one(self.problems("src/base/a.c", SPDX + "int x; \n"), "space at the end")
        self.assert_one(self.problems("src/base/a.c", SPDX + "/* /ho" + "me/me/x */\n"), "path of one machine")
        self.assert_one(self.problems("src/base/a.c", "int x;\n"), "SPDX")

    def test_a_file_of_odds_and_ends_is_refused(self):
        self.assert_one(self.problems("src/base/string_utils.c", SPDX), "named after the one thing")


class Schema(unittest.TestCase):
    def setUp(self):
        self.schema = json.loads((ROOT / "schema/records.json").read_text())

    def refuse(self, schema, word):
        with self.assertRaises(SystemExit) as caught:
            gen_schema.check_catalogue(schema)
        self.assertIn(word, str(caught.exception))

    def test_the_catalogue_is_sound(self):
        gen_schema.check_catalogue(self.schema)

    def test_faults_in_the_catalogue_are_named(self):
        for change, word in ((("columns", 0, 1, "i65"), "i65"), (("columns", 0, 2, "v9"), "v9"),
                             (("columns", 0, 3, "enum moon"), "enum moon"), (("columns", 1, 0, "dt_ns"), "twice")):
            broken = copy.deepcopy(self.schema)
            key, index, part, value = change
            broken["batches"][0][key][index][part] = value
            self.refuse(broken, word)

    def test_every_column_is_on_the_format_page_and_in_every_language(self):
        for name in ("docs/format.md", "python/gpufl/records.py", "web/src/api/records.ts", "src/format/catalogue.c"):
            text = (ROOT / name).read_text()
            for batch in self.schema["batches"]:
                self.assertIn(batch["type"], text, name)
                for column in batch["columns"]:
                    self.assertIn(column[0], text, name)


class Documents(unittest.TestCase):
    """What the program offers is in the manual, by its name."""

    def assert_documented(self, page, names):
        self.assertTrue(names)
        text = (ROOT / page).read_text()
        self.assertEqual([name for name in names if name not in text], [], page)

    def source(self, name, pattern):
        return re.findall(pattern, (ROOT / name).read_text(), re.M)

    def test_every_command_and_option(self):
        self.assert_documented("docs/cli.md", ["gpufl " + n for n in self.source("src/cli/commands.c", r'\.name = "(\w+)"')])
        self.assert_documented("docs/cli.md", ["--" + n for n in self.source("src/cli/commands.c", r'^ *\{+"([a-z-]+)",')])

    def test_every_environment_variable(self):
        used = [name for path in (ROOT / "src").rglob("*.c")
                for name in self.source(path.relative_to(ROOT), r'getenv\("(GPUFL_\w+)"')]
        self.assert_documented("docs/configuration.md", used + self.source("src/base/environment.c", r'"(GPUFL_\w+)"'))

    def test_every_option_field(self):
        header = (ROOT / "include/gpufl/gpufl.h").read_text()
        body = re.search(r"typedef struct gpufl_options \{(.*?)\} gpufl_options;", header, re.S).group(1)
        fields = [f for f in re.findall(r"^\s+[^/*\n]*?\b(\w+);", body.replace("*", " "), re.M) if f != "struct_size"]
        self.assertGreater(len(fields), 20)
        self.assert_documented("docs/configuration.md", [f"`{f}`" for f in fields])

    def test_every_error(self):
        self.assert_documented("docs/troubleshooting.md", self.source("include/gpufl/gpufl.h", r"X\((GPUFL_E_\w+),"))
        self.assert_documented("docs/troubleshooting.md", self.source("include/gpufl/gpufl.h", r'X\(GPUFL_E_\w+, -\d+, "([^"]*)"\)'))

    def test_every_reason_of_loss(self):
        self.assert_documented("docs/troubleshooting.md",
                               [f"`{reason}`" for reason in self.source("src/capture/recorder.h", r'X\(LOSS_\w+, "(\w+)"')])

    def test_the_examples_of_the_front_page_compile(self):
        text = (ROOT / "README.md").read_text()
        c_code = re.search(r"```c\n(.*?)```", text, re.S).group(1)
        cxx_head, cxx_body = re.search(r"```cpp\n(.*?)\n\n(.*?)```", text, re.S).groups()
        declaration = "void launch_kernels(void);\n"
        for compiler, language, code in (
                ("gcc", "c", declaration + c_code),
                ("g++", "c++", f"{cxx_head}\n{declaration}int main() {{\n{cxx_body}}}\n")):
            done = subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", "-"],
                                  input=code, text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_links_lead_somewhere(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
        broken = [f"{page.relative_to(ROOT)}: {link}" for page in pages
                  for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
                  if not (page.parent / link).exists()]
        self.assertEqual(broken, [])


if __name__ == "__main__":
    unittest.main()
