# SPDX-License-Identifier: Apache-2.0
"""Finds the session that a pattern of log files refers to."""

import glob
import os
from typing import Any, List, Optional

from .. import _native
from ..analyzer import GpuFlightSession


def _fixed_part(pattern: str) -> str:
    """The directory before the first wildcard."""
    head = pattern
    while glob.has_magic(head):
        head = os.path.dirname(head)
    return head or "."


def _directories(pattern: str) -> List[str]:
    found = dict.fromkeys(path if os.path.isdir(path) else os.path.dirname(path) or "."
                          for path in sorted(glob.glob(pattern, recursive=True)))
    return list(found)


def _newest_folder(base: str) -> str:
    """If base contains no session: the folder in it with the newest session, since log_path may have one per app."""
    if not os.path.isdir(base) or _native.sessions_below(base):
        return base
    folders = [entry.path for entry in os.scandir(base) if entry.is_dir()]
    newest = [found[0] for folder in folders if (found := _native.sessions_below(folder))]
    return os.path.dirname(max(newest, key=os.path.getmtime)) if newest else base


def session_of(logs: Any, log_prefix: Optional[str] = None, session_id: Optional[str] = None) -> GpuFlightSession:
    """logs: a session, a directory, a log file, or a pattern of them.

    A pattern that matches nothing refers to its directory, which contains one directory per session.
    """
    if isinstance(logs, GpuFlightSession):
        return logs
    if not isinstance(logs, (str, os.PathLike)):
        raise TypeError(f"logs must be a path, a pattern or a GpuFlightSession, not {type(logs).__name__}")
    pattern = os.fspath(logs)
    if isinstance(pattern, bytes):
        raise TypeError("logs must be str, not bytes")
    found = [pattern] if os.path.isdir(pattern) else _directories(pattern)
    if len(found) == 1:
        base = found[0]
    elif found:
        base = os.path.commonpath([os.path.abspath(path) for path in found])
    elif glob.has_magic(pattern):
        base = _fixed_part(pattern)
    else:
        raise FileNotFoundError(f"{pattern} does not exist; a log file, a directory of gpufl logs or a pattern such as "
                                "'./logs/*.log' is wanted")
    return GpuFlightSession(base if log_prefix else _newest_folder(base), log_prefix, session_id)
