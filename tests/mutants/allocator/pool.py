"""`Pool`: a correct allocator, in steps that a bug can replace one by one."""

from __future__ import annotations

import ctypes
import mmap
import threading
from bisect import insort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncedmem.spec.fuzz.streams import StreamEvent

__all__ = ["Pool"]

ALIGNMENT = 64
_CAPACITY = 24 << 20


class Pool:
    """First fit over one piece of host memory: allocates, resizes, copies and counts.

    For zero bytes it returns null, it refuses wrong frees, and without room it raises ``MemoryError``.

    Attributes
    ----------
    limit : int
        The most bytes that may be live.
    live_bytes, live_blocks, peak_bytes : int
    current_device : int
    """

    def __init__(self, limit: int = _CAPACITY) -> None:
        self.limit = limit
        self.live_bytes = self.live_blocks = self.peak_bytes = self.current_device = 0
        # Private, like a heap: a fork has its own.
        self._arena = mmap.mmap(-1, _CAPACITY + ALIGNMENT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._arena))
        start += -start % ALIGNMENT
        self.holes: list[tuple[int, int]] = [(start, start + _CAPACITY)]
        self.sizes: dict[int, int] = {}
        self.pending: list[tuple[StreamEvent, int, int]] = []
        self.lock: Any = threading.RLock()

    def allocate(self, size: int, alignment: int = ALIGNMENT, stream: Any = None) -> int:
        """Allocate this many bytes; return the address, or 0 for zero bytes."""
        with self.lock:
            if not size:
                return self.nothing()
            self.settle(stream)
            if self.live_bytes + size > self.limit:
                return self.refuse(size)
            address = self.place(self.room(size), max(alignment, ALIGNMENT))
            if not address:
                return self.refuse(size)
            self.sizes[address] = size
            self.count(size)
            return address

    def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
        """Free memory; work on the stream may still use it."""
        with self.lock:
            self.verify(pointer, size)
            actual = self.sizes.pop(pointer)
            self.uncount(actual)
            end = pointer + self.room(actual)
            if stream is None or stream.done:
                self.put_back(pointer, end)
            else:
                self.pending.append((stream.record(), pointer, end))

    def calloc(self, size: int) -> int:
        """Allocate memory that is zero."""
        address = self.allocate(size)
        if address:
            ctypes.memset(address, 0, size)
        return address

    def realloc(self, pointer: int, size: int) -> int:
        """Change the size of a block, and keep its contents."""
        old = self.sizes[pointer]
        address = self.allocate(size)
        ctypes.memmove(address, pointer, min(old, size))
        self.deallocate(pointer, old)
        return address

    def memcpy(self, src: int, dest: int, byte_size: int, kind: int = 0, *, need_sync: bool = False) -> None:
        """Copy bytes; for zero bytes the pointers may be null."""
        del kind, need_sync
        if byte_size:
            ctypes.memmove(dest, src, byte_size)

    def close(self) -> None:
        """Close the pool; no block may be in use."""
        if self.sizes:
            raise RuntimeError(f"{len(self.sizes)} blocks are in use")

    # --- the steps

    def nothing(self) -> int:
        """The result for zero bytes."""
        return 0

    def room(self, size: int) -> int:
        """The number of bytes that a block occupies."""
        return -(-size // ALIGNMENT) * ALIGNMENT

    def place(self, room: int, alignment: int) -> int:
        """The first hole that is large enough; 0 if there is none."""
        for index, (start, end) in enumerate(self.holes):
            address = start + -start % alignment
            if address + room <= end:
                rest = [(address + room, end)] if address + room < end else []
                self.holes[index : index + 1] = ([(start, address)] if start < address else []) + rest
                return address
        return 0

    def put_back(self, start: int, end: int) -> None:
        """Make a hole, and merge it with its neighbours."""
        insort(self.holes, (start, end))
        index = self.holes.index((start, end))
        if index + 1 < len(self.holes) and self.holes[index + 1][0] == end:
            end = self.holes.pop(index + 1)[1]
        if index and self.holes[index - 1][1] == start:
            start = self.holes.pop(index - 1)[0]
            index -= 1
        self.holes[index] = (start, end)

    def settle(self, stream: Any) -> None:
        """Take back blocks whose streams have finished."""
        del stream
        waiting: list[tuple[StreamEvent, int, int]] = []
        for event, start, end in self.pending:
            if event.done:
                self.put_back(start, end)
            else:
                waiting.append((event, start, end))
        self.pending = waiting

    def refuse(self, size: int) -> int:
        """Fail for lack of room."""
        raise MemoryError(f"no room for {size} bytes")

    def verify(self, pointer: int, size: int) -> None:
        """Refuse to free a block that is not in use or has another size."""
        if self.sizes.get(pointer) != size:
            raise ValueError(f"no block of {size} bytes at {pointer:#x}")

    def count(self, size: int) -> None:
        """Count one block more."""
        self.live_blocks += 1
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def uncount(self, size: int) -> None:
        """Count one block less."""
        self.live_blocks -= 1
        self.live_bytes -= size
