# SPDX-License-Identifier: Apache-2.0
"""The metrics of a chip, how to collect them, and how to evaluate collected counters. Needs CUPTI, but no GPU."""
import ctypes
import sys
import threading
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Iterable, List, Optional, Sequence

from . import _library
from ._enums import MetricType, ProfilerType, Result
from ._numpy import numpy
from ._structs import CLASSES, Struct

__all__ = ["MetricCollectionScope", "MetricProperties", "MetricType", "ProfilerHost", "ProfilerType",
           "get_max_num_hardware_metrics_per_pass", "get_metrics_in_single_pass_set", "get_num_of_passes",
           "get_single_pass_sets", "get_supported_chips"]

_Bytes = numpy.typing.NDArray[numpy.uint8]
# The first bytes of a config image. CUPTI does not check them and crashes on other data.
_CONFIG_MARK, _CONFIG_MARK_AT, _CONFIG_BYTES_MIN = b"LOPC", 4, 64
# The same for decoded counters of ranges.
_RANGES_MARK = b"LOPD"


class MetricCollectionScope(IntEnum):
    """The scope a metric is collected for. INVALID: unknown, because CUPTI is older than 13.1."""

    CONTEXT = 0
    DEVICE = 1
    INVALID = 2


@dataclass
class MetricProperties:
    """The result of ProfilerHost.get_metric_properties()."""

    description: str
    hw_unit: str
    dim_unit: str
    metric_type: MetricType
    metric_collection_scope: MetricCollectionScope


def _run(function: str, params: Struct, invalid: Iterable[int] = ()) -> int:
    """Calls a function; returns success or one of the `invalid` results, which the caller handles."""
    result = _library.result_of(function, "P", params.ptr)
    if result == 0 or result in invalid:
        return result
    if result == Result.ERROR_NOT_INITIALIZED:
        _library.raise_missing_counters()
    if result == Result.ERROR_OUT_OF_MEMORY:
        raise MemoryError(f"{function}: {Result(result).name}")
    try:
        name = Result(result).name
    except ValueError:
        name = "unknown result"
    raise _library.cuptiError(result, f"{function}: {name} ({result})")


def _chip_checked(chip_name: Any) -> str:
    return _library.text_checked(chip_name, "chip_name")


def _refuse_chip(chip_name: str) -> ValueError:
    return ValueError(f"CUPTI knows no chip {chip_name!r}{_library.nearest(chip_name, get_supported_chips())}")


