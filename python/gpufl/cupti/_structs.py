# SPDX-License-Identifier: Apache-2.0
"""Parameter structs of CUPTI as classes: snake_case fields, `ptr` for the functions of gpufl.cupti.cupti."""
import ctypes
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type

from . import _library
from ._struct_layouts import STRUCTS

_TYPES: Dict[str, Any] = {"Q": ctypes.c_uint64, "I": ctypes.c_uint32, "H": ctypes.c_uint16, "B": ctypes.c_uint8,
                          "i": ctypes.c_int32, "P": ctypes.c_uint64, "s": ctypes.c_uint64}
_SIZE_FIELDS = ("struct_size", "size")


class Struct(ctypes.Structure):
    """Base of the parameter classes: zeroed, with the struct's size in the field where CUPTI expects it."""

    _texts: Dict[str, Any]

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self._texts = {}
        first = self.field_names()[0]
        if first in _SIZE_FIELDS:
            setattr(self, first, self.struct_bytes())
        for name, value in fields.items():
            if name not in self.field_names():
                near = _library.nearest(name, self.field_names())
                raise TypeError(f"{type(self).__name__} has no field {name!r}{near}")
            setattr(self, name, value)

    @classmethod
    def field_names(cls) -> List[str]:
        return list(cls.layout())

    @classmethod
    def layout(cls) -> Dict[str, Tuple[str, int]]:
        """name: (code, the first version of CUPTI that has it)"""
        raise NotImplementedError

    @classmethod
    def struct_bytes(cls, version: Optional[int] = None) -> int:
        """The size up to the last field that this process's CUPTI knows, like CUPTI's STRUCT_SIZE macros."""
        size = 0
        for name, (_, since) in cls.layout().items():
            if since == 0 or (version if version is not None else _library.version()) >= since:
                field = getattr(cls, "_" + name)
                size = field.offset + field.size
        return int(size)

    @property
    def ptr(self) -> int:
        """The address, for the functions of gpufl.cupti.cupti. Valid as long as this object."""
        return ctypes.addressof(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.field_names())})"


def _number_property(name: str, code: str) -> property:
    def read(self: Struct) -> int:
        return int(getattr(self, "_" + name))

    def write(self: Struct, value: Any) -> None:
        setattr(self, "_" + name, _library.number(int(value) if value is True or value is False else value, code, name))

    return property(read, write)


def _text_property(name: str) -> property:
    """Reads as str or None. Takes str, bytes (kept alive by the object), an address, or None."""
    def read(self: Struct) -> Optional[str]:
        return _library.text_at(getattr(self, "_" + name))

    def write(self: Struct, value: Any) -> None:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            if b"\0" in value:
                raise ValueError(f"{name} must not contain a NUL character")
            self._texts[name] = ctypes.create_string_buffer(value)
            value = ctypes.addressof(self._texts[name])
        setattr(self, "_" + name, _library.number(0 if value is None else value, "P", name))

    return property(read, write)


def _bytes_property(name: str) -> property:
    def read(self: Struct) -> bytes:
        return bytes(getattr(self, "_" + name))

    return property(read)


def _make(name: str, text: str) -> Type[Struct]:
    layout: Dict[str, Tuple[str, int]] = {}
    fields: List[Tuple[str, Any]] = []
    members: Dict[str, Any] = {"__doc__": f"CUpti_{name}.", "__module__": "gpufl.cupti.cupti"}
    for word in text.split():
        field, _, code = word.partition(":")
        code, _, since = code.partition("!")
        layout[field] = code, int(since or 0)
        if code[0] == "x":
            fields.append(("_" + field, ctypes.c_uint8 * int(code[1:])))
            members[field] = _bytes_property(field)
        else:
            fields.append(("_" + field, _TYPES[code]))
            members[field] = _text_property(field) if code == "s" else _number_property(field, code)
    members["_fields_"] = fields
    members["layout"] = classmethod(lambda cls: layout)
    return type(name, (Struct,), members)


CLASSES: Dict[str, Type[Struct]] = {name: _make(name, text) for name, text in STRUCTS.items()}


_SubscriberParams: Any = CLASSES["SubscriberParams"]


class SubscriberParams(_SubscriberParams):  # type: ignore[misc]
    """CUpti_SubscriberParams, with room for the name of an existing subscriber."""

    def __init__(self, **fields: Any) -> None:
        self._other = ctypes.create_string_buffer(64)
        super().__init__(**{"old_subscriber_name": ctypes.addressof(self._other),
                            "old_subscriber_size": len(self._other), **fields})


class ActivityUnifiedMemoryCounterConfig:
    """An array of CUpti_ActivityUnifiedMemoryCounterConfig: attributes set all elements, [i] is one element."""

    def __init__(self, count: int = 1) -> None:
        if _library.number(count, "I", "count") < 1:
            raise ValueError("count must be 1 or more, not 0")
        object.__setattr__(self, "_all", (CLASSES["ActivityUnifiedMemoryCounterConfig"] * count)())

    def __getattr__(self, name: str) -> Any:
        values = [getattr(one, name) for one in self]
        return values[0] if len(values) == 1 else values

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in CLASSES["ActivityUnifiedMemoryCounterConfig"].field_names():
            raise AttributeError(f"no field {name!r}")
        for one in self:
            setattr(one, name, value)

    def __getitem__(self, index: int) -> Any:
        return object.__getattribute__(self, "_all")[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(object.__getattribute__(self, "_all"))

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_all"))

    @property
    def ptr(self) -> int:
        return ctypes.addressof(object.__getattribute__(self, "_all"))


def size_constants() -> Dict[str, str]:
    """PM_SAMPLING_ENABLE_PARAMS_STRUCT_SIZE: name of the class that it is the size of."""
    result = {}
    for name in CLASSES:
        if name.endswith("Params") and name != "SubscriberParams":
            plain = name.replace("DeInitialize", "Deinitialize")
            words = "".join(("_" + letter if letter.isupper() and at and not plain[at - 1].isupper() else letter)
                            for at, letter in enumerate(plain)).replace("__", "_")
            result[words.upper() + "_STRUCT_SIZE"] = name
    result["SUBSCRIBER_PARAMS_SIZE"] = "SubscriberParams"
    return result
