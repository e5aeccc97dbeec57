"""Runs the program of a violation as a user does, and records the calls that it makes to memories."""

from __future__ import annotations

import ast
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from syncedmem.spec import Subject

__all__ = ["Calls", "Told", "ran"]

Calls = list[tuple[Any, ...]]

_CALLS = (
    "cpu_data",
    "mutable_cpu_data",
    "gpu_data",
    "mutable_gpu_data",
    "set_cpu_data",
    "set_gpu_data",
    "async_gpu_push",
    "close",
)


class Told:
    """A maker whose memories record the calls that are made to them."""

    def __init__(self, make: Any) -> None:
        self.make = make
        self.calls: Calls = []

    def __call__(self, size: int, **options: Any) -> Any:
        """Make a memory, and record that."""
        self.calls.append(("make", size, sorted(options)))
        return Telling(self.make(size, **options), self.calls)


class Telling:
    """A memory that records its calls."""

    def __init__(self, memory: Any, calls: Calls) -> None:
        self._memory = memory
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        if name not in _CALLS:
            return found

        def call(*arguments: Any, **keywords: Any) -> Any:
            self._calls.append((name, *map(shown, arguments), *keywords))
            return found(*arguments, **keywords)

        return call


def shown(argument: Any) -> object:
    """Return what can be compared of an argument: its type, and its bytes if it is host memory, else its length."""
    try:
        return type(argument).__name__, bytes(memoryview(argument))
    except TypeError:
        return type(argument).__name__, getattr(argument, "nbytes", None)


def ran(program: str, subject: Subject) -> Calls:
    """Run a program and return its calls; its last statement may raise, if that is the failure."""
    told = Told(subject.make)
    *earlier, last = ast.parse(program).body
    names: dict[str, Any] = {"subject": replace(subject, make=told)}
    inside: AbstractContextManager[object] = nullcontext()
    if program.startswith("with subject.elsewhere") and isinstance(last, ast.With) and subject.elsewhere is not None:
        (*earlier, last), inside = last.body, subject.elsewhere.using()
    with inside:
        run(earlier, names)
        with suppress(Exception):
            run([last], names)
    return told.calls


def run(statements: list[ast.stmt], names: dict[str, Any]) -> None:
    """Run statements as a user does."""
    exec(compile(ast.Module(statements, []), "<reproducer>", "exec"), names)  # noqa: S102 -- the reproducer must run
