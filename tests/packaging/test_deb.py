# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: checked by Debian's tools, and taken from installation to a purge that leaves only data."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from packages import BUILD, DIRECTORY, SOURCE, built

sys.path.insert(0, str(SOURCE / "tests/e2e"))
from harness import FAKE_APP, FAKES, run, sessions  # noqa: E402

NAMES = {"gpufl", "libgpufl1", "libgpufl-dev", "python3-gpufl"}
# Files that many packages share, and one that represents recorded data.
MAY_CHANGE = re.compile(r"/etc/(\.pwd\.lock|(group|gshadow|passwd|shadow)-?|ld\.so\.cache)"
                        r"|/var/cache/ldconfig/aux-cache|/var/log/dpkg\.log"
                        r"|/var/lib/dpkg/(lock.*|status(-old)?|triggers/.*|available.*)|/var/lib/man-db/auto-update")
DATA = "/var/lib/gpufl/monitor/device.log"
# In the installed system with the look-alike GPU: recording without code changes, and programs linked with the library.
ALSO = """#!/bin/sh
set -eu
export LD_LIBRARY_PATH={fakes} GPUFL_CUDA_PATH={fakes} GPUFL_CUPTI_PATH={fakes} GPUFL_NVML_PATH={fakes}
gpufl trace -o /result/traced -- {app}
CUDA_INJECTION64_PATH=/usr/lib/gpufl/libgpufl_inject.so GPUFL_LOG_DIR=/result/injected {app}
cc {project}/step.c -o /tmp/step $(pkg-config --cflags --libs gpufl)
GPUFL_LOG_DIR=/result/linked /tmp/step
cmake -S {project} -B /tmp/outside >/dev/null
cmake --build /tmp/outside >/dev/null
GPUFL_LOG_DIR=/result/found /tmp/outside/step_cpp
rm -r /tmp/step /tmp/outside
"""


def control(package, field):
    path, = (built() / "packages").glob(f"{package}_*.deb")
    return run("dpkg-deb", "-f", path, field).stdout.strip()


def words_of(package, field):
    return {word.split()[0] for word in control(package, field).split(",") if word.strip()}


