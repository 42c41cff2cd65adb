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

# Where the last init() sends logs, so that upload_logs() needs no arguments.
_destination: Dict[str, Any] = {}
_upload_pid = 0  # the process that uploads at exit; forked children do not
_to_upload: Dict[str, Dict[str, Any]] = {}  # session directories to upload at exit, with their upload options
_was_refused = False  # the last init() was switched off or could not start
_DEPRECATED = "is deprecated and has no effect"  # such library warnings are replaced by DeprecationWarnings here


@dataclasses.dataclass(frozen=True)
class UploadResult:
    """The result of an upload. True if the server has everything."""

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
        warnings.warn(f"{name} is deprecated; call gpufl.upload_logs() after gpufl.shutdown(), or use "
                      "gpufl.session(backend_url=...)", DeprecationWarning, stacklevel=stacklevel)


def _upload_at_exit() -> None:
    if _upload_pid != os.getpid():
        return
    shutdown()
    for path, destination in _to_upload.items():
        try:
            result = upload_logs(path, **destination)
        except Exception as error:  # pylint: disable=broad-except  # must not change how the program ends
            result = UploadResult(False, message=str(error))
        if not result:
            warnings.warn(f"gpufl: the logs were not uploaded: {result.message}", RuntimeWarning, stacklevel=1)


def _warn(message: str, stacklevel: int) -> None:
    if not _options.is_true(os.environ.get("GPUFL_QUIET")):
        warnings.warn(message, RuntimeWarning, stacklevel=stacklevel + 1)


def _warn_of_differences(stacklevel: int) -> None:
    """Warns where the session differs from the request, at its start and at its end."""
    for note in _native.take_warnings():
        if _DEPRECATED not in note:
            _warn(f"gpufl: {note}", stacklevel)


def _is_of_environment(message: str) -> bool:
    """Whether the invalid value is not the program's: whoever started it set a variable, or named a config file."""
    path = os.environ.get("GPUFL_CONFIG_FILE")
    return message.startswith("GPUFL_") or bool(path and message.startswith(path))


@atexit.register
def _warn_at_exit() -> None:
    """Warns while it is still possible: the session outlives the interpreter."""
    _native.active_engine()  # notices a refusal that the session's thread has not seen yet
    _warn_of_differences(2)


def watch_when_traced() -> None:
    """Under `gpufl trace` the session starts with CUDA, without init(), so importing gpufl starts the watch."""
    is_traced = os.path.basename(os.environ.get("CUDA_INJECTION64_PATH", "")) == nvtx.RECORDER
    is_off = _options.is_disabled() or \
        os.environ.get("GPUFL_PROFILING_ENGINE", "").lower() == "monitor"
    if is_traced and not is_off:
        watch.start(_options.is_wanted("enable_external_correlation", {}))


def _end_with_child() -> None:
    """Ends the session of a process that multiprocessing forked: it runs multiprocessing's finalizers, not atexit."""
    processes: Any = sys.modules.get("multiprocessing.process")
    utilities: Any = sys.modules.get("multiprocessing.util")
    if processes is not None and utilities is not None and processes.parent_process() is not None:
        utilities.Finalize(None, shutdown, exitpriority=-1000)


def _start(function: str, given: Dict[str, Any], stacklevel: int) -> bool:
    global _upload_pid, _was_refused  # pylint: disable=global-statement
    options = _options.check(function, _options.INIT_OPTIONS, given, stacklevel + 2)
    _warn_deprecated(options, stacklevel + 2)
    if options.get("system_sample_rate_ms") == 0:
        options["system_sample_rate_ms"] = -1  # an explicit 0
    status, message = _native.init(options)
    _was_refused = status != _OK
    if status == _DISABLED:
        _warn_of_differences(stacklevel + 2)  # GPUFL_DISABLED may have an unclear value
        return False
    if status == _INVALID and not _is_of_environment(message):
        raise ValueError(f"{function}(): {message}")
    if status != _OK:
        _warn(f"gpufl does not record: {message}", stacklevel + 1)
        return False
    _warn_of_differences(stacklevel + 2)
    _end_with_child()
    if _native.active_engine() >= ProfilingEngine.Trace:
        profilers.attend()
        watch.start(_options.is_wanted("enable_external_correlation", options))
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
    """Starts this process's session.

    For an option that is None, the environment (GPUFL_...), the config file and the default apply, in this order;
    docs/configuration.md lists all options. Returns True if a session records. Returns False if recording is switched
    off (enabled=False or GPUFL_DISABLED) or could not start (a RuntimeWarning has the reason); the program continues
    and later calls do nothing.

    TypeError: unknown option, or wrong type. ValueError: invalid value. An invalid value of the environment, or in a
    config file that it names, does not stop the program: that is a RuntimeWarning, and False.
    """
    given = {name: value for name, value in locals().items() if name != "others"}
    given.update(others)
    return _start("init", given, 2)


def shutdown() -> None:
    """Ends the session and writes all data. Does nothing without a session."""
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
    """Uploads finished sessions and waits until the server has them; call it after shutdown().

    log_path: a session directory or a directory of them; None: the last session of this process. The server is the one
    given here, else the one given to init(), else the environment's. If the server cannot be reached, the result has
    success=False; no exception is raised. ValueError: invalid option, or no server given.
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

    Does nothing if the last init() was switched off or could not start. RuntimeError: init() was never called."""
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
    """The directory of the running session, else of the last one; "" if there was none."""
    return _native.session_dir()


def active_engine() -> Optional[ProfilingEngine]:
    """The engine in use, which may be lower than the requested one; None without a session."""
    engine = _native.active_engine()
    return ProfilingEngine(engine) if engine else None


class Session:
    """A recorded part of the program, made by gpufl.session()."""

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

    upload: None uploads if a server is configured (backend_url, GPUFL_BACKEND_URL, the config file). A failed upload
    raises a RuntimeWarning and sets the object's upload_result; it never changes how the program ends.
    """
    _options.check("session", _options.INIT_OPTIONS, options)
    if upload is not None and not isinstance(upload, bool):
        raise TypeError(f"session(): upload must be bool, not {type(upload).__name__}")
    return Session({_options.RENAMED.get(name, name): value for name, value in options.items()}, upload)
