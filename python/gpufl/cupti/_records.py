# SPDX-License-Identifier: Apache-2.0
"""One class per kind of activity record, for every CUDA version: a field that this CUPTI does not write is None."""
from typing import Any, Dict, List, Optional, Tuple, Type

from .. import _cupti
from .._cupti import Field, Record
from . import _library
from ._activity_enums import ActivityKind
from ._enums import CallbackDomain
from ._layouts import PARTS, RECORDS

KINDS: Dict[ActivityKind, str] = {
    ActivityKind.MEMCPY: "ActivityMemcpy", ActivityKind.MEMSET: "ActivityMemset", ActivityKind.KERNEL: "ActivityKernel",
    ActivityKind.DRIVER: "ActivityAPI", ActivityKind.RUNTIME: "ActivityAPI", ActivityKind.DEVICE: "ActivityDevice",
    ActivityKind.CONTEXT: "ActivityContext", ActivityKind.CONCURRENT_KERNEL: "ActivityKernel",
    ActivityKind.NAME: "ActivityName", ActivityKind.MARKER: "ActivityMarker",
    ActivityKind.MARKER_DATA: "ActivityMarkerData",
    ActivityKind.OVERHEAD: "ActivityOverhead", ActivityKind.CDP_KERNEL: "ActivityCdpKernel",
    ActivityKind.PREEMPTION: "ActivityPreemption", ActivityKind.ENVIRONMENT: "ActivityEnvironment",
    ActivityKind.MEMCPY2: "ActivityMemcpyPtoP", ActivityKind.DEVICE_ATTRIBUTE: "ActivityDeviceAttribute",
    ActivityKind.UNIFIED_MEMORY_COUNTER: "ActivityUnifiedMemoryCounter", ActivityKind.FUNCTION: "ActivityFunction",
    ActivityKind.MODULE: "ActivityModule", ActivityKind.CUDA_EVENT: "ActivityCudaEvent",
    ActivityKind.STREAM: "ActivityStream",
    ActivityKind.SYNCHRONIZATION: "ActivitySynchronization", ActivityKind.NVLINK: "ActivityNvLink",
    ActivityKind.EXTERNAL_CORRELATION: "ActivityExternalCorrelation", ActivityKind.PCIE: "ActivityPcie",
    ActivityKind.MEMORY: "ActivityMemory", ActivityKind.MEMORY2: "ActivityMemory2",
    ActivityKind.MEMORY_POOL: "ActivityMemoryPool", ActivityKind.OPENACC_DATA: "ActivityOpenAccData",
    ActivityKind.OPENACC_LAUNCH: "ActivityOpenAccLaunch", ActivityKind.OPENACC_OTHER: "ActivityOpenAccOther",
    ActivityKind.OPENMP: "ActivityOpenMp", ActivityKind.INTERNAL_LAUNCH_API: "ActivityAPI",
    ActivityKind.GRAPH_TRACE: "ActivityGraphTrace", ActivityKind.DEVICE_GRAPH_TRACE: "ActivityDeviceGraphTrace",
    ActivityKind.JIT: "ActivityJit", ActivityKind.MEM_DECOMPRESS: "ActivityMemDecompress",
    ActivityKind.CONFIDENTIAL_COMPUTE_ROTATION: "ActivityConfidentialComputeRotation",
}
DOMAINS: Dict[CallbackDomain, str] = {
    CallbackDomain.DRIVER_API: "CallbackData", CallbackDomain.RUNTIME_API: "CallbackData",
    CallbackDomain.RESOURCE: "ResourceData", CallbackDomain.SYNCHRONIZE: "SynchronizeData",
    CallbackDomain.NVTX: "NvtxData", CallbackDomain.STATE: "StateData",
}
# The names of one class in the releases of CUPTI Python, which has a class per version of a record.
VERSIONS: Dict[str, Tuple[int, int]] = {
    "ActivityKernel": (3, 13), "ActivityMemcpy": (3, 7), "ActivityMemcpyPtoP": (2, 4), "ActivityMemset": (2, 4),
    "ActivityDevice": (2, 6), "ActivityContext": (2, 4), "ActivityMarker": (2, 2), "ActivityMarkerData": (2, 2),
    "ActivityOverhead": (2, 3), "ActivityUnifiedMemoryCounter": (2, 3), "ActivityCudaEvent": (2, 3),
    "ActivitySynchronization": (2, 2), "ActivityMemory2": (3, 4), "ActivityMemoryPool": (2, 3), "ActivityNvLink": (2,
                                                                                                                   4),
    "ActivityGraphTrace": (2, 2), "ActivityJit": (2, 2),
}
# Other spellings that programs written for CUPTI Python use.
_SPELLINGS = {"flags": "flags_", "size": "size_", "function_index": "function_ind_ex", "async": "async_"}
# From here on port_dev0 of NvLink records is an address: everything behind it has moved.
_NVLINK_CHANGED, _NVLINK_BYTES = 130200, 56

