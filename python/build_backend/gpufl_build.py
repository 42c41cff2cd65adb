# SPDX-License-Identifier: Apache-2.0
"""Builds wheels and source distributions of gpufl (PEP 517) with CMake and Python's standard library.

Settings (pip --config-settings):
  build-dir=DIR   use the C parts of an existing build instead of building them
  upload=off      build without upload support and server; without their libraries the wheel is a portable manylinux wheel
  platform=NAME   platform of an existing build for another machine, e.g. linux_aarch64
"""

import gzip
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Tuple

import wheel_file

try:
    import tomllib
except ImportError:
    raise SystemExit("gpufl: building needs Python 3.11 or newer; the wheel it makes runs with 3.9 and newer") from None

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# The files a build needs. Folders are included with everything in them.
SOURCE_PARTS = ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "cmake", "docs/man", "docs/python.md",
                "docs/cupti-python.md", "examples", "include", "packaging/cmake", "python", "schema", "src",
                "web/report")
Settings = Optional[Dict[str, Any]]
NEEDED = ("building needs CMake, a C and C++ compiler, binutils, static zstd and zlib, Python's headers and, for "
          "uploads, libcurl; on Debian: apt-get install cmake ninja-build gcc g++ binutils libzstd-dev zlib1g-dev "
          "python3-dev libcurl4-gnutls-dev")


def fail(message: str) -> NoReturn:
    raise SystemExit(f"gpufl: {message}")


def project() -> Dict[str, Any]:
    """The [project] table, with the version of the library."""
    table: Dict[str, Any] = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    header = (SOURCE / "include/gpufl/gpufl.h").read_text(encoding="utf-8")
    found = re.search(r'#define GPUFL_VERSION_STRING "([0-9.]+)"', header)
    if not found:
        fail("include/gpufl/gpufl.h does not define the version")
    return {**table, "version": found.group(1)}


def stem(table: Dict[str, Any]) -> str:
    return f"{table['name']}-{table['version']}"


