# SPDX-License-Identifier: Apache-2.0
"""The process's one session: start, stop, sampling, upload."""

import atexit
import dataclasses
import os
import sys
import warnings
from types import TracebackType
from typing import Any, Dict, Optional, Type, Union

from . import _native, _options
from ._options import BackendKind, ProfilingEngine
from .frameworks import nvtx, profilers, watch

_OK, _INVALID, _DISABLED = 0, -1, -7

# Where the last init wanted logs to go, so that upload_logs() needs no second telling.
_destination: Dict[str, Any] = {}
_upload_pid = 0  # of the process that uploads at its end; a child made by fork does not
_to_upload: Dict[str, Dict[str, Any]] = {}  # then: session directories, and where to
_was_refused = False  # the last init: switched off, or it could not start
_DEPRECATED = "is deprecated and has no effect"  # of the library's warnings: said here in Python's words


@dataclasses.dataclass(frozen=True)
class UploadResult:
    """What became of an upload. Truth: everything is with the server."""

    success: bool
    http_status: int = 0
    sessions: int = 0
    files_uploaded: int = 0
    files_already_sent: int = 0
    files_skipped: int = 0
    events_uploaded: int = 0
    bytes_sent: int = 0
    message: str = ""

    def __bool__(self) -> bool:
        return self.success


def _warn_deprecated(options: Dict[str, Any], stacklevel: int) -> None:
    if "kernel_sample_rate_ms" in options:
        warnings.warn("init(): kernel_sample_rate_ms has no effect; every kernel is recorded", DeprecationWarning,
                      stacklevel=stacklevel)
    name = "init(): remote_upload" if "remote_upload" in options else \
        "GPUFL_REMOTE_UPLOAD" if _options.is_true(os.environ.get("GPUFL_REMOTE_UPLOAD")) else \
        "remote_upload in the config file" if _options.is_set("remote_upload", options) else ""
    if name:
        warnings.warn(f"{name} goes away; call gpufl.upload_logs() after gpufl.shutdown(), or use "
                      "gpufl.session(backend_url=...)", DeprecationWarning, stacklevel=stacklevel)


def _upload_at_exit() -> None:
    if _upload_pid != os.getpid():
        return
    shutdown()
    for path, destination in _to_upload.items():
        try:
            result = upload_logs(path, **destination)
        except Exception as error:  # pylint: disable=broad-except  # the program is over; it must still end well
            result = UploadResult(False, message=str(error))
        if not result:
            warnings.warn(f"gpufl: the logs were not uploaded: {result.message}", RuntimeWarning, stacklevel=1)


def _warn_of_differences(stacklevel: int) -> None:
    """What the library reports where the session differs from the request: at the start, and at the end."""
    for note in _native.take_warnings():
        if _DEPRECATED not in note and not _options.is_true(os.environ.get("GPUFL_QUIET")):
            warnings.warn(f"gpufl: {note}", RuntimeWarning, stacklevel=stacklevel)


@atexit.register
def _warn_at_exit() -> None:
    """The session goes on until the interpreter is gone, and with it the means to warn."""
    _native.active_engine()  # notices a refusal that the session's own thread has not heard of
    _warn_of_differences(2)


def watch_when_traced() -> None:
    """Under `gpufl trace` the session begins with CUDA, without init(): importing gpufl is the program's only word."""
    is_traced = os.path.basename(os.environ.get("CUDA_INJECTION64_PATH", "")) == nvtx.RECORDER
    is_off = _options.is_disabled() or \
        os.environ.get("GPUFL_PROFILING_ENGINE", "").lower() == "monitor"
    if is_traced and not is_off and _options.is_wanted("enable_external_correlation", {}):
        watch.start()