_NUMPY = {"B": "u1", "b": "i1", "H": "u2", "h": "i2", "I": "u4", "i": "i4", "Q": "u8", "q": "i8", "P": "u8", "s": "u8",
          "f": "f4", "d": "f8"}


class Layout:
    """Fields of one class: [(name, offset, code, version)]."""

    def __init__(self, text: str) -> None:
        self.fields: List[Tuple[str, int, str, int]] = []
        for word in text.split():
            name, _, rest = word.partition("@")
            offset, _, code = rest.partition(":")
            code, _, version = code.partition("!")
            self.fields.append((name, int(offset), code, int(version or 0)))

    def texts(self) -> Tuple[int, ...]:
        return tuple(offset for _, offset, code, _ in self.fields if code == "s")

    def dtype(self, itemsize: int) -> Any:
        """A NumPy structured type for records of itemsize bytes. Texts are addresses."""
        from ._numpy import numpy
        inside = [(name, offset, _NUMPY.get(code) or f"V{code[1:].partition('.')[0]}") for name, offset, code, version
                  in self.fields if version == 0 or _library.version() >= version]
        inside = [one for one in inside if one[1] + numpy.dtype(one[2]).itemsize <= itemsize]
        names, offsets, formats = zip(*[(name, offset, kind) for name, offset, kind in inside])
        return numpy.dtype({"names": names, "offsets": offsets, "formats": formats, "itemsize": itemsize})


def _repr(self: Any) -> str:
    shown = []
    for name, _, code, _ in LAYOUTS[type(self).__name__].fields:
        try:
            shown.append(f"{name}={getattr(self, name)!r}")
        except RuntimeError:  # a text of callback data, after the callback
            continue
    return f"{type(self).__name__}({', '.join(shown)})"


def _make(name: str, layout: Layout, doc: str) -> Type[Record]:
    members: Dict[str, Any] = {"__slots__": (), "__doc__": doc, "__module__": "gpufl.cupti.cupti", "__repr__": _repr}
    text = 0
    for field, offset, code, version in layout.fields:
        if code[0] == "R":
            width, _, part = code[1:].partition(".")
            descriptor = Field(offset, "R", version=version, width=int(width), part=CLASSES[part])
        elif code[0] == "x":
            descriptor = Field(offset, "x", version=version, width=int(code[1:]))
        else:
            descriptor = Field(offset, code, version=version, text=text)
            text += code == "s"
        members[field] = descriptor
        if field in _SPELLINGS:
            members[_SPELLINGS[field]] = descriptor
    return type(name, (Record,), members)


class _CacheConfigHalves:
    """The two halves of cache_config.both."""

    def __init__(self, both: int) -> None:
        self.requested, self.executed = both & 15, both >> 4


def _cache_config(self: Any) -> _CacheConfigHalves:
    return _CacheConfigHalves(self.both)


LAYOUTS: Dict[str, Layout] = {}
CLASSES: Dict[str, Type[Record]] = {}
for _name, (_bytes, _text) in PARTS.items():
    LAYOUTS[_name] = Layout(_text)
    CLASSES[_name] = _make(_name, LAYOUTS[_name], "A part of an activity record.")
    if _name == "CacheConfig":
        setattr(CLASSES[_name], "config", property(_cache_config))
