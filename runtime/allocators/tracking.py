"""`TrackingAllocator`: which blocks are allocated and not released, and who allocated them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .adaptor import Adaptor
from .failures import new_block
from .pointers import LiveBlocks, address_of

if TYPE_CHECKING:
    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["Allocation", "TrackingAllocator"]


class Allocation(NamedTuple):
    """A block that is allocated.

    Attributes
    ----------
    number : int
        Its number in the order of allocation, from 1.
    address : int
    byte_size : int
    """

    number: int
    address: int
    byte_size: int

    def __repr__(self) -> str:
        return f"<Allocation {self.number}: {self.byte_size} bytes at {self.address:#x}>"


class TrackingAllocator(Adaptor):
    """Knows which blocks are allocated; RMM's ``TrackingResourceAdaptor``.

    Parameters
    ----------
    upstream : DeviceAllocator
    """

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._newest = 0
        self._live = LiveBlocks(self.name)

    def allocate(self, byte_size: int) -> Pointer | None:
        ptr, key, size = new_block(self._upstream, byte_size)
        if ptr is not None:  # no call from here on
            self._newest = number = self._newest + 1
            self._live.blocks[key] = ptr, (number, size)
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is not None:
            self._live.release(ptr, self._upstream)

    def _is_live(self, ptr: Pointer) -> bool | None:
        return ptr in self._live

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated."""
        return len(self._live)

    @property
    def allocated_bytes(self) -> int:
        """How many bytes are allocated."""
        return sum(byte_size for _, (_, byte_size) in self._live.entries())

    @property
    def outstanding_allocations(self) -> list[Allocation]:
        """The allocated blocks, in order of allocation."""
        noted = [Allocation(number, address_of(ptr), byte_size) for ptr, (number, byte_size) in self._live.entries()]
        return sorted(noted)

    def leak_report(self) -> str:
        """The allocated blocks as text: a line for all of them, then one for each."""
        blocks = self.outstanding_allocations
        lines = [f"{sum(block.byte_size for block in blocks)} bytes in {len(blocks)} blocks are in use on {self.name}"]
        lines += [f"  #{block.number}: {block.byte_size} bytes at {block.address:#x}" for block in blocks]
        return "\n".join(lines)
