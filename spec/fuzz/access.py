"""Writes and checks the contents of blocks: through their addresses if the host can, else through their handles."""

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
"""The number of bytes after which a pattern repeats."""


class Pattern:
    """Bytes that differ for every key: a window of one sequence of random bytes, repeated."""

    def __init__(self, seed: int = 0) -> None:
        self.bytes: bytes = random.Random(seed).randbytes(2 * TILE)  # noqa: S311 -- a pattern, not a secret

    def of(self, key: int, size: int) -> bytes:
        """The contents of a block with this key and size."""
        tile = self.bytes[key : key + TILE]
        return tile[:size] if size <= TILE else (tile * (size // TILE + 1))[:size]


PATTERN = Pattern()


class Access(Protocol):
    """Writes the contents of blocks, and checks whether they have changed."""

    reason: str
    """Why contents are not checked; empty if they are."""

    def fill(self, block: Block) -> None:
        """Fill a block with the pattern of its key."""
        ...

    def differs(self, block: Block, size: int) -> str:
        """A sentence about the first difference in the first `size` bytes; empty if there is none."""
        ...

    def read(self, block: Block, size: int) -> bytes:
        """The first bytes of a block."""
        ...


class NoAccess:
    """For memory that can neither be read nor written."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def fill(self, block: Block) -> None:
        """Do nothing."""

    def differs(self, block: Block, size: int) -> str:
        """Report no difference, because nothing can be read."""
        del block, size
        return ""

    def read(self, block: Block, size: int) -> bytes:
        """Return nothing, because nothing can be read."""
        del block, size
        return b""


class HostAccess:
    """For host memory: the C library copies and compares."""

    reason = ""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._buffer = ctypes.create_string_buffer(pattern.bytes, len(pattern.bytes))
        self._base = ctypes.addressof(self._buffer)
        # PYFUNCTYPE keeps the interpreter's lock.  For a few bytes that is faster, and no other thread can free a
        # block between two calls.
        pointers = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        library = ctypes.CDLL(None)
        self._move: Callable[[int, int, int], object] = ctypes.PYFUNCTYPE(None, *pointers)(("memmove", library))
        self._compare: Callable[[int, int, int], int] = ctypes.PYFUNCTYPE(ctypes.c_int, *pointers)(("memcmp", library))

    def fill(self, block: Block) -> None:
        """Fill a block with the pattern of its key."""
        size, source, target = block.size, self._base + block.key, block.address
        while size > TILE:
            self._move(target, source, TILE)
            size -= TILE
            target += TILE
        self._move(target, source, size)

    def differs(self, block: Block, size: int) -> str:
        """A sentence about the first difference in the first `size` bytes; empty if there is none."""
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
    """For memory that functions read and write: those of a device array, or the target's own."""

    reason = ""

    def __init__(
        self, pattern: Pattern, read: Callable[[Any, int], bytes], write: Callable[[Any, bytes], object]
    ) -> None:
        self._pattern = pattern
        self._read = read
        self._write = write

    def fill(self, block: Block) -> None:
        """Fill a block with the pattern of its key."""
        self._write(block.handle, self._pattern.of(block.key, block.size))

    def differs(self, block: Block, size: int) -> str:
        """A sentence about the first difference in the first `size` bytes; empty if there is none."""
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
    """The index of the first byte that differs."""
    return next((at for at, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), len(found))


def access_to(block: Block, target: Target, capabilities: Capabilities) -> Access:
    """The access for blocks like this one."""
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
    """Whether the operating system allows this process to read and write a range; the memory itself is not touched."""
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
    """Functions that read and write the bytes of a handle like this one; None if the handle has none."""
    if callable(getattr(handle, "get", None)) and callable(getattr(handle, "set", None)):
        return _get, _set
    if callable(getattr(handle, "copy_to_host", None)) and callable(getattr(handle, "copy_from_host", None)):
        return _copy_to_host, _copy_from_host
    if callable(getattr(handle, "untyped_storage", None)):
        return _tensor_get, _tensor_set
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
    host = part.get()  # devices accept only arrays of their own shape and type, such as this one
    memoryview(host).cast("B")[:] = data
    part.set(host)


def _copy_to_host(handle: Any, size: int) -> bytes:
    host = ctypes.create_string_buffer(size)
    handle.copy_to_host(ctypes.c_void_p(ctypes.addressof(host)), size)
    return host.raw


def _copy_from_host(handle: Any, data: bytes) -> None:
    handle.copy_from_host(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _tensor_get(handle: Any, size: int) -> bytes:
    return bytes(handle.cpu().numpy()[:size])


def _tensor_set(handle: Any, data: bytes) -> None:
    part = handle.narrow(0, 0, len(data))  # a tensor of the device, of one dimension
    host = part.cpu()
    memoryview(host.numpy()).cast("B")[:] = data
    part.copy_(host)


def _buffer_get(handle: Any, size: int) -> bytes:
    return bytes(memoryview(handle).cast("B")[:size])


def _buffer_set(handle: Any, data: bytes) -> None:
    memoryview(handle).cast("B")[: len(data)] = data


def _opencl(library: Any, handle: Any) -> tuple[Callable[[Any, int], bytes], Callable[[Any, bytes], object]]:
    """Functions for a buffer of OpenCL, with a queue of its own context."""
    queue = library.CommandQueue(handle.get_info(library.mem_info.CONTEXT))

    def read(buffer: Any, size: int) -> bytes:
        host = bytearray(size)
        library.enqueue_copy(queue, host, buffer)
        return bytes(host)

    def write(buffer: Any, data: bytes) -> None:
        library.enqueue_copy(queue, buffer, data)

    return read, write