class Packages(unittest.TestCase):
    def test_lintian_finds_nothing_but_overrides_with_a_reason(self):
        files = sorted((built() / "packages").glob("*.deb"))
        self.assertEqual({path.name.split("_")[0] for path in files}, NAMES)
        result = run("lintian", "--allow-root", "--display-info", "--pedantic", "--show-overrides", *files)
        self.assertIn("\nO: gpufl: ", result.stdout, result.stderr)
        self.assertEqual([line for line in result.stdout.splitlines() if not line.startswith(("N:", "O:"))], [])
        for path in (SOURCE / "packaging/debian").glob("*.lintian-overrides"):
            lines = path.read_text().splitlines()
            for before, line in zip(["", *lines], lines):
                self.assertTrue(line.startswith("#") or before.startswith("#"), f"{path.name}: {line}")

    def test_dependencies_match_the_files(self):
        self.assertEqual(words_of("libgpufl1", "Depends"), {"libc6"})
        self.assertEqual(words_of("libgpufl1", "Recommends"), {"libcurl3-gnutls"})
        self.assertEqual(words_of("gpufl", "Depends"),
                         {"libgpufl1", "libc6", "libcurl3-gnutls", "libmicrohttpd12", "libsqlite3-0"})
        self.assertEqual(words_of("libgpufl-dev", "Depends"), {"libgpufl1"})
        self.assertEqual(words_of("python3-gpufl", "Depends"), {"libgpufl1", "libc6", "python3"})

    def test_units_start_what_is_installed(self):
        package, = (built() / "packages").glob("gpufl_*.deb")
        self.assertEqual(run("dpkg-deb", "-x", package, DIRECTORY / "gpufl").returncode, 0)
        for name in ("monitor", "agent", "serve"):
            unit = (DIRECTORY / f"gpufl/usr/lib/systemd/system/gpufl-{name}.service").read_text()
            self.assertIn(f"\nExecStart=/usr/bin/gpufl {name} ", unit)

    def test_all_packages_have_the_same_version(self):
        header = (SOURCE / "include/gpufl/gpufl.h").read_text()
        version = re.search(r'GPUFL_VERSION_STRING "(.*)"', header).group(1)
        self.assertEqual(version, ".".join(re.findall(r"GPUFL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)))
        self.assertEqual({control(package, "Version") for package in NAMES}, {version})
        self.assertEqual(json.loads((SOURCE / "web/package.json").read_text())["version"], version)
        chart = (SOURCE / "packaging/helm/gpufl/Chart.yaml").read_text()
        self.assertIn(f'\nversion: {version}\nappVersion: "{version}"\n', chart)
        for path in (SOURCE / "packaging").rglob("*"):
            for image in re.findall(r"gpufl/(?:agent|server):([\w.]+)", path.read_text()) if path.is_file() else []:
                self.assertEqual(image, version, path)


class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if run("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", DIRECTORY).returncode:
            # Where skipping is not allowed, the following commands fail and show why.
            if "CI" not in os.environ:
                raise unittest.SkipTest("needs the right to mount")
        cls.result = DIRECTORY / "result"
        cls.result.mkdir()
        shutil.copytree(built() / "packages", DIRECTORY / "packages")
        shutil.copy(SOURCE / "tests/packaging/deb_life.sh", cls.result)
        also = cls.result / "also.sh"
        also.write_text(ALSO.format(fakes=FAKES, app=FAKE_APP, project=SOURCE / "tests/packaging/outside"))
        also.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUFL_")}
        ended = subprocess.run(["unshare", "-m", SOURCE / "tests/packaging/scratch_root.sh", DIRECTORY,
                                "/result/deb_life.sh", "dpkg", "-i"],
                               capture_output=True, text=True, env=environment, check=False)
        if ended.returncode:
            raise AssertionError(ended.stdout + ended.stderr)

    def text(self, step, status=0):
        """What a step printed; checks its exit status."""
        text, errors = ((self.result / f"{step}.{end}").read_text() for end in ("out", "err"))
        self.assertEqual(int((self.result / f"{step}.status").read_text()), status, text + errors)
        return text

    def lines(self, name):
        return set((self.result / f"{name}.files").read_text().splitlines())

    def test_all_packages_are_installed_and_nothing_is_started(self):
        self.text("install")
        self.assertEqual(set(self.text("state").splitlines()), {f"{name} installed" for name in NAMES})
        self.assertEqual(self.text("enabled"), "")
        self.assertIn(":/var/lib/gpufl:", self.text("user"))

    def test_another_version_can_replace_it(self):
        self.text("again")

    def test_the_command_works(self):
        self.assertIn("version", json.loads(self.text("version")))
        self.assertTrue(json.loads(self.text("monitor")))
        self.assertRegex(self.text("doctor", status=1), r"(?m)^ok +recorder +/usr/lib/gpufl/libgpufl_inject.so$")

    def test_the_demo_finds_recording_and_server(self):
        shown = self.text("demo")
        self.assertIn("H200", shown)
        self.assertNotIn("No server in this installation", shown)

    def test_python_imports_the_package(self):
        self.assertEqual(self.text("python"), "/usr/lib/python3/dist-packages/gpufl/__init__.py")
        self.assertIn("gpufl", self.text("python_command"))
        self.text("nvtx")

    def test_every_library_is_found(self):
        self.assertNotIn("not found", self.text("linked"))

    def test_unprepared_and_linked_programs_are_recorded(self):
        self.text("also")
        for name in ("traced", "injected", "linked", "found"):
            session, = sessions(self.result / name)
            self.assertEqual(run(BUILD / "bin/gpufl", "verify", session).returncode, 0)

    def test_removing_keeps_settings_and_data(self):
        self.text("remove")
        left = {name for name in self.lines("removed") if not name.startswith("/var/lib/dpkg/info/")}
        self.assertEqual({name for name in left if name.startswith("/usr")}, set())
        self.assertLessEqual({"/etc/default/gpufl-monitor", "/etc/gpufl/api-key", DATA}, left)

    def test_a_purge_leaves_data_only(self):
        self.text("purge")
        changed = {name for name in self.lines("changed") if not MAY_CHANGE.fullmatch(name)}
        self.assertEqual(changed, {DATA})


if __name__ == "__main__":
    unittest.main()
