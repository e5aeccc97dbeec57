"""`TrackingAllocator`: which blocks are allocated and not released, and who allocated them."""

from __future__ import annotations

import sys
import traceback
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from .adaptor import Adaptor
from .pointers import LiveBlocks, address_of

if TYPE_CHECKING:
    from types import FrameType

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["Allocation", "TrackingAllocator"]


_OURS = __name__.partition(".allocators")[0]


class Allocation(NamedTuple):
    """A block that is allocated.

    Attributes
    ----------
    number : int
        Its number in the order of allocation, from 1.
    address : int
    byte_size : int
    stack : traceback.StackSummary or None
        The call stack of the allocation, the innermost call last; None if stacks are not kept.
    """

    number: int
    address: int
    byte_size: int
    stack: traceback.StackSummary | None

    def __repr__(self) -> str:
        return f"<Allocation {self.number}: {self.byte_size} bytes at {self.address:#x}>"


class TrackingAllocator(Adaptor):
    """Knows which blocks are allocated; RMM's ``TrackingResourceAdaptor``.

    Parameters
    ----------
    upstream : DeviceAllocator
    stacks : bool
        Keep the call stack of each allocation; this takes some microseconds.
    """

    def __init__(self, upstream: DeviceAllocator, *, stacks: bool = False) -> None:
        super().__init__(upstream)
        self._stacks = stacks
        self._numbers = count(1)
        self._live = LiveBlocks(self.name)

    def allocate(self, byte_size: int) -> Pointer | None:
        stack = _callers() if self._stacks else None
        ptr = self._upstream.allocate(byte_size)
        if ptr is not None:
            self._live.blocks[id(ptr)] = ptr, (next(self._numbers), len(ptr), stack)
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is None:
            return
        entry = self._live.take(ptr)
        try:
            self._upstream.release(ptr)
        except BaseException:
            self._live.blocks[id(ptr)] = entry
            raise

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated."""
        return len(self._live)

    @property
    def allocated_bytes(self) -> int:
        """How many bytes are allocated."""
        return sum(byte_size for _, (_, byte_size, _) in self._live.entries())

    @property
    def outstanding_allocations(self) -> list[Allocation]:
        """The allocated blocks, in order of allocation."""
        noted = [Allocation(number, address_of(ptr), *rest) for ptr, (number, *rest) in self._live.entries()]
        return sorted(noted)

    def leak_report(self) -> str:
        """The allocated blocks as text: a line for all of them, then one for each, with its stack if it was kept."""
        blocks = self.outstanding_allocations
        lines = [f"{sum(block.byte_size for block in blocks)} bytes in {len(blocks)} blocks are in use on {self.name}"]
        for block in blocks:
            lines.append(f"  #{block.number}: {block.byte_size} bytes at {block.address:#x}")
            lines += [f"    {line}" for line in "".join(block.stack.format() if block.stack else ()).splitlines()]
        return "\n".join(lines)


def _callers() -> traceback.StackSummary:
    """The call stack of our caller, without our own calls; the source lines are read when the stack is shown."""
    here = sys._getframe(2)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] -- the way to skip a frame
    frame: FrameType | None = here
    while frame is not None and str(frame.f_globals.get("__package__")).startswith(_OURS):
        frame = frame.f_back
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame or here), lookup_lines=False)
    stack.reverse()
    return stack
