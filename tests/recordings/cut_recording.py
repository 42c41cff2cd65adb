#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts a .cuptirec recording out of what record_activity.c wrote.

usage: cut_recording.py RAW OUT.cuptirec FROM_MS TO_MS

Keeps the records that begin between FROM_MS and TO_MS after the first one, in
their buffers and order, and of the API records only those whose correlation id a
kept record of GPU work, wait or allocation carries. RAW may be xz-compressed.
Compress the result with: zstd -19 --ultra OUT.cuptirec
"""
import lzma
import struct
import sys

MAGIC = b"CUPTIREC"
FORMAT_VERSION = 1
CUPTI_VERSION = 130001
DRIVER, RUNTIME, KERNEL, MEMCPY, MEMSET, SYNC, MEMORY2, OVERHEAD = 4, 5, 10, 1, 2, 38, 49, 17
SIZES = {KERNEL: 216, MEMCPY: 96, MEMSET: 88, DRIVER: 40, RUNTIME: 40, SYNC: 56, OVERHEAD: 56, MEMORY2: 128,
         8: 184, 9: 32, 37: 24, 22: 96, 39: 24}
TIME_AT = {KERNEL: 16, MEMCPY: 16, MEMSET: 16, DRIVER: 8, RUNTIME: 8, SYNC: 8, OVERHEAD: 24, MEMORY2: 32}
CORRELATION_AT = {KERNEL: 92, MEMCPY: 44, MEMSET: 44, DRIVER: 32, RUNTIME: 32, SYNC: 24, MEMORY2: 12}
NAME_AT = {KERNEL: 104, 8: 136}


def raw_read(path):
    """The names by their address, and the buffers as lists of records."""
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rb") as file:
        data = file.read()
    names, buffers, at = {}, [], 0
    while at < len(data):
        tag, length = struct.unpack_from("<II", data, at)
        at += 8
        if tag == 2:
            names[struct.unpack_from("<Q", data, at)[0]] = data[at + 8:at + 8 + length]
            at += 8 + length
            continue
        records, end = [], at + length
        while at < end:
            kind = struct.unpack_from("<I", data, at)[0]
            records.append(data[at:at + SIZES[kind]])
            at += SIZES[kind]
        buffers.append(records)
    return names, buffers


def number_at(record, at, form="<I"):
    return struct.unpack_from(form, record, at)[0]


def kind_of(record):
    return number_at(record, 0)


def time_of(record):
    at = TIME_AT.get(kind_of(record))
    return number_at(record, at, "<Q") if at else None


def cut(buffers, from_ns, to_ns):
    inside = [[r for r in records if time_of(r) is None or from_ns <= time_of(r) < to_ns] for records in buffers]
    wanted = {number_at(r, CORRELATION_AT[kind_of(r)]) for records in inside for r in records
              if kind_of(r) in CORRELATION_AT and kind_of(r) not in (DRIVER, RUNTIME)}
    called = {number_at(r, 32): r for records in buffers for r in records if kind_of(r) in (DRIVER, RUNTIME)}
    kept = []
    for records in buffers:
        kept.append([r for r in records
                     if (kind_of(r) in (DRIVER, RUNTIME) and number_at(r, 32) in wanted)
                     or (kind_of(r) not in (DRIVER, RUNTIME)
                         and (time_of(r) is None or from_ns <= time_of(r) < to_ns))])
    lost = [c for c in wanted if c not in called]
    print(f"correlation ids without a call: {len(lost)}")
    return [records for records in kept if records]


def write(path, names, buffers):
    used = []
    first_ns = min(time_of(r) for records in buffers for r in records if time_of(r))
    body = b""
    for records in buffers:
        out = b""
        for record in records:
            at = NAME_AT.get(kind_of(record))
            if at:
                name = names.get(number_at(record, at, "<Q"))
                index = 0
                if name is not None:
                    if name not in used:
                        used.append(name)
                    index = used.index(name) + 1
                record = record[:at] + struct.pack("<Q", index) + record[at + 8:]
            out += record
        body += struct.pack("<I", len(out)) + out
    head = MAGIC + struct.pack("<IIIIQ", FORMAT_VERSION, CUPTI_VERSION, len(used), len(buffers), first_ns)
    head += b"".join(struct.pack("<I", len(name) + 1) + name + b"\0" for name in used)
    with open(path, "wb") as file:
        file.write(head + body)


def main():
    raw, out, from_ms, to_ms = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    names, buffers = raw_read(raw)
    start = min(time_of(r) for records in buffers for r in records if time_of(r))
    kept = cut(buffers, start + int(from_ms * 1e6), start + int(to_ms * 1e6))
    counts = {}
    for records in kept:
        for record in records:
            counts[kind_of(record)] = counts.get(kind_of(record), 0) + 1
    print(f"{len(kept)} buffers, records by kind: {dict(sorted(counts.items()))}")
    write(out, names, kept)


if __name__ == "__main__":
    main()
