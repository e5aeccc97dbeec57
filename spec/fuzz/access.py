"""Writes and checks the contents of blocks: through their addresses if the host can, else through their handles.

Of a large block only a few windows are written.  The system gives memory to a process when it is first touched, so a
block of many gibibytes costs only some pages.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .handles import through_handle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .capabilities import Capabilities
    from .shadow_heap import Block
    from .targets import Target

__all__ = ["WHOLE", "Access", "HostAccess", "access_to", "contents"]

_MAPS = Path("/proc/self/maps")
_MSYNC: Callable[[int, int, int], int] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(
    ("msync", ctypes.CDLL(None))
)
_MS_ASYNC = 1
"""With this, ``msync`` only looks whether all of a range is mapped.  To read /proc takes a hundred times as long."""

TILE = 1 << 16
"""The number of bytes after which a pattern repeats."""

WHOLE = 4 << 20
"""Blocks of up to this size are written and compared whole; larger ones in windows."""

_WINDOW = 4096
_STEP = 4099
"""Each window of a block has other contents than the last, so that none can stand for another."""


@lru_cache(maxsize=256)
def _pieces(size: int) -> tuple[tuple[int, int, int], ...]:
    """The pieces of a block that are written: all of it in tiles, or of a large block its ends and each power of two.

    Each has an offset, a length, and a number that is added to the key of the block.
    """
    if size <= WHOLE:
        return tuple((start, min(TILE, size - start), 0) for start in range(0, size, TILE))
    half = _WINDOW // 2
    powers = [(1 << k) - half for k in range(17, (size - half).bit_length())]
    starts = [0, *powers, size - _WINDOW]
    kept = [start for start, following in zip(starts, [*starts[1:], size], strict=True) if start + _WINDOW <= following]
    return tuple((start, _WINDOW, index * _STEP) for index, start in enumerate(kept))


PATTERN = random.Random(0).randbytes(2 * TILE)  # noqa: S311 -- a pattern, not a secret
"""The contents of a block are a tile of it, which repeats: each key has another one."""


def contents(key: int, size: int) -> bytes:
    """The contents of a block with this key and size."""
    key %= TILE
    tile = PATTERN[key : key + TILE]
    return tile[:size] if size <= TILE else (tile * (size // TILE + 1))[:size]


class Access:
    """Writes the contents of blocks, and checks whether they have changed, through functions of their handles.

    These begin at the first byte, so a large block has a single window there.  Without them nothing is checked, and the
    reason says why; it is empty otherwise.
    """

    reason: str = ""

    def __init__(
        self, read: Callable[[Any, int], bytes] | None = None, write: Callable[[Any, bytes], object] | None = None
    ) -> None:
        self._read, self._write = read, write
        if read is None or write is None:
            self.reason = "the host cannot read the memory, and the target has no read and write"

    def fill(self, block: Block) -> None:
        """Fill a block with the pattern of its key."""
        if self._write is not None:
            self._write(block.handle, contents(block.key, min(block.extent, WHOLE)))

    def differs(self, block: Block, size: int, written: int = 0) -> str:
        """A sentence about the first difference in the first `size` bytes; empty if there is none.

        `written` is the size of the block when it was filled, if that was another size.
        """
        del written
        if self.reason:
            return ""
        size = min(size, WHOLE)
        expected, present = contents(block.key, size), self.read(block, size)
        return "" if expected == present else _difference(expected, present)

    def read(self, block: Block, size: int, start: int = 0) -> bytes:
        """Bytes of a block, from one on; none if nobody can read them."""
        return b"" if self._read is None else self._read(block.handle, size)[start:]

    def parts(self, block: Block) -> Iterable[tuple[int, bytes]]:
        """The parts that `fill` writes, each with its offset."""
        return [(0, self.read(block, min(block.extent, WHOLE)))]


class HostAccess(Access):
    """For host memory: the C library copies and compares."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(PATTERN, len(PATTERN))
        self._base = ctypes.addressof(self._buffer)
        # PYFUNCTYPE keeps the interpreter's lock.  For a few bytes that is faster, and no other thread can free a
        # block between two calls.
        pointers = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        library = ctypes.CDLL(None)
        self._move: Callable[[int, int, int], object] = ctypes.PYFUNCTYPE(None, *pointers)(("memmove", library))
        self._compare: Callable[[int, int, int], int] = ctypes.PYFUNCTYPE(ctypes.c_int, *pointers)(("memcmp", library))

    def fill(self, block: Block) -> None:
        """Fill a block with the pattern of its key."""
        size, source, target = block.extent, self._base + block.key, block.address
        if size <= TILE:  # nearly always
            self._move(target, source, size)
            return
        gap = first_gap(target, size) if size > WHOLE else None
        if gap is not None:
            raise MemoryError(f"the system has no memory at byte {gap}")
        for start, length, shift in _pieces(size):
            self._move(target + start, self._base + (block.key + shift) % TILE, length)

    def differs(self, block: Block, size: int, written: int = 0) -> str:
        """A sentence about the first difference in the first `size` bytes; empty if there is none."""
        if size <= TILE and written <= WHOLE:
            same = not self._compare(block.address, self._base + block.key, size)
            return "" if same else _difference(contents(block.key, size), self.read(block, size))
        for start, whole, shift in _pieces(max(size, written)):
            length = max(min(whole, size - start), 0)
            if self._compare(block.address + start, self._base + (block.key + shift) % TILE, length):
                return _difference(contents(block.key + shift, length), self.read(block, length, start), start)
        return ""

    def read(self, block: Block, size: int, start: int = 0) -> bytes:
        """Bytes of a block, from one on."""
        return ctypes.string_at(block.address + start, size)

    def parts(self, block: Block) -> Iterable[tuple[int, bytes]]:
        """The parts that `fill` writes, each with its offset."""
        return ((start, self.read(block, length, start)) for start, length, _ in _pieces(block.extent))


