# SPDX-License-Identifier: Apache-2.0
"""A training as a reader may have one: steps of kernels and waits, here on the look-alike GPU."""
import ctypes
import sys

from fake_cuda import Gpu

gpu = Gpu("matmul", "softmax")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(gpu))  # kernels have their names to the end of the process, as real ones do
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
    gpu.launch("matmul", 4)
    gpu.launch("softmax", 1)
    gpu.wait()
