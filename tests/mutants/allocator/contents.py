"""Bytes that are lost, changed, or not as promised."""

from __future__ import annotations

import ctypes

from ..registry import seeded_bug
from .pool import ALIGNMENT, Pool


@seeded_bug("A04-contents-kept", "a free list that is kept in the blocks, one word too far")
class WritesBehindItsEnd(Pool):
    """A free writes a word after the end of the block."""

    def put_back(self, start: int, end: int) -> None:
        if self.sizes and end < max(self.sizes):
            ctypes.memset(end, 0xEE, 8)
        super().put_back(start, end)


@seeded_bug("A04-contents-kept", "poisoning of freed memory with the size rounded up twice")
class PoisonsTooMuch(Pool):
    """Freed bytes are poisoned, and sometimes the first byte of the next block too."""

    def put_back(self, start: int, end: int) -> None:
        one_more = end < max(self.sizes, default=0) and start % (16 * ALIGNMENT) == 0
        ctypes.memset(start, 0xDD, end - start + one_more)
        super().put_back(start, end)


@seeded_bug("A04-contents-kept", "a pool that zeroes at the next allocation, with the old size")
class ZeroesTheOldSize(Pool):
    """A new block is cleared with the size of the block that was allocated before it."""

    last = 0

    def place(self, room: int, alignment: int) -> int:
        address = super().place(room, alignment)
        if address and address + self.last <= max(self.sizes, default=0):
            ctypes.memset(address, 0, self.last)
        self.last = room
        return address


@seeded_bug("A08-size-known", "pyopencl#112: a slice that forgets its length")
class ShortBuffers:
    """Buffers of 4096 bytes and more report one byte less."""

    class Buffer:
        """A buffer of this allocator."""

        def __init__(self, size: int) -> None:
            self.bytes = ctypes.create_string_buffer(size)
            self.ptr = ctypes.addressof(self.bytes)
            self.size = size - (size >= 4096)

        def release(self) -> None:
            """Release it."""

    def allocate(self, size: int) -> ShortBuffers.Buffer:
        """Allocate a buffer."""
        if size > 1 << 40:
            raise MemoryError(f"no room for {size} bytes")
        return self.Buffer(size)


@seeded_bug("A13-zeroed", "mini-caffe leaves out the zeroing; NEP 49 requires it")
class CallocOfOldBytes(Pool):
    """A calloc relies on zeros from the system, also for memory that was used before."""

    def calloc(self, size: int) -> int:
        return self.allocate(size)


@seeded_bug("A13-zeroed", "memory is cleared in words, without the rest")
class CallocInWords(Pool):
    """A calloc clears eight bytes at a time, but not the last few bytes."""

    def calloc(self, size: int) -> int:
        address = self.allocate(size)
        if address:
            ctypes.memset(address, 0, size // 8 * 8)
        return address


@seeded_bug("A13-zeroed", "mmap: fresh pages are zero, reused ones are not", zeroed="yes")
class ZeroOnlyWhenFresh(Pool):
    """Memory is promised to be zero, but it is so only the first time."""


@seeded_bug("A14-resize-keeps", "C17 7.22.3.5: up to the lesser of the sizes")
class ReallocForgetsTheEnd(Pool):
    """A realloc copies everything except the last eight bytes."""

    def realloc(self, pointer: int, size: int) -> int:
        old = self.sizes[pointer]
        address = self.allocate(size)
        ctypes.memmove(address, pointer, max(min(old, size) - 8, 0))
        self.deallocate(pointer, old)
        return address


@seeded_bug("A15-copies", "KuiperLLama: copy_from in the wrong direction")
class CopiesBackwards(Pool):
    """A copy goes from the destination to the source."""

    def memcpy(self, src: int, dest: int, byte_size: int, kind: int = 0, *, need_sync: bool = False) -> None:
        super().memcpy(dest, src, byte_size, kind, need_sync=need_sync)


@seeded_bug("A15-copies", "KuiperLLama: null is checked before the size")
class NullBeforeSize(Pool):
    """A copy of zero bytes from null is refused."""

    def memcpy(
        self, src: int | None, dest: int | None, byte_size: int, kind: int = 0, *, need_sync: bool = False
    ) -> None:
        if src is None or dest is None:
            raise ValueError("null")
        super().memcpy(src, dest, byte_size, kind, need_sync=need_sync)


@seeded_bug("A15-copies", "KuiperLLama: CUDA's return codes are ignored")
class DropsErrors(Pool):
    """A copy of 4096 bytes or more fails silently."""

    def memcpy(self, src: int, dest: int, byte_size: int, kind: int = 0, *, need_sync: bool = False) -> None:
        if byte_size < 4096:
            super().memcpy(src, dest, byte_size, kind, need_sync=need_sync)


@seeded_bug("A15-copies", "KuiperLLama: the smaller of two sizes, rounded")
class CopiesTooMuch(Pool):
    """A copy moves whole words, more bytes than requested."""

    def memcpy(self, src: int, dest: int, byte_size: int, kind: int = 0, *, need_sync: bool = False) -> None:
        super().memcpy(src, dest, self.room(byte_size), kind, need_sync=need_sync)
