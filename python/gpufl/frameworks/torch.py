# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch's operators and modules as scopes, using PyTorch's observers; no PyTorch function is replaced."""

import atexit
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Tuple

import torch

from .._native import Scope


class Observer:
    """PyTorch's operator observer, which emits an NVTX range for each operator (see gpufl.frameworks.nvtx).

    PyTorch keeps the observer per thread and propagates it to autograd's threads, so uses are counted per thread. It is
    the observer of torch.autograd.profiler.emit_nvtx, without the GPU synchronization, which would initialize CUDA.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def is_on(self) -> bool:
        return getattr(self._of_thread, "count", 0) > 0

    def start(self) -> None:
        """Starts observing on this thread; RuntimeError if that is not possible."""
        count = getattr(self._of_thread, "count", 0)
        if not count:
            self._enable()
        self._of_thread.count = count + 1

    def stop(self) -> None:
        """Undoes one start() of this thread."""
        count = getattr(self._of_thread, "count", 0)
        if count == 1:
            self._disable()
        self._of_thread.count = max(0, count - 1)

    def close(self) -> None:
        """Undoes every start() of this thread."""
        if self.is_on():
            self._of_thread.count = 1
            self.stop()

    def pause(self) -> None:
        """Stops observing until resume(), so that another PyTorch profiler can run on this thread."""
        if self.is_on() and not getattr(self._of_thread, "is_paused", False):
            self._disable()
            self._of_thread.is_paused = True

    def resume(self) -> None:
        if getattr(self._of_thread, "is_paused", False):
            self._of_thread.is_paused = False
            if self.is_on():
                self._enable()

    @staticmethod
    def _config() -> Any:
        profiler = torch.autograd.profiler
        parts = (profiler.ProfilerState.NVTX, False, False, False, False, False, profiler._ExperimentalConfig())
        try:
            return profiler.ProfilerConfig(*parts)
        except TypeError:
            return profiler.ProfilerConfig(*parts, "")  # releases that also need the name of a trace

    def _enable(self) -> None:
        profiler = torch.autograd.profiler
        try:
            profiler._enable_profiler(self._config(), set())
            profiler._run_on_profiler_start()
        except (AttributeError, TypeError) as error:
            raise RuntimeError(f"this release of PyTorch is not supported ({error})") from error
        except RuntimeError as error:
            raise RuntimeError("PyTorch's operators cannot be observed; is another profiler of PyTorch on? "
                               f"({error})") from error

    def _disable(self) -> None:
        if getattr(self._of_thread, "is_paused", False):
            self._of_thread.is_paused = False
            return
        try:
            torch.autograd.profiler._disable_profiler()
            torch.autograd.profiler._run_on_profiler_stop()
        except RuntimeError:
            pass  # other code has switched it off


observer = Observer()
# PyTorch reports an error if an observer is still active at its teardown, which happens after this handler.
atexit.register(observer.close)


@contextmanager
def operator_scopes() -> Iterator[None]:
    """A scope for each operator that this thread, or autograd on its behalf, runs."""
    observer.start()
    try:
        yield
    finally:
        observer.stop()


class _Forward:
    """The modules whose forward is running, per thread; hooks open and close their scopes."""

    def __init__(self, model: Any):
        self._names: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
        if model is not None:
            for name, module in model.named_modules():
                self._names[module] = name or type(module).__name__
        self._scopes: Dict[str, Scope] = {}
        self._open = threading.local()

    def _stack(self) -> List[Tuple[Any, Scope]]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        stack: List[Tuple[Any, Scope]] = self._open.stack
        return stack

    def begin(self, module: Any, arguments: Any) -> None:
        # While torch.compile traces, a scope would cause a graph break: a compiled module gets one outer scope.
        if torch.compiler.is_compiling():
            return
        name = self._names.get(module) or type(module).__name__
        scope = self._scopes.setdefault(name, Scope(name))
        scope.__enter__()
        self._stack().append((module, scope))

    def end(self, module: Any, arguments: Any, result: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stack()
        if not any(opened is module for opened, _ in stack):
            return  # it began before the hooks were installed
        is_last = False
        while not is_last:  # modules inside it were left by an exception
            opened, scope = stack.pop()
            scope.__exit__(None, None, None)
            is_last = opened is module

    def close(self) -> None:
        stack = self._stack()
        while stack:
            stack.pop()[1].__exit__(None, None, None)


@contextmanager
def module_scopes(model: Any = None) -> Iterator[None]:
    """A scope for the forward of each module, using PyTorch's global module hooks.

    Modules of the model are named by their path in it, others by their class. Kernels of the backward pass are
    attributed to operators only.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    forward = _Forward(model)
    hooks = torch.nn.modules.module
    begin = hooks.register_module_forward_pre_hook(forward.begin)
    end = hooks.register_module_forward_hook(forward.end)
    try:
        yield
    finally:
        begin.remove()
        end.remove()
        forward.close()
