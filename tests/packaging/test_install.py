# SPDX-License-Identifier: Apache-2.0
"""The result of `cmake --install` works, also after the prefix was moved."""
import json
import os
import re
import unittest

import stage
from harness import FAKES, GPUFL, Session, environment, gpufl, main, run, sessions
from serve_process import Serve, ServeTest

PAGE = (stage.SOURCE / "docs/deploy.md").read_text()
LIBRARIES = ("gpufl", "gpufl-upload", "gpufl-server")
VERSION = json.loads(run(GPUFL, "version", "--json").stdout)["version"]


def dynamic(name):
    return run("readelf", "-d", stage.PREFIX / name).stdout


class Prefix(unittest.TestCase):
    def test_everything_is_in_its_place(self):
        wanted = {"bin/gpufl", "bin/gpufl-monitor", "bin/gpufl-agent", "lib/libgpufl_inject.so", "lib/libgpufl_preload.so", "include/gpufl/gpufl.h",
                  "include/gpufl/gpufl.hpp", "lib/pkgconfig/gpufl.pc", "lib/cmake/gpufl/gpuflConfig.cmake",
                  "share/bash-completion/completions/gpufl", "share/zsh/site-functions/_gpufl",
                  "share/fish/vendor_completions.d/gpufl.fish", "share/doc/gpufl/LICENSE", "share/doc/gpufl/gpufl.cdx.json",
                  "share/doc/gpufl/third-party-licenses.txt"}
        wanted |= {f"share/man/man1/{page.name}" for page in (stage.SOURCE / "docs/man").glob("*.1")}
        wanted |= {f"lib/lib{name}.so{end}" for name in LIBRARIES for end in ("", ".1", "." + VERSION)}
        self.assertEqual(wanted - stage.FILES, set())

    def test_only_the_product_is_installed(self):
        roots = {name.split("/")[0] for name in stage.FILES}
        self.assertEqual(roots, {"bin", "include", "lib", "share"})
        self.assertEqual([name for name in stage.FILES if re.search(r"test|fake|\.py$", name)], [])
        self.assertEqual([name for name in stage.FILES if name.endswith(".a")], ["lib/libgpufl.a"])

    def test_libraries_have_a_soname_of_the_major_version(self):
        for name in LIBRARIES:
            self.assertIn(f"[lib{name}.so.1]", dynamic(f"lib/lib{name}.so"))

    def test_no_file_contains_the_build_path(self):
        for name in sorted(stage.FILES):
            path = stage.PREFIX / name
            if path.suffix == ".service" or path.is_symlink():
                continue
            if path.read_bytes()[:4] == b"\x7fELF":
                paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic(name))
                self.assertTrue(all(p.startswith("$ORIGIN") for part in paths for p in part.split(":")), (name, paths))
            else:
                text = path.read_bytes()
                self.assertNotIn(str(stage.BUILD).encode(), text, name)
                self.assertNotIn(str(stage.DIRECTORY).encode(), text, name)

    def test_the_recorder_needs_exactly_the_documented_c_library(self):
        documented = re.search(r"glibc\) of version (2\.\d+)", PAGE).group(1)
        symbols = run("objdump", "-T", stage.PREFIX / "lib/libgpufl.so", stage.PREFIX / "lib/libgpufl_inject.so").stdout
        needed = max(map(int, re.findall(r"GLIBC_2\.(\d+)", symbols)))
        self.assertEqual(f"2.{needed}", documented)

    def test_the_page_names_components_files_and_commands_that_exist(self):
        for name in re.findall(r"(?<![\w/])packaging/[\w./-]*\w", PAGE):
            self.assertTrue((stage.SOURCE / name).exists(), name)
        install = (stage.SOURCE / "cmake/install.cmake").read_text()
        components = re.findall(r"(?m)^\| `(\w+)` \|", PAGE)
        self.assertEqual(set(components), set(re.findall(r"COMPONENT (\w+)", install)))
        commands = re.findall(r"(?m)^ *(?:.*-- )?gpufl (serve .*)$", PAGE)
        self.assertGreaterEqual(len(commands), 2)
        for command in commands:
            self.assertEqual(gpufl(*command.split(), "--help").returncode, 0, command)

    def test_completion_scripts_name_every_command(self):
        for name in ("share/bash-completion/completions/gpufl", "share/zsh/site-functions/_gpufl",
                     "share/fish/vendor_completions.d/gpufl.fish"):
            text = (stage.PREFIX / name).read_text()
            for command in ("trace", "report", "monitor", "agent", "serve"):
                self.assertIn(command, text, name)

    def test_without_the_server_component_the_rest_works(self):
        prefix = stage.DIRECTORY / "runtime"
        stage.install(prefix, "--component", "runtime")
        self.assertFalse([name for name in stage.installed(prefix) if "server" in name or name.startswith("include")])
        self.assertEqual(run(prefix / "bin/gpufl", "version").returncode, 0)
        served = run(prefix / "bin/gpufl", "serve", "--data", stage.DIRECTORY / "none")
        self.assertEqual(served.returncode, 3, served.stderr)
        self.assertIn("libgpufl-server.so", served.stderr)