def metadata(table: Dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {table['name']}", f"Version: {table['version']}",
             f"Summary: {table['description']}", f"License: {table['license']['text']}",
             f"Requires-Python: {table['requires-python']}"]
    lines += [f"Classifier: {text}" for text in table["classifiers"]]
    for extra, needs in table["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    readme = (SOURCE / table["readme"]).read_text(encoding="utf-8")
    return "\n".join(lines) + f"\nDescription-Content-Type: text/markdown\n\n{readme}"


def entry_points(table: Dict[str, Any]) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {place}\n" for name, place in table["scripts"].items())


def run(*command: object) -> None:
    """Runs a build step; pip shows its output if it fails."""
    words = [str(word) for word in command]
    try:
        result = subprocess.run(words, check=False)
    except FileNotFoundError:
        fail(f"{words[0]} was not found; {NEEDED}")
    if result.returncode:
        fail(f"'{' '.join(words)}' failed, see above; {NEEDED}")


def check_settings(settings: Settings) -> Tuple[Optional[pathlib.Path], bool, str]:
    """The build directory, if one was given, whether uploads are enabled, and the platform."""
    given = dict(settings or {})
    build, upload = given.pop("build-dir", None), given.pop("upload", "on")
    platform = given.pop("platform", sysconfig.get_platform())
    if given:
        fail(f"no setting '{next(iter(given))}'; settings are build-dir, upload and platform")
    if upload not in ("on", "off"):
        fail(f"setting upload must be on or off, not '{upload}'")
    if build is not None and not (pathlib.Path(build) / "CMakeCache.txt").is_file():
        fail(f"setting build-dir: {build} is not a CMake build directory")
    return (None if build is None else pathlib.Path(build).resolve()), upload == "on", platform


def build_native(build: pathlib.Path, with_upload: bool) -> None:
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGPUFL_TESTS=OFF", "-DGPUFL_SERVER=OFF", "-DGPUFL_DEMO_APP=OFF",
               "-DGPUFL_PYTHON=ON", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"]
    if not with_upload:
        options.append("-DGPUFL_UPLOAD=OFF")
    headers = sysconfig.get_path("include")
    if os.path.isfile(os.path.join(headers, "Python.h")):
        options.append(f"-DGPUFL_PYTHON_INCLUDE_DIR={headers}")
    if shutil.which("ninja"):
        options.append("-GNinja")
    run("cmake", "-S", SOURCE, "-B", build, *options)
    run("cmake", "--build", build, "--target", "gpufl_wheel_parts", "--parallel", os.cpu_count() or 1)


def package_files() -> Iterator[Tuple[str, bytes]]:
    for file in walk(SOURCE / "python" / "gpufl"):
        if file.suffix in (".py", ".pyi") or file.name == "py.typed":
            yield str(file.relative_to(SOURCE / "python")), file.read_bytes()


def native_files(build: pathlib.Path, stage: pathlib.Path) -> Iterator[Tuple[str, bytes]]:
    """The files that the build installs for a wheel. Each library is included once, under its SONAME."""
    run("cmake", "--install", build, "--component", "python", "--prefix", stage, "--strip")
    for file in walk(stage):
        if not file.is_symlink():
            folder = file.relative_to(stage).parent
            yield str("gpufl" / folder / wheel_file.loaded_name(file)), file.read_bytes()


def walk(folder: pathlib.Path) -> List[pathlib.Path]:
    """Files below a folder in a fixed order, without hidden files and __pycache__."""
    return sorted(file for file in folder.rglob("*") if (file.is_file() or file.is_symlink()) and not any(
        part == "__pycache__" or part.startswith(".") for part in file.relative_to(folder).parts))


def build_wheel(wheel_directory: str, config_settings: Settings = None,
                metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel and returns its file name."""
    build, with_upload, platform = check_settings(config_settings)
    table = project()
    with tempfile.TemporaryDirectory(prefix="gpufl-wheel-") as work:
        if build is None:
            build = pathlib.Path(work) / "build"
            build_native(build, with_upload)
        files = dict(native_files(build, pathlib.Path(work) / "stage"))
        if not with_upload:
            files = {name: data for name, data in files.items() if not re.search("libgpufl-(upload|server)", name)}
        tag = f"cp39-abi3-{wheel_file.platform_tag(files, platform)}"
    files.update(package_files())
    info = f"{stem(table)}.dist-info"
    files[f"{info}/METADATA"] = metadata(table).encode()
    files[f"{info}/entry_points.txt"] = entry_points(table).encode()
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    name = f"{stem(table)}-{tag}.whl"
    wheel_file.write(pathlib.Path(wheel_directory) / name, info, tag, files)
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Writes the wheel's metadata without building it and returns the name of the folder."""
    check_settings(config_settings)
    table = project()
    name = f"{stem(table)}.dist-info"
    folder = pathlib.Path(metadata_directory) / name
    folder.mkdir()
    (folder / "METADATA").write_text(metadata(table), encoding="utf-8")
    (folder / "entry_points.txt").write_text(entry_points(table), encoding="utf-8")
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Writes the source distribution and returns its file name."""
    check_settings(config_settings)
    table = project()
    files = {}
    for part in SOURCE_PARTS:
        path = SOURCE / part
        for file in walk(path) if path.is_dir() else [path]:
            files[str(file.relative_to(SOURCE))] = (file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
    files["PKG-INFO"] = (metadata(table).encode(), 0o644)
    name = f"{stem(table)}.tar.gz"
    made = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path_in_archive, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{stem(table)}/{path_in_archive}")
            entry.size, entry.mode, entry.mtime = len(data), mode, made
            archive.addfile(entry, io.BytesIO(data))
    (pathlib.Path(sdist_directory) / name).write_bytes(gzip.compress(plain.getvalue(), mtime=made))
    return name


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("wheel", "sdist"):
        fail("usage: gpufl_build.py wheel|sdist DIRECTORY")
    pathlib.Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    print(build_wheel(sys.argv[2]) if sys.argv[1] == "wheel" else build_sdist(sys.argv[2]))