for _name, (_struct, _bytes, _text) in RECORDS.items():
    LAYOUTS[_name] = Layout(_text)
    CLASSES[_name] = _make(_name, LAYOUTS[_name], f"CUpti_{_struct} of CUDA 13.0, and what older releases have of it.")
PUBLIC: Dict[str, Type[Record]] = {name: CLASSES[name] for name in RECORDS}
for _name, (_from, _to) in VERSIONS.items():
    for _number in range(_from, _to + 1):
        PUBLIC[_name.rstrip("2") + str(_number)] = CLASSES[_name]


def register() -> None:
    """Tells the extension which class each kind and domain has, and how much of it this CUPTI writes so."""
    for kind, name in KINDS.items():
        size = RECORDS[name][1]
        if kind == ActivityKind.NVLINK and _library.version() >= _NVLINK_CHANGED:
            size = _NVLINK_BYTES
        _cupti.record_class(0, kind, CLASSES[name], size, LAYOUTS[name].texts())
    for domain, name in DOMAINS.items():
        _cupti.record_class(1, domain, CLASSES[name], RECORDS[name][1], LAYOUTS[name].texts())


class ActivityBuffer:
    """A full activity buffer. Iterating gives records; runs() and array() NumPy views of the same memory."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __len__(self) -> int:
        return len(self._buffer)

    def __getitem__(self, index: int) -> Record:
        if not isinstance(index, int):
            raise TypeError(f"a buffer is indexed by int, not {type(index).__name__}")
        record: Record = self._buffer[index + len(self) if index < 0 else index]
        return record

    def records(self) -> List[Record]:
        """All records as objects, as func_buffer_completed of CUPTI Python gets them."""
        records: List[Record] = self._buffer.records()
        return records

    def runs(self) -> List[Tuple[int, Any]]:
        """[(kind, array)]: neighbouring records of one kind as a NumPy structured array. Nothing is copied; the
        arrays are read-only and keep the buffer alive."""
        from ._numpy import numpy
        result = []
        for kind, offset, size, count in self._buffer.runs():
            layout = _layout_of(kind)
            dtype = layout.dtype(min(size, _bytes_of(kind))) if layout else numpy.dtype(f"V{size}")
            array: Any = numpy.ndarray((count,), dtype, self._buffer, offset, (size,))
            result.append((kind, array))
        return result

    def array(self, kind: int) -> Any:
        """All records of a kind as one NumPy structured array: a view where they are neighbours, else a copy."""
        from ._numpy import numpy
        layout = _layout_of(kind)
        if layout is None:
            raise ValueError(f"no class for records of kind {kind!r}")
        arrays = [array for other, array in self.runs() if other == kind]
        if not arrays:
            return numpy.empty(0, layout.dtype(_bytes_of(kind)))
        return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)

    def texts(self, kind: int, field: str = "name") -> Dict[int, Optional[str]]:
        """The texts behind the addresses in a field of array(kind). Only while the buffer is being handed over: CUPTI
        may free them later."""
        layout = _layout_of(kind)
        if layout is None or field not in [name for name, _, code, _ in layout.fields if code == "s"]:
            raise ValueError(f"records of kind {kind!r} have no text {field!r}")
        from ._numpy import numpy
        return {int(address): _library.text_at(int(address)) for address in numpy.unique(self.array(kind)[field])}

    def __repr__(self) -> str:
        return f"<ActivityBuffer of {len(self)} records>"


def _layout_of(kind: int) -> Optional[Layout]:
    name = KINDS.get(kind)  # type: ignore[call-overload]
    return LAYOUTS[name] if name else None


def _bytes_of(kind: int) -> int:
    if kind == ActivityKind.NVLINK and _library.version() >= _NVLINK_CHANGED:
        return _NVLINK_BYTES
    return RECORDS[KINDS[ActivityKind(kind)]][1]