def _end_with_child() -> None:
    """A process that multiprocessing has forked ends without exit handlers, but with its own."""
    processes: Any = sys.modules.get("multiprocessing.process")
    utilities: Any = sys.modules.get("multiprocessing.util")
    if processes is not None and utilities is not None and processes.parent_process() is not None:
        utilities.Finalize(None, shutdown, exitpriority=-1000)


def _start(function: str, given: Dict[str, Any], stacklevel: int) -> bool:
    global _upload_pid, _was_refused  # pylint: disable=global-statement
    options = _options.check(function, _options.INIT_OPTIONS, given, stacklevel + 2)
    _warn_deprecated(options, stacklevel + 2)
    if options.get("system_sample_rate_ms") == 0:
        options["system_sample_rate_ms"] = -1  # 0 was said, not left out
    status, message = _native.init(options)
    _was_refused = status != _OK
    if status == _DISABLED:
        _warn_of_differences(stacklevel + 2)  # where GPUFL_DISABLED is neither on nor off
        return False
    if status == _INVALID:
        raise ValueError(f"{function}(): {message}")
    if status != _OK:
        warnings.warn(f"gpufl does not record: {message}", RuntimeWarning, stacklevel=stacklevel + 1)
        return False
    _warn_of_differences(stacklevel + 2)
    _end_with_child()
    if _native.active_engine() >= ProfilingEngine.Trace:
        profilers.attend()
    if _native.active_engine() >= ProfilingEngine.Trace and _options.is_wanted("enable_external_correlation", options):
        watch.start()
    _destination.clear()
    _destination.update({name: options[name] for name in ("backend_url", "api_key", "api_path", "config_file")
                         if options.get(name)})
    if _options.is_set("remote_upload", options):
        if _upload_pid != os.getpid():
            _upload_pid = os.getpid()
            _to_upload.clear()
            atexit.unregister(_upload_at_exit)
            atexit.register(_upload_at_exit)
        _to_upload[_native.session_dir()] = dict(_destination)
    return True


def init(
    app_name: Optional[str] = None,
    log_path: Union[str, "os.PathLike[str]", None] = None,
    *,
    backend_url: Optional[str] = None,
    api_key: Optional[str] = None,
    api_path: Optional[str] = None,
    remote_upload: Optional[bool] = None,
    enable_stack_trace: Optional[bool] = None,
    enable_source_collection: Optional[bool] = None,
    enable_external_correlation: Optional[bool] = None,
    enable_synchronization: Optional[bool] = None,
    enable_memory_tracking: Optional[bool] = None,
    enable_cuda_graphs_tracking: Optional[bool] = None,
    system_sample_rate_ms: Optional[int] = None,
    kernel_sample_rate_ms: Optional[int] = None,
    continuous_system_sampling: Optional[bool] = None,
    backend: Optional[BackendKind] = None,
    profiling_engine: Optional[ProfilingEngine] = None,
    config_file: Union[str, "os.PathLike[str]", None] = None,
    flush_logs_always: Optional[bool] = None,
    max_log_bytes: Optional[int] = None,
    min_free_bytes: Optional[int] = None,
    enable_debug_output: Optional[bool] = None,
    enabled: Optional[bool] = None,
    **others: Any,
) -> bool:
    """Starts the session of this process.

    None leaves an option to the environment (GPUFL_...), the config file and its default; docs/configuration.md has all
    of them. Returns True when a session records. False: switched off (enabled=False or GPUFL_DISABLED), or it could not
    start, which a RuntimeWarning explains; the program goes on either way and every later call does nothing.

    TypeError: an option that does not exist, or of another type. ValueError: a value that cannot be.
    """
    given = {name: value for name, value in locals().items() if name != "others"}
    given.update(others)
    return _start("init", given, 2)


def shutdown() -> None:
    """Ends the session and writes everything out. Without a session it does nothing."""
    watch.stop()
    profilers.leave()
    _native.shutdown()
    _warn_of_differences(3)


def system_start(name: str = "system") -> None:
    """Samples GPU and host metrics until system_stop(name), whatever the sampling policy."""
    _native.system_start(name)


