# SPDX-License-Identifier: Apache-2.0
"""The Callback API of CUPTI, and its queries about itself, handles and devices."""
import ctypes
from enum import IntEnum
from typing import Any, Callable, List, Set, Tuple, Type

from .. import _cupti
from . import _library, _records
from ._activity import address_checked, handle
from ._enums import CallbackDomain
from ._library import call, number

Callback = Callable[[Any, int, int, Any], object]
_subscribers: Set[int] = set()


def _subscribe(callback: Callback, userdata: Any, params: int) -> int:
    if not callable(callback):
        raise TypeError(f"callback must be callable, not {type(callback).__name__}")
    _library.refuse_beside_session("subscribe")
    _records.register()
    result, subscriber = _cupti.subscribe(callback, userdata, params)
    if result or subscriber is None:
        _library.raise_error("cuptiSubscribe_v2" if params else "cuptiSubscribe", result)
    _subscribers.add(subscriber)
    return subscriber


def _checked(subscriber: int) -> int:
    """Checks a subscriber: CUPTI would dereference any pointer."""
    if number(subscriber, "P", "subscriber") not in _subscribers:
        raise ValueError("subscriber: not a handle from subscribe(), or already unsubscribed")
    return subscriber


def subscribe(callback: Callback, userdata: Any) -> int:
    """Calls callback(userdata, domain, callback_id, callback_data) on the program's threads. Returns the handle."""
    return _subscribe(callback, userdata, 0)


def subscribe_v2(callback: Callback, userdata: Any, p_params: int) -> int:
    """The same with the address of SubscriberParams, which also returns the name of an existing subscriber."""
    address = address_checked(p_params, "p_params")
    if not _library.has_function("cuptiSubscribe_v2"):
        call("cuptiSubscribe_v2", "P", 0)
    return _subscribe(callback, userdata, address)


def unsubscribe(subscriber: int) -> None:
    """Ends a subscription; no callback is called after it returns."""
    result = _cupti.unsubscribe(_checked(subscriber))
    if result:
        _library.raise_error("cuptiUnsubscribe", result)
    _subscribers.discard(subscriber)


def enable_callback(enable: int, subscriber: int, domain: int, cbid: int) -> None:
    """Switches callbacks of one function or event on or off."""
    call("cuptiEnableCallback", "IPII", enable, _checked(subscriber), domain, cbid)


def enable_domain(enable: int, subscriber: int, domain: int) -> None:
    """Switches all callbacks of a CallbackDomain on or off."""
    call("cuptiEnableDomain", "IPI", enable, _checked(subscriber), domain)


def enable_all_domains(enable: int, subscriber: int) -> None:
    call("cuptiEnableAllDomains", "IP", enable, _checked(subscriber))


def get_callback_state(subscriber: int, domain: int, cbid: int) -> int:
    """Whether a callback is enabled."""
    enabled = ctypes.c_uint32()
    call("cuptiGetCallbackState", "OPII", ctypes.byref(enabled), _checked(subscriber), domain, cbid)
    return enabled.value


def get_callback_name(domain: int, cbid: int) -> str:
    """The name of the function that a callback id identifies. Needs no driver."""
    name = ctypes.c_char_p()
    call("cuptiGetCallbackName", "IIO", domain, cbid, ctypes.byref(name))
    return (name.value or b"").decode("utf-8", "replace")


def supported_domains() -> List[int]:
    """The domains that this CUPTI supports."""
    count, table = ctypes.c_size_t(), ctypes.c_void_p()
    call("cuptiSupportedDomains", "OO", ctypes.byref(count), ctypes.byref(table))
    return list((ctypes.c_uint32 * count.value).from_address(table.value)) if table.value and count.value else []


def callback_ids(domain: CallbackDomain, name: str) -> Type[IntEnum]:
    """The callback ids of a domain as this CUPTI names them."""
    most, found = 2048, ctypes.c_char_p()
    members: List[Tuple[str, int]] = [("INVALID", 0)]
    for cbid in range(1, most):
        if not _library.result_of("cuptiGetCallbackName", "IIO", int(domain), cbid,
                                  ctypes.byref(found)) and found.value:
            members.append((found.value.decode("ascii", "replace"), cbid))
    return IntEnum(name, members, module="gpufl.cupti.cupti")  # type: ignore[return-value]


def get_result_string(result: int) -> str:
    """The name of a Result."""
    text = ctypes.c_char_p()
    call("cuptiGetResultString", "IO", result, ctypes.byref(text))
    return (text.value or b"").decode("utf-8", "replace")


def get_error_message(result: int) -> str:
    """CUPTI's description of a Result."""
    text = ctypes.c_char_p()
    call("cuptiGetErrorMessage", "IO", result, ctypes.byref(text))
    return (text.value or b"").decode("utf-8", "replace")


def get_last_error() -> int:
    """The result of the last call on this thread that failed."""
    return _library.result_of("cuptiGetLastError", "")


def get_timestamp() -> int:
    """CUPTI's clock: nanoseconds since 1970."""
    return _out(ctypes.c_uint64(), "cuptiGetTimestamp", "O")


def get_version() -> int:
    """The API version, for example 130001 for CUDA 13.0 Update 1 and 26 for 12.8."""
    return _library.version()


def finalize() -> None:
    """Detaches CUPTI from the process."""
    _library.refuse_beside_session("finalize")
    call("cuptiFinalize", "")


def _out(out: Any, function: str, codes: str, *arguments: Any) -> int:
    """Calls a function whose last argument is an output number, and returns the number."""
    call(function, codes, *arguments, ctypes.byref(out))
    return int(out.value)


def get_context_id(context: Any) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetContextId", "PO", handle(context, "context"))


def get_device_id(context: Any) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetDeviceId", "PO", handle(context, "context"))


def get_stream_id(context: Any, stream: Any) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetStreamId", "PPO", handle(context, "context"), handle(stream, "stream"))


def get_stream_id_ex(context: Any, stream: Any, per_thread_stream: int) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetStreamIdEx", "PPBO", handle(context, "context"), handle(stream, "stream"),
                per_thread_stream)


def get_graph_id(graph: Any) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetGraphId", "PO", handle(graph, "graph"))


def get_graph_exec_id(graph_exec: Any) -> int:
    return _out(ctypes.c_uint32(), "cuptiGetGraphExecId", "PO", handle(graph_exec, "graph_exec"))


def get_graph_node_id(node: Any) -> int:
    return _out(ctypes.c_uint64(), "cuptiGetGraphNodeId", "PO", handle(node, "node"))


def set_thread_id_type(type: int) -> None:
    """ActivityThreadIdType.SYSTEM uses thread ids of the operating system. Call it before anything is enabled."""
    call("cuptiSetThreadIdType", "I", type)


def get_thread_id_type() -> int:
    return _out(ctypes.c_uint32(), "cuptiGetThreadIdType", "O")


def compute_capability_supported(major: int, minor: int) -> int:
    return _out(ctypes.c_int32(), "cuptiComputeCapabilitySupported", "iiO", major, minor)


def device_supported(dev: int) -> int:
    return _out(ctypes.c_int32(), "cuptiDeviceSupported", "iO", dev)


def device_virtualization_mode(dev: int) -> int:
    return _out(ctypes.c_uint32(), "cuptiDeviceVirtualizationMode", "iO", dev)


def is_tracing_session_running() -> bool:
    """Whether any client of this CUPTI is tracing (CUDA 13.2 and newer)."""
    return bool(_out(ctypes.c_uint8(), "cuptiIsTracingSessionRunning", "O"))
