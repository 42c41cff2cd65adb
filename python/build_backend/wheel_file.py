# SPDX-License-Identifier: Apache-2.0
"""The wheel file format: names, platform tags, and the archive with its RECORD."""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import time
import zipfile
from typing import Dict, Set, Tuple

# Libraries that PEP 600 allows a manylinux wheel to use, and gpufl's libraries, which are in the wheel.
EVERYWHERE = re.compile(r"^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-[\w-]+)\.so\.\d+$|^libgpufl")


def dynamic_section(file: pathlib.Path) -> str:
    return subprocess.run(["readelf", "-dVW", str(file)], check=True, capture_output=True, text=True).stdout


def loaded_name(file: pathlib.Path) -> str:
    """The SONAME of a library; for other files, the file name."""
    if ".so" not in file.name:
        return file.name
    found = re.search(r"\(SONAME\).*\[(.*)\]", dynamic_section(file))
    return found.group(1) if found else file.name


def platform_tag(files: Dict[str, bytes], platform: str) -> str:
    """manylinux with the oldest C library that has all symbols used; if other libraries are needed too, the plain
    platform tag of this machine."""
    tag = platform.replace("-", "_").replace(".", "_")
    if not tag.startswith("linux_"):
        return tag
    needed: Set[str] = set()
    newest = 17
    with tempfile.TemporaryDirectory(prefix="gpufl-wheel-") as work:
        part = pathlib.Path(work) / "part"
        for data in files.values():
            if data[:4] != b"\x7fELF":
                continue
            part.write_bytes(data)
            text = dynamic_section(part)
            needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
            newest = max([newest, *map(int, re.findall(r"GLIBC_2\.(\d+)", text))])
    if all(EVERYWHERE.match(name) for name in needed):
        return tag.replace("linux_", f"manylinux_2_{newest}_", 1)
    return tag


def write(path: pathlib.Path, info: str, tag: str, files: Dict[str, bytes]) -> None:
    """The same files produce the same wheel, byte for byte."""
    clock = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))  # zip's first year is 1980
    made = (clock.tm_year, clock.tm_mon, clock.tm_mday, clock.tm_hour, clock.tm_min, clock.tm_sec)
    files = dict(files)
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: gpufl_build\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n").encode()
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(archive, name, data, made)
        record.append(f"{info}/RECORD,,\n")
        add(archive, f"{info}/RECORD", "".join(record).encode(), made)


def add(archive: zipfile.ZipFile, name: str, data: bytes, made: Tuple[int, int, int, int, int, int]) -> None:
    entry = zipfile.ZipInfo(name, made)
    entry.compress_type = zipfile.ZIP_DEFLATED
    mode = 0o755 if "/bin/" in name or ".so" in name else 0o644
    entry.external_attr = (0o100000 | mode) << 16
    archive.writestr(entry, data)
