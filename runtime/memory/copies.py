"""Copies between the two sides: counted, listed with the lines that cause them, and refused where none may be."""

from __future__ import annotations

import inspect
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from syncedmem.model import CopyRefusedError, InvalidArgumentError, caffe
from syncedmem.model.lines import Copy

from ..allocators.pointers import as_integer
from .lines import line_of_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from .sides import Sides

__all__ = ["Copies", "Copy", "CopyLog", "admit", "copies", "enter", "no_copies", "observed"]

FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")

_COPIES = {
    name: "up" if action.side == caffe.GPU else "down"
    for name, action in caffe.EVERYTHING.actions.items()
    if action.does == "copy"
}
_ALLOCATIONS = frozenset(name for name, action in caffe.EVERYTHING.actions.items() if action.does == "allocate")
_WRITES = frozenset(name for name, call in caffe.EVERYTHING.calls.items() if call.writes)
_TO_WRITE = _WRITES | {name.replace("data", "diff") for name in _WRITES}
"""The calls that return a view to write; those of a blob's diff too."""


_LIMITS = {
    "at_most": ("copies", ("up", "down")),
    "bytes": ("bytes", ("up", "down")),
    "up": ("copies up", ("up",)),
    "down": ("copies down", ("down",)),
    "allocations": ("allocations", ("allocation",)),
}
"""What each argument of `no_copies` limits, as errors name it, and which entries of a log count for that."""


class Copies(NamedTuple):
    """How often the bytes of one memory were copied.

    Attributes
    ----------
    up, down : int
        To the device, and to the host.
    bytes : int
        How many bytes that were.
    """

    up: int
    down: int
    bytes: int


