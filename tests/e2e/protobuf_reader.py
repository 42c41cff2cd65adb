# SPDX-License-Identifier: Apache-2.0
"""Reads protocol buffers without a schema: fields by number, with strict checks of the wire format."""
import struct


class Message:
    """Values by field number, in order: int (varint), int or float bits (fixed), bytes (text, message, packed)."""

    def __init__(self, data):
        self.fields = {}
        at = 0
        while at < len(data):
            tag, at = varint(data, at)
            number, wire = tag >> 3, tag & 7
            assert number > 0, "field 0"
            if wire == 0:
                value, at = varint(data, at)
            elif wire == 1:
                value, at = data[at:at + 8], at + 8
                assert len(value) == 8, "cut"
            elif wire == 2:
                size, at = varint(data, at)
                value, at = data[at:at + size], at + size
                assert len(value) == size, "cut"
            else:
                raise AssertionError(f"wire type {wire}")
            self.fields.setdefault(number, []).append(value)

    def all(self, number):
        return self.fields.get(number, [])

    def one(self, number, default=None):
        values = self.all(number)
        assert len(values) <= 1, f"field {number} comes {len(values)} times"
        return values[0] if values else default

    def signed(self, number):
        value = self.one(number)
        return value if value is None or value < 1 << 63 else value - (1 << 64)

    def text(self, number, default=None):
        value = self.one(number)
        return default if value is None else value.decode("utf-8")  # strict

    def double(self, number):
        value = self.one(number)
        return None if value is None else struct.unpack("<d", value)[0]

    def message(self, number):
        value = self.one(number)
        return None if value is None else Message(value)

    def messages(self, number):
        return [Message(value) for value in self.all(number)]

    def packed(self, number):
        result = []
        for data in self.all(number):
            at = 0
            while at < len(data):
                value, at = varint(data, at)
                result.append(value)
        return result

    def fixed64(self, number):
        return [struct.unpack("<Q", value)[0] for value in self.all(number)]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        assert shift <= 70, "varint of more than ten bytes"
        if byte < 128:
            return value & (1 << 64) - 1, at
