# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges as scopes in a program that was not started by `gpufl trace`."""

import os
import warnings
from typing import Optional

_VARIABLE = "NVTX_INJECTION64_PATH"
RECORDER = "libgpufl_inject.so"


def _recorder() -> Optional[str]:
    """The library that NVTX is to load: beside the libgpufl that this process runs, or in gpufl/ there."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            folder, name = os.path.split("/" + path[2])
            if path[1] and name.startswith("libgpufl.so"):
                places = (os.path.join(folder, RECORDER), os.path.join(folder, "gpufl", RECORDER))
                return next((place for place in places if os.path.exists(place)), None)
    return None


def find_obstacle() -> Optional[str]:
    """Lets libraries that carry NVTX give their ranges to gpufl; else what is in the way."""
    recorder = _recorder()
    if recorder is None:
        return f"{RECORDER} is not beside libgpufl"
    present = os.environ.get(_VARIABLE)
    if present and os.path.basename(present) != RECORDER:  # by `gpufl trace`, of any installation, it is gpufl's
        return f"{_VARIABLE} names another tool, {present}"
    os.environ[_VARIABLE] = present or recorder
    return None


def enable() -> bool:
    """Lets libraries that carry NVTX give their ranges to gpufl; False, and a warning, where another tool has them.

    A library looks for its tool at its first range, once: call this before. Ranges made while no session records cost
    next to nothing.
    """
    obstacle = find_obstacle()
    if obstacle is not None:
        warnings.warn(f"NVTX ranges are not recorded: {obstacle}", RuntimeWarning, stacklevel=2)
    return obstacle is None
