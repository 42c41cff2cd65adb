# SPDX-License-Identifier: Apache-2.0
"""Launches kernels on the look-alike CUDA runtime (tests/fakes), as a framework would."""
import ctypes


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("regs", ctypes.c_uint32), ("static_shared_bytes", ctypes.c_uint32),
                ("local_bytes", ctypes.c_uint32), ("duration_ns", ctypes.c_uint64)]


class Image(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint32), ("kernel_count", ctypes.c_uint32), ("kernels", ctypes.POINTER(Kernel))]


MAGIC = 0x66616b65


class Gpu:
    """Kernels by name; each takes a microsecond."""

    def __init__(self, *names):
        self.runtime = ctypes.CDLL("libcudart.so.13")
        self.kernels = (Kernel * len(names))(*[Kernel(name.encode(), 32, 0, 0, 1000) for name in names])
        self.image = Image(MAGIC, len(names), self.kernels)
        register = self.runtime.__getattr__("__cudaRegisterFatBinary")
        register.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(register(ctypes.byref(self.image)))
        self.addresses = {}
        for index, name in enumerate(names):
            address = ctypes.addressof(self.kernels) + index * ctypes.sizeof(Kernel)
            self.runtime.__getattr__("__cudaRegisterFunction")(
                handle, ctypes.c_void_p(address), None, self.kernels[index].name, -1, None, None, None, None, None)
            self.addresses[name] = ctypes.c_void_p(address)

    def launch(self, name, count=1):
        for _ in range(count):
            result = self.runtime.cudaLaunchKernel(self.addresses[name], Dim3(64, 1, 1), Dim3(128, 1, 1), None,
                                                   ctypes.c_size_t(0), None)
            assert result == 0, result

    def wait(self):
        assert self.runtime.cudaDeviceSynchronize() == 0
