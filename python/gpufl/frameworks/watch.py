# SPDX-License-Identifier: Apache-2.0
"""Follows PyTorch without changes to the program: gpufl.init(), or importing gpufl under `gpufl trace`, waits for PyTorch to
be imported; until gpufl.shutdown(), autograd's threads work for the scope that called backward() (see autograd), and
operators are observed.

With sys.monitoring (Python 3.12), observing pauses while the program runs a PyTorch profiler.
"""

import sys
import warnings
from types import CodeType
from typing import Any, List, Optional, Sequence

from . import nvtx
from .autograd import passes
from .finder import Finder

_STARTERS = (("profile", "_start_trace"), ("emit_nvtx", "__enter__"), ("emit_itt", "__enter__"))
_ENDERS = (("profile", "__exit__"), ("emit_nvtx", "__exit__"), ("emit_itt", "__exit__"))


class _Pauses:
    """Pauses observing while a PyTorch profiler runs; sys.monitoring reports when its functions begin and end."""

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
    """The watch of this process, from init() to shutdown()."""

    def __init__(self) -> None:
        self._finder: Optional[Finder] = None
        self._observer: Any = None
        self._pauses: Optional[_Pauses] = None
        self._wants_operators = False

    def start(self, wants_operators: bool) -> None:
        self.stop()
        # Otherwise another tool was configured to get the ranges.
        self._wants_operators = wants_operators and nvtx.find_obstacle() is None
        if "torch" in sys.modules:
            self._attend()
        else:
            self._finder = Finder("torch", self._attend)
            sys.meta_path.insert(0, self._finder)

    def _attend(self) -> None:
        torch = sys.modules["torch"]
        if getattr(getattr(torch, "version", None), "cuda", None) is None:
            return  # PyTorch without CUDA launches nothing
        passes.start(torch)
        if self._wants_operators:
            self._observe(torch)

    def _observe(self, torch: Any) -> None:
        """Observes the operators of the thread that imported PyTorch or called init(), and of autograd for it."""
        from .torch import observer

        try:
            observer.start()
        except RuntimeError as error:
            warnings.warn(f"gpufl: operators are not recorded: {error}", RuntimeWarning, stacklevel=2)
            return
        self._observer = observer
        self._pauses = _Pauses(observer, torch.autograd.profiler)

    def stop(self) -> None:
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._finder = None
        passes.stop()
        if self._pauses is not None:
            self._pauses.close()
        self._pauses = None
        if self._observer is not None:
            self._observer.stop()
        self._observer = None


_watch = _Watch()
start, stop = _watch.start, _watch.stop
