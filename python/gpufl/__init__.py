# SPDX-License-Identifier: Apache-2.0
"""gpufl: records GPU activity and attributes it to parts of the program.

    import gpufl

    gpufl.init(app_name="train", profiling_engine=gpufl.ProfilingEngine.Trace)
    with gpufl.Scope("forward"):
        ...
    gpufl.shutdown()
    gpufl.generate_report()

gpufl.analyzer reads recorded sessions, gpufl.report writes reports. Importing needs no GPU and no driver.
"""

from . import _native, _recording
from ._decorator import scope
from ._native import Scope
from ._options import BackendKind, ProfilingEngine
from ._recording import (
    Session,
    UploadResult,
    active_engine,
    generate_report,
    init,
    session,
    session_dir,
    shutdown,
    system_start,
    system_stop,
    upload_logs,
)
from ._threads import adopt, bind, carry, current_scope, executor, propagate, to_thread

__version__ = _native.version()
__all__ = [
    "BackendKind",
    "ProfilingEngine",
    "Scope",
    "Session",
    "UploadResult",
    "active_engine",
    "adopt",
    "bind",
    "carry",
    "current_scope",
    "executor",
    "generate_report",
    "init",
    "propagate",
    "scope",
    "session",
    "session_dir",
    "shutdown",
    "system_start",
    "system_stop",
    "to_thread",
    "upload_logs",
]

_recording.watch_when_traced()
