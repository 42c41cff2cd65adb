#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Arrow C stream of a table, walked as a consumer written in C would: every value, every null, every release."""
import ctypes
import struct
import threading
import unittest

import fixture
import pandas
from arrow_consumer import Array, Consumer
from gpufl.analyzer import GpuFlightSession

NULLABLE = 2


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
