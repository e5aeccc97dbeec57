"""Recording allocators: they log every allocate, free, copy and zero of a memory under test, with its size.

A recording allocator wraps any allocator and passes everything through.  Both sides of a memory have one log.  On
request the k-th call fails, counted among the calls that move memory, or among the others (adopting, recording an
event, making a view).  So the kit sees what a memory does without asking the memory.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import caffe
from syncedmem.model.interface import MemcpyKind

from .actions import Action, Allocated

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from syncedmem.model import Machine
    from syncedmem.model.interface import Allocator

    from .subject import Subject

__all__ = [
    "ON_DEVICE",
    "TO_DEVICE",
    "TO_HOST",
    "CallLog",
    "Fuse",
    "InjectedFailure",
    "InjectedInterrupt",
    "RecordingAllocator",
    "StrayFree",
    "action_of",
    "recorded",
]

TO_DEVICE, TO_HOST, ON_DEVICE = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA
_ENDS = {
    TO_DEVICE: (caffe.CPU, caffe.GPU),
    TO_HOST: (caffe.GPU, caffe.CPU),
    ON_DEVICE: (caffe.GPU, caffe.GPU),
    MemcpyKind.CPU2CPU: (caffe.CPU, caffe.CPU),
}
"""The sides of a copy in this direction, if its pointers are not known."""

_STEPS = ("check_stream", "current_ordinal", "empty", "overlaps", "read_only", "viewer")
"""Calls of an allocator that are only counted, so that they can fail; the others are methods here."""


class InjectedFailure(MemoryError):
    """The failure of a call that was told to fail."""


class InjectedInterrupt(KeyboardInterrupt):
    """The interrupt of a call that was told to be interrupted."""


class StrayFree(ValueError):
    """A free of a pointer that is not allocated."""


@cache
def _actions(machine: Machine) -> Mapping[tuple[str, str, str], str]:
    """The first action of a machine that does each thing."""
    actions = reversed([*machine.actions.values()])
    return {
        ("push" if action.queued else action.does, action.side, action.source): action.name
        for action in actions
        if action.does
    }


def action_of(machine: Machine, operation: str, side: str, source: str) -> str:
    """What a machine calls what an allocator did; our own words if it has no action for that."""
    way = f"{source}_to_{side}" if source not in ("", side) else side
    return _actions(machine).get((operation, side, source), f"{operation}_{way}")


class Flight(NamedTuple):
    """A queued copy: its ends, their sides, its stream, and an event after it."""

    source: Any
    dest: Any
    sides: tuple[str, str]
    stream: Any
    event: Any


class Adopted(NamedTuple):
    """A pointer that `adopt` returned: its side, and a weak reference to it."""

    side: str
    pointer: Callable[[], object]


class Fuse:
    """Counts calls of one kind, and makes the k-th of them fail.

    Attributes
    ----------
    blown : str
        The call that failed; empty if none has.
    partial : bool
        Whether a failing copy or fill first writes a part of its destination.
    """

    def __init__(self) -> None:
        self.blown: str = ""
        self.partial: bool = False
        self._left = 0
        self._error: type[BaseException] = InjectedFailure

    @property
    def left(self) -> int:
        """How many more calls there are until one fails, with that one; 0 if none has to."""
        return max(self._left, 0)

    @contextmanager
    def armed(self, k: int, error: type[BaseException] = InjectedFailure, *, partial: bool = False) -> Generator[None]:
        """Make the k-th call inside the block fail, counted from 1."""
        self._left, self._error, self.partial, self.blown = k, error, partial, ""
        try:
            yield
        finally:
            self._left = 0

    def count(self, call: str, where: Allocator | None = None, half: Callable[[], object] | None = None) -> None:
        """Count a call, of an allocator or of an event, and fail if it is the k-th; `half` does half of its work."""
        self._left -= 1
        if self._left == 0:
            self.blown = call if where is None else f"{call} on {where.name}"
            if half is not None and self.partial:
                half()
            raise self._error(f"{self.blown} was told to fail")


@dataclass(repr=False)
class CallLog:
    """The calls of one memory to its allocators, and the blocks that are not freed yet.

    Attributes
    ----------
    calls : list of Action
        The calls that succeeded, in order; a block is known by ``id(pointer)``.
    live : dict
        ``id(pointer)`` to the pointer and what was allocated.
    stray : list of (str, str)
        Wrong frees: the kind (``"external"``, ``"pinned"`` for the wrong kind of host memory, or ``"stray"``) and a
        sentence.  They are refused, and recorded in case the memory hides the error.
    adopted : list of Adopted
        The memory must keep these pointers alive.
    in_flight : list of Flight
    freed_in_flight : list of str
        Frees of memory that such a copy still used.
    moves, steps : Fuse
        Count the calls that move memory, and the others.
    """

    calls: list[Action] = field(default_factory=list[Action])
    live: dict[int, tuple[Any, Allocated]] = field(default_factory=dict[int, tuple[Any, Allocated]])
    stray: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    adopted: list[Adopted] = field(default_factory=list[Adopted])
    in_flight: list[Flight] = field(default_factory=list[Flight])
    freed_in_flight: list[str] = field(default_factory=list[str])
    moves: Fuse = field(default_factory=Fuse)
    steps: Fuse = field(default_factory=Fuse)

    def __repr__(self) -> str:
        return f"<CallLog: {len(self.calls)} calls, {len(self.live)} live blocks>"

    @property
    def blocks(self) -> dict[int, Allocated]:
        """The blocks that are allocated."""
        return {key: block for key, (_, block) in self.live.items()}

    def owned(self, side: str) -> list[Any]:
        """The live pointers of a side."""
        return [ptr for ptr, entry in self.live.values() if entry.side == side]

    def adopt(self, side: str, ptr: Any) -> None:
        """Note that a pointer of a side is the caller's."""
        self.adopted.append(Adopted(side, weakref.ref(ptr)))

    def side_of(self, ptr: Any) -> str | None:
        """The side of a pointer that was allocated or adopted; None of any other."""
        if ptr is None:
            return None
        if block := self.live.get(id(ptr)):
            return block[1].side
        return next((pointer.side for pointer in reversed(self.adopted) if pointer.pointer() is ptr), None)

    def flying(self) -> list[Flight]:
        """The queued copies that have not happened yet."""
        self.in_flight = [flight for flight in self.in_flight if not flight.event.done]
        return self.in_flight

    def uses_in_flight(self, side: str, ptr: Any, overlaps: Callable[[Any, Any], bool]) -> bool:
        """Whether a queued copy still uses these bytes of a side, also through another array."""
        ends = (
            (end, at)
            for flight in self.flying()
            for end, at in zip((flight.source, flight.dest), flight.sides, strict=True)
        )
        return any(at == side and overlaps(ptr, end) for end, at in ends)