def _difference(expected: bytes, present: bytes, start: int = 0) -> str:
    pairs = enumerate(zip(expected, present, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), len(present))
    wrong = sum(a != b for a, b in zip(expected, present, strict=False))
    is_now = present[at : at + 1].hex() or "missing"
    return f"byte {start + at} is {is_now}, {expected[at]:02x} was written; {wrong} are wrong"


def access_to(block: Block, target: Target, capabilities: Capabilities) -> Access:
    """The access for blocks like this one."""
    readable = capabilities.host_readable
    if readable or (readable is None and block.address and host_can_write(block.address, block.size)):
        return HostAccess()
    if target.read is not None and target.write is not None:
        return Access(target.read, target.write)
    functions = through_handle(block.handle)
    return Access() if functions is None else Access(*functions)


def host_can_write(address: int, size: int) -> bool:
    """Whether the operating system allows this process to read and write a range; the memory itself is not touched."""
    return _MAPS.exists() and _mapped(address, size, "rw") >= size


def first_gap(address: int, size: int) -> int | None:
    """The index of the first byte of a range at which this process has no memory; None if there is none."""
    first = address - address % mmap.PAGESIZE
    if not _MSYNC(first, address + size - first, _MS_ASYNC) or not _MAPS.exists():
        return None
    mapped = _mapped(address, size, "..")
    return mapped if mapped < size else None


def _mapped(address: int, size: int, access: str) -> int:
    """The number of bytes from an address on that are mapped with this access; counting ends after `size` bytes."""
    end = address
    for line in _MAPS.read_text(encoding="utf-8").splitlines():
        match = re.match(rf"([0-9a-f]+)-([0-9a-f]+) {access}", line)
        if match and int(match[1], 16) <= end < int(match[2], 16):
            end = int(match[2], 16)
            if end >= address + size:
                break
    return end - address
