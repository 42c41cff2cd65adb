# SPDX-License-Identifier: Apache-2.0
"""Scopes across threads: work that another thread does for a scope belongs to that scope.

A token stands for one entry into a scope. It is taken where the work is handed out, and adopted where it is done.
"""

import concurrent.futures
import contextlib
import functools
import inspect
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Type, TypeVar

from . import _native
from ._decorator import run_in

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

_carried: ContextVar[int] = ContextVar("gpufl_scope", default=0)


def current_scope() -> int:
    """A token of this thread's innermost scope, which other threads can adopt; 0: there is none, or nothing records.

    It stays valid when the scope has ended, until the session ends.
    """
    return _native.scope_current()


class adopt:  # pylint: disable=invalid-name  # used like a function
    """with gpufl.adopt(token): this thread's work belongs to the token's scope, and so do the scopes that it opens.

    Without a token it is the one that carry() put into the context. Token 0 changes nothing.
    """

    __slots__ = ("_token",)

    def __init__(self, token: Optional[int] = None):
        if token is not None and (isinstance(token, bool) or not isinstance(token, int)):
            raise TypeError(f"adopt(): token must be what current_scope() returned, not {token!r}")
        self._token = token

    def __enter__(self) -> "adopt":
        _native.scope_adopt(_carried.get() if self._token is None else self._token)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        _native.scope_release()


@contextlib.contextmanager
def carry() -> Iterator[int]:
    """Puts the token of the innermost scope into the context (contextvars), which asyncio copies for each task and
    asyncio.to_thread for each call: there `with gpufl.adopt():` continues the scope."""
    token = current_scope()
    reset = _carried.set(token)
    try:
        yield token
    finally:
        _carried.reset(reset)


def bind(function: Function, token: Optional[int] = None) -> Function:
    """The function, running for the scope in which bind() was called, on whatever thread it is called.

    A coroutine function adopts the scope whenever it runs, and not while it waits.
    """
    if not callable(function):
        raise TypeError(f"bind(): expected a function, not {function!r}")
    bound: Any = run_in(adopt(current_scope() if token is None else token), function)
    return bound  # type: ignore[no-any-return]


class _Bound(concurrent.futures.Executor):
    """Submits functions bound to the scope of the thread that submits."""

    def __init__(self, pool: concurrent.futures.Executor):
        self._pool = pool

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Result]":
        return self._pool.submit(bind(fn), *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def executor(pool: concurrent.futures.Executor) -> concurrent.futures.Executor:
    """An executor for the threads of the pool; what is submitted belongs to the scope in which it was submitted.

    Also for loop.run_in_executor(). TypeError: the pool has processes, whose work is in other sessions.
    """
    if isinstance(pool, concurrent.futures.ProcessPoolExecutor):
        raise TypeError("executor(): a scope cannot be adopted by another process")
    return _Bound(pool)


async def to_thread(function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
    """asyncio.to_thread(), in the scope of the caller."""
    import asyncio  # only for programs that have it anyway

    return await asyncio.to_thread(bind(function), *args, **kwargs)


@contextlib.contextmanager
def propagate() -> Iterator[None]:
    """While the with block runs, every function given to a ThreadPoolExecutor and every thread that is started belongs
    to the scope in which that happened. It replaces ThreadPoolExecutor.submit and Thread.start in the whole process,
    so asyncio's to_thread and run_in_executor are covered as well."""
    pool, thread = concurrent.futures.ThreadPoolExecutor, threading.Thread
    submit, start = pool.submit, thread.start

    @functools.wraps(submit)
    def submit_bound(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, bind(fn), *args, **kwargs)

    @functools.wraps(start)
    def start_bound(self: Any) -> None:
        token = current_scope()
        if token and not inspect.iscoroutinefunction(self.run):
            self.run = bind(self.run, token)
        start(self)

    setattr(pool, "submit", submit_bound)
    setattr(thread, "start", start_bound)
    try:
        yield
    finally:
        setattr(pool, "submit", submit)
        setattr(thread, "start", start)