class Program(ServeTest):
    def test_a_session_is_recorded_uploaded_and_served(self):
        session = self.record(100)
        with Serve(self.data) as server:
            sent = self.upload(session, server.url)
            self.assertEqual(sent.returncode, 0, sent.stderr)
            kept = server.get("/api/v1/sessions")["sessions"]
            self.assertEqual([entry["id"] for entry in kept], [session.name])

    def test_the_other_names_are_the_commands(self):
        sample = run(stage.PREFIX / "bin/gpufl-monitor", "--once", "--json")
        self.assertEqual(sample.returncode, 0, sample.stderr)
        self.assertTrue(json.loads(sample.stdout))
        self.assertIn("gpufl agent", run(stage.PREFIX / "bin/gpufl-agent", "--help").stdout)

    def test_the_demo_finds_its_recording(self):
        shown = gpufl("demo", "--once", cwd=self.directory, env=environment(library_path=self.directory, HOME=self.directory))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("H200", shown.stdout)


class Outside(ServeTest):
    """An outside project finds, links and runs it."""

    project = stage.SOURCE / "tests/packaging/outside"

    def build(self, *command, **variables):
        result = run(*command, cwd=self.directory, env={**os.environ, **variables})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def assert_records(self, program):
        log = self.directory / ("log-" + program.name)
        result = run(program, env=environment(LD_LIBRARY_PATH=f"{stage.PREFIX}/lib:{FAKES}", GPUFL_LOG_DIR=log))
        self.assertEqual((result.returncode, result.stdout.strip()), (0, VERSION), result.stderr)
        session, = sessions(log)
        self.assertIn("step", Session(session).dictionary("scope_name_dict").values())
        self.assertEqual(gpufl("verify", session).returncode, 0)

    def test_with_find_package(self):
        self.build("cmake", "-S", self.project, "-B", "out", f"-DCMAKE_PREFIX_PATH={stage.PREFIX}")
        self.build("cmake", "--build", "out")
        for name in ("step_c", "step_cpp"):
            self.assert_records(self.directory / "out" / name)

    def test_find_package_refuses_another_major_version(self):
        (self.directory / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(other LANGUAGES C)\nfind_package(gpufl 2 REQUIRED)\n")
        result = run("cmake", "-S", self.directory, "-B", self.directory / "out", f"-DCMAKE_PREFIX_PATH={stage.PREFIX}",
                     env=dict(os.environ))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(VERSION, result.stderr)

    def test_with_pkg_config(self):
        where = {"PKG_CONFIG_PATH": str(stage.PREFIX / "lib/pkgconfig")}
        self.assertEqual(self.build("pkg-config", "--modversion", "gpufl", **where).strip(), VERSION)
        flags = self.build("pkg-config", "--cflags", "--libs", "gpufl", **where).split()
        for compiler, source, name in (("cc", "step.c", "pc_c"), ("c++", "step.cpp", "pc_cpp")):
            self.build(compiler, self.project / source, "-o", name, *flags)
            self.assert_records(self.directory / name)


if __name__ == "__main__":
    main()
