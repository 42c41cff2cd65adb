# SPDX-License-Identifier: Apache-2.0
"""The Activity API of CUPTI. Records reach Python on a separate thread or inside activity_flush_all, never on a thread
that is inside a CUDA call."""
import atexit
import ctypes
import os
import threading
from typing import Any, Callable, Optional, Tuple

from .. import _cupti
from . import _library, _records
from ._library import call, number

BufferRequested = Callable[[], Tuple[int, int]]
BufferCompleted = Callable[[Any], object]


class _Delivery:
    """Passes full buffers from the queue to the function that the program registered."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # protects the functions and delivers one buffer at a time
        self.requested: Optional[BufferRequested] = None
        self.completed: Optional[BufferCompleted] = None
        self.as_buffers = False
        self.thread: Optional[threading.Thread] = None

    def register(self, requested: BufferRequested, completed: BufferCompleted, as_buffers: bool) -> None:
        for function, name in ((requested, "func_buffer_requested"), (completed, "func_buffer_completed")):
            if not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        _library.refuse_beside_session("activity_register_callbacks")
        with self.lock:
            _cupti.buffer_size(*_size_checked(requested()))
            _records.register()
            result = _cupti.buffer_register()
            if result:
                _library.raise_error("cuptiActivityRegisterCallbacks", result)
            self.requested, self.completed, self.as_buffers = requested, completed, as_buffers
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="gpufl-cupti", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while _cupti.buffer_wait():
            self.deliver()

    def deliver(self) -> None:
        """Delivers all buffers that CUPTI has returned so far."""
        with self.lock:
            while (buffer := _cupti.buffer_take()) is not None:
                self._hand_over(_records.ActivityBuffer(buffer))

    def _hand_over(self, buffer: _records.ActivityBuffer) -> None:
        completed, requested = self.completed, self.requested
        if completed is None or requested is None:
            return
        function: Any = completed
        try:
            completed(buffer if self.as_buffers else buffer.records())
            function = requested
            _cupti.buffer_size(*_size_checked(requested()))
        except Exception as error:  # raised by the program's function; there is no caller to raise it to
            _cupti.report(error, function)

    def close(self) -> None:
        _cupti.buffer_close()
        thread, self.thread = self.thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(10)

    def forget(self) -> None:
        """Resets the state in a forked child, which has neither the thread nor CUPTI."""
        self.__init__()  # type: ignore[misc]


def _size_checked(answer: Any) -> Tuple[int, int]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"func_buffer_requested must return (bytes, most records), not {answer!r}")
    return number(answer[0], "Q", "the size of a buffer"), number(answer[1], "Q", "the most records of a buffer")


_delivery = _Delivery()
os.register_at_fork(after_in_child=_delivery.forget)


@atexit.register
def _close() -> None:
    _delivery.close()
    _cupti.callback_close()


def activity_register_callbacks(func_buffer_requested: BufferRequested, func_buffer_completed: BufferCompleted, *,
                                as_buffers: bool = False) -> None:
    """Registers the functions that size buffers and receive full ones.

    func_buffer_requested() returns (bytes, most records; 0: no limit). It is called now and after each full buffer.
    func_buffer_completed(activities) gets a list of record objects, or with as_buffers=True an ActivityBuffer, whose
    NumPy views copy nothing. Both are called on a gpufl thread, or on the caller's inside activity_flush_all."""
    _delivery.register(func_buffer_requested, func_buffer_completed, as_buffers)


def activity_flush_all(flag: int) -> None:
    """Delivers complete records; with 1 (ActivityFlag.FLUSH_FORCED) also those of running work. Returns after
    func_buffer_completed has received all of them."""
    call("cuptiActivityFlushAll", "I", flag)
    _delivery.deliver()


def activity_flush_period(time: int) -> None:
    """Sets how often CUPTI delivers records by itself, in milliseconds; 0: when a buffer is full."""
    call("cuptiActivityFlushPeriod", "I", time)


def activity_enable(kind: int) -> None:
    """Collects records of an ActivityKind."""
    _library.refuse_beside_session("activity_enable")
    call("cuptiActivityEnable", "I", kind)


def activity_enable_and_dump(kind: int) -> None:
    """Collects records of a kind, and writes records of existing objects (devices, contexts, streams)."""
    _library.refuse_beside_session("activity_enable_and_dump")
    call("cuptiActivityEnableAndDump", "I", kind)


def activity_disable(kind: int) -> None:
    """Stops collecting records of a kind."""
    _library.refuse_beside_session("activity_disable")
    call("cuptiActivityDisable", "I", kind)


def activity_enable_context(context: Any, kind: int) -> None:
    """Collects records of a kind in one context."""
    call("cuptiActivityEnableContext", "PI", handle(context, "context"), kind)


def activity_disable_context(context: Any, kind: int) -> None:
    call("cuptiActivityDisableContext", "PI", handle(context, "context"), kind)


