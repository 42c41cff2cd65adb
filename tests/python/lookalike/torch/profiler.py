# SPDX-License-Identifier: Apache-2.0
"""What gpufl uses of torch.autograd.profiler, with one profiler for each thread as there."""
import os
import threading
import types


class _OfThread(threading.local):
    kind = None


_thread = _OfThread()
_is_profiler_enabled = False
ProfilerState = types.SimpleNamespace(NVTX="NVTX", KINETO="KINETO")


class _End:
    """What PyTorch says when it is torn down while an observer is still there."""

    def __del__(self, thread=_thread, write=os.write):
        if thread.kind is not None:
            write(2, b"[W observer.cpp:122] Warning: Leaked callback handle: 2 (function operator())\n")


_end = _End()


class _ExperimentalConfig:
    pass


class ProfilerConfig:
    def __init__(self, state, shapes, memory, stack, flops, modules, experimental):
        assert isinstance(experimental, _ExperimentalConfig)
        self.state = state


def _run_on_profiler_start():
    global _is_profiler_enabled
    _is_profiler_enabled = True


def _run_on_profiler_stop():
    global _is_profiler_enabled
    _is_profiler_enabled = False


def _enable_profiler(config, activities):
    if _thread.kind is not None:
        raise RuntimeError("Profiler is already enabled on this thread.")
    _thread.kind = config.state


def _disable_profiler():
    if _thread.kind is None:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    _thread.kind = None


class profile:
    def __enter__(self):
        self._start_trace()
        return self

    def _start_trace(self):
        _run_on_profiler_start()
        _enable_profiler(ProfilerConfig("KINETO", False, False, False, False, False, _ExperimentalConfig()), set())

    def __exit__(self, *error):
        _disable_profiler()
        _run_on_profiler_stop()
