# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges as scopes in a program that was not started by `gpufl trace`."""

import os
import warnings
from typing import Optional

_VARIABLE = "NVTX_INJECTION64_PATH"
_RECORDER = "libgpufl_inject.so"


def _recorder() -> Optional[str]:
    """The library that NVTX is to load: beside the libgpufl that this process runs."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            folder, name = os.path.split("/" + path[2])
            if path[1] and name.startswith("libgpufl.so"):
                found = os.path.join(folder, _RECORDER)
                return found if os.path.exists(found) else None
    return None


def enable() -> bool:
    """Lets libraries that carry NVTX give their ranges to gpufl; False where another tool has them.

    A library looks for its tool at its first range, once: call this before. Ranges made while no session records cost
    next to nothing.
    """
    recorder = _recorder()
    if recorder is None:
        warnings.warn(f"NVTX ranges are not recorded: {_RECORDER} is not beside libgpufl", RuntimeWarning, stacklevel=2)
        return False
    present = os.environ.get(_VARIABLE)
    if present and os.path.realpath(present) != os.path.realpath(recorder):
        warnings.warn(f"NVTX ranges are not recorded: {_VARIABLE} names another tool, {present}", RuntimeWarning,
                      stacklevel=2)
        return False
    os.environ[_VARIABLE] = recorder
    return True
