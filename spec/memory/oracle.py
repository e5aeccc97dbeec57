"""The oracle: the expected effect of every call, derived from which copies are fresh.

It never reads the transition table.  It knows two copies of one buffer, the owner of each, which of them are
fresh, and their bytes.  From these follow the expected allocator calls, the head, the flags,
and whether a call must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from syncedmem.model import Mode, SyncedHead

if TYPE_CHECKING:
    from ..engine.calls import Side

__all__ = ["Copy", "Expected", "Oracle", "Wanted"]

Owner = Literal["nobody", "memory", "caller"]


class Wanted(NamedTuple):
    """An expected allocator call.

    Attributes
    ----------
    operation : {"allocate", "zero", "copy", "push", "free"}
    side : {"cpu", "gpu"}
        Where memory is allocated, zeroed or freed; for a copy, its destination.
    pinned : bool
        Whether the host memory is page-locked.
    """

    operation: Literal["allocate", "zero", "copy", "push", "free"]
    side: Side
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """One of the two copies.

    Attributes
    ----------
    owner : {"nobody", "memory", "caller"}
        If nobody is the owner, there is no memory.
    fresh : bool
    content : bytes or None
        None if nothing is promised.
    """

    owner: Owner = "nobody"
    fresh: bool = False
    content: bytes | None = None


class Expected(NamedTuple):
    """The expected effect of one call: either a refusal, or allocator calls and a new state."""

    refused: bool
    calls: tuple[Wanted, ...]
    after: Oracle


@dataclass(frozen=True, slots=True)
class Oracle:
    """The state of a memory, and the effect of each call on it.

    Attributes
    ----------
    size : int
        The size in bytes.
    has_device : bool
    pins : bool
        Whether host memory that is allocated in GPU mode is page-locked.
    cpu, gpu : Copy
    pinned : bool
        Whether the host memory was allocated page-locked; it does not change later.
    released : bool
    """

    size: int
    has_device: bool = True
    pins: bool = True
    cpu: Copy = Copy()
    gpu: Copy = Copy()
    pinned: bool = False
    released: bool = False

    @property
    def head(self) -> SyncedHead:
        """The head that says which copies are fresh."""
        if self.cpu.fresh and self.gpu.fresh:
            return SyncedHead.SYNCED
        if self.cpu.fresh:
            return SyncedHead.HEAD_AT_CPU
        return SyncedHead.HEAD_AT_GPU if self.gpu.fresh else SyncedHead.UNINITIALIZED

    def read(self, side: Side, mode: Mode) -> Expected:
        """Read a side."""
        if self._refuses(side):
            return self._refusal()
        here, there = self._copies(side)
        if here.fresh:
            return Expected(False, (), self)
        calls: list[Wanted] = []
        pinned = self.pinned
        if here.owner == "nobody":
            pinned = self.has_device and self.pins and mode is Mode.GPU if side == "cpu" else pinned
            calls.append(Wanted("allocate", side, side == "cpu" and pinned))
            here = replace(here, owner="memory")
        if there.fresh:
            calls.append(Wanted("copy", side))
            here = replace(here, fresh=True, content=there.content)
        else:
            calls.append(Wanted("zero", side))
            here = replace(here, fresh=True, content=bytes(self.size))
        return Expected(False, self._seen(calls), replace(self._with(side, here, there), pinned=pinned))

    def write(self, side: Side, mode: Mode) -> Expected:
        """Get a side for writing; the other copy becomes stale."""
        refused, calls, after = self.read(side, mode)
        return Expected(refused, calls, after if refused else after.made_stale("gpu" if side == "cpu" else "cpu"))

    def written(self, side: Side, content: bytes) -> Oracle:
        """The state after a side was written through a view."""
        here, there = self._copies(side)
        return self._with(side, replace(here, content=content), there)

    def made_stale(self, side: Side) -> Oracle:
        """The state after one copy became stale."""
        here, there = self._copies(side)
        return self._with(side, replace(here, fresh=False), there)

    def adopt(self, side: Side, content: bytes | None) -> Expected:
        """Adopt a buffer with these bytes; None is no buffer."""
        if self._refuses(side) or content is None:
            return self._refusal()
        here, there = self._copies(side)
        owned = here.owner == "memory"
        calls = [Wanted("free", side, side == "cpu" and self.pinned)] if owned else []
        after = self._with(side, Copy("caller", True, content), replace(there, fresh=False))
        return Expected(False, self._seen(calls), after)

    def push(self) -> Expected:
        """Queue a copy to the device."""
        if self._refuses("gpu") or not self.cpu.fresh or self.gpu.fresh:
            return self._refusal()
        calls = [] if self.gpu.owner != "nobody" else [Wanted("allocate", "gpu")]
        owner: Owner = "memory" if self.gpu.owner == "nobody" else self.gpu.owner
        after = replace(self, gpu=Copy(owner, True, self.cpu.content))
        return Expected(False, self._seen([*calls, Wanted("push", "gpu")]), after)

    def release(self) -> Expected:
        """Release everything; a second release has nothing to do."""
        calls: list[Wanted] = []
        if self.cpu.owner == "memory":
            calls.append(Wanted("free", "cpu", self.pinned))
        if self.gpu.owner == "memory":
            calls.append(Wanted("free", "gpu"))
        return Expected(False, self._seen(calls), replace(self, cpu=Copy(), gpu=Copy(), released=True))

    def _refuses(self, side: Side) -> bool:
        return self.released or (side == "gpu" and not self.has_device)

    def _refusal(self) -> Expected:
        return Expected(True, (), self)

    def copy(self, side: Side) -> Copy:
        """The copy on one side."""
        return self.cpu if side == "cpu" else self.gpu

    def _copies(self, side: Side) -> tuple[Copy, Copy]:
        return (self.cpu, self.gpu) if side == "cpu" else (self.gpu, self.cpu)

    def _with(self, side: Side, here: Copy, there: Copy) -> Oracle:
        return replace(self, cpu=here, gpu=there) if side == "cpu" else replace(self, gpu=here, cpu=there)

    def _seen(self, calls: list[Wanted]) -> tuple[Wanted, ...]:
        """The calls that can be observed: none for zero bytes."""
        return tuple(calls) if self.size else ()
