# SPDX-License-Identifier: Apache-2.0
"""Exact counters of kernels (AutoRange: CUPTI repeats each kernel) or of named ranges (UserRange: the program repeats
them).

    with RangeProfiler() as profiler:
        profiler.configure(metrics=["smsp__inst_executed.sum"])
        for _ in profiler.passes():
            with profiler.range("step"):
                step()
        for range in profiler.decode():
            print(range.name, range.metric_values)"""
import contextlib
import ctypes
import threading
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence

from .. import _cupti
from . import _library, _profiler
from ._enums import Profiler_API, ProfilerRange, ProfilerReplayMode, Result
from ._numpy import numpy
from ._structs import CLASSES
from .profiler_host import ProfilerHost, ProfilerType, get_num_of_passes

__all__ = ["ProfilerRange", "ProfilerReplayMode", "RangeData", "RangeProfiler", "RangeValues"]

_DELIMITER = "/"


@dataclass
class RangeValues:
    """The values of one range, in the order of the metrics; NaN: not measured. The name of a kernel is its number."""

    name: str
    metric_values: numpy.typing.NDArray[numpy.float64]


class RangeData:
    """The ranges of a decode(). Values are evaluated when a range is accessed."""

    def __init__(self, host: ProfilerHost, image: numpy.typing.NDArray[numpy.uint8], metrics: List[str],
                 dropped: int) -> None:
        self._host, self._image = host, image
        self.metrics = metrics
        self.num_dropped_ranges = dropped
        params: Any = CLASSES["RangeProfiler_GetCounterDataInfo_Params"](
            p_counter_data_image=image.ctypes.data, counter_data_image_size=image.size)
        _profiler.run("cuptiRangeProfilerGetCounterDataInfo", params)
        self._count = int(params.num_total_ranges)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> RangeValues:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"ranges are indexed by int, not {type(index).__name__}")
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"range {index} of {len(self)}")
        params: Any = CLASSES["RangeProfiler_CounterData_GetRangeInfo_Params"](
            p_counter_data_image=self._image.ctypes.data, counter_data_image_size=self._image.size, range_index=at,
            range_delimiter=_DELIMITER)
        _profiler.run("cuptiRangeProfilerCounterDataGetRangeInfo", params)
        return RangeValues(params.range_name or "", self._host.evaluate_metric_values(self._image, self.metrics, at))

    def __iter__(self) -> Iterator[RangeValues]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<RangeData of {len(self)} ranges of {len(self.metrics)} metrics>"