def handle(value: Any, what: str) -> int:
    """The address of a CUDA handle: an int, an object that converts to int (cuda.bindings), or None for NULL."""
    if value is None:
        return 0
    if isinstance(value, (bool, float, str, bytes)) or not hasattr(value, "__int__"):
        raise TypeError(f"{what} must be a CUDA handle or its address, not {type(value).__name__}")
    return number(int(value), "P", what)


def activity_get_num_dropped_records(context: Any, stream_id: int) -> int:
    """Records dropped since the last call, by CUPTI or because Python did not process buffers fast enough."""
    dropped = ctypes.c_size_t()
    call("cuptiActivityGetNumDroppedRecords", "PIO", handle(context, "context"), stream_id, ctypes.byref(dropped))
    return dropped.value + _cupti.buffer_take_dropped()


def activity_get_attribute(attr: int, value_size: Optional[int] = None, value: Optional[int] = None) -> Optional[int]:
    """The value of an ActivityAttribute; if two addresses are given, size and value are written there, as in C."""
    if value_size is not None or value is not None:
        call("cuptiActivityGetAttribute", "IPP", attr, value_size, value)
        return None
    size, answer = ctypes.c_size_t(8), ctypes.c_uint64()
    call("cuptiActivityGetAttribute", "IOO", attr, ctypes.byref(size), ctypes.byref(answer))
    return answer.value


def activity_set_attribute(attr: int, value_size: int, value: Optional[int] = None) -> None:
    """Sets an ActivityAttribute to a number; if two addresses are given, to the value there, as in C. Call it before
    the first context is created."""
    if value is not None:
        call("cuptiActivitySetAttribute", "IPP", attr, value_size, value)
        return
    size, given = ctypes.c_size_t(8), ctypes.c_uint64(number(value_size, "Q", "value"))
    call("cuptiActivitySetAttribute", "IOO", attr, ctypes.byref(size), ctypes.byref(given))


def activity_push_external_correlation_id(kind: int, id: int) -> None:
    """Calls of this thread get an EXTERNAL_CORRELATION record with the id until the id is popped."""
    call("cuptiActivityPushExternalCorrelationId", "IQ", kind, id)


def activity_pop_external_correlation_id(kind: int) -> int:
    """The id that was popped."""
    last = ctypes.c_uint64()
    call("cuptiActivityPopExternalCorrelationId", "IO", kind, ctypes.byref(last))
    return last.value


def activity_register_timestamp_callback(func_timestamp: Callable[[], int]) -> None:
    """Uses a function as the clock of all records. The function must be fast: CUPTI calls it twice for each API call
    of the program."""
    if not callable(func_timestamp):
        raise TypeError(f"func_timestamp must be callable, not {type(func_timestamp).__name__}")
    name = "cuptiActivityRegisterTimestampCallback"
    if not _library.has_function(name):
        _library.call(name, "P", 0)
    result = _cupti.timestamp_register(func_timestamp)
    if result:
        _library.raise_error(name, result)


def activity_configure_unified_memory_counter(config: int, count: int) -> None:
    """config: ActivityUnifiedMemoryCounterConfig(count).ptr"""
    call("cuptiActivityConfigureUnifiedMemoryCounter", "PI", address_checked(config, "config"), count)


def address_checked(address: Any, what: str) -> int:
    """The address of a struct, from its .ptr or from itself; never NULL."""
    found = number(getattr(address, "ptr", address), "P", what)
    if found == 0:
        raise ValueError(f"{what} must not be NULL")
    return found


def activity_enable_driver_api(cbid: int, enable: int) -> None:
    """Switches records of one driver function on or off."""
    call("cuptiActivityEnableDriverApi", "IB", cbid, enable)


def activity_enable_runtime_api(cbid: int, enable: int) -> None:
    """Switches records of one runtime function on or off."""
    call("cuptiActivityEnableRuntimeApi", "IB", cbid, enable)


def _switch(function: str, doc: str) -> Callable[[int], None]:
    def switch(enable: int) -> None:
        call(function, "B", enable)

    switch.__doc__ = doc
    return switch


activity_enable_latency_timestamps = _switch("cuptiActivityEnableLatencyTimestamps",
                                             "Fills in the fields queued and submitted of kernels.")
activity_enable_launch_attributes = _switch("cuptiActivityEnableLaunchAttributes",
                                            "Fills in the launch attributes of kernels.")
activity_enable_device_graph = _switch("cuptiActivityEnableDeviceGraph", "Records graphs that the device launches.")
activity_enable_hw_trace = _switch("cuptiActivityEnableHWTrace",
                                   "Takes the times of kernels from the hardware (Blackwell).")
activity_enable_allocation_source = _switch("cuptiActivityEnableAllocationSource",
                                            "Fills in the source of allocations.")
activity_enable_all_sync_records = _switch("cuptiActivityEnableAllSyncRecords",
                                           "Also records synchronization calls that did not wait.")
activity_enable_cuda_event_device_timestamps = _switch("cuptiActivityEnableCudaEventDeviceTimestamps",
                                                       "Fills in the device timestamps of CUDA events.")

