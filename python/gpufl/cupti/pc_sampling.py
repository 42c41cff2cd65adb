# SPDX-License-Identifier: Apache-2.0
"""Where kernels spend their time: the GPU writes down at which instruction its warps are, and why they wait.

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
    """Samples of one instruction with one reason of waiting. correlation_id: 0 in continuous mode. cubin_crc: the key
    of the code, as get_cubin_crc of gpufl.cupti.cupti gives it."""

    cubin_crc: int
    function_name: str
    pc_offset: int
    function_index: int
    stall_reason: str
    samples: int
    correlation_id: int


@dataclass
class PCSamples:
    """What one read gave."""

    samples: List[PCSample] = field(default_factory=list)
    total_samples: int = 0  # all that were taken, those below included
    dropped_samples: int = 0  # by the hardware
    non_usr_kernels_total_samples: int = 0  # of code that CUPTI does not show
    hardware_buffer_full: bool = False  # an unknown number of samples is missing
    has_more: bool = False  # there is more to be read
    unread_samples: int = 0  # of more instructions than CUPTI hands over when sampling is switched off


class PCSampler:
    """PC sampling of one CUDA context, by default the calling thread's. No kernel may be launched by another thread
    while it is enabled, stopped or disabled: CUPTI hangs then."""

    def __init__(self, context: Any = None, *, sampling_period: int = 16,
                 collection_mode: CollectionMode = CollectionMode.CONTINUOUS, hardware_buffer_size: int = 128 << 20,
                 scratch_buffer_size: int = 16 << 20, worker_thread_sleep_ms: int = 0, max_pcs: int = 2048) -> None:
        """sampling_period: a sample each 2^n cycles, 5 to 31. worker_thread_sleep_ms: 0 is CUPTI's own."""
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
        """Samples from the first launch after it. RuntimeError: no context, enabled already, or the nvperf libraries
        are missing. PermissionError, MemoryError, cuptiError."""
        with self._lock:
            if self._sampling is not None:
                raise RuntimeError("this PCSampler is enabled already")
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
        """What was sampled since the last read. Does not wait for running kernels. RuntimeError: not enabled.
        cuptiError."""
        with self._lock:
            return self._made(_cupti.pc_drain(self._usable()))

    def stop(self) -> PCSamples:
        """Samples no more, and gives everything that was not read. RuntimeError: not enabled. cuptiError."""
        with self._lock:
            data = self._made(_cupti.pc_stop(self._usable()))
            self._is_stopped = True
            return data

    def start(self) -> None:
        """Samples again after stop()."""
        with self._lock:
            if not self._is_stopped and self._usable():
                raise RuntimeError("this PCSampler is sampling; stop() comes first")
            _cupti.pc_start(self._usable())
            self._is_stopped = False

    def disable(self) -> PCSamples:
        """Ends it, and gives everything that was not read; nothing when it is not enabled."""
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
