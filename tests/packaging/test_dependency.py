# SPDX-License-Identifier: Apache-2.0
"""gpufl as a part of other projects: by FetchContent, add_subdirectory, find_package and pkg-config, with the shared and
the static library, and by the recipes of package managers. Two builds in all: one inside a project that has other
opinions, one alone."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
sys.dont_write_bytecode = True
from harness import FAKE_APP, FAKES, Session, environment, gpufl, main, run, sessions  # noqa: E402

HERE = SOURCE / "tests/packaging"
VERSION = re.search(r'GPUFL_VERSION_STRING "(.*)"', (SOURCE / "include/gpufl/gpufl.h").read_text()).group(1)
JOBS = str(os.cpu_count() or 1)


class Temporary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # CMake and pkg-config have a history with spaces.
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpufl dependency "))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)

    @classmethod
    def command(cls, *words, **variables):
        result = subprocess.run([str(word) for word in words], cwd=cls.directory, env={**os.environ, **variables},
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3600, check=False)
        if result.returncode or "were not used by the project" in result.stderr:
            raise AssertionError(f"{words}: {result.stdout[-6000:]}{result.stderr[-6000:]}")
        return result.stdout

    def assert_records(self, program, *library_directories):
        log = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        path = ":".join(str(entry) for entry in (*library_directories, FAKES))
        result = run(program, env=environment(LD_LIBRARY_PATH=path, GPUFL_LOG_DIR=log))
        self.assertEqual((result.returncode, result.stdout.strip()), (0, VERSION), result.stderr)
        session, = sessions(log)
        self.assertIn("step", Session(session).dictionary("scope_name_dict").values())
        self.assertEqual(gpufl("verify", session).returncode, 0)


class InsideAnotherProject(Temporary):
    """Its flags are strict, its settings are different from gpufl's, and it has files and functions of the same names."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = cls.directory / "gpufl source"
        cls.source.symlink_to(SOURCE)

    @classmethod
    def configure(cls, build, how, *options):
        return cls.command("cmake", "-S", HERE / "parent", "-B", build, "-G", "Ninja", f"-DGPUFL_SOURCE={cls.source}",
                           f"-DHOW={how}", *options)

    def planned(self, build):
        return self.command("ninja", "-C", build, "-n", "-v")

    def test_fetch_content_changes_nothing_and_links_both_libraries(self):
        self.configure("fetched", "fetch_content")
        built = self.command("cmake", "--build", "fetched", "--parallel", JOBS)
        self.assertNotIn("warning:", built)
        for name in ("step_c", "step_cpp", "step_static"):
            self.assert_records(self.directory / "fetched" / name)
        library = next((self.directory / "fetched").rglob("libgpufl.so.1")).parent
        for name in ("step_client", "step_client_cpp"):
            self.assert_records(self.directory / "fetched" / name, library)
        for name in ("step_static", "step_client", "step_client_cpp"):
            self.assertNotIn("gpufl", run("readelf", "-d", self.directory / "fetched" / name).stdout)
        made = {path.name for path in (self.directory / "fetched").rglob("*") if os.access(path, os.X_OK) and path.is_file()}
        self.assertEqual({name for name in made if "gpufl" in name}, {f"libgpufl.so.{VERSION}", "libgpufl.so.1", "libgpufl.so"})

    def test_add_subdirectory_builds_the_static_library_alone_where_the_project_does(self):
        summary = self.configure("added", "add_subdirectory", "-DBUILD_SHARED_LIBS=OFF")
        self.assertIn("command and trace     off: GPUFL_TOOLS=ON builds it", summary)
        planned = self.planned("added")
        self.assertIn("libgpufl.a", planned)
        self.assertNotIn("libgpufl.so", planned)
        for other in ("curl", "sqlite", "microhttpd", "src/cli", "install"):
            self.assertNotIn(other, planned)

    def test_a_part_that_the_project_asks_for_is_built(self):
        self.configure("asked", "add_subdirectory", "-DGPUFL_TOOLS=ON", "-DGPUFL_INSTALL=ON")
        self.assertIn("src/cli/main.c", self.planned("asked"))
        self.assertIn("libgpufl_inject.so", self.planned("asked"))


