#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Arrow C stream of a table, walked as a consumer written in C would: every value, every null, every release."""
import ctypes
import struct
import threading
import unittest

import fixture
import pandas
from gpufl.analyzer import GpuFlightSession


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
NULLABLE = 2
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


def frame_values(series):
    return [None if pandas.isna(value) else value for value in series.tolist()]


class Arrow(unittest.TestCase):
    def test_streams_hold_what_the_data_frames_hold(self):
        for golden in ("trace", "deep", "v1", "range_metrics", "monitor", "empty", "hostile", "killed"):
            session = GpuFlightSession(fixture.GOLDEN / golden)
            for name in session.table_names():
                with self.subTest(session=golden, table=name):
                    consumer, frame = Consumer(session.table(name)), getattr(session, name)
                    columns = consumer.columns()
                    self.assertEqual(list(columns), list(frame.columns))
                    self.assertEqual(consumer.batch.length, len(frame))
                    for column, values in columns.items():
                        self.assertEqual(values, frame_values(frame[column]), column)
                    consumer.release()

    def test_a_stream_is_one_batch_and_then_its_end(self):
        consumer = Consumer(GpuFlightSession(fixture.GOLDEN / "trace").table("kernels"))
        self.assertEqual((consumer.schema.format, consumer.batch.offset), (b"+s", 0))
        end = Array()
        self.assertEqual(consumer.stream.get_next(consumer.stream, end), 0)
        self.assertFalse(end.release)
        consumer.release()
        self.assertFalse(consumer.batch.release or consumer.schema.release)

    def test_columns_that_can_be_null_say_so(self):
        consumer = Consumer(GpuFlightSession(fixture.GOLDEN / "trace").table("kernels"))
        flags = {consumer.schema.children[i].contents.name: consumer.schema.children[i].contents.flags
                 for i in range(consumer.schema.n_children)}
        self.assertEqual(flags[b"start_ns"], 0)
        self.assertEqual({flags[name] for name in (b"name", b"api_start_ns", b"occupancy")}, {NULLABLE})
        consumer.release()

    def test_values_are_the_sessions_own_and_outlive_session_table_and_stream(self):
        session = GpuFlightSession(fixture.GOLDEN / "trace")
        table, frame = session.table("kernels"), session.kernels
        consumer = Consumer(table)
        index = table.column_names.index("start_ns")
        column = consumer.batch.children[index].contents
        self.assertEqual(column.buffers[1], frame.start_ns.to_numpy().ctypes.data)
        wanted = frame.start_ns.tolist()
        del session, table, frame
        consumer.stream.release(consumer.stream)
        self.assertEqual(consumer.columns()["start_ns"], wanted)
        # A consumer may keep one column and drop the rest, on another thread.
        kept = Array()
        ctypes.memmove(ctypes.byref(kept), ctypes.byref(column), ctypes.sizeof(Array))
        ctypes.memset(ctypes.addressof(column) + Array.release.offset, 0, ctypes.sizeof(ctypes.c_void_p))
        thread = threading.Thread(target=consumer.release)
        thread.start()
        thread.join()
        size = 8 * kept.length
        self.assertEqual(list(struct.unpack(f"{kept.length}q", ctypes.string_at(kept.buffers[1], size))), wanted)
        kept.release(kept)

    def test_a_stream_that_nobody_takes_is_released_with_its_capsule(self):
        table = GpuFlightSession(fixture.GOLDEN / "trace").table("kernels")
        for _ in range(100):
            table.__arrow_c_stream__(requested_schema=None)
            table.__arrow_c_schema__()
        self.assertEqual(len(table), 62)


if __name__ == "__main__":
    fixture.main()
