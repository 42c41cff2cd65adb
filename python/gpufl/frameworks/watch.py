# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch on kernels without a word in the program: gpufl.init(), or importing gpufl under `gpufl trace`,
watches for PyTorch and observes its operators; gpufl.shutdown() ends that. Nothing of PyTorch is replaced.

Where Python has sys.monitoring (3.12), a profiler of PyTorch that the program starts itself gets its turn.
"""

import sys
import warnings
from types import CodeType
from typing import Any, List, Optional, Sequence

from . import nvtx
from .finder import Finder

_STARTERS = (("profile", "_start_trace"), ("emit_nvtx", "__enter__"), ("emit_itt", "__enter__"))
_ENDERS = (("profile", "__exit__"), ("emit_nvtx", "__exit__"), ("emit_itt", "__exit__"))


class _Turns:
    """Gives way to PyTorch's profilers: told by sys.monitoring when their functions begin and end."""

    def __init__(self, observer: Any, profiler: Any):
        self._observer = observer
        starters, enders = self._codes(profiler, _STARTERS), self._codes(profiler, _ENDERS)
        self._tool: Optional[int] = None
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            return
        self._monitoring = monitoring
        self._tool = next((tool for tool in (4, 3) if monitoring.get_tool(tool) is None), None)
        if self._tool is None:
            return
        monitoring.use_tool_id(self._tool, "gpufl")
        events = monitoring.events
        monitoring.register_callback(self._tool, events.PY_START, self._begin)
        monitoring.register_callback(self._tool, events.PY_RETURN, self._end)
        for code in starters:
            monitoring.set_local_events(self._tool, code, events.PY_START)
        for code in enders:
            monitoring.set_local_events(self._tool, code, events.PY_RETURN)

    @staticmethod
    def _codes(profiler: Any, places: Sequence[Any]) -> List[CodeType]:
        functions = [getattr(getattr(profiler, kind, None), name, None) for kind, name in places]
        codes = [getattr(function, "__code__", None) for function in functions]
        return [code for code in codes if code is not None]

    def _begin(self, code: CodeType, offset: int) -> None:
        self._observer.pause()

    def _end(self, code: CodeType, offset: int, result: object) -> None:
        try:
            self._observer.resume()
        except RuntimeError as error:
            warnings.warn(f"gpufl: operators are no longer recorded: {error}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        if self._tool is not None:
            self._monitoring.free_tool_id(self._tool)
            self._tool = None


class _Watch:
    """The one watch of this process, between init() and shutdown()."""

    def __init__(self) -> None:
        self._finder: Optional[Finder] = None
        self._observer: Any = None
        self._turns: Optional[_Turns] = None

    def start(self) -> None:
        self.stop()
        if nvtx.find_obstacle() is not None:
            return  # another tool has the ranges, on purpose
        if "torch" in sys.modules:
            self._observe()
        else:
            self._finder = Finder("torch", self._observe)
            sys.meta_path.insert(0, self._finder)

    def _observe(self) -> None:
        """By the thread that imported PyTorch or called init(): its operators, and autograd's for it."""
        torch = sys.modules["torch"]
        if getattr(getattr(torch, "version", None), "cuda", None) is None:
            return  # PyTorch without CUDA launches nothing
        from .torch import observer

        try:
            observer.start()
        except RuntimeError as error:
            warnings.warn(f"gpufl: operators are not recorded: {error}", RuntimeWarning, stacklevel=2)
            return
        self._observer = observer
        self._turns = _Turns(observer, torch.autograd.profiler)

    def stop(self) -> None:
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._finder = None
        if self._turns is not None:
            self._turns.close()
        self._turns = None
        if self._observer is not None:
            self._observer.stop()
        self._observer = None


_watch = _Watch()
start, stop = _watch.start, _watch.stop
