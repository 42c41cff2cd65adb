# SPDX-License-Identifier: Apache-2.0
"""Two builds of the same source give the same bytes: the second one in another directory with other permissions."""
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

from packages import DIRECTORY, SOURCE, built

OTHER = {"TZ": "Pacific/Kiritimati", "LANG": "de_DE.UTF-8", "LC_ALL": "C", "USER": "somebody", "HOME": "/nonexistent"}
PROGRAMS = ("bin/gpufl", "lib/libgpufl.so.1", "lib/libgpufl_inject.so", "lib/libgpufl-upload.so.1",
            "lib/libgpufl-server.so.1", "python/gpufl/_native.abi3.so", "python/gpufl/_cupti.abi3.so")


def source_files():
    """Tracked and untracked files; ignored files are build results."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=SOURCE, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        if name and not name.startswith("tests/") and (SOURCE / name).is_file():
            yield name


def copy_source(target):
    for name in source_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / name, target / name)
        (target / name).chmod(0o700 if os.access(SOURCE / name, os.X_OK) else 0o600)


class Reproducible(unittest.TestCase):
    def test_two_builds_are_the_same(self):
        first = built()
        second = DIRECTORY / "somewhere/else"
        second.mkdir(parents=True)
        copy_source(second)
        result = subprocess.run(["sh", "-c", 'umask 077; exec tools/build_deb.sh "$0"', DIRECTORY / "other-build"],
                                cwd=second, env={**os.environ, **OTHER}, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        packages = [f"packages/{path.name}" for path in (first / "packages").iterdir()]
        self.assertEqual(len(packages), 4)
        for name in (*PROGRAMS, *packages):
            self.assertEqual((first / name).read_bytes(), (DIRECTORY / "other-build" / name).read_bytes(),
                             f"{name}: `diffoscope` shows where two builds differ")

    def test_the_source_of_a_commit_is_packed_the_same_way_twice(self):
        packed = []
        for name in ("first", "second"):
            result = subprocess.run([SOURCE / "tools/build_dist.sh", DIRECTORY / name], capture_output=True, text=True,
                                    check=True)
            packed.append(pathlib.Path(result.stdout.strip()))
        self.assertEqual(packed[0].read_bytes(), packed[1].read_bytes())
        with tarfile.open(packed[0]) as archive:
            names = archive.getnames()
        root = packed[0].name.removesuffix(".tar.gz")
        self.assertEqual({name.split("/")[0] for name in names}, {root})
        self.assertIn(f"{root}/include/gpufl/gpufl.h", names)


if __name__ == "__main__":
    unittest.main()
