# SPDX-License-Identifier: Apache-2.0
"""Saves and restores the device memory of a context, so that work can be repeated with the same input.

    with Checkpoint() as checkpoint:
        checkpoint.save()
        work(); checkpoint.restore(); work()"""
import threading
from enum import IntFlag
from typing import Any

from .. import _cupti
from . import _library, _profiler

__all__ = ["RESERVE_ALL", "Checkpoint", "CheckpointOptimizations"]

RESERVE_ALL = 2**64 - 1  # do not use that memory at all


class CheckpointOptimizations(IntFlag):
    """TRANSFER: copies only changes; correct only if every restore is at the same point of the program."""

    NONE = 0
    TRANSFER = 1


class Checkpoint:
    """A checkpoint of a CUDA context, by default the calling thread's. Kernels and copies between save() and restore()
    are undone. Memory allocated after save() is not tracked. Stream capture and graphs are not supported between
    save() and restore()."""

    def __init__(self, context: Any = None, *, reserve_device_mb: int = 0, reserve_host_mb: int = 0,
                 optimizations: CheckpointOptimizations = CheckpointOptimizations.NONE) -> None:
        """reserve_*: memory to leave free for the program; data that does not fit goes to host memory, then to a
        file."""
        self._given = context
        self._device = _library.number(reserve_device_mb, "Q", "reserve_device_mb")
        self._host = _library.number(reserve_host_mb, "Q", "reserve_host_mb")
        if isinstance(optimizations, bool) or not isinstance(optimizations, int):
            raise TypeError(f"optimizations must be CheckpointOptimizations, not {type(optimizations).__name__}")
        self._optimizations = CheckpointOptimizations(optimizations)
        self._lock = threading.RLock()
        self._checkpoint: object = None

    def save(self) -> None:
        """Saves device memory, replacing the previous save. RuntimeError: no context, or libcheckpoint is not beside
        libcupti. MemoryError, cuptiError."""
        with self._lock:
            if self._checkpoint is None:
                context = _profiler.context_or_current(self._given)
                self._checkpoint = _cupti.checkpoint_open(context, self._device, self._host,
                                                          bool(self._optimizations & CheckpointOptimizations.TRANSFER))
            _cupti.checkpoint_save(self._checkpoint)

    def restore(self) -> None:
        """Restores the saved memory; can be called repeatedly. RuntimeError: nothing was saved. cuptiError."""
        with self._lock:
            if self._checkpoint is None:
                raise RuntimeError("nothing was saved; call save() first")
            _cupti.checkpoint_restore(self._checkpoint)

    def free(self) -> None:
        """Frees the saved memory; no effect if nothing was saved."""
        with self._lock:
            checkpoint, self._checkpoint = self._checkpoint, None
            if checkpoint is not None:
                _cupti.checkpoint_close(checkpoint)

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *unused: object) -> None:
        self.free()
