"""What is written into a block, and how: by its address where the host can, else through what was handed out."""

from __future__ import annotations

import ctypes
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from .capabilities import Capabilities
    from .shadow_heap import Block
    from .targets import Target

__all__ = ["PATTERN", "Access", "HandleAccess", "HostAccess", "NoAccess", "Pattern", "access_to", "host_can_write"]

_MAPS = Path("/proc/self/maps")

TILE = 1 << 16
"""How many bytes a pattern has before it repeats."""


class Pattern:
    """Bytes that are different for every key: a window into one run of random bytes, repeated."""

    def __init__(self, seed: int = 0) -> None:
        self.bytes: bytes = random.Random(seed).randbytes(2 * TILE)  # noqa: S311 -- a pattern, no secret

    def of(self, key: int, size: int) -> bytes:
        """What a block with that key and size holds."""
        tile = self.bytes[key : key + TILE]
        return tile[:size] if size <= TILE else (tile * (size // TILE + 1))[:size]


PATTERN = Pattern()


class Access(Protocol):
    """Writes what a block should hold, and looks whether it still does."""

    reason: str
    """Why contents are not checked; empty where they are."""

    def fill(self, block: Block) -> None:
        """Write the pattern of the block's key over all of it."""
        ...

    def differs(self, block: Block, size: int) -> str:
        """Where the first bytes are not what was written, in words; empty if they are."""
        ...

    def read(self, block: Block, size: int) -> bytes:
        """The first bytes of a block."""
        ...


class NoAccess:
    """Nobody can look."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def fill(self, block: Block) -> None:
        """Nothing to do."""

    def differs(self, block: Block, size: int) -> str:
        """Nothing is known."""
        del block, size
        return ""

    def read(self, block: Block, size: int) -> bytes:
        """Nothing is known."""
        del block, size
        return b""


class HostAccess:
    """Memory of the host: copied and compared by the C library."""

    reason = ""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._buffer = ctypes.create_string_buffer(pattern.bytes, len(pattern.bytes))
        self._base = ctypes.addressof(self._buffer)
        # PYFUNCTYPE keeps the lock of the interpreter: for a few bytes that is quicker, and no other thread
        # can free a block between the two.
        pointers = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        library = ctypes.CDLL(None)
        self._move: Callable[[int, int, int], object] = ctypes.PYFUNCTYPE(None, *pointers)(("memmove", library))
        self._compare: Callable[[int, int, int], int] = ctypes.PYFUNCTYPE(ctypes.c_int, *pointers)(("memcmp", library))

    def fill(self, block: Block) -> None:
        """Write the pattern of the block's key over all of it."""
        size, source, target = block.size, self._base + block.key, block.address
        while size > TILE:
            self._move(target, source, TILE)
            size -= TILE
            target += TILE
        self._move(target, source, size)

    def differs(self, block: Block, size: int) -> str:
        """Where the first bytes are not what was written, in words; empty if they are."""
        left, source, target = size, self._base + block.key, block.address
        while left > TILE:
            if self._compare(target, source, TILE):
                return self._difference(block, size)
            left -= TILE
            target += TILE
        return self._difference(block, size) if self._compare(target, source, left) else ""

    def _difference(self, block: Block, size: int) -> str:
        return _difference(self._pattern.of(block.key, size), self.read(block, size))

    def read(self, block: Block, size: int) -> bytes:
        """The first bytes of a block."""
        return ctypes.string_at(block.address, size)


class HandleAccess:
    """Memory that is reached through functions: those of a device array, or the target's own."""

    reason = ""

    def __init__(
        self, pattern: Pattern, read: Callable[[Any, int], bytes], write: Callable[[Any, bytes], object]
    ) -> None:
        self._pattern = pattern
        self._read = read
        self._write = write

    def fill(self, block: Block) -> None:
        """Write the pattern of the block's key over all of it."""
        self._write(block.handle, self._pattern.of(block.key, block.size))

    def differs(self, block: Block, size: int) -> str:
        """Where the first bytes are not what was written, in words; empty if they are."""
        expected, found = self._pattern.of(block.key, size), self.read(block, size)
        return "" if expected == found else _difference(expected, found)

    def read(self, block: Block, size: int) -> bytes:
        """The first bytes of a block."""
        return self._read(block.handle, size)


def _difference(expected: bytes, found: bytes) -> str:
    at = first_difference(expected, found)
    wrong = sum(a != b for a, b in zip(expected, found, strict=False))
    return f"byte {at} is {found[at : at + 1].hex() or 'missing'}, {expected[at]:02x} was written; {wrong} are wrong"


def first_difference(expected: bytes, found: bytes) -> int:
    """Where two rows of bytes differ first."""
    return next((at for at, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), len(found))


def access_to(block: Block, target: Target, capabilities: Capabilities) -> Access:
    """How the contents of blocks like this one are reached."""
    readable = capabilities.host_readable
    if readable or (readable is None and block.address and host_can_write(block.address, block.size)):
        return HostAccess(PATTERN)
    if target.read is not None and target.write is not None:
        return HandleAccess(PATTERN, target.read, target.write)
    functions = through_handle(block.handle)
    if functions is not None:
        return HandleAccess(PATTERN, *functions)
    return NoAccess("the host cannot read the memory, and the target has no read and write")


def host_can_write(address: int, size: int) -> bool:
    """Whether the operating system lets this process read and write a range; without asking the memory itself."""
    if not _MAPS.exists():
        return False
    end = address + size
    for line in _MAPS.read_text(encoding="utf-8").splitlines():
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
        if found and int(found[1], 16) <= address < int(found[2], 16):
            address = int(found[2], 16)
            if address >= end:
                return True
    return False


def through_handle(handle: Any) -> tuple[Callable[[Any, int], bytes], Callable[[Any, bytes], object]] | None:
    """Functions that read and write the bytes of a handle like this one, or None if it offers none."""
    if callable(getattr(handle, "get", None)) and callable(getattr(handle, "set", None)):
        return _get, _set
    if callable(getattr(handle, "copy_to_host", None)) and callable(getattr(handle, "copy_from_host", None)):
        return _copy_to_host, _copy_from_host
    library = sys.modules.get(type(handle).__module__.partition(".")[0])
    if hasattr(library, "enqueue_copy") and callable(getattr(handle, "get_info", None)):
        return _opencl(library, handle)
    try:
        writeable = not memoryview(handle).readonly
    except TypeError:
        return None
    return (_buffer_get, _buffer_set) if writeable else None


def _get(handle: Any, size: int) -> bytes:
    return bytes(handle.get()[:size])


def _set(handle: Any, data: bytes) -> None:
    part = handle[: len(data)]
    host = part.get()  # devices take only what is of their own shape and type, which this is
    memoryview(host).cast("B")[:] = data
    part.set(host)


def _copy_to_host(handle: Any, size: int) -> bytes:
    host = ctypes.create_string_buffer(size)
    handle.copy_to_host(ctypes.c_void_p(ctypes.addressof(host)), size)
    return host.raw


def _copy_from_host(handle: Any, data: bytes) -> None:
    handle.copy_from_host(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _buffer_get(handle: Any, size: int) -> bytes:
    return bytes(memoryview(handle).cast("B")[:size])


def _buffer_set(handle: Any, data: bytes) -> None:
    memoryview(handle).cast("B")[: len(data)] = data


def _opencl(library: Any, handle: Any) -> tuple[Callable[[Any, int], bytes], Callable[[Any, bytes], object]]:
    """A buffer of OpenCL: by a queue of its own context."""
    queue = library.CommandQueue(handle.get_info(library.mem_info.CONTEXT))

    def read(buffer: Any, size: int) -> bytes:
        host = bytearray(size)
        library.enqueue_copy(queue, host, buffer)
        return bytes(host)

    def write(buffer: Any, data: bytes) -> None:
        library.enqueue_copy(queue, buffer, data)

    return read, write