def _enum_checked(value: Any, kind: Any, what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be {kind.__name__}, not {type(value).__name__}")
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{what}: {value} is not a {kind.__name__}") from None


def _bytes_checked(image: Any, what: str) -> _Bytes:
    if not isinstance(image, numpy.ndarray):
        raise TypeError(f"{what} must be a NumPy array of uint8, not {type(image).__name__}")
    if image.dtype != numpy.uint8 or image.ndim != 1:
        raise TypeError(f"{what} must be a flat array of uint8, not {image.ndim}-dimensional {image.dtype}")
    if image.size == 0:
        raise ValueError(f"{what} is empty")
    return numpy.ascontiguousarray(image)


class ProfilerHost:
    """Creates config images for a collection, and evaluates decoded counters, for one chip and kind of profiler.

    Call initialize() first. Calls from several threads are serialized."""

    def __init__(self, chip_name: str, profiler_type: ProfilerType,
                 single_pass_metric_set_name: Optional[str] = None) -> None:
        self.chip_name = _chip_checked(chip_name)
        self.profiler_type = _enum_checked(profiler_type, ProfilerType, "profiler_type")
        if single_pass_metric_set_name is not None:
            _library.text_checked(single_pass_metric_set_name, "single_pass_metric_set_name")
        self.single_pass_metric_set_name = single_pass_metric_set_name
        self._lock = threading.RLock()
        self._object = 0
        self._metrics: List[str] = []  # added to CUPTI's object, which accumulates them across configurations
        self._availability: Optional[bytes] = None

    def _begin(self) -> None:
        params: Any = CLASSES["Profiler_Host_Initialize_Params"](
            profiler_type=int(self.profiler_type), p_chip_name=self.chip_name)
        if self.single_pass_metric_set_name is not None:
            params.p_single_pass_metric_set_name = self.single_pass_metric_set_name
        if self._availability is not None:
            image = ctypes.c_char_p(self._availability)
            params.p_counter_availability_image = ctypes.cast(image, ctypes.c_void_p).value
        refusals = (Result.ERROR_INVALID_CHIP_NAME, Result.ERROR_INVALID_PARAMETER)
        result = _run("cuptiProfilerHostInitialize", params, refusals)
        if result == Result.ERROR_INVALID_CHIP_NAME or (result and self.chip_name not in get_supported_chips()):
            raise _refuse_chip(self.chip_name)
        if result:
            raise ValueError(f"CUPTI does not accept profiler_type {self.profiler_type.name} for {self.chip_name}")
        self._object, self._metrics = params.p_host_object, []

    def _end(self) -> None:
        if self._object:
            params = CLASSES["Profiler_Host_Deinitialize_Params"](p_host_object=self._object)
            _library.result_of("cuptiProfilerHostDeinitialize", "P", params.ptr)
        self._object = 0

    def initialize(self) -> None:
        """Creates CUPTI's object; no effect if it exists.

        ValueError: the chip or the single-pass metric set is not one of CUPTI's. RuntimeError: the nvperf libraries
        could not be loaded. cuptiError: CUPTI failed for another reason."""
        with self._lock:
            if self._object:
                return
            _library.load_counters()
            wanted = self.single_pass_metric_set_name
            if wanted is not None:
                known = get_single_pass_sets(self.chip_name)
                if wanted not in known:
                    raise ValueError(f"{self.chip_name} has no single-pass metric set {wanted!r}"
                                     f"{_library.nearest(wanted, known)}")
            self._begin()

    def deinitialize(self) -> None:
        """Frees CUPTI's object. May be called more than once."""
        with self._lock:
            self._end()

    def __enter__(self) -> "ProfilerHost":
        self.initialize()
        return self

    def __exit__(self, *unused: object) -> None:
        self.deinitialize()

    def __del__(self) -> None:
        if getattr(self, "_object", 0) and not sys.is_finalizing():
            self._end()

    def _usable(self) -> int:
        if not self._object:
            raise RuntimeError("this ProfilerHost is not initialized; call initialize() first")
        return self._object

    def _refuse_metric(self, metric: str) -> ValueError:
        base, dot, suffix = metric.partition(".")
        for kind in MetricType:
            names = self.get_base_metrics(kind)
            if base in names:
                suffixes = self.get_sub_metrics(base, kind)
                if not dot:
                    return ValueError(f"metric {metric!r} needs a suffix, like {suffixes[0]!r}")
                if dot + suffix not in suffixes:
                    return ValueError(f"metric {base!r} has no suffix {dot + suffix!r}"
                                      f"{_library.nearest(dot + suffix, suffixes)}")
                return ValueError(f"metric {metric!r} cannot be collected by {self.profiler_type.name} on "
                                  f"{self.chip_name}")
        every = [name for kind in MetricType for name in self.get_base_metrics(kind)]
        return ValueError(f"{self.chip_name} has no metric {metric!r}{_library.nearest(base, every)}")

    def _add(self, metrics: List[str]) -> None:
        """Creates a new object with exactly these metrics."""
        self._end()
        self._begin()
        names = _library.c_names(metrics)
        params = CLASSES["Profiler_Host_ConfigAddMetrics_Params"](
            p_host_object=self._object, pp_metric_names=ctypes.addressof(names), num_metrics=len(metrics))
        refusals = (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_METRIC_NAME)
        result = _run("cuptiProfilerHostConfigAddMetrics", params, refusals)
        if not result:
            self._metrics = metrics
            return
        # After a failure the object rejects all metrics, and CUPTI does not report which one was invalid.
        self._end()
        self._begin()
        for metric in metrics if len(metrics) > 1 else ():
            self._add([metric])
        raise self._refuse_metric(metrics[0]) if len(metrics) == 1 else ValueError(
            "CUPTI accepts each of these metrics, but not all together")

    def create_config_image(self, metrics: Sequence[str]) -> _Bytes:
        """The config image for a collection of exactly these metrics.

        RuntimeError: not initialized. ValueError: a metric that this chip does not have; the message names the nearest
        one. cuptiError."""
        with self._lock:
            self._usable()
            self._add(_library.names_checked(metrics, "metrics"))
            size: Any = CLASSES["Profiler_Host_GetConfigImageSize_Params"](p_host_object=self._object)
            _run("cuptiProfilerHostGetConfigImageSize", size)
            image = numpy.zeros(size.config_image_size, numpy.uint8)
            _run("cuptiProfilerHostGetConfigImage", CLASSES["Profiler_Host_GetConfigImage_Params"](
                p_host_object=self._object, config_image_size=image.size, p_config_image=image.ctypes.data))
            return image

    def evaluate_metric_values(self, counter_data_image: _Bytes, metrics: Sequence[str],
                               index: int) -> numpy.typing.NDArray[numpy.float64]:
        """The values of one sample or range of decoded counters, in the order of the metrics; NaN: not measured.

        RuntimeError: not initialized. ValueError: a wrong metric, or no such index. cuptiError."""
        with self._lock:
            self._usable()
            image = _bytes_checked(counter_data_image, "counter_data_image")
            is_range = self.profiler_type == ProfilerType.RANGE_PROFILER
            if is_range and image[:len(_RANGES_MARK)].tobytes() != _RANGES_MARK:
                raise ValueError(f"these {image.size} bytes are not decoded counters")
            names = _library.names_checked(metrics, "metrics")
            index = _library.number(index, "Q", "index")
            count = self._count(image)
            if index >= count:
                raise ValueError(f"index {index}: these counters hold {count} samples or ranges")
            if not set(names) <= set(self._metrics):
                self._add(names)
            array = _library.c_names(names)
            values = numpy.full(len(names), numpy.nan)
            params = CLASSES["Profiler_Host_EvaluateToGpuValues_Params"](
                p_host_object=self._object, p_counter_data_image=image.ctypes.data, counter_data_image_size=image.size,
                range_index=index, pp_metric_names=ctypes.addressof(array), num_metrics=len(names),
                p_metric_values=values.ctypes.data)
            refusals = (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_METRIC_NAME)
            result = _run("cuptiProfilerHostEvaluateToGpuValues", params, refusals)
            if result:
                raise ValueError(f"CUPTI cannot evaluate {', '.join(names)} from these counters")
            return values

    def _count(self, image: _Bytes) -> int:
        """The number of samples or ranges in decoded counters: CUPTI does not check indexes and would crash."""
        is_range = self.profiler_type == ProfilerType.RANGE_PROFILER
        family = "RangeProfiler" if is_range else "PmSampling"
        params: Any = CLASSES[f"{family}_GetCounterDataInfo_Params"](
            p_counter_data_image=image.ctypes.data, counter_data_image_size=image.size)
        if _run(f"cupti{family}GetCounterDataInfo", params, (Result.ERROR_INVALID_PARAMETER,)):
            raise ValueError(f"these {image.size} bytes are not decoded counters")
        return int(params.num_total_ranges if is_range else params.num_completed_samples)

    def get_base_metrics(self, metric_type: MetricType) -> List[str]:
        """The metrics of a type that this chip has, without suffix. RuntimeError: not initialized. cuptiError."""
        with self._lock:
            params: Any = CLASSES["Profiler_Host_GetBaseMetrics_Params"](
                p_host_object=self._usable(), metric_type=int(_enum_checked(metric_type, MetricType, "metric_type")))
            _run("cuptiProfilerHostGetBaseMetrics", params)
            return _library.texts_at(params.pp_metric_names, params.num_metrics)

    def get_sub_metrics(self, metric_name: str, metric_type: MetricType) -> List[str]:
        """The suffixes of a metric. RuntimeError: not initialized. ValueError: no such metric of that type.
        cuptiError."""
        with self._lock:
            name = _library.text_checked(metric_name, "metric_name")
            params: Any = CLASSES["Profiler_Host_GetSubMetrics_Params"](
                p_host_object=self._usable(), p_metric_name=name,
                metric_type=int(_enum_checked(metric_type, MetricType, "metric_type")))
            result = _run("cuptiProfilerHostGetSubMetrics", params,
                          (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_METRIC_NAME))
            if result:
                base = name.partition(".")[0]
                names = self.get_base_metrics(metric_type)
                near = "" if base in names else _library.nearest(base, names)
                kind = MetricType(metric_type).name
                raise ValueError(f"{self.chip_name} has no metric {name!r} of type {kind}{near}")
            return _library.texts_at(params.pp_sub_metrics, params.num_of_submetrics)

    def get_metric_properties(self, metric_name: str) -> MetricProperties:
        """Description, units, type and scope of a metric, with or without suffix. RuntimeError: not initialized.
        ValueError: no such metric. cuptiError."""
        with self._lock:
            name = _library.text_checked(metric_name, "metric_name")
            params: Any = CLASSES["Profiler_Host_GetMetricProperties_Params"](
                p_host_object=self._usable(), p_metric_name=name)
            params.metric_collection_scope = int(MetricCollectionScope.INVALID)
            result = _run("cuptiProfilerHostGetMetricProperties", params,
                          (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_METRIC_NAME))
            if result:
                raise self._refuse_metric(name)
            return MetricProperties(params.p_description or "", params.p_hw_unit or "", params.p_dim_unit or "",
                                    MetricType(params.metric_type),
                                    MetricCollectionScope(params.metric_collection_scope))


def get_supported_chips() -> List[str]:
    """All chips that this CUPTI supports. cuptiError: CUPTI failed."""
    _library.load_counters()
    params: Any = CLASSES["Profiler_Host_GetSupportedChips_Params"]()
    _run("cuptiProfilerHostGetSupportedChips", params)
    return _library.texts_at(params.pp_chip_names, params.num_chips)


def get_single_pass_sets(chip_name: str) -> List[str]:
    """Names of CUPTI's sets of metrics that one pass collects. ValueError: no such chip. RuntimeError: CUPTI before
    13.2 has none. cuptiError."""
    _library.load_counters()
    params: Any = CLASSES["Profiler_Host_GetSinglePassSets_Params"](p_chip_name=_chip_checked(chip_name))
    refusals = (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_CHIP_NAME)
    if _run("cuptiProfilerHostGetSinglePassSets", params, refusals):
        raise _refuse_chip(chip_name)
    names = (ctypes.c_void_p * max(params.num_of_single_pass_sets, 1))()
    params.pp_single_pass_sets = ctypes.addressof(names)
    _run("cuptiProfilerHostGetSinglePassSets", params)
    return _library.texts_at(ctypes.addressof(names), min(params.num_of_single_pass_sets, len(names)))


def get_metrics_in_single_pass_set(chip_name: str, set_name: str) -> List[str]:
    """The metrics of such a set. ValueError: no such chip or set. RuntimeError: CUPTI before 13.2 has none.
    cuptiError."""
    known = get_single_pass_sets(chip_name)
    if _library.text_checked(set_name, "set_name") not in known:
        raise ValueError(f"{chip_name} has no single-pass metric set {set_name!r}{_library.nearest(set_name, known)}")
    params: Any = CLASSES["Profiler_Host_GetMetricsInSinglePassSet_Params"](
        p_chip_name=chip_name, p_single_pass_set_name=set_name)
    _run("cuptiProfilerHostGetMetricsInSinglePassSet", params)
    count, size = params.num_of_metrics_in_single_pass_set, params.metrics_buffer_size
    offsets, text = (ctypes.c_size_t * max(count, 1))(), ctypes.create_string_buffer(size + 1)
    params.p_metrics_indices_buffer, params.p_metrics_buffer = ctypes.addressof(offsets), ctypes.addressof(text)
    _run("cuptiProfilerHostGetMetricsInSinglePassSet", params)
    if any(offset >= size for offset in offsets[:count]):
        raise _library.cuptiError(Result.ERROR_UNKNOWN, "CUPTI returned names outside of its text buffer")
    return [text.raw[offset:].partition(b"\0")[0].decode("utf-8", "replace") for offset in offsets[:count]]


def get_num_of_passes(config_image: _Bytes) -> int:
    """How often the work must be repeated to collect the metrics of a config image. ValueError: not a config image.
    cuptiError."""
    image = _bytes_checked(config_image, "config_image")
    mark = image[_CONFIG_MARK_AT:_CONFIG_MARK_AT + len(_CONFIG_MARK)].tobytes()
    if image.size < _CONFIG_BYTES_MIN or mark != _CONFIG_MARK:
        raise ValueError(f"these {image.size} bytes are not a config image")
    _library.load_counters()
    params: Any = CLASSES["Profiler_Host_GetNumOfPasses_Params"](config_image_size=image.size,
                                                                 p_config_image=image.ctypes.data)
    _run("cuptiProfilerHostGetNumOfPasses", params)
    return int(params.num_of_passes)


def get_max_num_hardware_metrics_per_pass(chip_name: str, profiler_type: ProfilerType) -> int:
    """The maximum number of hardware metrics (names without _sass_) in one pass. ValueError: no such chip or type.
    cuptiError."""
    _library.load_counters()
    params: Any = CLASSES["Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params"](
        p_chip_name=_chip_checked(chip_name),
        profiler_type=int(_enum_checked(profiler_type, ProfilerType, "profiler_type")))
    refusals = (Result.ERROR_INVALID_PARAMETER, Result.ERROR_INVALID_CHIP_NAME)
    result = _run("cuptiProfilerHostGetMaxNumHardwareMetricsPerPass", params, refusals)
    if result == Result.ERROR_INVALID_CHIP_NAME or (result and chip_name not in get_supported_chips()):
        raise _refuse_chip(chip_name)
    if result:
        raise ValueError(f"CUPTI does not accept profiler_type {ProfilerType(profiler_type).name}")
    return int(params.max_metrics_per_pass)
