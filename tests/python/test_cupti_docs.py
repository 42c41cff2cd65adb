#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every piece of Python in docs/cupti-python.md runs, on the look-alike CUPTI."""
import re

import fixture

PAGE = fixture.SOURCE / "docs" / "cupti-python.md"
# What the pieces leave to the reader.
HEAD = """
from gpufl.cupti import cupti
from fake_cuda import Gpu
gpu = Gpu("k")
gpu.launch("k"); gpu.wait()
def work():
    gpu.launch("k", 5); gpu.wait()
step = work
def func_buffer_requested():
    return 1 << 20, 0
"""


class Docs(fixture.TestCase):
    def test_every_piece_runs(self):
        pieces = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertGreaterEqual(len(pieces), 7)
        for number, piece in enumerate(pieces):
            # An indented "..." is a body, one at the beginning of a line stands for the program's work.
            with self.subTest(piece=number):
                self.output(HEAD + re.sub(r"^\.\.\.$", "work()", piece, flags=re.M))


if __name__ == "__main__":
    fixture.main()