class Alone(Temporary):
    """The vcpkg port's build (static), then the same build directory with the command, shared, for lib64."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        build, cls.static = cls.directory / "the build", cls.directory / "static prefix"
        cls.command("cmake", f"-DPORT_DIR={SOURCE / 'packaging/vcpkg/gpufl'}", f"-DBUILD_DIR={build}",
                    f"-DPACKAGES_DIR={cls.static}", "-P", HERE / "stand_ins/vcpkg.cmake", CMAKE_BUILD_PARALLEL_LEVEL=JOBS)
        cls.command("cmake", "-S", SOURCE, "-B", build, "-DBUILD_SHARED_LIBS=ON", "-DGPUFL_TOOLS=ON", "-DGPUFL_SERVER=OFF",
                    "-DGPUFL_PYTHON=OFF", "-DGPUFL_TESTS=OFF", "-DGPUFL_DEMO_APP=OFF", "-DCMAKE_INSTALL_LIBDIR=lib64",
                    "-DCMAKE_INSTALL_PREFIX=/opt/with space")
        cls.command("cmake", "--build", build, "--parallel", JOBS)
        root = cls.directory / "root"
        cls.command("cmake", "--install", build, DESTDIR=str(root))
        cls.build, cls.root, cls.shared = build, root, root / "opt/with space"

    def find_package(self, name, setting):
        build = self.directory / f"found {name}"
        self.command("cmake", "-S", HERE / "outside", "-B", build, f"-D{setting}")
        self.command("cmake", "--build", build)
        return build

    def test_the_command_finds_its_libraries_in_lib64(self):
        program = self.shared / "bin/gpufl"
        log = self.directory / "traced"
        traced = run(program, "trace", "--engine", "Trace", "-o", log, "--", FAKE_APP, "--launches", "5",
                     env=environment(library_path=FAKES))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session, = sessions(log)
        self.assertEqual(run(program, "verify", session).returncode, 0)
        self.assertFalse((self.shared / "lib/libgpufl_inject.so").exists())

    def test_find_package_in_lib64(self):
        build = self.find_package("shared", f"gpufl_DIR={self.shared}/lib64/cmake/gpufl")  # Debian's CMake ignores lib64
        for name in ("step_c", "step_cpp"):
            self.assertIn("libgpufl.so.1", run("readelf", "-d", build / name).stdout)
            self.assert_records(build / name, self.shared / "lib64")
        targets = (self.shared / "lib64/cmake/gpufl/gpuflTargets.cmake").read_text()
        self.assertEqual(set(re.findall(r"add_library\((\S+)", targets)), {"gpufl::gpufl", "gpufl::gpufl_static", "gpufl::client"})

    def test_find_package_of_a_prefix_with_the_static_library_alone(self):
        self.assertEqual([path.name for path in (self.static / "lib").glob("libgpufl*")], ["libgpufl.a"])
        build = self.find_package("static", f"CMAKE_PREFIX_PATH={self.static}")
        for name in ("step_c", "step_cpp"):
            self.assertNotIn("libgpufl.so", run("readelf", "-d", build / name).stdout)
            self.assert_records(build / name)

    def test_find_package_has_no_components(self):
        folder = self.directory / "components"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(other C)\nfind_package(gpufl REQUIRED COMPONENTS server)\n")
        result = run("cmake", "-S", folder, "-B", folder / "out", f"-DCMAKE_PREFIX_PATH={self.static}", env=dict(os.environ))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no component server", result.stderr)

    def test_pkg_config_links_from_both_prefixes(self):
        for prefix, directory, needs_library in ((self.shared, "lib64", True), (self.static, "lib", False)):
            where = str(prefix / directory / "pkgconfig")
            flags = self.command("pkg-config", "--cflags", "--libs", "gpufl", PKG_CONFIG_PATH=where)
            program = self.directory / f"by pkg-config {directory}"
            # As a shell does it for a Makefile: with the backslashes before spaces.
            subprocess.run(f"cc '{HERE / 'outside/step.c'}' -o '{program}' {flags}", shell=True, check=True)
            self.assertEqual("libgpufl.so.1" in run("readelf", "-d", program).stdout, needs_library)
            self.assert_records(program, prefix / directory)

    def test_the_static_library_defines_what_the_headers_declare_and_nothing_else(self):
        def defined(*command):
            return set(re.findall(r"^\S+ [B-Z] (\w+)", run("nm", *command).stdout, re.M))
        static = defined("-g", "--defined-only", self.static / "lib/libgpufl.a")
        shared = defined("-D", "--defined-only", self.shared / "lib64/libgpufl.so")
        self.assertEqual(static, shared - {"gpufl_private"})

    def test_uninstall_leaves_nothing_but_what_is_of_others(self):
        root = self.directory / "second root"
        other = root / "opt/with space/share/others.txt"
        other.parent.mkdir(parents=True)
        other.write_text("kept")
        self.command("cmake", "--install", self.build, DESTDIR=str(root))
        self.command("cmake", "--build", self.build, "--target", "uninstall", DESTDIR=str(root))
        self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [other])
        self.assertEqual([path.name for path in (root / "opt/with space").iterdir()], ["share"])
        again = run("cmake", "--build", self.build, "--target", "uninstall", env=dict(os.environ))
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("nothing was installed", again.stdout + again.stderr)

    def test_a_part_that_cannot_be_built_is_an_error_that_says_what_is_missing(self):
        result = run("cmake", "-S", SOURCE, "-B", self.directory / "refused", "-DGPUFL_TOOLS=OFF", "-DGPUFL_SERVER=ON",
                     env=dict(os.environ))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("GPUFL_SERVER=ON needs the command (GPUFL_TOOLS)", result.stderr)


def fake_conan(calls):
    """The parts of Conan's interface that the recipe uses; CMake's steps and settings are noted in `calls`."""
    def module(name, **content):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)

    class CMake:
        def __init__(self, recipe):
            self.recipe = recipe

        def __getattr__(self, name):
            return lambda: calls.append(name)

    class CMakeToolchain:
        def __init__(self, recipe):
            self.cache_variables = {}

        def generate(self):
            calls.append(self.cache_variables)

    def copy(recipe, pattern, source, target):
        name = pattern.removesuffix("/*")  # in Conan's patterns, * is also of folders below
        copied = pathlib.Path(target) / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copy if name == pattern else shutil.copytree)(pathlib.Path(source) / name, copied)

    module("conan", ConanFile=object)
    module("conan.tools")
    module("conan.tools.cmake", CMake=CMake, CMakeToolchain=CMakeToolchain, cmake_layout=lambda recipe: None)
    module("conan.tools.files", copy=copy, load=lambda recipe, path: pathlib.Path(path).read_text())


class Recipes(Temporary):
    def test_the_port_has_this_version_and_names_the_target(self):
        port = SOURCE / "packaging/vcpkg/gpufl"
        self.assertEqual(json.loads((port / "vcpkg.json").read_text())["version-semver"], VERSION)
        self.assertIn("gpufl::gpufl", (port / "usage").read_text())

    def test_conan_exports_what_cmake_reads_and_passes_what_it_knows(self):
        calls = []
        fake_conan(calls)
        scope = {}
        path = SOURCE / "packaging/conan/conanfile.py"
        exec(compile(path.read_text(), path, "exec"), scope)
        recipe = scope["Gpufl"]()
        recipe.recipe_folder, recipe.export_sources_folder = str(path.parent), self.directory / "exported"
        archives = self.directory / "archives"
        archives.mkdir()
        for name in ("libzstd.a", "libz.a"):
            (archives / name).write_bytes(b"")
        info = types.SimpleNamespace(libdirs=[str(archives)], includedirs=["/usr/include"])
        info.aggregated_components = lambda: info
        recipe.dependencies = {name: types.SimpleNamespace(cpp_info=info) for name in ("zstd", "zlib")}
        recipe.set_version()
        self.assertEqual(recipe.version, VERSION)
        recipe.export_sources()
        recipe.generate()
        recipe.build()
        recipe.package()
        self.assertEqual(calls[-3:], ["configure", "build", "install"])
        options = [f"-D{name}={value}" for name, value in calls[-4].items()]
        configured = self.command("cmake", "-S", self.directory / "exported", "-B", "exported build", "-G", "Ninja", *options)
        self.assertIn("command and trace     off: GPUFL_TOOLS is OFF", configured)
        planned = (self.directory / "exported build/build.ninja").read_text()
        self.assertIn("archives/libzstd.a", planned)
        self.assertIn("libgpufl.so", planned)


if __name__ == "__main__":
    main()
