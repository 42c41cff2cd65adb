# SPDX-License-Identifier: Apache-2.0
"""Takes Arrow C streams apart as a consumer written in C would."""
import ctypes
import struct


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.POINTER(Array)), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
                  ("private_data", ctypes.c_void_p)]
Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
# Arrow's letters and struct's.
LETTERS = {"c": "b", "s": "h", "i": "i", "l": "q", "C": "B", "S": "H", "I": "I", "L": "Q", "f": "f", "g": "d"}


def bit(address, row):
    return ctypes.string_at(address + row // 8, 1)[0] >> row % 8 & 1


def texts_of(array):
    offsets = struct.unpack(f"{array.length + 1}i", ctypes.string_at(array.buffers[1], 4 * (array.length + 1)))
    data = ctypes.string_at(array.buffers[2], offsets[-1])
    return [data[start:end].decode() for start, end in zip(offsets, offsets[1:])]


def values_of(schema, array):
    """A column as Python values, None for null."""
    letter, length = schema.format.decode(), array.length
    if letter == "b":
        values = [bool(bit(array.buffers[1], row)) for row in range(length)]
    else:
        size = struct.calcsize(LETTERS[letter])
        values = list(struct.unpack(f"{length}{LETTERS[letter]}", ctypes.string_at(array.buffers[1], size * length)))
    validity = array.buffers[0]
    known = [not validity or bit(validity, row) for row in range(length)]
    if array.null_count != known.count(0):
        raise AssertionError(f"{schema.name}: null_count {array.null_count}, but {known.count(0)} are null")
    if schema.dictionary:
        words = texts_of(array.dictionary.contents)
        values = [words[value] if is_known else None for value, is_known in zip(values, known)]
    return [value if is_known else None for value, is_known in zip(values, known)]


class Consumer:
    """Takes a stream out of its capsule."""

    def __init__(self, table):
        self.capsule = table.__arrow_c_stream__()
        self.stream = Stream.from_address(get_pointer(self.capsule, b"arrow_array_stream"))
        self.schema, self.batch = Schema(), Array()
        assert self.stream.get_schema(self.stream, self.schema) == 0
        assert self.stream.get_next(self.stream, self.batch) == 0

    def columns(self):
        return {self.schema.children[i].contents.name.decode():
                values_of(self.schema.children[i].contents, self.batch.children[i].contents)
                for i in range(self.schema.n_children)}

    def release(self):
        self.schema.release(self.schema)
        self.batch.release(self.batch)
