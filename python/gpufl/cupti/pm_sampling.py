# SPDX-License-Identifier: Apache-2.0
"""PM sampling: the GPU records hardware counters of the whole device at a fixed interval, and decode() reads them."""
import ctypes
import threading
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence, Set, Tuple

from . import _library, _profiler
from ._enums import PmSampling_DecodeStopReason as DecodeStopReason
from ._enums import PmSampling_HardwareBuffer_AppendMode as HardwareBuffer_AppendMode
from ._enums import PmSampling_TriggerMode as TriggerMode
from ._enums import Profiler_API, Result
from ._numpy import numpy
from ._structs import CLASSES
from .profiler_host import ProfilerHost, ProfilerType, get_num_of_passes

__all__ = ["Collector", "CounterData", "DecodeStopReason", "HardwareBuffer_AppendMode", "PmSample", "TriggerMode",
           "metrics_to_c_array"]

_lock = threading.Lock()
_enabled: Set[int] = set()  # devices: CUPTI allows one collector per device


def metrics_to_c_array(metrics: Sequence[str]) -> Tuple[Any, int]:
    """The names as char *[] for the functions of gpufl.cupti.cupti: (object to keep alive, address)."""
    array = _library.c_names(_library.names_checked(metrics, "metrics"))
    return array, ctypes.addressof(array)


@dataclass
class PmSample:
    """One sample. Times are nanoseconds of CUPTI's clock; the first sample of a collection can start at 0 or much
    earlier."""

    start_timestamp: int
    end_timestamp: int
    metric_values: numpy.typing.NDArray[numpy.float64]


class CounterData:
    """The samples of one decode(). Values are evaluated when a sample is accessed."""

    def __init__(self, host: ProfilerHost, image: numpy.typing.NDArray[numpy.uint8], metrics: List[str],
                 times: List[Tuple[int, int]], stop_reason: DecodeStopReason) -> None:
        self._host, self._image, self._times = host, image, times
        self.metrics = metrics
        self.decode_stop_reason = stop_reason

    @property
    def num_completed_samples(self) -> int:
        return len(self._times)

    def __len__(self) -> int:
        return len(self._times)

    def __getitem__(self, index: int) -> PmSample:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"samples are indexed by int, not {type(index).__name__}")
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        values = self._host.evaluate_metric_values(self._image, self.metrics, at)
        return PmSample(self._times[at][0], self._times[at][1], values)

    def __iter__(self) -> Iterator[PmSample]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<CounterData of {len(self)} samples of {len(self.metrics)} metrics>"


