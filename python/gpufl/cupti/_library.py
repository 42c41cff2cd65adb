# SPDX-License-Identifier: Apache-2.0
"""Calls CUPTI functions by name, with checked arguments and exceptions for results. ctypes releases the GIL during the
call."""
import ctypes
import difflib
import re
import threading
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional, Tuple, Union

from .. import _cupti, _native
from ._enums import Result

_CODES: Dict[str, Tuple[Any, int, int]] = {
    "B": (ctypes.c_uint8, 0, 2**8 - 1), "H": (ctypes.c_uint16, 0, 2**16 - 1), "I": (ctypes.c_uint32, 0, 2**32 - 1),
    "i": (ctypes.c_int32, -2**31, 2**31 - 1), "Q": (ctypes.c_uint64, 0, 2**64 - 1), "P": (ctypes.c_void_p, 0,
                                                                                          2**64 - 1),
}


class cuptiError(Exception):
    """A call of CUPTI failed. `status` is its result, a Result where CUPTI's number is known."""

    __module__ = "gpufl.cupti.cupti"
    status: Union[Result, int]

    def __init__(self, status: int, text: str = "") -> None:
        try:
            self.status = Result(status)
            name = self.status.name
        except ValueError:
            self.status, name = int(status), "unknown result"
        super().__init__(text or f"{name} ({int(status)})")

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (int(self.status), str(self))


class FunctionNotFoundError(RuntimeError):
    """The CUPTI of this process is too old to have the function."""

    __module__ = "gpufl.cupti.cupti"


_lock = threading.Lock()
_functions: Dict[str, Callable[..., int]] = {}


def library() -> Tuple[str, int]:
    """Path and API version of CUPTI; RuntimeError if CUPTI is missing."""
    return _cupti.library()


def version() -> int:
    return library()[1]


def _bind(name: str, codes: str) -> Callable[..., int]:
    address = _cupti.address(name)
    if not address:
        path, number = library()
        raise FunctionNotFoundError(f"{path} (API version {number}) has no {name}; install the CUPTI of a newer CUDA "
                                    "release")
    types = [ctypes.c_void_p if code == "O" else _CODES[code][0] for code in codes]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(address)


def has_function(name: str) -> bool:
    return _cupti.address(name) != 0


def number(value: Any, code: str, what: str) -> int:
    """Checks that an int fits the code; the TypeError or ValueError names `what`."""
    if isinstance(value, bool) and code == "B":
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be int, not {type(value).__name__}")
    _, least, most = _CODES[code]
    if not least <= value <= most:
        raise ValueError(f"{what} must be {least} to {most}, not {value}")
    return int(value)


def result_of(name: str, codes: str, *arguments: Any) -> int:
    """The result of a call. Codes as in _struct_layouts; O: an object from ctypes.byref."""
    with _lock:
        function = _functions.get(name)
        if function is None:
            function = _functions[name] = _bind(name, codes)
    checked = [value if code == "O" else number(value, code, f"argument {at + 1} of {name}")
               for at, (code, value) in enumerate(zip(codes, arguments))]
    return function(*checked)


def raise_error(name: str, result: int) -> NoReturn:
    raise cuptiError(result, _cupti.explain(name, result))


def call(name: str, codes: str, *arguments: Any) -> None:
    """Calls a function that must succeed; cuptiError if it fails."""
    result = result_of(name, codes, *arguments)
    if result:
        raise_error(name, result)


def raise_pythonic(name: str, result: int) -> NoReturn:
    """Raises the exception of the pythonic modules for a failed call."""
    text = _cupti.explain(name, result)
    if result in (Result.ERROR_INSUFFICIENT_PRIVILEGES, Result.ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES):
        raise PermissionError(text)
    if result == Result.ERROR_OUT_OF_MEMORY:
        raise MemoryError(text)
    if result == Result.ERROR_INVALID_DEVICE:
        raise ValueError(text)
    raise cuptiError(result, text)


# gpufl_status of the C part
_E_INVALID, _E_BUSY, _E_NO_DRIVER, _E_NO_MEMORY, _E_UNSUPPORTED, _E_PERMISSION, _E_LIMIT = -1, -3, -4, -5, -9, -11, -12
_STATUS_RESULTS = {_E_BUSY: Result.ERROR_HARDWARE_BUSY, _E_NO_DRIVER: Result.ERROR_NOT_INITIALIZED,
                   _E_UNSUPPORTED: Result.ERROR_NOT_SUPPORTED}


def raise_status(status: int, text: str) -> NoReturn:
    """Raises the exception for a failure in the C part. The text ends with CUPTI's result in parentheses, if any."""
    if status == _E_PERMISSION:
        raise PermissionError(text)
    if status == _E_NO_MEMORY:
        raise MemoryError(text)
    if status in (_E_INVALID, _E_LIMIT):
        raise ValueError(text)
    if status not in _STATUS_RESULTS:
        raise RuntimeError(text)
    result = re.search(r"[( ](\d+)\)$", text)
    raise cuptiError(int(result.group(1)) if result else _STATUS_RESULTS[status], text)


def load_counters() -> None:
    """Loads the libraries that CUPTI needs for counters from CUPTI's directory. If they are not there, CUPTI may find
    them on the loader's path; otherwise its first call fails."""
    _cupti.load_counters()


def raise_missing_counters() -> None:
    """Raises RuntimeError if CUPTI's libraries for counters are missing; called after a call returned
    NOT_INITIALIZED."""
    missing = _cupti.load_counters()
    if missing:
        raise RuntimeError(f"{missing}, where libcupti is; install all of the CUPTI package")


_MONITOR = 1  # the engine that does not use CUPTI


def refuse_beside_session(what: str) -> None:
    """Raises cuptiError while a gpufl session uses CUPTI: CUPTI supports one client, and the session would lose it."""
    if _native.is_recording() and _native.active_engine() > _MONITOR:
        raise cuptiError(Result.ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                         f"{what}: a gpufl session of this process is using CUPTI; end it with gpufl.shutdown() first")


def text_at(address: Optional[int]) -> Optional[str]:
    """The text at an address from CUPTI; None for NULL."""
    return ctypes.string_at(address).decode("utf-8", "replace") if address else None


def texts_at(address: int, count: int) -> List[str]:
    """The texts of a char *array[count]."""
    if not count or not address:
        return []
    pointers = (ctypes.c_void_p * count).from_address(address)
    return [text_at(pointer) or "" for pointer in pointers]


def names_checked(names: Any, what: str) -> List[str]:
    """A sequence of texts as a list; the TypeError or ValueError names `what`."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a sequence of str, not {type(names).__name__}")
    checked = [text_checked(name, f"{what}[{at}]") for at, name in enumerate(names)]
    if not checked:
        raise ValueError(f"{what} is empty")
    return checked


def text_checked(text: Any, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be str, not {type(text).__name__}")
    if "\0" in text or not text:
        raise ValueError(f"{what} must be a name without NUL characters, not {text!r}")
    return text


def c_names(names: List[str]) -> Any:
    """A char *array[] that keeps its texts alive."""
    return (ctypes.c_char_p * len(names))(*[name.encode() for name in names])


def nearest(name: str, names: Iterable[str]) -> str:
    """'; did you mean X?' or ''."""
    found = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {found[0]!r}?" if found else ""
