# SPDX-License-Identifier: Apache-2.0
"""Exact counts per instruction, from instrumentation that CUPTI patches into kernels. get_metrics() needs no GPU.

    with SassMetrics(metrics=["smsp__sass_inst_executed"]) as counter:
        work()
        for count in counter.flush_data(): ..."""
import threading
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

from .. import _cupti
from . import _library, _profiler
from ._enums import Profiler_API

__all__ = ["SassCount", "SassMetric", "SassMetrics", "get_metrics"]


@dataclass
class SassMetric:
    """A metric that a chip can count per instruction."""

    metric_id: int
    name: str
    description: str


@dataclass
class SassCount:
    """One metric of one instruction. cubin_crc: the low 32 bits of get_cubin_crc of gpufl.cupti.cupti."""

    function_name: str
    cubin_crc: int
    function_index: int
    pc_offset: int
    metric: str
    value: int


def get_metrics(chip_name: str) -> List[SassMetric]:
    """All metrics of a chip. ValueError: CUPTI does not know the chip. cuptiError."""
    _library.load_counters()
    return [SassMetric(*one) for one in _cupti.sass_list(_library.text_checked(chip_name, "chip_name"))]


class SassMetrics:
    """Counts instructions in a CUDA context, by default the calling thread's. While enabled, the context's kernels run
    one at a time, and slowly.

    CUPTI 13.0 counts nothing while kernel activity records are enabled, and accepts one set of metrics per device and
    process."""

    def __init__(self, context: Any = None, *, metrics: Sequence[str] = ("default",),
                 enable_lazy_patching: bool = True) -> None:
        """metrics: names, or the sets `default` and `all-memory`. Executed instructions are always counted.
        enable_lazy_patching: patch each kernel at its first launch, instead of all loaded kernels at once."""
        self._given = context
        self._choice = _library.names_checked(metrics, "metrics")
        if any("," in name for name in self._choice):
            raise ValueError("metrics: one name in each element, without commas")
        if not isinstance(enable_lazy_patching, bool):
            raise TypeError(f"enable_lazy_patching must be bool, not {type(enable_lazy_patching).__name__}")
        self._is_lazy = enable_lazy_patching
        self._lock = threading.RLock()
        self._context = 0
        self._names: Dict[int, str] = {}
        self.metrics: List[str] = []

    def enable(self) -> None:
        """ValueError: a metric that this GPU does not have; the message names the nearest one. RuntimeError: no
        context, already enabled, or the nvperf libraries are missing. PermissionError, MemoryError, cuptiError."""
        with self._lock:
            if self._context:
                raise RuntimeError("these SassMetrics are already enabled")
            context = _profiler.context_or_current(self._given)
            _profiler.acquire()
            try:
                device = _profiler.device_of(context)
                _profiler.check_device(device, Profiler_API.SASS_METRICS)
                chip = _profiler.chip_name(device)
                chosen = _cupti.sass_configure(device, chip, ",".join(self._choice))
                self._names = {metric.metric_id: metric.name for metric in get_metrics(chip)}
                self.metrics = [self._names[metric] for metric in chosen]
                _cupti.sass_enable(context, self._is_lazy)
            except BaseException:
                _profiler.release()
                raise
            self._context = context

    def _usable(self) -> int:
        if not self._context:
            raise RuntimeError("these SassMetrics are not enabled; call enable() first")
        return self._context

    def flush_data(self) -> List[SassCount]:
        """Waits for the context's work and returns the counts since the last flush. The same instruction and metric can
        occur more than once. RuntimeError: not enabled. cuptiError."""
        with self._lock:
            context = self._usable()
            _profiler.wait(context)
            return [SassCount(symbol, crc, index, offset, self._names.get(metric, f"metric {metric}"), value)
                    for symbol, crc, index, offset, metric, value in _cupti.sass_flush(context)]

    def disable(self) -> int:
        """Ends counting. Returns the number of values that were not flushed; 0 if not enabled."""
        with self._lock:
            if not self._context:
                return 0
            context, self._context = self._context, 0
            # The profiler stays acquired: CUPTI keeps the choice of metrics for the whole process and needs it.
            return _cupti.sass_disable(context)

    def __enter__(self) -> "SassMetrics":
        self.enable()
        return self

    def __exit__(self, *unused: object) -> None:
        self.disable()
