# SPDX-License-Identifier: Apache-2.0
"""The threads of PyTorch's autograd work for the scope in which backward() was called.

A backward pass is a numbered task, and an exported function of PyTorch's library returns the number of the calling
thread's task: libgpufl asks it. What ties the number to a scope is a hook at the nodes where the pass begins. PyTorch
hangs its own hooks there in the same way, to log backward passes.
"""

import ctypes
import functools
import os
import sys
from typing import Any, Callable, List, Tuple

from .. import _native

_LIBRARY, _CURRENT = "libtorch_cpu.so", "_ZN5torch8autograd25get_current_graph_task_idEv"


def _current_task() -> int:
    """The address of the library's function; 0: this release of PyTorch has none."""
    try:
        function = getattr(ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_LAZY), _CURRENT)
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _is_compiled(torch: Any) -> bool:
    """Whether backward passes are compiled, and then run on the thread that calls backward(), without hooks."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    names = ("compiled_autograd_enabled", "compiled_autograd_enabled_count")
    return any(getattr(module, name, False) for name in names) or torch.compiler.is_compiling()


class _Passes:
    """Wraps the function through which torch.autograd starts the engine, from start() to stop()."""

    def __init__(self) -> None:
        self._replaced: List[Tuple[Any, Any, Any]] = []  # owner, original, ours

    def start(self, torch: Any) -> None:
        self.stop()
        address = _current_task()
        owners = [owner for owner in (torch.autograd, getattr(torch.autograd, "graph", None))
                  if hasattr(owner, "_engine_run_backward")]
        if not address or not owners or not hasattr(torch._C, "_current_graph_task_id"):
            return  # an older release: what runs while backward() waits is inferred from the log
        _native.tasks_follow(address)
        for owner in owners:
            original = owner._engine_run_backward
            ours = self._wrap(torch, original)
            owner._engine_run_backward = ours
            self._replaced.append((owner, original, ours))

    def stop(self) -> None:
        for owner, original, ours in self._replaced:
            if owner._engine_run_backward is ours:
                owner._engine_run_backward = original
        if self._replaced:
            _native.tasks_follow(0)
        self._replaced = []

    @staticmethod
    def _wrap(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run_backward(outputs: Any, *arguments: Any, **options: Any) -> Any:
            token = _native.scope_current()
            if not token or _is_compiled(torch):
                return original(outputs, *arguments, **options)

            def bind(*gradients: Any) -> None:
                _native.task_bind(torch._C._current_graph_task_id(), token)

            # An output is a tensor, or an edge of the graph.
            nodes = [getattr(output, "node", None) or getattr(output, "grad_fn", None) for output in outputs]
            handles = [node.register_prehook(bind) for node in nodes if node is not None]
            try:
                return original(outputs, *arguments, **options)
            finally:
                for handle in handles:
                    handle.remove()

        return run_backward


passes = _Passes()
