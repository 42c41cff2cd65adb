# SPDX-License-Identifier: Apache-2.0
"""Autograd's engine, as torch/csrc/autograd/engine.cpp works: one thread for the GPU evaluates the nodes of all backward
passes, in the order in which they become ready, with the observer of the thread that called backward(). Each pass is a
numbered task. A pass that begins on the engine's thread is run by it at once.
"""
import ctypes
import queue
import threading

from . import profiler

_library = ctypes.CDLL("libtorch_cpu.so")
_of_thread = threading.local()
_ready = queue.Queue()
_lock = threading.Lock()
_next_task = 0
_waiting, passes_to_wait_for = [], 1  # the engine starts when that number is there, so that they interleave
evaluate = None


def current_task():
    return getattr(_of_thread, "task", -1)


def _set_task(task):
    _of_thread.task = task
    _library.fake_graph_task_set(task)


class Node:
    def __init__(self, name):
        self.name, self.following, self.hooks = name, None, []

    def register_prehook(self, hook):
        node = self

        class Handle:
            @staticmethod
            def remove():
                node.hooks.remove(hook)

        self.hooks.append(hook)
        return Handle()


class _Pass:
    def __init__(self, node):
        global _next_task
        with _lock:
            self.task, _next_task = _next_task, _next_task + 1
        self.node, self.kind, self.is_done = node, profiler._thread.kind, threading.Event()
        self.after = None  # a function that the engine's thread runs when all nodes are evaluated

    def step(self):
        """Evaluates a node; whether there is another one."""
        outer, profiler._thread.kind = (current_task(), profiler._thread.kind), self.kind
        _set_task(self.task)
        try:
            evaluate(self.node, self.task)
        finally:
            _set_task(outer[0])
            profiler._thread.kind = outer[1]
        self.node = self.node.following
        return self.node is not None


def _thread_main():
    _of_thread.is_engine = True
    while True:
        task = _ready.get()
        if task.step():
            _ready.put(task)
        else:
            if task.after:
                task.after()
            task.is_done.set()


def run_backward(outputs, after=None):
    (output,) = outputs
    task = _Pass(output.grad_fn)
    task.after = after
    if getattr(_of_thread, "is_engine", False):
        while task.step():
            pass
        return
    with _lock:
        _waiting.append(task)
        if len(_waiting) >= passes_to_wait_for:
            for waiting in _waiting:
                _ready.put(waiting)
            _waiting.clear()
    task.is_done.wait()


threading.Thread(target=_thread_main, daemon=True).start()
