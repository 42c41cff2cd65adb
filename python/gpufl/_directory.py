# SPDX-License-Identifier: Apache-2.0
"""Finds the session that a directory, an application name and a session id refer to."""

import os
import warnings
from typing import List, Optional

from . import _native

_LISTED_MAX = 5


def _app_of(path: str) -> str:
    try:
        return _native.session_app(path)
    except (OSError, ValueError):
        return ""  # unreadable: cannot be selected by name


def _listed(paths: List[str]) -> str:
    names = [os.path.basename(path) for path in paths[:_LISTED_MAX]]
    more = len(paths) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _bases(log_dir: str, log_prefix: Optional[str]) -> List[str]:
    """Directories that may contain session directories: log_dir, and the folder of a default log_path in it."""
    inside = os.path.join(log_dir, log_prefix) if log_prefix else ""
    return [log_dir] + ([inside] if inside and os.path.isdir(inside) else [])


def _find_by_id(log_dir: str, log_prefix: Optional[str], session_id: str) -> str:
    if os.path.basename(os.path.abspath(log_dir)) == session_id:
        return log_dir
    found = [path for base in _bases(log_dir, log_prefix) for path in _native.sessions_below(base)]
    matching = [path for path in found if os.path.basename(path).startswith(session_id)] if session_id else []
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ValueError(f"session_id '{session_id}' is the start of {len(matching)} sessions in {log_dir}: "
                         f"{_listed(matching)}")
    there = f"; there are {_listed(found)}" if found else ""
    raise FileNotFoundError(f"there is no session '{session_id}' in {log_dir}{there}")


def find_session(log_dir: str, log_prefix: Optional[str] = None, session_id: Optional[str] = None,
                 stacklevel: int = 3) -> str:
    """The path of the session. If several match: the newest, with a UserWarning that names the others."""
    if not os.path.isdir(log_dir):
        what = "is not a directory" if os.path.exists(log_dir) else "does not exist"
        raise FileNotFoundError(f"{log_dir} {what}; pass a directory of gpufl logs")
    if session_id is not None:
        return _find_by_id(log_dir, log_prefix, session_id)
    found = [path for base in _bases(log_dir, log_prefix) for path in _native.sessions_below(base)]
    if not found:
        return log_dir  # a session directory itself, or the reader reports that there is no session
    if log_prefix:
        apps = {path: _app_of(path) for path in found}
        matching = [path for path in found if apps[path] == log_prefix]
        if not matching:
            known = ", ".join(sorted({app for app in apps.values() if app})) or "none that has a name"
            raise FileNotFoundError(f"no session of '{log_prefix}' in {log_dir}; there are sessions of {known}")
        found = matching
    if len(found) > 1:
        warnings.warn(f"{len(found)} sessions in {log_dir}: the newest is read, {os.path.basename(found[0])}; give "
                      f"session_id= for another of {_listed(found)}", UserWarning, stacklevel=stacklevel)
    return found[0]