class RangeProfiler:
    """The range profiler of a CUDA context, by default the calling thread's. No kernel may be launched in the context
    during enable(), start(), stop(), decode() or disable()."""

    def __init__(self, context: Any = None) -> None:
        self._given = context
        self._lock = threading.RLock()
        self._context = self._object = 0
        self._host: Optional[ProfilerHost] = None
        self._metrics: List[str] = []
        self._config: Optional[numpy.typing.NDArray[numpy.uint8]] = None
        self._image: Optional[numpy.typing.NDArray[numpy.uint8]] = None
        self._is_started = False
        self.num_passes = 0

    def enable(self) -> None:
        """RuntimeError: no context, or the nvperf libraries are missing. PermissionError, MemoryError, cuptiError."""
        with self._lock:
            if self._object:
                raise RuntimeError("this RangeProfiler is already enabled")
            context = _profiler.context_or_current(self._given)
            _profiler.acquire()
            try:
                _profiler.check_device(_profiler.device_of(context), Profiler_API.RANGE_PROFILING)
                params: Any = CLASSES["RangeProfiler_Enable_Params"](ctx=context)
                result = _library.result_of("cuptiRangeProfilerEnable", "P", params.ptr)
                if result == Result.ERROR_INVALID_OPERATION:
                    raise RuntimeError("the context already has a range profiler")
                if result:
                    _library.raise_pythonic("cuptiRangeProfilerEnable", result)
            except BaseException:
                _profiler.release()
                raise
            self._context, self._object = context, params.p_range_profiler_object

    def _usable(self) -> int:
        if not self._object:
            raise RuntimeError("this RangeProfiler is not enabled; call enable() first")
        return self._object

    def _configured(self) -> int:
        if self._image is None:
            raise RuntimeError("this RangeProfiler is not configured; call configure() first")
        return self._usable()

    def configure(self, *, metrics: Sequence[str], range_mode: ProfilerRange = ProfilerRange.UserRange,
                  replay_mode: Optional[ProfilerReplayMode] = None, max_ranges: int = 64) -> None:
        """Sets what is counted, and for how many ranges or kernels. num_passes is how often the work must be done.

        replay_mode: KernelReplay for AutoRange, UserReplay for UserRange. RuntimeError: not enabled, or started.
        ValueError: a metric that this GPU does not have, or a replay mode that does not match the range mode.
        MemoryError, cuptiError."""
        with self._lock:
            self._usable()
            if self._is_started:
                raise RuntimeError("this RangeProfiler is started; call stop() first")
            names, ranges = _library.names_checked(metrics, "metrics"), _profiler.positive(max_ranges, "I",
                                                                                           "max_ranges")
            mode = ProfilerRange(range_mode)
            is_auto = mode == ProfilerRange.AutoRange
            fitting = ProfilerReplayMode.KernelReplay if is_auto else ProfilerReplayMode.UserReplay
            replay = fitting if replay_mode is None else ProfilerReplayMode(replay_mode)
            if replay != fitting:
                raise ValueError(f"{mode.name} requires {fitting.name}, not {replay.name}")
            chip = _profiler.chip_name(_profiler.device_of(self._context))
            host = ProfilerHost(chip, ProfilerType.RANGE_PROFILER)
            host._availability = _cupti.availability(self._context)
            host.initialize()
            config = host.create_config_image(names)
            image = self._image_made(names, ranges)
            params = CLASSES["RangeProfiler_SetConfig_Params"](
                p_range_profiler_object=self._object, config_size=config.size, p_config=config.ctypes.data,
                counter_data_image_size=image.size, p_counter_data_image=image.ctypes.data, range=int(mode),
                replay_mode=int(replay), max_ranges_per_pass=ranges, num_nesting_levels=1, min_nesting_level=1,
                pass_index=0,
                target_nesting_level=1)
            _profiler.run("cuptiRangeProfilerSetConfig", params)
            self._host, self._metrics, self._config, self._image = host, names, config, image
            self.num_passes = get_num_of_passes(config)

    def _image_made(self, names: List[str], ranges: int) -> numpy.typing.NDArray[numpy.uint8]:
        array = _library.c_names(names)
        size: Any = CLASSES["RangeProfiler_GetCounterDataSize_Params"](
            p_range_profiler_object=self._object, p_metric_names=ctypes.addressof(array), num_metrics=len(names),
            max_num_of_ranges=ranges, max_num_range_tree_nodes=ranges)
        _profiler.run("cuptiRangeProfilerGetCounterDataSize", size)
        image = numpy.zeros(size.counter_data_size, numpy.uint8)
        _profiler.run("cuptiRangeProfilerCounterDataImageInitialize",
                      CLASSES["RangeProfiler_CounterDataImage_Initialize_Params"](
            p_range_profiler_object=self._object, counter_data_size=image.size, p_counter_data=image.ctypes.data))
        return image

    def start(self) -> None:
        """Starts counting. RuntimeError: not configured. cuptiError."""
        with self._lock:
            params = CLASSES["RangeProfiler_Start_Params"](p_range_profiler_object=self._configured())
            _profiler.run("cuptiRangeProfilerStart", params)
            self._is_started = True

    def stop(self) -> bool:
        """Ends a pass. Returns whether it was the last; if not, the same work must be repeated. cuptiError."""
        with self._lock:
            params: Any = CLASSES["RangeProfiler_Stop_Params"](p_range_profiler_object=self._configured())
            _profiler.run("cuptiRangeProfilerStop", params)
            self._is_started = False
            return bool(params.is_all_pass_submitted)

    def push_range(self, name: str) -> None:
        """Begins a named range (UserRange). RuntimeError: not configured. ValueError: empty name. cuptiError."""
        with self._lock:
            params = CLASSES["RangeProfiler_PushRange_Params"](
                p_range_profiler_object=self._configured(), p_range_name=_library.text_checked(name, "name"))
            _profiler.run("cuptiRangeProfilerPushRange", params)

    def pop_range(self) -> None:
        with self._lock:
            params = CLASSES["RangeProfiler_PopRange_Params"](p_range_profiler_object=self._configured())
            _profiler.run("cuptiRangeProfilerPopRange", params)

    @contextlib.contextmanager
    def range(self, name: str) -> Iterator[None]:
        """A named range around a with block. Waits for its kernels, which would otherwise count for later ranges."""
        self.push_range(name)
        try:
            yield
            _profiler.wait(self._context)
        finally:
            self.pop_range()

    def passes(self) -> Iterator[int]:
        """Yields the number of each pass until all are done; starts a pass before the loop body and stops it after."""
        number, is_last = 0, False
        while not is_last:
            self.start()
            try:
                yield number
                _profiler.wait(self._context)
            finally:
                is_last = self.stop()
            number += 1

    def decode(self) -> RangeData:
        """The counters since configure(). Waits for the context's work. RuntimeError: not configured.
        cuptiError."""
        with self._lock:
            params: Any = CLASSES["RangeProfiler_DecodeData_Params"](p_range_profiler_object=self._configured())
            _profiler.run("cuptiRangeProfilerDecodeData", params)
            assert self._image is not None and self._host is not None
            return RangeData(self._host, self._image.copy(), self._metrics, int(params.num_of_range_dropped))

    def disable(self) -> None:
        """Ends range profiling; no effect if not enabled. Decoded ranges stay valid."""
        with self._lock:
            if not self._object:
                return
            if self._is_started:
                self.stop()
            params = CLASSES["RangeProfiler_Disable_Params"](p_range_profiler_object=self._object)
            _library.result_of("cuptiRangeProfilerDisable", "P", params.ptr)
            self._object, self._image, self._config, self._host = 0, None, None, None
            _profiler.release()

    def __enter__(self) -> "RangeProfiler":
        self.enable()
        return self

    def __exit__(self, *unused: object) -> None:
        self.disable()