class CopyLog(ContextDecorator):
    """What memories copy and allocate inside of a ``with`` block of `copies` or `no_copies`, in this thread or task.

    Attributes
    ----------
    entries : list of Copy
        In their order.
    up, down : int
        How many copies to the device there were, and to the host.
    bytes : int
        How many bytes were copied.
    pageable : int
        How many copies were slower, because the host memory is pageable; 0 if the device makes no difference.
    allocations : int
        How many sides were allocated.
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._entered = False
        self.entries: list[Copy] = []
        self.up: int = 0
        self.down: int = 0
        self.bytes: int = 0
        self.pageable: int = 0
        self.allocations: int = 0

    def add(self, copy: Copy) -> None:
        """List what a call has done."""
        self.entries.append(copy)
        if copy.what == "allocation":
            self.allocations += 1
            return
        if copy.what == "up":
            self.up += 1
        else:
            self.down += 1
        self.bytes += copy.byte_size
        self.pageable += bool(copy.pageable)

    def refuse(self, coming: Sequence[Copy]) -> None:
        """Refuse what is about to happen, if it would pass a limit.

        Raises
        ------
        CopyRefusedError
            With the line of the call.
        """
        so_far = {
            "at_most": self.up + self.down,
            "bytes": self.bytes,
            "up": self.up,
            "down": self.down,
            "allocations": self.allocations,
        }
        for name, limit in self._limits.items():
            unit, kinds = _LIMITS[name]
            more = [copy for copy in coming if copy.what in kinds]
            count = so_far[name] + sum(copy.byte_size if name == "bytes" else 1 for copy in more)
            if more and count > limit:
                # What made this copy necessary may be a copy in the other direction.
                before = [entry for entry in self.entries if (entry.what == "allocation") is (name == "allocations")]
                raise CopyRefusedError(more[0], unit, count, limit, before[-1] if before else None)

    def __call__(self, function: FunctionT) -> FunctionT:
        """A function in which this holds, each time with a new log.

        Raises
        ------
        InvalidArgumentError
            If it is a coroutine or a generator: its call ends before its code begins.
        """
        kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
        if any(is_of_kind(function) for is_of_kind in kinds):
            raise InvalidArgumentError("function", function, "an ordinary one; use `with` inside of it")
        return super().__call__(function)

    def _recreate_cm(self) -> CopyLog:
        """A new log for each call of a function that this decorates."""
        return CopyLog(self._limits)

    def __enter__(self) -> Self:
        if self._entered:
            raise InvalidArgumentError("with", self, "a log that no block has entered; make another one")
        self._entered = True
        observed.set((*observed.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        observed.set(tuple(log for log in observed.get() if log is not self))

    def __str__(self) -> str:
        """A line for each copy, and the sums."""
        pageable = f" ({self.pageable} of the copies with pageable memory)" if self.pageable else ""
        sums = f"{self.up} up, {self.down} down, {self.bytes} bytes{pageable}; {self.allocations} allocations"
        return "\n".join([*map(str, self.entries), sums])


observed: ContextVar[tuple[CopyLog, ...]] = ContextVar("observed", default=())
"""The logs of the blocks that this thread or task is in."""


def admit(logs: tuple[CopyLog, ...], call: str, actions: Sequence[str], byte_size: int) -> list[Copy]:
    """What the actions of a call copy and allocate, after a check that all logs allow it."""
    line = line_of_caller()
    to_write = call in _WRITES and line.call in _TO_WRITE  # arithmetic of blobs writes too, and reads before
    coming = [
        Copy(_COPIES[action], byte_size, line, to_write) if action in _COPIES else Copy("allocation", byte_size, line)
        for action in actions
        if byte_size and (action in _COPIES or action in _ALLOCATIONS)
    ]
    if coming:
        for log in logs:
            log.refuse(coming)
    return coming


def enter(logs: tuple[CopyLog, ...], done: list[Copy], sides: Sides) -> None:
    """List what a call has copied and allocated."""
    entries = [copy if copy.what == "allocation" else copy._replace(pageable=_is_pageable(sides)) for copy in done]
    for log in logs:
        for entry in entries:
            log.add(entry)


def _is_pageable(sides: Sides) -> bool | None:
    """Whether the host side is pageable memory; None if the device makes no difference, or cannot say."""
    with suppress(Exception):  # somebody else's allocator need not be able to say so
        answer: bool | None = sides.device.is_pageable(sides.cpu.ptr)
        return answer
    return None


def copies() -> CopyLog:
    """List what memories copy and allocate: ``with syncedmem.copies() as log: ...``, and then ``print(log)``.

    It counts what the calls of memories and blobs in this thread or task copy between the two sides, a queued push too,
    and no copies that you order of an allocator or of an array.
    """
    return CopyLog({})


def no_copies(
    at_most: int | None = None,
    *,
    bytes: int | None = None,  # noqa: A002 -- as the attribute of the log
    allocations: int | None = None,
    up: int | None = None,
    down: int | None = None,
) -> CopyLog:
    """Refuse copies between the two sides: ``with syncedmem.no_copies(): ...``, or ``@syncedmem.no_copies()``.

    Parameters
    ----------
    at_most : int or None
        How many copies are allowed; None for none at all, or for any number if another limit is given.
    bytes : int or None
        How many bytes may be copied; None for any number.
    up, down : int or None
        How many copies to the device are allowed, and to the host; None for any number.
    allocations : int or None
        How many sides may be allocated; None for any number.

    Raises
    ------
    InvalidArgumentError
        If a limit is negative or no integer.
    CopyRefusedError
        In the call inside of the block that would pass a limit.  Nothing has changed then: no byte is copied, no side
        is allocated, and the head is where it was.
    """
    given = {"at_most": at_most, "bytes": bytes, "up": up, "down": down, "allocations": allocations}
    return CopyLog({name: _limit(name, limit) for name, limit in given.items() if limit is not None} or {"at_most": 0})


def _limit(name: str, value: int) -> int:
    number = as_integer(value, name, "a number, from 0, or None")
    if number < 0:
        raise InvalidArgumentError(name, value, "a number, from 0, or None")
    return number
