# SPDX-License-Identifier: Apache-2.0
"""A look-alike of PyTorch, as far as gpufl uses it: operators that launch kernels on the fake GPU, the profiler's NVTX
ranges around them (profiler), modules with hooks for all of them. Ranges are numbered as PyTorch numbers them
(torch/csrc/profiler/util.cpp).
"""
import ctypes
import types

import fake_cuda

from . import _engine, profiler

_gpu = fake_cuda.Gpu("gemm_kernel", "relu_kernel", "triton_poi_fused_relu_0")
_nvtx = ctypes.CDLL("libfake_nvtx.so")
_state = types.SimpleNamespace(op_id=0, is_compiling=False, backward=[])
version = types.SimpleNamespace(cuda="13.0")


def _op(name, *parts, sequence=None):
    """Runs parts (kernels by name, or calls) as the operator."""
    _state.op_id += 1
    if profiler._thread.kind == "NVTX":
        numbers = "" if sequence is None else f", seq = {sequence}"
        _nvtx.nvtx_push(f"{name}{numbers}, op_id = {_state.op_id}".encode())
    try:
        for part in parts:
            part() if callable(part) else _gpu.launch(part)
    finally:
        if profiler._thread.kind == "NVTX":
            _nvtx.nvtx_pop()


def linear():
    _op("aten::linear", lambda: _op("aten::addmm", "gemm_kernel", sequence=_state.op_id))
    _state.backward.append("AddmmBackward0")


def relu():
    _op("aten::relu", "relu_kernel", sequence=_state.op_id)
    _state.backward.append("ReluBackward0")


def backward():
    """Of what ran so far on this thread."""
    _Loss(_state.backward).backward()
    _state.backward.clear()


class _Loss:
    """A tensor at the end of a graph: nodes by name, or functions that run as a node."""

    def __init__(self, nodes):
        nodes = [_engine.Node(node) for node in reversed(nodes)] or [_engine.Node("AccumulateGrad")]
        self.grad_fn = nodes[0]
        for node, following in zip(nodes, nodes[1:]):
            node.following = following

    def backward(self):
        autograd._engine_run_backward((self,))


def _evaluate(node, task):
    """Begins the operator of the engine, then calls the hooks, then runs the node."""
    def run():
        for hook in list(node.hooks):
            hook(None)
        if callable(node.name):
            node.name()
        else:
            _op("aten::mm", "gemm_kernel")

    _op(f"autograd::engine::evaluate_function: {getattr(node.name, '__name__', node.name)}", run)


_before, _after = [], []


class _Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self):
        self.hooks.remove(self.hook)


class Module:
    def __call__(self, *arguments):
        for hook in list(_before):
            hook(self, arguments)
        result = self.forward(*arguments)
        for hook in list(_after):
            hook(self, arguments, result)
        return result

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value.named_modules(f"{prefix}.{name}" if prefix else name)


class Linear(Module):
    def forward(self):
        linear()


class ReLU(Module):
    def forward(self):
        relu()


autograd = types.SimpleNamespace(profiler=profiler, _engine_run_backward=_engine.run_backward)
_C = types.SimpleNamespace(_current_graph_task_id=_engine.current_task)
_engine.evaluate = _evaluate
compiler = types.SimpleNamespace(is_compiling=lambda: _state.is_compiling)
nn = types.SimpleNamespace(Module=Module, Linear=Linear, ReLU=ReLU, modules=types.SimpleNamespace(
    module=types.SimpleNamespace(register_module_forward_pre_hook=lambda hook: _Handle(_before, hook),
                                 register_module_forward_hook=lambda hook: _Handle(_after, hook))))
cuda = types.SimpleNamespace(synchronize=_gpu.wait)
