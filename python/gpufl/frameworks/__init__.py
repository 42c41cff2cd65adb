# SPDX-License-Identifier: Apache-2.0
"""Names from frameworks on kernels: operators and modules of PyTorch, NVTX ranges of every library.

    import gpufl
    import gpufl.frameworks

    gpufl.init(app_name="train", profiling_engine=gpufl.ProfilingEngine.Trace)
    with gpufl.frameworks.attach(model):
        train(model)

gpufl.init() alone observes PyTorch's operators (see watch); attach() adds the names of a model's modules, and the
operators of further threads. Names of kernels need none of this: those of Triton, torch.compile and XLA (JAX) are
recorded as the compiler gave them.
"""

import sys
from contextlib import ExitStack
from typing import Any, Optional

from . import nvtx

__all__ = ["Attachment", "attach", "nvtx", "op_of", "ops_of"]


class Attachment:
    """What attach() switched on; leaving the with block, or detach(), switches it off."""

    def __init__(self, parts: ExitStack):
        self._parts = parts

    def detach(self) -> None:
        self._parts.close()

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(self, *error: Any) -> None:
        self.detach()


def attach(model: Any = None, *, ops: bool = True, modules: Optional[bool] = None) -> Attachment:
    """Takes NVTX ranges of all libraries as scopes and, where PyTorch has been imported, its operators and modules.

    ops: a scope around each operator that this thread, or autograd for it, runs. modules: a scope around each module's
    forward; the default is only when a model is given. model: a torch.nn.Module, whose submodules get their names in
    it, such as "encoder.layers.3"; modules of others go by their class.
    """
    if modules is None:
        modules = model is not None
    has_torch = "torch" in sys.modules
    if not has_torch and (model is not None or modules):
        raise RuntimeError("PyTorch has not been imported: import torch before attach() with a model or modules")
    nvtx.enable()
    with ExitStack() as parts:
        if has_torch:
            from . import torch

            if modules:
                parts.enter_context(torch.module_scopes(model))
            if ops:
                parts.enter_context(torch.operator_scopes())
        attachment = Attachment(parts.pop_all())
    return attachment


def op_of(path: Optional[str]) -> Optional[str]:
    """The operator in a path of scopes: the innermost one; None where there is none."""
    # A kernel that torch.compile made has no operator: its own range takes that place.
    parts = reversed((path or "").split("|"))
    return next((part for part in parts if "::" in part or part.startswith("triton_")), None)


def ops_of(kernels: Any) -> Any:
    """The operator of each row of session.kernels (or memcpy and the like): the innermost one of its scopes, as a
    categorical Series; NaN where there is none.

        kernels.groupby(gpufl.frameworks.ops_of(kernels), observed=True).duration_ns.sum()
    """
    import numpy
    import pandas

    paths = kernels.scope.cat.categories
    names = [op_of(str(path)) for path in paths]
    words = sorted({name for name in names if name is not None})
    index = {name: code for code, name in enumerate(words)}
    codes = [-1 if name is None else index[name] for name in names]
    # Code -1, no scope, reads the last entry.
    of_rows = numpy.array(codes + [-1], dtype="int64")[kernels.scope.cat.codes]
    return pandas.Series(pandas.Categorical.from_codes(of_rows, categories=words), index=kernels.index, name="op")
