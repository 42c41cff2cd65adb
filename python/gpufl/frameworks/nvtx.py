# SPDX-License-Identifier: Apache-2.0
"""Records NVTX ranges as scopes in a program that was not started by `gpufl trace`."""

import os
import warnings
from typing import Optional

_VARIABLE = "NVTX_INJECTION64_PATH"
RECORDER = "libgpufl_inject.so"


def _recorder() -> Optional[str]:
    """The library for NVTX to load: in the directory of this process's libgpufl, or in gpufl/ there."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            folder, name = os.path.split("/" + path[2])
            if path[1] and name.startswith("libgpufl.so"):
                places = (os.path.join(folder, RECORDER), os.path.join(folder, "gpufl", RECORDER))
                return next((place for place in places if os.path.exists(place)), None)
    return None


def find_obstacle() -> Optional[str]:
    """Makes libraries with NVTX send their ranges to gpufl; otherwise returns what prevents it."""
    recorder = _recorder()
    if recorder is None:
        return f"{RECORDER} is not in the directory of libgpufl"
    present = os.environ.get(_VARIABLE)
    if present and os.path.basename(present) != RECORDER:  # `gpufl trace` of any installation sets the same name
        return f"{_VARIABLE} names another tool, {present}"
    os.environ[_VARIABLE] = present or recorder
    return None


def enable() -> bool:
    """Makes libraries with NVTX send their ranges to gpufl. Returns False, with a warning, if another tool gets them.

    A library looks for a tool once, at its first range: call this before. Ranges outside of a session cost next to
    nothing.
    """
    obstacle = find_obstacle()
    if obstacle is not None:
        warnings.warn(f"NVTX ranges are not recorded: {obstacle}", RuntimeWarning, stacklevel=2)
    return obstacle is None
