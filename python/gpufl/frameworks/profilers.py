# SPDX-License-Identifier: Apache-2.0
"""Other profilers in the program, which need exclusive use of CUPTI: gpufl detaches from CUPTI while they run.

gpufl.init() wraps the functions that start and stop them, immediately or when their modules are imported;
gpufl.shutdown() restores the original functions.
"""

import functools
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

from .. import _native
from .finder import Finder


class _Uses:
    """Counts the profilers that are using CUPTI. Uses that began in an earlier session are ignored."""

    def __init__(self) -> None:
        self._session = 1
        self._count = 0

    def begin(self, profiler: str) -> int:
        """Returns the argument for end(); 0 if no session records."""
        if not _native.is_recording():
            return 0
        _native.yield_to(profiler)
        self._count += 1
        return self._session

    def end(self, use: int) -> None:
        if use == self._session:
            self._count -= 1
            _native.resume()

    def end_all(self) -> None:
        self._session += 1
        for _ in range(self._count):
            _native.resume()
        self._count = 0


_uses = _Uses()


_replaced: List[Tuple[Any, str, Any, Any]] = []  # owner, name, original, ours


def _replace(owner: Any, name: str, ours: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name), ours))
    setattr(owner, name, ours)


def _wants_cuda(profile: Any) -> bool:
    """Whether a PyTorch profile uses CUPTI; a CPU-only profile does not."""
    activities = getattr(profile, "kineto_activities", None)
    return activities is None or any("CUDA" in str(activity) for activity in activities)


def _wrap_torch(module: ModuleType) -> None:
    """Wraps torch.autograd.profiler, whose class torch.profiler also uses."""
    kind: Any = getattr(module, "profile", None)
    if kind is None:
        return

    def starts(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
            if not getattr(self, "_gpufl_use", 0) and _wants_cuda(self):
                self._gpufl_use = _uses.begin("torch.profiler")
            return method(self, *arguments, **options)
        return wrapped

    def ends(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return method(self, *arguments, **options)
            finally:
                _uses.end(self.__dict__.pop("_gpufl_use", 0))
        return wrapped

    for name, wrap in (("_prepare_trace", starts), ("_start_trace", starts), ("__exit__", ends)):
        if hasattr(kind, name):
            _replace(kind, name, wrap(getattr(kind, name)))


class _Pair:
    """The functions of a module that start and stop its profiler."""

    def __init__(self, profiler: str):
        self._profiler = profiler
        self._begun: List[int] = []

    def starts(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            use = _uses.begin(self._profiler)
            try:
                result = function(*arguments, **options)
            except BaseException:
                _uses.end(use)
                raise
            self._begun.append(use)
            return result
        return wrapped

    def ends(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            try:
                return function(*arguments, **options)
            finally:
                # Proton's finalize() ends all sessions, finalize(session) ends one.
                count = len(self._begun) if not arguments and not options else 1
                ended, self._begun = self._begun[:count], self._begun[count:]
                for use in ended:
                    _uses.end(use)
        return wrapped


def _wrap_pair(profiler: str, start: str, stop: str, also: str) -> Callable[[ModuleType], None]:
    """Wraps both functions in the module that defines them and in the module that exports them."""
    pair = _Pair(profiler)

    def wrap(module: ModuleType) -> None:
        for name, wrapper in ((start, pair.starts), (stop, pair.ends)):
            original = getattr(module, name, None)
            if original is None:
                continue
            wrapped = wrapper(original)
            _replace(module, name, wrapped)
            shown = sys.modules.get(also)
            if shown is not None and getattr(shown, name, None) is original:
                _replace(shown, name, wrapped)

    return wrap


_WRAPPERS: Dict[str, Callable[[ModuleType], None]] = {
    "torch.autograd.profiler": _wrap_torch,
    "jax._src.profiler": _wrap_pair("JAX's profiler", "start_trace", "stop_trace", "jax.profiler"),
    "triton.profiler.profile": _wrap_pair("Proton", "start", "finalize", "triton.profiler"),
}
_finders: List[Finder] = []


def _wrap(name: str) -> None:
    _WRAPPERS[name](sys.modules[name])


def attend() -> None:
    """Makes gpufl detach from CUPTI whenever one of these profilers runs."""
    leave()
    for name in _WRAPPERS:
        if name in sys.modules:
            _wrap(name)
        else:
            _finders.append(Finder(name, functools.partial(_wrap, name)))
            sys.meta_path.insert(0, _finders[-1])


def leave() -> None:
    """Restores the original functions. If other code has wrapped our wrapper, the wrapper stays but does nothing."""
    for finder in _finders:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    _finders.clear()
    for owner, name, original, ours in reversed(_replaced):
        if getattr(owner, name, None) is ours:
            setattr(owner, name, original)
    _replaced.clear()
    _uses.end_all()
