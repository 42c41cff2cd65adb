# SPDX-License-Identifier: Apache-2.0
"""PC sampling: the GPU periodically records the current instruction of its warps, and why they wait.

    with PCSampler(sampling_period=12) as sampler:
        work()
        data = sampler.get_data()"""
import threading
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

from .. import _cupti
from . import _library, _profiler
from ._enums import PCSamplingCollectionMode as CollectionMode
from ._enums import Profiler_API

__all__ = ["CollectionMode", "PCSample", "PCSamples", "PCSampler"]

_PERIOD_MIN, _PERIOD_MAX = 5, 31


@dataclass
class PCSample:
    """Samples of one instruction with one stall reason. correlation_id: 0 in continuous mode. cubin_crc: identifies the
    code, as returned by get_cubin_crc of gpufl.cupti.cupti."""

    cubin_crc: int
    function_name: str
    pc_offset: int
    function_index: int
    stall_reason: str
    samples: int
    correlation_id: int


@dataclass
class PCSamples:
    """The result of one read."""

    samples: List[PCSample] = field(default_factory=list)
    total_samples: int = 0  # all samples, including those below
    dropped_samples: int = 0  # by the hardware
    non_usr_kernels_total_samples: int = 0  # of code that CUPTI does not expose
    hardware_buffer_full: bool = False  # an unknown number of samples is missing
    has_more: bool = False  # more data can be read
    unread_samples: int = 0  # samples that CUPTI did not deliver when sampling ended


class PCSampler:
    """PC sampling of a CUDA context, by default the calling thread's. No other thread may launch a kernel during
    enable(), stop() or disable(): CUPTI would hang."""

    def __init__(self, context: Any = None, *, sampling_period: int = 16,
                 collection_mode: CollectionMode = CollectionMode.CONTINUOUS, hardware_buffer_size: int = 128 << 20,
                 scratch_buffer_size: int = 16 << 20, worker_thread_sleep_ms: int = 0, max_pcs: int = 2048) -> None:
        """sampling_period: one sample every 2^n cycles, 5 to 31. worker_thread_sleep_ms: 0 is CUPTI's default."""
        self._given = context
        self._period = _library.number(sampling_period, "I", "sampling_period")
        if not _PERIOD_MIN <= self._period <= _PERIOD_MAX:
            raise ValueError(f"sampling_period must be {_PERIOD_MIN} to {_PERIOD_MAX}, not {sampling_period}")
        self._mode = CollectionMode(collection_mode)
        if self._mode == CollectionMode.INVALID:
            raise ValueError("collection_mode must be CONTINUOUS or KERNEL_SERIALIZED")
        self._hardware = _profiler.positive(hardware_buffer_size, "I", "hardware_buffer_size")
        self._scratch = _profiler.positive(scratch_buffer_size, "I", "scratch_buffer_size")
        self._sleep_ms = _library.number(worker_thread_sleep_ms, "I", "worker_thread_sleep_ms")
        self._pcs = _profiler.positive(max_pcs, "H", "max_pcs")
        self._lock = threading.RLock()
        self._sampling: object = None
        self._is_stopped = False
        self.stall_reasons: Dict[int, str] = {}

    def enable(self) -> None:
        """Samples from the next launch on. RuntimeError: no context, already enabled, or the nvperf libraries
        are missing. PermissionError, MemoryError, cuptiError."""
        with self._lock:
            if self._sampling is not None:
                raise RuntimeError("this PCSampler is already enabled")
            context = _profiler.context_or_current(self._given)
            _profiler.acquire()
            try:
                _profiler.check_device(_profiler.device_of(context), Profiler_API.PC_SAMPLING)
                self._sampling = _cupti.pc_open(context, self._mode == CollectionMode.KERNEL_SERIALIZED, self._period,
                                                self._hardware, self._scratch, self._sleep_ms, self._pcs)
            except BaseException:
                _profiler.release()
                raise
            self.stall_reasons = dict(_cupti.pc_stall_reasons(self._sampling))
            self._is_stopped = False

    def _usable(self) -> object:
        if self._sampling is None:
            raise RuntimeError("this PCSampler is not enabled; call enable() first")
        return self._sampling

    def _made(self, answer: Tuple[List[Tuple[int, str, int, int, int, int, int]], int, int, int, int, int,
                                  int]) -> PCSamples:
        rows, total, dropped, non_user, was_full, has_more, unread = answer
        samples = [PCSample(crc, function, offset, index, self.stall_reasons.get(stall, f"stall {stall}"), count,
                            correlation)
                   for crc, function, offset, index, stall, count, correlation in rows]
        return PCSamples(samples, total, dropped, non_user, bool(was_full), bool(has_more), unread)

    def get_data(self) -> PCSamples:
        """The samples since the last read. Does not wait for running kernels. RuntimeError: not enabled.
        cuptiError."""
        with self._lock:
            return self._made(_cupti.pc_drain(self._usable()))

    def stop(self) -> PCSamples:
        """Stops sampling and returns all unread samples. RuntimeError: not enabled. cuptiError."""
        with self._lock:
            data = self._made(_cupti.pc_stop(self._usable()))
            self._is_stopped = True
            return data

    def start(self) -> None:
        """Resumes sampling after stop()."""
        with self._lock:
            if not self._is_stopped and self._usable():
                raise RuntimeError("this PCSampler is sampling; call stop() first")
            _cupti.pc_start(self._usable())
            self._is_stopped = False

    def disable(self) -> PCSamples:
        """Ends PC sampling and returns all unread samples; no effect if not enabled."""
        with self._lock:
            if self._sampling is None:
                return PCSamples()
            sampling, self._sampling = self._sampling, None
            try:
                return self._made(_cupti.pc_close(sampling))
            finally:
                _profiler.release()

    def __enter__(self) -> "PCSampler":
        self.enable()
        return self

    def __exit__(self, *unused: object) -> None:
        self.disable()
