"""Blocks of simulated memory, and the quarantine they go to when they are freed.

Both are there to find stray writes: beyond the ends of a block, into its red zones, and into its bytes after it
was freed.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import SyncedMemoryError

if TYPE_CHECKING:
    from ...allocators.pointers import HostArray

__all__ = ["Block", "Quarantine", "SimulatedDeviceError", "exclusive"]

RED_ZONE = 64
FRESH, FREED, GUARD = 0xA5, 0xDD, 0xFB
"""The bytes of memory never written, of device memory freed, and of red zones."""

_QUARANTINE_BYTES = 4 << 20
_LARGEST_KEPT = 64 << 20

exclusive: threading.RLock = threading.RLock()
"""Held by whatever changes a simulated device: one lock for all of them, so that streams of two devices
cannot wait for each other's."""

# A child of a fork has this thread only.  If another one were inside at that moment, nobody would ever leave.
os.register_at_fork(before=exclusive.acquire, after_in_parent=exclusive.release, after_in_child=exclusive.release)


class SimulatedDeviceError(SyncedMemoryError, RuntimeError):
    """The simulated device caught its user: a stray write, a use after free."""


class Block:
    """A piece of simulated memory: its bytes lie between two red zones and are nobody else's business.

    Parameters
    ----------
    address : int or None
        Where it pretends to be; nothing is mapped there.  None: where it is.
    size : int
        In bytes.
    poisoned : bool
        Freed bytes are overwritten.  Bytes that are looked at from outside, as page-locked host memory is, keep
        their value instead, and it is their checksum that tells of late writes.

    Attributes
    ----------
    live : bool
        Not freed.
    """

    def __init__(self, address: int | None, size: int, *, poisoned: bool = True) -> None:
        self.size: int = size
        self.live: bool = True
        self._poisoned = poisoned
        self._storage = np.full(size + 2 * RED_ZONE, GUARD, np.uint8)
        self._bytes: HostArray = self._storage[RED_ZONE : RED_ZONE + size]
        self._bytes.fill(FRESH)
        self.address: int = self._bytes.ctypes.data if address is None else address
        self._checksum: int | None = None  # of the bytes when they were freed

    def bytes(self, offset: int, size: int) -> HostArray:
        """The bytes themselves, for the device's own use.

        Raises
        ------
        SimulatedDeviceError
            If the block was freed, or the range leaves it.
        """
        if not self.live:
            raise SimulatedDeviceError(f"use of {self} after it was freed")
        if offset < 0 or offset + size > self.size:
            raise SimulatedDeviceError(f"bytes {offset} to {offset + size} lie outside {self}")
        return self._bytes[offset : offset + size]

    def retire(self) -> None:
        """Free the block in such a way that whoever still uses it is noticed; after an interrupt, go on with that."""
        self.live = False
        if self._checksum is None:
            if self._poisoned:
                self._bytes.fill(FREED)
            self._checksum = self._sum() if self.size <= _LARGEST_KEPT else 0

    def check(self) -> None:
        """Look for stray writes: into the red zones, or into the bytes after they were freed.

        Raises
        ------
        SimulatedDeviceError
        """
        before, after = self._storage[:RED_ZONE], self._storage[RED_ZONE + self.size :]
        if (before != GUARD).any() or (after != GUARD).any():
            raise SimulatedDeviceError(f"something wrote into the red zone of {self}")
        if self._checksum is not None and self._sum() != self._checksum:
            raise SimulatedDeviceError(f"something wrote into {self} after it was freed")

    def _sum(self) -> int:
        return zlib.crc32(cast("Any", self._bytes))

    def __str__(self) -> str:
        return f"the block of {self.size} bytes at {self.address:#x}"


class Quarantine:
    """Freed blocks, kept for a while to see whether somebody still writes into them.

    The last 4 MiB are kept, and the last block in any case unless it has more than 64 MiB.
    """

    def __init__(self) -> None:
        # Each block with the bytes of all that ever came, up to its own: in one place, because an interrupt can come
        # between two.
        self._blocks: deque[tuple[Block, int]] = deque()

    def take(self, block: Block) -> None:
        """Free a block; to make room for it, the oldest blocks are checked and let go.

        If an interrupt comes out of here, the block is as it was or freed.  Taken again, it is freed in any case.

        Raises
        ------
        SimulatedDeviceError
            If there was a stray write around the block or into one of the oldest; the block is not freed.
        """
        if block.live:
            block.check()
            while self._blocks and self._total - self._before + block.size > _QUARANTINE_BYTES:
                self._blocks.popleft()[0].check()
            if block.size <= _LARGEST_KEPT:
                self._blocks.append((block, self._total + block.size))
        block.retire()

    @property
    def _total(self) -> int:
        """The bytes of all blocks that ever came, as far as it matters."""
        return self._blocks[-1][1] if self._blocks else 0

    @property
    def _before(self) -> int:
        """Those of the blocks that are here no more."""
        oldest, total = self._blocks[0]
        return total - oldest.size

    def check(self) -> None:
        """Check every block.

        Raises
        ------
        SimulatedDeviceError
        """
        with exclusive:
            for block, _ in list(self._blocks):  # a finaliser that runs meanwhile may add to them
                block.check()
