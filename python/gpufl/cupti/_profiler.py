# SPDX-License-Identifier: Apache-2.0
"""Shared by the counter modules: initializes CUPTI's profiler once for all of them, and checks devices and contexts."""
import ctypes
from typing import Any

from .. import _cupti
from . import _library
from ._activity import handle
from ._enums import Profiler_API, Result


def acquire() -> None:
    """Initializes CUPTI's profiler if necessary. Call release() once for each success; CUPTI itself does not count."""
    _library.refuse_beside_session("counters")
    _library.load_counters()
    _cupti.profiler_acquire()


def release() -> None:
    _cupti.profiler_release()


def run(function: str, params: Any) -> None:
    """Calls a function with a parameter struct; raises the exceptions of the pythonic modules."""
    result = _library.result_of(function, "P", params.ptr)
    if result:
        _library.raise_pythonic(function, result)


def start_driver() -> int:
    """Initializes CUDA and returns the number of devices."""
    try:
        return _cupti.start_driver()
    except RuntimeError as error:
        raise _library.cuptiError(Result.ERROR_NOT_INITIALIZED, str(error)) from None


def chip_name(device_index: int) -> str:
    """The chip of a device. ValueError: no such device."""
    devices = start_driver()
    if device_index >= devices:
        raise ValueError(f"device_index {device_index}: there {'is' if devices == 1 else 'are'} {devices} CUDA "
                         f"device{'' if devices == 1 else 's'}")
    return _cupti.device_chip(device_index)


def check_device(device_index: int, api: Profiler_API) -> None:
    """Raises cuptiError with the reason if the device does not support the API."""
    _cupti.device_check(device_index, int(api))


def context_or_current(context: Any) -> int:
    """The address of a CUDA context, by default the calling thread's."""
    found = handle(context, "context")
    if found == 0:
        start_driver()
        found = _cupti.current_context()
    if found == 0:
        raise RuntimeError("this thread has no CUDA context; create one first, or pass a context")
    return found


def device_of(context: int) -> int:
    device = ctypes.c_uint32()
    _library.call("cuptiGetDeviceId", "PO", context, ctypes.byref(device))
    return device.value


def wait(context: int) -> None:
    """Waits until the context has no work; cuptiError if the driver cannot."""
    if not _cupti.synchronize(context):
        raise _library.cuptiError(Result.ERROR_INVALID_CONTEXT, "the CUDA driver cannot wait for the context's work")


def positive(value: Any, code: str, what: str) -> int:
    found = _library.number(value, code, what)
    if found == 0:
        raise ValueError(f"{what} must not be 0")
    return found
