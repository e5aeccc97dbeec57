"""Blocks of simulated memory, and the quarantine for freed blocks.

Both find stray writes: into the red zones at the ends of a block, and into its bytes after it was freed.
"""

from __future__ import annotations

import weakref
import zlib
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import SyncedMemoryError

from ...allocators.forking import fork_safe_lock

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from ...allocators.pointers import HostArray

__all__ = ["Block", "Quarantine", "SimulatedDeviceError", "exclusive"]

RED_ZONE = 64
FRESH, FREED, GUARD = 0xA5, 0xDD, 0xFB
"""The bytes that fill new memory, freed device memory, and red zones."""

# Compared as bytes: NumPy's `any` imports a module, which a finaliser cannot do while the interpreter exits.
_INTACT = bytes([GUARD]) * RED_ZONE

_ALIGNMENT = 64
"""As that of other host memory; JAX, for example, copies arrays that are aligned less."""

_QUARANTINE_BYTES, _QUARANTINE_BLOCKS = 4 << 20, 4096
"""A block takes a KiB beside its bytes, so that many small ones would take a hundred times as much as their bytes."""

_LARGEST_KEPT = 64 << 20

exclusive: threading.RLock = fork_safe_lock()
"""Held by every change of a simulated device.  There is one lock for all devices: otherwise streams of two devices
could wait for each other's lock."""


class SimulatedDeviceError(SyncedMemoryError, RuntimeError):
    """An error of the user of a simulated device: a stray write, or a use after free."""


def _nothing() -> None:
    """There is nothing to undo."""


class Block:
    """A piece of simulated memory, between two red zones.

    Parameters
    ----------
    address : int or None
        The simulated address; nothing is mapped there.  None: the real address.
    size : int
        In bytes.
    poisoned : bool
        Whether freed bytes are overwritten.  Bytes that users see directly, as in page-locked host memory, keep their
        values instead, and a checksum of them tells whether somebody wrote later.

    Attributes
    ----------
    content : array
        The bytes between the red zones, as host memory; for the device's own use.
    live : bool
        Whether the block is not freed.
    checksum : int or None
        Of the bytes at the time when they were freed; None before that, and if nobody compares.
    """

    def __init__(self, address: int | None, size: int, *, poisoned: bool = True) -> None:
        self.size: int = size
        self.live: bool = True
        self._poisoned = poisoned
        storage = np.full(size + 2 * RED_ZONE + _ALIGNMENT - 1, GUARD, np.uint8)
        first = storage.ctypes.data
        start = -first % _ALIGNMENT
        self._storage = storage[start : start + size + 2 * RED_ZONE]
        self.content: HostArray = self._storage[RED_ZONE : RED_ZONE + size]
        self.content.fill(FRESH)
        self._start: int = first + start + RED_ZONE
        self.address: int = self._start if address is None else address
        self.checksum: int | None = None
        self._lent: list[weakref.ref[HostArray]] = []

    def freed(self) -> SimulatedDeviceError:
        """The error for a use of the block after it was freed."""
        why = "by release(), or when the blob, memory or buffer that it belonged to was closed, collected or grown"
        advice = "keep a reference to that as long as you use its arrays"
        return SimulatedDeviceError(f"use of {self} after it was freed, {why}; {advice}")

    def address_of(self, items: np.ndarray[Any, np.dtype[Any]]) -> int:
        """The address of the first of some items of this block, as users see it."""
        first: int = items.__array_interface__["data"][0]
        return self.address + first - self._start

    def lend(self, items: HostArray) -> None:
        """Remember that queued work will use some of the bytes, as long as it keeps `items`.

        As on real devices, such work finds its bytes even if the block is freed before its turn comes.
        """
        self._lent = [*(part for part in self._lent if part() is not None), weakref.ref(items)]

    def spoil(self) -> Callable[[], None]:
        """Poison the bytes, because the block is freed next; returns what undoes this.

        Bytes that users see directly stay as they are, and so do those for which there is no room to undo it.
        """
        storage, content = self._storage, self.content
        if not self._poisoned or self.size > _LARGEST_KEPT:
            return _nothing
        try:
            copy = storage.copy()
        except MemoryError:
            return _nothing
        if [part for part in self._lent if part() is not None]:  # queued work keeps them, and the block gets others
            self._storage, self.content = copy, copy[RED_ZONE : RED_ZONE + self.size]
        undo = partial(self._undo, storage, content, copy)
        try:
            self.content.fill(FREED)
        except BaseException:
            undo()
            raise
        return undo

    def _undo(self, storage: HostArray, content: HostArray, copy: HostArray) -> None:
        if self._storage is storage:
            storage[:] = copy
        self._storage, self.content = storage, content

    def check(self) -> None:
        """Check for stray writes: into the red zones, or into the bytes after they were freed."""
        before, after = self._storage[:RED_ZONE], self._storage[RED_ZONE + self.size :]
        if before.tobytes() != _INTACT or after.tobytes() != _INTACT:
            raise SimulatedDeviceError(f"something wrote into the red zone of {self}")
        if self.checksum is not None and self.sum() != self.checksum:
            raise SimulatedDeviceError(f"something wrote into {self} after it was freed")

    def sum(self) -> int | None:
        """The checksum of the bytes; None for a block that the quarantine does not keep."""
        return zlib.crc32(cast("Any", self.content)) if self.size <= _LARGEST_KEPT else None

    def __str__(self) -> str:
        return f"the block of {self.size} bytes at {self.address:#x}"


class Quarantine:
    """Freed blocks, kept for a while to find writes into them.

    The last 4 MiB are kept, at most 4,096 blocks.  The last block is kept in any case, unless it has more than 64 MiB.
    """

    def __init__(self) -> None:
        # Each block, with the number of bytes of all blocks that ever came, up to this one.  They are stored together,
        # because an interrupt can come between two changes.
        self._blocks: deque[tuple[Block, int]] = deque()

    def take(self, block: Block) -> None:
        """Check a block that is freed next, and keep it; to make room for it, the oldest are checked and dropped."""
        block.check()
        while self._blocks and (
            self._total - self._before + block.size > _QUARANTINE_BYTES or len(self._blocks) == _QUARANTINE_BLOCKS
        ):
            self._blocks.popleft()[0].check()
        if block.size <= _LARGEST_KEPT:
            self._blocks.append((block, self._total + block.size))

    @property
    def _total(self) -> int:
        """The number of bytes of all blocks that ever came; counted anew when no block is left."""
        return self._blocks[-1][1] if self._blocks else 0

    @property
    def _before(self) -> int:
        """The number of bytes of the blocks that were dropped."""
        oldest, total = self._blocks[0]
        return total - oldest.size

    def check(self) -> None:
        """Check every block."""
        with exclusive:
            for block, _ in list(self._blocks):  # a finaliser that runs meanwhile may add blocks
                block.check()
