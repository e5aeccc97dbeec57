"""Instrumented allocators: every allocate, free, copy and zero of a memory under test, with its size.

They wrap any allocator, pass everything through, and keep one ledger for the two sides of a memory.  On
request they make the k-th call fail.  They are how the kit sees what a memory does without asking it.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from .oracle import Side

__all__ = ["Allocator", "Entry", "InjectedFailure", "Ledger", "RecordingAllocator", "StrayFree"]

_TO_DEVICE, _TO_HOST = 1, 2  # MemcpyKind.CPU2CUDA and MemcpyKind.CUDA2CPU of every allocator


class Allocator(Protocol):
    """What the kit and a memory under test need of an allocator; pointers are arrays of its own kind."""

    @property
    def name(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    def allocate(self, byte_size: int) -> Any: ...
    def release(self, ptr: Any) -> None: ...
    def memcpy(  # noqa: PLR0913 -- the seed's signature, 004:25-27
        self, src: Any, dest: Any, byte_size: int, kind: Any = ..., stream: Any = ..., need_sync: bool = ...
    ) -> None: ...
    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = ..., need_sync: bool = ...) -> None: ...
    def empty(self, byte_size: int) -> Any: ...
    def stream(self) -> Any: ...
    def check_stream(self, stream: object) -> None: ...
    def adopt(self, buffer: object, byte_size: int) -> Any: ...
    def overlaps(self, first: Any, second: Any) -> bool: ...
    def record(self, stream: Any) -> Any: ...
    def order_after(self, event: Any) -> None: ...
    def pinned_host(self) -> Any: ...
    def read_only(self, ptr: Any) -> Any: ...
    def using(self) -> Any: ...
    def current_ordinal(self) -> int: ...


class InjectedFailure(MemoryError):
    """A call was told to fail."""


class StrayFree(ValueError):
    """Something was freed that is not allocated."""


class Entry(NamedTuple):
    """One allocator call.

    Attributes
    ----------
    operation : {"allocate", "zero", "copy", "push", "free"}
        A ``push`` is a copy on a stream.
    side : {"cpu", "gpu"}
        Where; for copies, where to.
    byte_size : int
    pinned : bool
    """

    operation: Literal["allocate", "zero", "copy", "push", "free"]
    side: Side
    byte_size: int
    pinned: bool = False


@dataclass
class Ledger:
    """What the allocators of one memory were asked for, and what is still out.

    Attributes
    ----------
    entries : list of Entry
        Calls that succeeded, in order.
    live : dict
        ``id(pointer)`` to the pointer and the entry that allocated it.
    stray : list of (str, str)
        Frees of what this allocator has not out: the kind (``"external"``, ``"pinned"`` for the wrong kind of
        host memory, or ``"stray"``) and a sentence.  Refused, and remembered even if the memory hides the error.
    adopted : list
        Weak references to the pointers that `adopt` returned: keeping them alive is the memory's duty.
    in_flight : list
        Copies on streams: source, destination and an event.
    freed_in_flight : list of str
        Frees of memory that such a copy still used.
    """

    entries: list[Entry] = field(default_factory=list[Entry])
    live: dict[int, tuple[Any, Entry]] = field(default_factory=dict[int, tuple[Any, Entry]])
    stray: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    adopted: list[Any] = field(default_factory=list[Any])
    in_flight: list[tuple[Any, Any, Any]] = field(default_factory=list[tuple[Any, Any, Any]])
    freed_in_flight: list[str] = field(default_factory=list[str])
    _countdown: int = 0
    _partial: bool = False

    def fail_at(self, k: int, *, partial: bool = False) -> None:
        """Make the k-th call from now fail, counting from 1; 0 disarms.

        With `partial`, a copy or a fill that fails has spoilt its destination first.
        """
        self._countdown, self._partial = k, partial

    def blows(self) -> bool:
        """Count a call; whether it is the one to fail."""
        self._countdown -= 1
        return self._countdown == 0

    @property
    def spoils(self) -> bool:
        """Whether a failing copy writes before it fails."""
        return self._partial

    def owned(self, side: Side) -> list[Any]:
        """The live pointers of a side."""
        return [ptr for ptr, entry in self.live.values() if entry.side == side]

    def reads_in_flight(self, ptr: Any) -> bool:
        """Whether a queued copy still reads from this very pointer, or an array over the same bytes."""
        return any(source is ptr and not event.done for source, _, event in self.in_flight)

    def uses_in_flight(self, ptr: Any) -> bool:
        """Whether a queued copy still uses this pointer at either end."""
        return any((source is ptr or dest is ptr) and not event.done for source, dest, event in self.in_flight)


class RecordingAllocator:
    """An allocator that writes down what is asked of it.

    Parameters
    ----------
    inner : Allocator
        Does the work.
    ledger : Ledger
    side : {"cpu", "gpu"}
    pinned : bool
        Whether this is page-locked host memory.
    """

    def __init__(self, inner: Allocator, ledger: Ledger, side: Side, *, pinned: bool = False) -> None:
        self.inner = inner
        self._ledger = ledger
        self._side: Side = side
        self._pinned = pinned

    def allocate(self, byte_size: int) -> Any:
        """Allocate, and note it."""
        self._fail("allocate")
        ptr = self.inner.allocate(byte_size)
        entry = Entry("allocate", self._side, byte_size, self._pinned)
        self._ledger.entries.append(entry)
        if ptr is not None:
            self._ledger.live[id(ptr)] = (ptr, entry)
        return ptr

    def release(self, ptr: Any) -> None:
        """Free, and note it; refuse what this allocator has not out."""
        self._fail("release")
        found = self._ledger.live.get(id(ptr))
        if found is None or (found[1].side, found[1].pinned) != (self._side, self._pinned):
            self._ledger.stray.append(self._stray(ptr, found))
            raise StrayFree(self._ledger.stray[-1][1])
        if self._ledger.uses_in_flight(ptr):
            self._ledger.freed_in_flight.append(f"{self.name}: freed while a push still used it")
        self.inner.release(ptr)
        del self._ledger.live[id(ptr)]
        self._ledger.entries.append(Entry("free", self._side, found[1].byte_size, self._pinned))

    def memcpy(  # noqa: PLR0913 -- the seed's signature, 004:25-27
        self, src: Any, dest: Any, byte_size: int, kind: Any = 0, stream: Any = None, need_sync: bool = False
    ) -> None:
        """Copy, and note it."""
        self._fail("memcpy", lambda: self.inner.memcpy(src, dest, byte_size // 2, kind))
        self.inner.memcpy(src, dest, byte_size, kind, stream, need_sync)
        side: Side = "gpu" if kind == _TO_DEVICE else "cpu"
        self._ledger.entries.append(Entry("copy" if stream is None else "push", side, byte_size))
        if stream is not None:
            self._ledger.in_flight.append((src, dest, self.inner.record(stream)))

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        """Zero, and note it."""
        self._fail("memset_zero", lambda: self.inner.memset_zero(ptr, byte_size // 2))
        self.inner.memset_zero(ptr, byte_size, stream, need_sync)
        self._ledger.entries.append(Entry("zero", self._side, byte_size))

    def pinned_host(self) -> RecordingAllocator:
        """The device's page-locked host memory, recorded in the same ledger."""
        return RecordingAllocator(self.inner.pinned_host(), self._ledger, "cpu", pinned=True)

    def adopt(self, buffer: object, byte_size: int) -> Any:
        """Adopt, and remember that the pointer is not ours."""
        ptr = self.inner.adopt(buffer, byte_size)
        self._ledger.adopted.append(weakref.ref(ptr))
        return ptr

    def _stray(self, ptr: Any, found: tuple[Any, Entry] | None) -> tuple[str, str]:
        if found is not None and found[1].side == self._side:
            kinds = ("pageable", "page-locked")
            return "pinned", f"{self.name} was asked to free {kinds[found[1].pinned]} memory as {kinds[self._pinned]}"
        if ptr is not None and any(ptr is adopted() for adopted in self._ledger.adopted):
            return "external", f"{self.name} was asked to free external memory"
        return "stray", f"{self.name} was asked to free {'nothing' if ptr is None else 'what is not allocated'}"

    def _fail(self, operation: str, half: Any = None) -> None:
        if self._ledger.blows():
            if half is not None and self._ledger.spoils:
                half()
            raise InjectedFailure(f"{operation} on {self.name} was told to fail")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