class RecordingAllocator:
    """An allocator that records its calls.

    Parameters
    ----------
    inner : Allocator
        The allocator that does the work.
    log : CallLog
    side : str
    pinned : bool
        Whether this is page-locked host memory.
    host : str
        The side of the device's page-locked host memory.

    Attributes
    ----------
    inner : Allocator
    log : CallLog
    """

    def __init__(self, inner: Allocator, log: CallLog, side: str, *, pinned: bool = False, host: str = "cpu") -> None:
        self.inner = inner
        self.log: CallLog = log
        self._host = host
        self._side: str = side
        self._pinned = pinned

    def allocate(self, byte_size: int) -> Any:
        """Allocate, and record it."""
        self._move("allocate")
        ptr = self.inner.allocate(byte_size)
        self.log.calls.append(Action("allocate", self._side, "", byte_size, self._pinned, block=id(ptr)))
        if ptr is not None:
            self.log.live[id(ptr)] = ptr, Allocated(self._side, byte_size, self._pinned)
        return ptr

    def release(self, ptr: Any) -> None:
        """Free, and record it; refuse a pointer that this allocator has not allocated."""
        self._move("release")
        block = self.log.live.get(id(ptr))
        if block is None or (block[1].side, block[1].pinned) != (self._side, self._pinned):
            self.log.stray.append(self._stray(ptr, block))
            raise StrayFree(self.log.stray[-1][1])
        if self.log.uses_in_flight(self._side, ptr, self.inner.overlaps):
            self.log.freed_in_flight.append(f"{self.name} freed memory while a push still used it")
        self.inner.release(ptr)
        del self.log.live[id(ptr)]
        self.log.calls.append(Action("free", self._side, "", block[1].size, self._pinned, block=id(ptr)))

    def memcpy(  # noqa: PLR0913 -- KuiperLLama's signature
        self, src: Any, dest: Any, byte_size: int, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        """Copy, and record it."""
        self._move("memcpy", lambda: self.inner.memcpy(src, dest, byte_size // 2, kind))
        self.inner.memcpy(src, dest, byte_size, kind, stream, need_sync)
        source, side = self._ends(src, dest, kind)
        does = "clone" if source == side else "copy" if stream is None else "push"
        self.log.calls.append(Action(does, side, source, byte_size, stream=stream))
        if stream is not None and byte_size:
            self.log.in_flight.append(Flight(src, dest, (source, side), stream, self.inner.record(stream)))

    def _ends(self, src: Any, dest: Any, kind: Any) -> tuple[str, str]:
        """The sides of a copy, by its pointers; where these are not known, by its direction."""
        source, side = _ENDS.get(kind, _ENDS[MemcpyKind.CPU2CPU])
        return self.log.side_of(src) or source, self.log.side_of(dest) or side

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        """Zero, and record it."""
        self._move("memset_zero", lambda: self.inner.memset_zero(ptr, byte_size // 2))
        self.inner.memset_zero(ptr, byte_size, stream, need_sync)
        self.log.calls.append(Action("zero", self._side, "", byte_size))

    def pinned_host(self) -> RecordingAllocator:
        """The device's page-locked host memory, recorded in the same log."""
        return RecordingAllocator(self.inner.pinned_host(), self.log, self._host, pinned=True)

    def adopt(self, buffer: object, byte_size: int) -> Any:
        """Adopt, and record the pointer as external."""
        self._step("adopt")
        ptr = self.inner.adopt(buffer, byte_size)
        self.log.adopt(self._side, ptr)
        return ptr

    def _stray(self, ptr: Any, block: tuple[Any, Allocated] | None) -> tuple[str, str]:
        if block is not None and block[1].side == self._side:
            kinds = ("pageable", "page-locked")
            return "pinned", f"{self.name} was asked to free {kinds[block[1].pinned]} memory as {kinds[self._pinned]}"
        if ptr is not None and any(ptr is adopted.pointer() for adopted in self.log.adopted):
            return "external", f"{self.name} was asked to free external memory"
        return "stray", f"{self.name} was asked to free {'nothing' if ptr is None else 'memory that is not allocated'}"

    def record(self, stream: Any) -> RecordedEvent:
        """Record an event; a wait for it can fail too."""
        self._step("record")
        return RecordedEvent(self.inner.record(stream), self.log.steps)

    def order_after(self, event: Any) -> None:
        """Order later work after an event."""
        self._step("order_after")
        self.inner.order_after(event.inner)

    def _move(self, call: str, half: Callable[[], object] | None = None) -> None:
        self.log.moves.count(call, self.inner, half)

    def _step(self, call: str) -> None:
        self.log.steps.count(call, self.inner)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)
        if name not in _STEPS:
            return attribute

        def step(*arguments: Any) -> Any:
            self._step(name)
            return attribute(*arguments)

        return step


class RecordedEvent:
    """An event that can be told to fail."""

    def __init__(self, inner: Any, steps: Fuse) -> None:
        self.inner = inner
        self._steps = steps

    @property
    def done(self) -> bool:
        """Whether everything before the point has finished."""
        done: bool = self.inner.done
        return done

    def synchronize(self) -> None:
        """Block until everything before the point has finished."""
        self._steps.count("waiting")
        self.inner.synchronize()


def recorded(subject: Subject) -> tuple[CallLog, *tuple[Any, ...]]:
    """A new log, and for each side of its machine its allocator that records in it; None where there is none."""
    log, machine = CallLog(), subject.machine
    host = next((side for side in machine.sides if subject.on_host(side)), "")
    places = ((side, subject.place(side)) for side in machine.sides)
    return log, *(place and RecordingAllocator(place, log, side, host=host) for side, place in places)