def system_stop(name: str = "system") -> None:
    """Ends what system_start(name) began."""
    _native.system_stop(name)


def upload_logs(
    log_path: Union[str, "os.PathLike[str]", None] = None,
    *,
    backend_url: Optional[str] = None,
    api_key: Optional[str] = None,
    api_path: Optional[str] = None,
    config_file: Union[str, "os.PathLike[str]", None] = None,
    timeout_ms: Optional[int] = None,
    **others: Any,
) -> UploadResult:
    """Sends finished sessions to a server and waits for it; call it after shutdown().

    log_path: a session directory or a directory of them; None: the last session of this process. Where to is what was
    given here, else to init(), else the environment's. A server that cannot be reached is a result with success False,
    never an exception. ValueError: an option that cannot be, such as no server at all.
    """
    given = {name: value for name, value in locals().items() if name != "others"}
    given.update(others)
    options = {**_destination, **_options.check("upload_logs", _options.UPLOAD_OPTIONS, given)}
    answer = _native.upload_logs(options)
    status = answer.pop("status")
    if status == _INVALID:
        raise ValueError(f"upload_logs(): {answer['message']}")
    return UploadResult(**answer)


def generate_report(output_path: Union[str, "os.PathLike[str]"] = "") -> None:
    """Writes the text report of the last session of this process to a file; "" prints it.

    Does nothing where the last init() was switched off or could not start. RuntimeError: there was no init() at all."""
    if not _native.session_dir():
        if _was_refused:
            return
        raise RuntimeError("there was no session to report; call gpufl.init() first")
    if os.fspath(output_path) or (sys.stdout is sys.__stdout__ and sys.stdout.isatty()):
        sys.stdout.flush()
        _native.generate_report(os.fspath(output_path))
    else:
        sys.stdout.write(_native.Session(_native.session_dir()).report_text())


def session_dir() -> str:
    """The directory of the running, else of the last session; "" when there was none."""
    return _native.session_dir()


def active_engine() -> Optional[ProfilingEngine]:
    """The engine that really runs, which may be lower than the one asked for; None without a session."""
    engine = _native.active_engine()
    return ProfilingEngine(engine) if engine else None


class Session:
    """One recorded stretch of the program, made by gpufl.session()."""

    def __init__(self, options: Dict[str, Any], upload: Optional[bool]):
        self._options = options
        self._wants_upload = upload
        self.is_recording = False
        self.path = ""
        self.upload_result: Optional[UploadResult] = None

    def __enter__(self) -> "Session":
        self.is_recording = _start("session", self._options, 2)
        self.path = _native.session_dir() if self.is_recording else ""
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if not self.is_recording:
            return
        self.is_recording = False
        shutdown()
        wants_upload = self._wants_upload
        if wants_upload is None:
            wants_upload = bool(_options.text_of("backend_url", _destination))
        if not wants_upload:
            return
        try:
            self.upload_result = upload_logs(self.path)
        except ValueError as problem:
            self.upload_result = UploadResult(False, message=str(problem))
        if not self.upload_result:
            warnings.warn(f"gpufl: the session was not uploaded: {self.upload_result.message}", RuntimeWarning,
                          stacklevel=2)


def session(*, upload: Optional[bool] = None, **options: Any) -> Session:
    """Records while the with block runs: init(**options), then shutdown(), then upload_logs().

    upload: None uploads when a server is named (backend_url, GPUFL_BACKEND_URL, the config file). A failed upload is a RuntimeWarning
    and the object's upload_result; it never changes how the program ends.
    """
    _options.check("session", _options.INIT_OPTIONS, options)
    if upload is not None and not isinstance(upload, bool):
        raise TypeError(f"session(): upload must be bool, not {type(upload).__name__}")
    return Session({_options.RENAMED.get(name, name): value for name, value in options.items()}, upload)
