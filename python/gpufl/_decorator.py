# SPDX-License-Identifier: Apache-2.0
"""Scopes as decorators.

A coroutine shares its thread with others, so its scope is open only while it runs: the scope closes when the coroutine
waits and reopens when it resumes. The same applies to generators. A kernel therefore belongs to the scope of the code
that launched it, however tasks interleave, and each resumption counts as a call of the scope.
"""

import functools
import inspect
from typing import Any, Callable, ContextManager, Generator, Optional, TypeVar, Union, overload

from ._native import Scope

Function = TypeVar("Function", bound=Callable[..., Any])


class _Steps(Generator[Any, Any, Any]):
    """A coroutine or generator whose every step runs inside the scope."""

    __slots__ = ("_scope", "_inner")

    def __init__(self, scope: "ContextManager[Any]", inner: Any):
        self._scope = scope
        self._inner = inner

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def send(self, value: Any) -> Any:
        with self._scope:
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._scope:
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._scope:
            self._inner.close()


def _wrap_async_generator(scope: "ContextManager[Any]", function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        step = inner.__anext__()
        while True:
            try:
                value = await _Steps(scope, step)
            except StopAsyncIteration:
                return
            try:
                sent = yield value
            except GeneratorExit:
                await _Steps(scope, inner.aclose())
                raise
            except BaseException as error:  # pylint: disable=broad-except  # forwarded to the generator
                step = inner.athrow(error)
            else:
                step = inner.asend(sent)

    return wrapper


def wrap(scope: Scope, function: Any) -> Any:
    """A wrapper that keeps the scope open while the function's code runs."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(wrap(scope, function.__func__))
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"Scope: expected a function to decorate, not {function!r}")
    if scope.repeat or scope.warmup:
        raise TypeError("Scope: repeat and warmup are for loops, not for decorated functions")
    return run_in(scope, function)


def run_in(scope: "ContextManager[Any]", function: Any) -> Any:
    """A wrapper that enters the context manager, which must be reusable, whenever the function's code runs."""
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(scope, function(*args, **kwargs))

        return coroutine
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(scope, function)
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from _Steps(scope, function(*args, **kwargs)))

        return generator

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return function(*args, **kwargs)

    return functools.update_wrapper(wrapper, function)


@overload
def scope(name: Function) -> Function: ...
@overload
def scope(name: Optional[str] = None, tag: Optional[str] = None) -> Callable[[Function], Function]: ...


def scope(name: Union[str, Callable[..., Any], None] = None, tag: Optional[str] = None) -> Any:
    """@gpufl.scope, @gpufl.scope("name") or @gpufl.scope("name", "tag"): runs each call of the function in the scope.

    The default name is the function's. Works on functions, methods, coroutines and generators.
    """
    if name is None or isinstance(name, str):
        return lambda function: wrap(Scope(name or _name_of(function), tag), function)
    return wrap(Scope(_name_of(name), tag), name)


def _name_of(function: Any) -> str:
    name = getattr(getattr(function, "__func__", function), "__qualname__", None)
    if not isinstance(name, str):
        raise TypeError(f"scope: expected a name or a function, not {function!r}")
    return name.replace("<locals>.", "")