class Collector:
    """PM sampling of one device: enable, configure, start, stop, decode, disable.

    configure() after sampling creates a new CUPTI object: CUPTI does not support configuring it again."""

    def __init__(self, device_index: int = 0) -> None:
        self.device_index = _library.number(device_index, "I", "device_index")
        self._lock = threading.RLock()
        self._object = 0
        self._chip = ""
        self._available = b""
        self._has_sampled = self._is_started = False
        self._host: Optional[ProfilerHost] = None
        self._metrics: List[str] = []
        self._config: Optional[numpy.typing.NDArray[numpy.uint8]] = None  # CUPTI reads it while it samples

    def enable(self) -> None:
        """ValueError: no such device. MemoryError. RuntimeError: PM sampling of the device is enabled already, or the
        nvperf libraries are missing. PermissionError: not allowed to read counters. cuptiError."""
        with self._lock:
            self._chip = _profiler.chip_name(self.device_index)
            with _lock:
                if self.device_index in _enabled:
                    raise RuntimeError(f"PM sampling is already enabled on device {self.device_index}")
                _enabled.add(self.device_index)
            is_acquired = False
            try:
                _profiler.acquire()
                is_acquired = True
                _profiler.check_device(self.device_index, Profiler_API.PM_SAMPLING)
                self._available = self._availability_first()
                self._begin()
            except BaseException:
                if is_acquired:
                    _profiler.release()
                with _lock:
                    _enabled.discard(self.device_index)
                raise

    def _availability_first(self) -> bytes:
        """Read before enabling, because CUPTI does not answer for an enabled device. If it fails, enabling the device
        shows whether other code has enabled it."""
        try:
            return self._availability()
        except _library.cuptiError:
            self._begin()
            self._end()
            raise

    def _begin(self) -> None:
        params: Any = CLASSES["PmSampling_Enable_Params"](device_index=self.device_index)
        result = _library.result_of("cuptiPmSamplingEnable", "P", params.ptr)
        if result == Result.ERROR_INVALID_OPERATION:
            raise RuntimeError(f"PM sampling is already enabled on device {self.device_index}, by other code of this "
                               "process")
        if result:
            _library.raise_pythonic("cuptiPmSamplingEnable", result)
        self._object, self._has_sampled, self._is_started = params.p_pm_sampling_object, False, False

    def _end(self) -> None:
        params = CLASSES["PmSampling_Disable_Params"](p_pm_sampling_object=self._object)
        _library.result_of("cuptiPmSamplingDisable", "P", params.ptr)
        self._object = 0

    def _usable(self) -> int:
        if not self._object:
            raise RuntimeError("this Collector is not enabled; call enable() first")
        return self._object

    def _availability(self) -> bytes:
        params: Any = CLASSES["PmSampling_GetCounterAvailability_Params"](device_index=self.device_index)
        _profiler.run("cuptiPmSamplingGetCounterAvailability", params)
        image = ctypes.create_string_buffer(params.counter_availability_image_size)
        params.p_counter_availability_image = ctypes.addressof(image)
        _profiler.run("cuptiPmSamplingGetCounterAvailability", params)
        return image.raw

    def configure(self, *, metrics: Sequence[str], hardware_buffer_size: int = 536870912,
                  sampling_interval: int = 10000,
                  trigger_mode: TriggerMode = TriggerMode.GPU_TIME_INTERVAL,
                  hw_buffer_append_mode: HardwareBuffer_AppendMode = HardwareBuffer_AppendMode.KEEP_OLDEST,
                  single_pass_metric_set_name: Optional[str] = None) -> None:
        """Sets what is sampled and how often: sampling_interval is in nanoseconds, with GPU_SYSCLK_INTERVAL in cycles.

        RuntimeError: not enabled, or sampling. ValueError: a metric that this GPU does not have, metrics that need more
        than one pass, or an invalid number. MemoryError, PermissionError, cuptiError."""
        with self._lock:
            self._usable()
            if self._is_started:
                raise RuntimeError("this Collector is sampling; call stop() first")
            names = _library.names_checked(metrics, "metrics")
            trigger, append = TriggerMode(trigger_mode), HardwareBuffer_AppendMode(hw_buffer_append_mode)
            size = _profiler.positive(hardware_buffer_size, "Q", "hardware_buffer_size")
            interval = _profiler.positive(sampling_interval, "Q", "sampling_interval")
            host = ProfilerHost(self._chip, ProfilerType.PM_SAMPLING, single_pass_metric_set_name)
            host._availability = self._available
            host.initialize()
            config = host.create_config_image(names)
            passes = get_num_of_passes(config)
            if passes != 1:
                raise ValueError(f"PM sampling supports metrics that one pass can count; on {self._chip} these "
                                 f"{len(names)} metrics need {passes} passes: choose fewer")
            if self._has_sampled:
                self._end()
                self._begin()
            params = CLASSES["PmSampling_SetConfig_Params"](
                p_pm_sampling_object=self._object, config_size=config.size, p_config=config.ctypes.data,
                hardware_buffer_size=size, sampling_interval=interval, trigger_mode=int(trigger),
                hw_buffer_append_mode=int(append))
            result = _library.result_of("cuptiPmSamplingSetConfig", "P", params.ptr)
            if result == Result.ERROR_INVALID_PARAMETER:
                raise ValueError(f"device {self.device_index} does not accept {trigger.name} with interval {interval}, "
                                 f"{append.name} and a hardware buffer of {size} bytes")
            if result:
                _library.raise_pythonic("cuptiPmSamplingSetConfig", result)
            self._host, self._metrics, self._config = host, names, config

    def start(self) -> None:
        """Starts sampling. RuntimeError: not enabled or not configured. cuptiError."""
        with self._lock:
            params = CLASSES["PmSampling_Start_Params"](p_pm_sampling_object=self._usable())
            if self._host is None:
                raise RuntimeError("this Collector is not configured; call configure() first")
            _profiler.run("cuptiPmSamplingStart", params)
            self._has_sampled = self._is_started = True

    def stop(self) -> None:
        """Stops sampling; existing samples can still be decoded. RuntimeError: not enabled. cuptiError."""
        with self._lock:
            _profiler.run("cuptiPmSamplingStop", CLASSES["PmSampling_Stop_Params"](p_pm_sampling_object=self._usable()))
            self._is_started = False

    def decode(self, max_samples: int = 4096) -> CounterData:
        """Returns the samples since the last decode, at most max_samples (about 16 KiB of memory each). Further samples
        are discarded, and decode_stop_reason of the result is COUNTER_DATA_FULL.

        RuntimeError: not enabled or not configured. ValueError. MemoryError: the hardware buffer was full and samples
        were lost; the remaining ones are in the exception's `counter_data`. cuptiError."""
        with self._lock:
            self._usable()
            if self._host is None:
                raise RuntimeError("this Collector is not configured; call configure() first")
            image = self._image_made(_profiler.positive(max_samples, "I", "max_samples"))
            params: Any = CLASSES["PmSampling_DecodeData_Params"](
                p_pm_sampling_object=self._object, p_counter_data_image=image.ctypes.data,
                counter_data_image_size=image.size)
            result = _library.result_of("cuptiPmSamplingDecodeData", "P", params.ptr)
            # Depending on the release, CUPTI reports a full hardware buffer by the flag or by this result.
            has_overflowed = bool(params.overflow) or result == Result.ERROR_OUT_OF_MEMORY
            if result and not has_overflowed:
                _library.raise_pythonic("cuptiPmSamplingDecodeData", result)
            data = CounterData(self._host, image, self._metrics, self._times(image, max_samples),
                               DecodeStopReason(params.decode_stop_reason))
            if has_overflowed:
                error = MemoryError("the hardware buffer was full, samples are missing: decode more often, sample less "
                                    "often or give a larger hardware_buffer_size")
                error.counter_data = data  # type: ignore[attr-defined]
                raise error
            return data

    def _image_made(self, max_samples: int) -> numpy.typing.NDArray[numpy.uint8]:
        names = _library.c_names(self._metrics)
        size: Any = CLASSES["PmSampling_GetCounterDataSize_Params"](
            p_pm_sampling_object=self._object, p_metric_names=ctypes.addressof(names), num_metrics=len(self._metrics),
            max_samples=max_samples)
        _profiler.run("cuptiPmSamplingGetCounterDataSize", size)
        image = numpy.zeros(size.counter_data_size, numpy.uint8)
        _profiler.run("cuptiPmSamplingCounterDataImageInitialize",
                      CLASSES["PmSampling_CounterDataImage_Initialize_Params"](
            p_pm_sampling_object=self._object, counter_data_size=image.size, p_counter_data=image.ctypes.data))
        return image

    def _times(self, image: numpy.typing.NDArray[numpy.uint8], max_samples: int) -> List[Tuple[int, int]]:
        info: Any = CLASSES["PmSampling_GetCounterDataInfo_Params"](
            p_counter_data_image=image.ctypes.data, counter_data_image_size=image.size)
        _profiler.run("cuptiPmSamplingGetCounterDataInfo", info)
        times = []
        sample: Any = CLASSES["PmSampling_CounterData_GetSampleInfo_Params"](
            p_pm_sampling_object=self._object, p_counter_data_image=image.ctypes.data,
            counter_data_image_size=image.size)
        for index in range(min(info.num_completed_samples, max_samples)):
            sample.sample_index = index
            _profiler.run("cuptiPmSamplingCounterDataGetSampleInfo", sample)
            times.append((sample.start_timestamp, sample.end_timestamp))
        return times

    def disable(self) -> None:
        """Ends PM sampling; no effect if not enabled. Decoded samples stay valid."""
        with self._lock:
            if not self._object:
                return
            if self._is_started:
                self.stop()
            self._end()
            self._host = None
            _profiler.release()
            with _lock:
                _enabled.discard(self.device_index)

    def __enter__(self) -> "Collector":
        self.enable()
        return self

    def __exit__(self, *unused: object) -> None:
        self.disable()
