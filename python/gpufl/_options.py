# SPDX-License-Identifier: Apache-2.0
"""Options of gpufl.init and gpufl.upload_logs: types, replacements of old names, and error messages."""

import difflib
import enum
import json
import os
import warnings
from typing import Any, Dict, Iterable, NoReturn, Optional, Type


class ProfilingEngine(enum.IntEnum):
    """How much is recorded; each level adds to the previous one. docs/engines.md lists the overhead of each."""

    Monitor = 1
    Trace = 2
    PcSampling = 3
    SassMetrics = 4
    RangeProfiler = 5
    Deep = 6


class BackendKind(enum.IntEnum):
    """Which vendor's GPUs are recorded. None is a keyword of Python, hence None_."""

    Auto = 0
    Nvidia = 1
    Amd = 2
    None_ = 3
    locals()["None"] = 3  # the same member as BackendKind["None"] and through getattr


# "path": text or os.PathLike; "rate": milliseconds, 0 or more; "bytes": 0 is no limit.
INIT_OPTIONS: Dict[str, str] = {
    "app_name": "text",
    "log_path": "path",
    "backend_url": "text",
    "api_key": "text",
    "api_path": "text",
    "remote_upload": "switch",
    "enable_stack_trace": "switch",
    "enable_source_collection": "switch",
    "enable_external_correlation": "switch",
    "enable_synchronization": "switch",
    "enable_memory_tracking": "switch",
    "enable_cuda_graphs_tracking": "switch",
    "system_sample_rate_ms": "rate",
    "kernel_sample_rate_ms": "rate",
    "continuous_system_sampling": "switch",
    "backend": "backend",
    "profiling_engine": "engine",
    "config_file": "path",
    "flush_logs_always": "switch",
    "max_log_bytes": "bytes",
    "min_free_bytes": "bytes",
    "enable_debug_output": "switch",
    "enabled": "switch",
}
UPLOAD_OPTIONS: Dict[str, str] = {
    "log_path": "path",
    "backend_url": "text",
    "api_key": "text",
    "api_path": "text",
    "config_file": "path",
    "timeout_ms": "rate",
}
# Renamed options are still accepted. Removed ones are rejected with their replacement.
RENAMED = {"sampling_auto_start": "continuous_system_sampling"}
REMOVED = {
    "enable_profiling": "profiling_engine=gpufl.ProfilingEngine.Monitor (was False) or .PcSampling (was True)",
    "enable_perf_scope": "profiling_engine=gpufl.ProfilingEngine.RangeProfiler",
    "remote_config": 'backend_url="https://..."',
}


def raise_unknown(function: str, name: str, known: Iterable[str]) -> NoReturn:
    """TypeError for an unknown keyword, with the nearest known one."""
    message = f"{function}() got an unexpected keyword argument '{name}'"
    if function in ("init", "session") and name in REMOVED:
        raise TypeError(f"{message}; use {REMOVED[name]}")
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    raise TypeError(f"{message}; did you mean '{near[0]}'?" if near else message)


def _raise_type(function: str, name: str, wanted: str, value: object, hint: str = "") -> NoReturn:
    raise TypeError(f"{function}(): {name} must be {wanted}, not {type(value).__name__}{hint}")


def _enum_value(function: str, name: str, kind: Type[enum.IntEnum], value: object) -> int:
    if isinstance(value, kind):
        return int(value)
    hint = ""
    if isinstance(value, str):
        names = [member.name.lower() for member in kind]
        near = difflib.get_close_matches(value.lower(), names, n=1, cutoff=0.5)
        hint = "".join(f"; did you mean gpufl.{kind.__name__}.{member.name}?" for member in kind
                       if near and member.name.lower() == near[0])
    _raise_type(function, name, f"gpufl.{kind.__name__}", value, hint)


def _checked(function: str, name: str, kind: str, value: Any) -> Any:
    """The value as the C part expects it; None: use the environment, config file or default."""
    if kind in ("text", "path"):
        if kind == "path" and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str):
            _raise_type(function, name, "str or os.PathLike" if kind == "path" else "str", value)
        return value or None
    if kind == "switch":
        if not isinstance(value, bool):
            _raise_type(function, name, "bool", value)
        return value
    if kind == "engine":
        return _enum_value(function, name, ProfilingEngine, value)
    if kind == "backend":
        return _enum_value(function, name, BackendKind, value)
    if isinstance(value, bool) or not isinstance(value, int):
        _raise_type(function, name, "int", value)
    if kind == "bytes":
        if not 0 <= value < 2**63:
            raise ValueError(f"{function}(): {name} must be 0 to {2**63 - 1}, not {value}")
        return value or -1  # an explicit 0
    if not 0 <= value < 2**31:
        raise ValueError(f"{function}(): {name} must be 0 to {2**31 - 1}, not {value}")
    return value


def check(function: str, kinds: Dict[str, str], given: Dict[str, Any], stacklevel: int = 3) -> Dict[str, Any]:
    """The given options, checked and under their current names."""
    result: Dict[str, Any] = {}
    for name, value in given.items():
        new = RENAMED.get(name) if kinds is INIT_OPTIONS else None
        if new:
            warnings.warn(f"{function}(): {name} is now {new}", DeprecationWarning, stacklevel=stacklevel)
            if given.get(new) is not None:
                raise TypeError(f"{function}(): {name} is the old name of {new}; give one of them")
        elif name not in kinds:
            raise_unknown(function, name, kinds)
        if value is not None:
            result[new or name] = _checked(function, name, kinds[new or name], value)
    return result


def is_true(text: Optional[str]) -> bool:
    """Whether an environment variable's value means on."""
    return (text or "").strip().lower() in ("1", "true", "yes", "on")


def is_disabled() -> bool:
    """GPUFL_DISABLED: any value that does not mean off, as in the library."""
    return os.environ.get("GPUFL_DISABLED", "").lower() not in ("", "0", "false", "no", "off")


def _in_file(name: str, options: Dict[str, Any]) -> Any:
    """The value in the config file; None: not set. Errors in the file have already been reported."""
    path = options.get("config_file") or os.environ.get("GPUFL_CONFIG_FILE")
    try:
        with open(path or os.devnull, encoding="utf-8") as file:
            return json.load(file).get(name)
    except (OSError, ValueError, AttributeError):
        return None


def _switch_value(name: str, options: Dict[str, Any]) -> Any:
    """The value of a switch: from the program, else the environment, else the config file; None: not set."""
    if name in options:
        return bool(options[name])
    text = os.environ.get(f"GPUFL_{name.upper()}")
    return is_true(text) if text else _in_file(name, options)


def is_wanted(name: str, options: Dict[str, Any]) -> bool:
    """The value of a switch that is on by default."""
    return _switch_value(name, options) is not False


def is_set(name: str, options: Dict[str, Any]) -> bool:
    """The value of a switch that is off by default."""
    return _switch_value(name, options) is True


def text_of(name: str, options: Dict[str, Any]) -> str:
    """The value of a text option; "" if not set."""
    text = options.get(name) or os.environ.get(f"GPUFL_{name.upper()}") or _in_file(name, options)
    return text if isinstance(text, str) else ""
