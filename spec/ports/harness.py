"""The program that tests a shared library: it loads the library, and speaks the protocol of ports for it.

``python harness.py ./libport.so`` reads requests and writes answers as `protocol` describes them.  The library has the
C ABI of ``syncedmem_port.h``.  It gets its memory from here, so every allocation, copy and fill is seen, and can be
told to fail.

Memory that is lent lies at the end of its pages, between bytes that are compared after every call, and before a page
that nobody may touch.  Freed memory and device memory may not be touched by the library either: a library that does so
ends with a segmentation fault, after a line that says what it touched.

This program needs only the standard library, and imports nothing of this package, so it starts quickly.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import signal
import sys
from collections import deque
from contextlib import contextmanager
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = [
    "ABI_VERSION",
    "BLOBS_VERSION",
    "BLOB_CALLS",
    "BLOB_TYPES",
    "CALLS",
    "EDITIONS",
    "FLAGS",
    "HEADS",
    "LEVELS",
    "MODES",
    "REFUSALS",
    "Harness",
    "Heap",
    "Library",
    "Wrong",
    "explained",
    "main",
    "refuse",
    "serve",
]

VERSION = 1
"""The version of the protocol."""

ABI_VERSION = 2
"""The version of ``syncedmem_port.h``."""

BLOBS_VERSION = 1
"""The version of what ``syncedmem_port.h`` says of blobs."""

SYMBOL = "syncedmem_port"
BLOBS_SYMBOL = "syncedmem_blobs"

# The numbers of syncedmem_port.h; a test compares them with the model.
HEADS = ("UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED")
CALLS = (
    "cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data", "set_cpu_data", "set_gpu_data", "async_gpu_push",
    "release",
)  # fmt: skip
BLOB_CALLS = (
    "reshape", "reshape_like", "shrink_to_fit",
    "shape_string", "canonical_axis_index", "count_axes", "legacy_shape", "num", "channels", "height", "width",
    "offset", "data_at", "diff_at", "gpu_shape",
    "cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data",
    "cpu_diff", "mutable_cpu_diff", "gpu_diff", "mutable_gpu_diff",
    "set_cpu_data", "set_gpu_data", "set_cpu_diff", "set_gpu_diff",
    "share_data", "share_diff", "copy_from",
    "update", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff", "scale_data", "scale_diff",
)  # fmt: skip
BLOB_TYPES = {"float32": 4, "float64": 8, "int32": 4, "uint32": 4, "float16": 2}
SEQUENCE, COPY_DIFF, RESHAPE = 1, 2, 4
REFUSALS = {1: "null_data", 2: "not_head_at_cpu", 3: "no_gpu"}
MODES = {"CPU": 0, "GPU": 1}
FLAGS = {"own_cpu_data": 4, "own_gpu_data": 8, "cpu_malloc_use_cuda": 16}
EDITIONS = ("caffe", "early", "cpu_only")
LEVELS = ("L0", "L1", "L2", "L3", "L4")
HOST, PINNED, DEVICE = range(3)
SIDES = {"cpu": HOST, "gpu": DEVICE}
_KINDS = ("host block", "page-locked block", "device block, which only copies and fills may touch,")
OK, REFUSED, FAILED = range(3)

_BYTES, _ACTIONS, _STREAMS = 1, 2, 4
"""The levels from which on bytes and actions are shown, and from which on pushes are deferred."""


class Wrong(Exception):
    """What is wrong with a library, in one line."""


# --- syncedmem_port.h


_FUNCTIONS: dict[str, Any] = {
    "allocate": ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32, c_size_t, POINTER(c_void_p)),
    "deallocate": ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p),
    "zero": ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t),
    "copy": ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t),
    "copy_async": ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "synchronize": ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p),
    "get_device": ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int32)),
    "set_device": ctypes.CFUNCTYPE(c_int, c_void_p, c_int32),
}


class Allocators(Structure):
    """``smp_allocators``."""

    _fields_ = (("context", c_void_p), *_FUNCTIONS.items())


class Arguments(Structure):
    """``smp_arguments``."""

    _fields_ = (
        ("call", c_uint32),
        ("mode", c_uint32),
        ("data", c_void_p),
        ("data_size", c_size_t),
        ("data_kind", c_uint32),
        ("stream", c_void_p),
    )


class Result(Structure):
    """``smp_result``."""

    _fields_ = (("view", c_void_p), ("refusal", c_uint32), ("message", c_char_p))


class State(Structure):
    """``smp_state``."""

    _fields_ = (("head", c_uint32), ("flags", c_uint32), ("known_flags", c_uint32), ("size", c_size_t))


class Table(Structure):
    """``smp_port``."""

    _fields_ = (
        ("abi_version", c_uint32),
        ("level", c_uint32),
        ("sides", c_uint32),
        ("name", c_char_p),
        ("edition", c_char_p),
        ("own", POINTER(Allocators)),
        ("create", ctypes.CFUNCTYPE(c_int, POINTER(Allocators), c_size_t, POINTER(c_void_p))),
        ("call", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Arguments), POINTER(Result))),
        ("state", ctypes.CFUNCTYPE(None, c_void_p, POINTER(State))),
        ("destroy", ctypes.CFUNCTYPE(None, c_void_p)),
    )


class BlobArguments(Structure):
    """``smp_blob_arguments``."""

    _fields_ = (
        ("call", c_uint32),
        ("mode", c_uint32),
        ("options", c_uint32),
        ("count", c_size_t),
        ("numbers", POINTER(c_int64)),
        ("factor", c_double),
        ("other", c_void_p),
        ("data", c_void_p),
        ("data_size", c_size_t),
        ("data_kind", c_uint32),
    )


class BlobResult(Structure):
    """``smp_blob_result``."""

    _fields_ = (("view", c_void_p), ("number", c_double), ("text", c_char_p), ("message", c_char_p))


class BlobPart(Structure):
    """``smp_blob_part``."""

    _fields_ = (("memory", c_void_p), ("cpu", c_void_p), ("gpu", c_void_p), ("head", c_uint32), ("size", c_size_t))


class BlobState(Structure):
    """``smp_blob_state``."""

    _fields_ = (
        ("axes", c_size_t),
        ("shape", c_int64 * 32),
        ("count", c_int64),
        ("capacity", c_int64),
        ("data", BlobPart),
        ("diff", BlobPart),
    )


_KERNEL = ctypes.CFUNCTYPE(None, c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)


class BlobTable(Structure):
    """``smp_blobs``."""

    _fields_ = (
        ("version", c_uint32),
        ("create", ctypes.CFUNCTYPE(c_int, POINTER(Allocators), _LAUNCH, c_uint32, POINTER(c_void_p))),
        ("call", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(BlobArguments), POINTER(BlobResult))),
        ("state", ctypes.CFUNCTYPE(None, c_void_p, POINTER(BlobState))),
        ("destroy", ctypes.CFUNCTYPE(None, c_void_p)),
    )


class Library:
    """A library that was loaded, and its table, which was checked.

    Parameters
    ----------
    path : str

    Raises
    ------
    Wrong
        If the file is no shared library, or not one of a port.
    """

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise Wrong(f"there is no file {path}")
        try:
            loaded = ctypes.CDLL(str(Path(path).absolute()))
            entry = loaded[SYMBOL]
        except AttributeError:
            raise Wrong(f"{path} exports no function {SYMBOL}: see syncedmem_port.h") from None
        except OSError as error:
            why = str(error).removeprefix(f"{Path(path).absolute()}: ")
            raise Wrong(f"{path} cannot be loaded: {why}") from None
        entry.restype = POINTER(Table)
        found = entry()
        if not found:
            raise Wrong(f"{path}: {SYMBOL} returned NULL")
        self.table: Any = found.contents
        if sentence := self._wrong():
            raise Wrong(f"{path}: {sentence}")
        self.name: str = self.table.name.decode(errors="replace")
        self.edition: str = self.table.edition.decode()
        self.level: int = self.table.level
        self.own: Any = self.table.own.contents if self.table.own else None
        self.blobs: Any = self._blobs(loaded, path)

    @staticmethod
    def _blobs(loaded: ctypes.CDLL, path: str) -> Any:
        """The table of blobs, which was checked; None if the library has no blobs."""
        try:
            entry = loaded[BLOBS_SYMBOL]
        except AttributeError:
            return None
        entry.restype = POINTER(BlobTable)
        found = entry()
        if not found:
            raise Wrong(f"{path}: {BLOBS_SYMBOL} returned NULL")
        table: Any = found.contents
        if table.version != BLOBS_VERSION:
            raise Wrong(f"{path}: its blobs have version {table.version}, and this is version {BLOBS_VERSION}")
        for name in ("create", "call", "state", "destroy"):
            if not getattr(table, name):
                raise Wrong(f"{path}: the field {name} of its table of blobs is NULL")
        return table

    def _wrong(self) -> str:
        """What is wrong with the table; nothing else of it is read if it has another version."""
        table = self.table
        if table.abi_version != ABI_VERSION:
            return (
                f"it was built with version {table.abi_version} of syncedmem_port.h, and this is version {ABI_VERSION}"
            )
        for name in ("name", "edition", "create", "call", "state", "destroy"):
            if not getattr(table, name):
                return f"the field {name} of its table is NULL"
        edition = table.edition.decode(errors="replace")
        sentences = {
            f"its edition is {edition!r}, not one of {', '.join(EDITIONS)}": edition not in EDITIONS,
            f"its level is {table.level}, not one of 0 to {len(LEVELS) - 1}": table.level >= len(LEVELS),
            f"its memories have {table.sides} sides, not {len(SIDES)}": table.sides != len(SIDES),
            f"it has allocators of its own, so its level is at most {_ACTIONS - 1}, not {table.level}": (
                table.level >= _ACTIONS and table.own
            ),
        }
        return next((sentence for sentence, holds in sentences.items() if holds), "")


# --- memory

_LIBC = ctypes.CDLL(None, use_errno=True)
_mmap = _LIBC.mmap
_mmap.argtypes, _mmap.restype = (c_void_p, c_size_t, c_int, c_int, c_int, ctypes.c_long), c_void_p
_munmap = _LIBC.munmap
_munmap.argtypes = (c_void_p, c_size_t)
_mprotect = _LIBC.mprotect
_mprotect.argtypes = (c_void_p, c_size_t, c_int)

_PAGE = mmap.PAGESIZE
_NOBODY, _ANYBODY = 0, mmap.PROT_READ | mmap.PROT_WRITE
_ALIGNMENT = 16
_GUARD = 0xA5
_BEFORE = bytes([_GUARD]) * 32
_FRESH = 0xCD
_NO_MAPPING = 2**64 - 1


class Block:
    """A block of memory on pages of its own.

    Attributes
    ----------
    guarded : bool
        Whether nobody but the harness may touch it.
    number : int
    kind : int
        ``HOST``, ``PINNED`` or ``DEVICE``.
    size, address : int
    name : str
        For a buffer of the caller, its name; else empty.
    """

    __slots__ = ("_base", "_length", "_tail", "address", "guarded", "kind", "name", "number", "size")

    def __init__(self, number: int, kind: int, size: int, name: str = "", *, guarded: bool = True) -> None:
        self.guarded: bool = guarded and kind == DEVICE
        self.number: int = number
        self.kind: int = kind
        self.size: int = size
        self.name: str = name
        room = -(-size // _ALIGNMENT) * _ALIGNMENT
        self._length = -(-(room + len(_BEFORE)) // _PAGE) * _PAGE
        base = _mmap(None, self._length + _PAGE, _ANYBODY, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if base == _NO_MAPPING:
            raise MemoryError
        self._base: int = base
        _mprotect(base + self._length, _PAGE, _NOBODY)
        self.address: int = base + self._length - room
        self._tail = bytes([_GUARD]) * (room - size)
        ctypes.memmove(self.address - len(_BEFORE), _BEFORE, len(_BEFORE))
        ctypes.memset(self.address, _FRESH, size)
        ctypes.memmove(self.address + size, self._tail, len(self._tail))
        if self.guarded:
            self.close()

    def open(self) -> None:
        """Let guarded memory be touched."""
        _mprotect(self._base, self._length, _ANYBODY)

    def close(self) -> None:
        """Let nobody touch it: neither guarded memory nor what was freed."""
        _mprotect(self._base, self._length, _NOBODY)

    def unmap(self) -> None:
        """Give its pages back; its address may then be used again."""
        _munmap(self._base, self._length + _PAGE)

    def around(self, address: int) -> bool:
        """Whether an address is on its pages, or on the page after them."""
        return self._base <= address < self._base + self._length + _PAGE

    def damage(self) -> str:
        """What was written beside it, if anything; guarded memory can only be written through the harness."""
        if self.guarded:
            return ""
        before = ctypes.string_at(self.address - len(_BEFORE), len(_BEFORE))
        after = ctypes.string_at(self.address + self.size, len(self._tail))
        if before == _BEFORE and after == self._tail:
            return ""
        where = "before the start" if before != _BEFORE else "after the end"
        return f"the port wrote {where} of {f'the buffer {self.name}' if self.name else 'a block'} of {self.size} bytes"


LARGEST = 1 << 21
"""The largest size of a memory in bytes that is tried."""

_QUARANTINE = 256
"""How many freed blocks keep their pages, so that nobody else gets the address."""

_BUFFERS = 4096
"""How many buffers of the caller are kept; a process may have only some ten thousand mappings."""


class Buffer(NamedTuple):
    """A buffer of the caller: its side, its address and its size."""

    side: str
    address: int
    size: int


class Heap:
    """The memory that is lent to a library, and what it does with it.

    Parameters
    ----------
    own : Allocators or None
        The allocators of a library with a device of its own.
    guards : bool
        Whether device memory is guarded: not from a library whose actions are not seen, because its device may be
        memory that the host can read and write too.

    Attributes
    ----------
    buffers : dict
        The buffers of the caller, by name.
    moved : dict
        The address of the last new block on each side, since it was last cleared.
    actions : list of dict
        The actions since they were last taken, as the protocol describes them.
    defers : bool
        Whether asynchronous copies happen only when somebody waits.
    fail : int
        The number of the action that has to fail, counted from 1; 0 for none.
    partial : bool
        Whether the failing action does half of its work.
    table : Allocators
        The functions for the library.
    launch : function of C
        Runs a kernel of the library.
    """

    def __init__(self, own: Any = None, *, guards: bool = True) -> None:
        self._guards = guards
        self.actions: list[dict[str, Any]] = []
        self.moved: dict[str, int] = {}
        self.defers = False
        self.fail: int = 0
        self.partial = False
        self.buffers: dict[str, Buffer] = {}
        self._own = own
        self._blocks: dict[int, Block] = {}
        self._freed: dict[int, Block] = {}
        self._queued: dict[int, list[tuple[int, int, int]]] = {}
        self._strayed: int | None = None
        self._number = 0
        functions = [kind(getattr(self, f"_{name}")) for name, kind in _FUNCTIONS.items()]
        self.table: Allocators = Allocators(None, *functions)
        self.launch: Any = _LAUNCH(self._launch)

    # --- for the harness

    def buffer(self, name: str, side: str, content: bytes) -> None:
        """Make a buffer of the caller; on a device that only the library knows, with the library's own allocators."""
        if side == "gpu" and self._own:
            pointer = c_void_p()
            self._own.allocate(self._own.context, DEVICE, len(content), ctypes.byref(pointer))
            address = pointer.value or 0
        else:
            address = self._new(SIDES[side], len(content), name).address
        self.buffers[name] = Buffer(side, address, len(content))
        self.write(side, address, content)
        if len(self.buffers) > _BUFFERS:
            self._forget(next(iter(self.buffers)))

    def read(self, side: str, address: int, size: int) -> bytes:
        """The bytes at an address, but not beyond the end of its block."""
        block = self._find(address)
        size = _within(block, address, size)
        if block is None and side == "gpu" and self._own:
            scratch = ctypes.create_string_buffer(size or 1)
            self._own.copy(self._own.context, scratch, address, size)
            return scratch.raw[:size]
        if block is None or not block.guarded:
            return ctypes.string_at(address, size)
        block.open()
        content = ctypes.string_at(address, size)
        block.close()
        return content

    def write(self, side: str, address: int, content: bytes) -> None:
        """Write bytes at an address, but not beyond the end of its block."""
        block = self._find(address)
        if block is None and side == "gpu" and self._own:
            scratch = ctypes.create_string_buffer(content, len(content) or 1)
            self._own.copy(self._own.context, address, scratch, len(content))
            return
        if block is not None:
            block.open()
        ctypes.memmove(address, content, _within(block, address, len(content)))
        if block is not None and block.guarded:
            block.close()

    def wait(self, stream: int | None = None) -> None:
        """Do what is queued on a stream, or on all."""
        for number in [stream] if stream is not None else list(self._queued):
            for destination, source, size in self._queued.pop(number, ()):
                self._move(destination, source, size)

    def is_freed(self, address: int) -> bool:
        """Whether a block was at an address until it was freed."""
        return address in self._freed

    def place(self, address: int) -> str:
        """Where an address is, in words."""
        for word, blocks in (("", self._blocks), ("freed ", self._freed)):
            for block in blocks.values():
                if block.around(address):
                    return f"byte {address - block.address} of a {word}{_KINDS[block.kind]} of {block.size} bytes"
        return f"memory that was not lent, at {address:#x}"

    def misdeed(self, addresses: Iterable[int]) -> str:
        """What the library did that none may do, or wrote beside one of the blocks at these addresses, if anything."""
        if self._strayed is not None:
            return f"the port made device {self._strayed} current, and there is only device 0"
        found = (block.damage() for address in addresses if (block := self._blocks.get(address)))
        return next(filter(None, found), "")

    # --- the functions for the library; each returns 0, or another number if it failed

    def _allocate(self, _context: int, kind: int, size: int, pointer: Any) -> int:
        side = "gpu" if kind == DEVICE else "cpu"
        if self._failed({"action": f"allocate_{side}", "size": size, "pinned": kind == PINNED}):
            return 1
        try:
            block = self._new(kind, size)
        except MemoryError:
            self.actions[-1]["failed"] = True
            return 1
        self.actions[-1]["block"] = block.number
        self.moved[side] = block.address
        pointer[0] = block.address
        return 0

    def _deallocate(self, _context: int, kind: int, address: int | None) -> int:
        block = self._blocks.get(address or 0)
        action: dict[str, Any] = {"action": f"free_{'gpu' if kind == DEVICE else 'cpu'}", "pinned": kind == PINNED}
        if block is not None and block.name:
            action["buffer"] = block.name
        else:
            action["block"] = None if block is None else block.number
        if self._failed(action) or block is None or block.name or block.kind != kind:
            return 1
        self._drop(block)
        return 0

    def _zero(self, _context: int, address: int, size: int) -> int:
        failed = self._failed({"action": f"zero_{self._side(address)}", "size": size})
        if not failed or self.partial:
            self._zero_now(address, size // 2 if failed else size)
        return int(failed)

    def _copy(self, _context: int, destination: int, source: int, size: int) -> int:
        return self._copied(destination, source, size)

    def _copy_async(self, _context: int, destination: int, source: int, size: int, stream: int | None) -> int:
        return self._copied(destination, source, size, stream or 0)

    def _synchronize(self, _context: int, stream: int | None) -> int:
        self.actions.append({"action": "wait", "stream": stream or 0})
        self.wait(stream or 0)
        return 0

    def _get_device(self, _context: int, device: Any) -> int:
        device[0] = 0
        return 0

    def _set_device(self, _context: int, device: int) -> int:
        if device != 0:
            self._strayed = device
        return int(device != 0)

    def _launch(self, _context: int, kernel: int, argument: int | None) -> int:
        """Let the library touch device memory while its kernel runs."""
        closed = [block for block in self._blocks.values() if block.guarded]
        for block in closed:
            block.open()
        _KERNEL(kernel)(argument)
        for block in closed:
            block.close()
        return 0

    def _copied(self, destination: int, source: int, size: int, stream: int | None = None) -> int:
        origin, side = self._side(source), self._side(destination)
        pushed = stream is not None and (origin, side) == ("cpu", "gpu")
        across = f"copy_to_{side}{'_async' if pushed else ''}"
        name = across if origin != side else f"copy_{side}"
        failed = self._failed({"action": name, "size": size, **({"stream": stream} if pushed else {})})
        if failed:
            if self.partial:
                self._move(destination, source, size // 2)
        elif self.defers and stream is not None:
            self._queued.setdefault(stream, []).append((destination, source, size))
        else:
            self._move(destination, source, size)
        return int(failed)

    # --- below

    def _failed(self, action: dict[str, Any]) -> bool:
        """Note an action; whether it has to fail."""
        self.actions.append(action)
        self.fail -= 1
        if self.fail == 0:
            action["failed"] = True
        return self.fail == 0

    def _new(self, kind: int, size: int, name: str = "") -> Block:
        self._number += 1
        block = Block(self._number, kind, size, name, guarded=self._guards)
        self._blocks[block.address] = block
        return block

    def _drop(self, block: Block) -> None:
        del self._blocks[block.address]
        self._cancel(block)
        block.close()
        self._freed[block.address] = block
        if len(self._freed) > _QUARANTINE:
            oldest = next(iter(self._freed))
            self._freed.pop(oldest).unmap()

    def _cancel(self, block: Block) -> None:
        """Forget the queued copies from or to a block that goes: its pages may belong to somebody else soon."""
        for number, copies in self._queued.items():
            self._queued[number] = [it for it in copies if not (block.around(it[0]) or block.around(it[1]))]

    def _forget(self, name: str) -> None:
        """Drop a buffer of the caller."""
        buffer = self.buffers.pop(name)
        if buffer.address in self._blocks:
            self._drop(self._blocks[buffer.address])
        else:
            self._own.deallocate(self._own.context, DEVICE, buffer.address)

    def _find(self, address: int) -> Block | None:
        """The block at an address, or around it; None for memory that is not lent."""
        found = self._blocks.get(address)
        if found is None:
            found = next((it for it in self._blocks.values() if it.address < address < it.address + it.size), None)
        return found

    def _side(self, address: int) -> str:
        block = self._find(address)
        return "gpu" if block is not None and block.kind == DEVICE else "cpu"

    def _zero_now(self, address: int, size: int) -> None:
        block = self._find(address)
        size = _within(block, address, size)
        if block is not None:
            block.open()
        ctypes.memset(address, 0, size)
        if block is not None and block.guarded:
            block.close()

    def _move(self, destination: int, source: int, size: int) -> None:
        """Copy, but not beyond the end of a block: the kit sees the size that was asked for."""
        blocks = self._find(destination), self._find(source)
        size = min(_within(blocks[0], destination, size), _within(blocks[1], source, size))
        closed = [block for block in blocks if block is not None and block.guarded]
        for block in closed:
            block.open()
        ctypes.memmove(destination, source, size)
        for block in closed:
            block.close()


def _within(block: Block | None, address: int, size: int) -> int:
    """How many of so many bytes are not beyond the end of a block."""
    return size if block is None else min(size, block.address + block.size - address)


# --- the protocol


class _Memory:
    """A memory of the library.

    Attributes
    ----------
    handle : int
    size : int
    released : bool
    sides : dict
        The address of each side, as far as it is known.
    views : dict
        The last view of each side.
    """

    __slots__ = ("handle", "released", "sides", "size", "views")

    def __init__(self, handle: int, size: int) -> None:
        self.handle, self.size, self.released = handle, size, False
        self.sides: dict[str, int] = {}
        self.views: dict[str, int] = {}


class _Blob:
    """A blob of the library.

    Attributes
    ----------
    handle : int
    type : str
    sides : set of int
        The addresses of the sides of its memories, as they were last seen.
    views : dict
        The last view of each part and side.
    """

    __slots__ = ("handle", "sides", "type", "views")

    def __init__(self, handle: int, type_: str) -> None:
        self.handle, self.type = handle, type_
        self.sides: set[int] = set()
        self.views: dict[tuple[str, str], int] = {}


_KEPT = 256
"""How many released memories are kept, because they may be called again."""

Answer = dict[str, Any]


class Harness:
    """Answers the requests of the protocol with a library.

    Parameters
    ----------
    library : Library
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.heap: Heap = Heap(library.own, guards=library.level >= _ACTIONS)
        self._level = 0
        self._memories: dict[int, _Memory] = {}
        self._released: deque[int] = deque()
        self._asked, self._result, self._seen = Arguments(), Result(), State()
        self._own: dict[str, Buffer] = {}
        self._blobs: dict[int, _Blob] = {}

    def answer(self, request: dict[str, Any]) -> Answer:
        """The answer to a request.

        Raises
        ------
        Wrong
            If the library did what no port may do: it wrote beside a block, or returned a number that is no status.
        """
        op = request["op"]
        answer = partial(self._call, op) if op in CALLS else getattr(self, f"_on_{op}", self._unknown)
        return {"id": request["id"], **answer(request)}

    def close(self) -> None:
        """Drop all memories."""
        for memory in self._memories.values():
            self.library.table.destroy(memory.handle)
        self._memories.clear()
        for blob in self._blobs.values():
            self.library.blobs.destroy(blob.handle)
        self._blobs.clear()

    # --- the requests that are no calls

    def _unknown(self, request: dict[str, Any]) -> Answer:
        return {"refused": f"there is no request {request['op']!r}"}

    def _on_hello(self, request: dict[str, Any]) -> Answer:
        library = self.library
        self._level = min(library.level, LEVELS.index(request["level"]))
        self.heap.defers = self._level >= _STREAMS
        if request.get("edition", library.edition) != library.edition:
            return {"refused": f"{library.name} is of edition {library.edition}, not {request['edition']}"}
        about = {"version": VERSION, "name": library.name, "level": LEVELS[library.level], "edition": library.edition}
        blobs = {"blobs": True} if library.blobs else {}
        streams = {"defers": True, "streams": True} if self.heap.defers else {}
        return {**about, "offers": ["own_buffer", "drop"], "largest": LARGEST, **blobs, **streams}

    def _on_new(self, request: dict[str, Any]) -> Answer:
        number, size, handle = request["memory"], request["size"], c_void_p()
        status = self.library.table.create(ctypes.byref(self.heap.table), size, ctypes.byref(handle))
        ctypes.memset(ctypes.byref(self._result), 0, ctypes.sizeof(Result))
        found = self._acted()
        if sentence := self.heap.misdeed(()):
            raise Wrong(f"in create {sentence}")
        if reason := _reason("create", status, self._result):
            return {**found, "refused": reason}
        self._memories[number] = memory = _Memory(handle.value or 0, size)
        return found | self._shown(memory)

    def _on_state(self, request: dict[str, Any]) -> Answer:
        memory = self._memories.get(request["memory"])
        return {"refused": _NO_MEMORY} if memory is None else self._shown(memory)

    def _on_buffer(self, request: dict[str, Any]) -> Answer:
        self.heap.buffer(request["buffer"], request["side"], bytes.fromhex(request["bytes"]))
        return {}

    def _on_write_buffer(self, request: dict[str, Any]) -> Answer:
        buffer = self.heap.buffers[request["buffer"]]
        self.heap.write(buffer.side, buffer.address, bytes.fromhex(request["bytes"]))
        return {}

    def _on_read_buffer(self, request: dict[str, Any]) -> Answer:
        buffer = self.heap.buffers[request["buffer"]]
        return {"bytes": self.heap.read(buffer.side, buffer.address, buffer.size).hex()}

    def _on_write_view(self, request: dict[str, Any]) -> Answer:
        memory, side = self._memories[request["memory"]], request["side"]
        if content := bytes.fromhex(request["bytes"]):  # a memory of zero bytes may have no address
            self.heap.write(side, memory.views[side], content)
        return self._shown(memory)

    def _on_own_buffer(self, request: dict[str, Any]) -> Answer:
        memory, side = self._memories[request["memory"]], request["side"]
        if side not in memory.sides:
            return {"refused": f"there is nothing on the side {side}"}
        self._own = {request["buffer"]: Buffer(side, memory.sides[side], memory.size)}
        return {}

    def _on_drop(self, request: dict[str, Any]) -> Answer:
        memory = self._memories.pop(request["memory"], None)
        if memory is None:
            return {"refused": _NO_MEMORY, "actions": []}
        if memory.released:
            self._released.remove(request["memory"])
        self.library.table.destroy(memory.handle)
        return self._acted()

    def _on_synchronize(self, _request: dict[str, Any]) -> Answer:
        self.heap.wait()
        return {}

    # --- the calls

    def _call(self, op: str, request: dict[str, Any]) -> Answer:
        memory = self._memories.get(request["memory"])
        if memory is None:
            return {"refused": _NO_MEMORY, "actions": []}
        before = list(memory.sides.values())
        buffer = self._argue(op, request)
        self.heap.fail, self.heap.partial = request.get("fail", 0), request.get("partial", False)
        status = self.library.table.call(memory.handle, ctypes.byref(self._asked), ctypes.byref(self._result))
        self.heap.fail = 0
        self._follow(memory)
        found = self._acted()
        reason = _reason("call", status, self._result)
        side = "gpu" if "gpu" in op else "cpu"
        if not reason and op == "release":
            self._release(request["memory"], memory)
        elif not reason and buffer is not None:
            if not self.heap.is_freed(buffer.address):  # else it has freed its own block, and kept it
                memory.sides[side] = buffer.address
        elif not reason and op in _RETURNING:
            found |= self._view(memory, side)
        if sentence := self.heap.misdeed([*before, *memory.sides.values()]):
            raise Wrong(f"in {op} {sentence}")
        return found | ({"refused": reason} if reason else {}) | self._shown(memory)

    def _argue(self, op: str, request: dict[str, Any]) -> Buffer | None:
        """Set the arguments of a call, and clear its result; the buffer that it adopts."""
        asked, name = self._asked, request.get("buffer")
        buffer = None if name is None else self._own.get(name) or self.heap.buffers[name]
        asked.call, asked.mode, asked.stream = CALLS.index(op), MODES[request["mode"]], request.get("stream", 0)
        asked.data, asked.data_size, asked.data_kind = (
            (None, 0, HOST) if buffer is None else (buffer.address, buffer.size, SIDES[buffer.side])
        )
        ctypes.memset(ctypes.byref(self._result), 0, ctypes.sizeof(Result))
        return buffer

    def _follow(self, memory: _Memory) -> None:
        """Note on which side there is a new block, and from which side one is gone."""
        memory.sides |= self.heap.moved
        for side, address in list(memory.sides.items()):
            if self.heap.is_freed(address):
                del memory.sides[side]

    def _acted(self) -> Answer:
        """The actions since they were last taken, from their level on."""
        actions, self.heap.actions = self.heap.actions, []
        self.heap.moved.clear()
        return {"actions": actions} if self._level >= _ACTIONS else {}

    def _release(self, number: int, memory: _Memory) -> None:
        memory.sides.clear()
        if not memory.released:
            memory.released = True
            self._released.append(number)
        if len(self._released) > _KEPT:
            self.library.table.destroy(self._memories.pop(self._released.popleft()).handle)

    def _view(self, memory: _Memory, side: str) -> Answer:
        address = self._result.view
        if self._level < _BYTES:
            return {}
        if not address:
            return {"view": None if memory.size else ""}
        memory.sides[side] = memory.views[side] = address
        return {"view": self.heap.read(side, address, memory.size).hex()}

    def _shown(self, memory: _Memory) -> Answer:
        """What is seen of a memory."""
        if memory.released:
            return {}
        seen = self._seen
        self.library.table.state(memory.handle, ctypes.byref(seen))
        found: Answer = {"head": HEADS[seen.head] if seen.head < len(HEADS) else str(seen.head), "size": seen.size}
        for name, bit in FLAGS.items():
            if seen.known_flags & bit:
                found[name] = bool(seen.flags & bit)
        if self._level >= _BYTES:
            for side, address in memory.sides.items():
                found[side] = self.heap.read(side, address, memory.size).hex()
        return found

    # --- blobs

    def _on_new_blob(self, request: dict[str, Any]) -> Answer:
        table, handle = self.library.blobs, c_void_p()
        if table is None:
            return {"refused": f"{self.library.name} has no blobs", "actions": []}
        kind = [*BLOB_TYPES].index(request["type"])
        status = table.create(ctypes.byref(self.heap.table), self.heap.launch, kind, ctypes.byref(handle))
        if reason := _reason("create", status, BlobResult()):
            return {**self._acted(), "refused": reason}
        self._blobs[request["blob"]] = blob = _Blob(handle.value or 0, request["type"])
        if request["shape"] is None:
            return {**self._acted(), **self._blob_shown(blob)}
        return self._called(blob, {**request, "call": "reshape", "numbers": request["shape"], "sequence": True})

    def _on_blob_call(self, request: dict[str, Any]) -> Answer:
        blob = self._blobs.get(request["blob"])
        return {"refused": _NO_BLOB, "actions": []} if blob is None else self._called(blob, request)

    def _on_blob_state(self, request: dict[str, Any]) -> Answer:
        blob = self._blobs.get(request["blob"])
        return {"refused": _NO_BLOB} if blob is None else self._blob_shown(blob)

    def _on_write_blob(self, request: dict[str, Any]) -> Answer:
        blob, side = self._blobs[request["blob"]], request["side"]
        if content := bytes.fromhex(request["bytes"]):
            self.heap.write(side, blob.views[request["part"], side], content)
        return self._blob_shown(blob)

    def _on_drop_blob(self, request: dict[str, Any]) -> Answer:
        blob = self._blobs.pop(request["blob"], None)
        if blob is None:
            return {"refused": _NO_BLOB, "actions": []}
        self.library.blobs.destroy(blob.handle)
        return self._acted()

    def _called(self, blob: _Blob, request: dict[str, Any]) -> Answer:
        """Make a call of a blob."""
        asked, result, before = self._blob_asked(request), BlobResult(), set(blob.sides)
        self.heap.fail, self.heap.partial = request.get("fail", 0), request.get("partial", False)
        status = self.library.blobs.call(blob.handle, ctypes.byref(asked), ctypes.byref(result))
        self.heap.fail = 0
        found, reason = self._acted(), _reason("call", status, result)
        shown = self._blob_shown(blob)
        if reason:
            found["refused"] = reason
        else:
            found |= self._blob_answer(blob, request["call"], result, shown)
        if sentence := self.heap.misdeed(before | blob.sides):
            raise Wrong(f"in {request['call']} {sentence}")
        return found | shown

    def _blob_asked(self, request: dict[str, Any]) -> BlobArguments:
        """The arguments of a call."""
        numbers, name, other = request.get("numbers", ()), request.get("buffer"), request.get("other")
        options = ((SEQUENCE, "sequence"), (COPY_DIFF, "copy_diff"), (RESHAPE, "reshape"))
        asked = BlobArguments(
            call=BLOB_CALLS.index(request["call"]),
            mode=MODES[request["mode"]],
            options=sum(option for option, field in options if request.get(field)),
            count=len(numbers),
            numbers=(c_int64 * len(numbers))(*numbers),
            factor=float(request.get("factor", 0)),
        )
        if other is not None:
            asked.other = self._blobs[other].handle
        if name is not None:
            buffer = self.heap.buffers[name]
            asked.data, asked.data_size, asked.data_kind = buffer.address, buffer.size, SIDES[buffer.side]
        return asked

    def _blob_answer(self, blob: _Blob, call: str, result: BlobResult, shown: Answer) -> Answer:
        """What a call returned: a view, a text or a number."""
        if call == "shape_string":
            return {"value": (result.text or b"").decode(errors="replace")}
        if call in _NUMBERS:
            return {"value": _number(result.number, whole=call in _WHOLE or "int" in blob.type)}
        place = _VIEWS.get(call)
        if place is None or self._level < _BYTES:
            return {}
        if not result.view:
            return {"view": None if shown["count"] else ""}
        if call == "gpu_shape":
            return {"view": self.heap.read("gpu", result.view, 4 * len(shown["shape"])).hex()}
        blob.views[place] = result.view
        return {"view": self.heap.read(place[1], result.view, shown["count"] * BLOB_TYPES[blob.type]).hex()}

    def _blob_shown(self, blob: _Blob) -> Answer:
        """What is seen of a blob."""
        seen = BlobState()
        self.library.blobs.state(blob.handle, ctypes.byref(seen))
        blob.sides.clear()
        found: Answer = {"shape": seen.shape[: seen.axes], "count": seen.count, "capacity": seen.capacity}
        for name, part in (("data", seen.data), ("diff", seen.diff)):
            number = int(part.head)
            head = HEADS[number] if number < len(HEADS) else str(number)
            found |= {name: part.memory, f"{name}_head": head, f"{name}_size": part.size}
            for side, address, fresh in (("cpu", part.cpu, _AT_CPU), ("gpu", part.gpu, _AT_GPU)):
                if address:
                    blob.sides.add(address)
                if address and head in fresh and self._level >= _BYTES:
                    found[f"{name}_{side}"] = self.heap.read(side, address, part.size).hex()
        return found


def _number(number: float, *, whole: bool) -> float | str:
    """A number for an answer; what JSON has no number for is a text."""
    if not math.isfinite(number):
        return str(number)
    return int(number) if whole else number


def _reason(function: str, status: int, result: Any) -> str:
    """Why a call was refused or failed; empty if it was not."""
    if status == OK:
        return ""
    if status not in (REFUSED, FAILED):
        raise Wrong(f"{function} returned {status}, which is none of SMP_OK, SMP_REFUSED and SMP_FAILED")
    if result.message:
        return str(result.message.decode(errors="replace"))
    return "an action failed" if status == FAILED else REFUSALS.get(getattr(result, "refusal", 0), "refused")


_NO_MEMORY = "there is no such memory"
_NO_BLOB = "there is no such blob"
_RETURNING = CALLS[:4]
_WHOLE = (
    *("canonical_axis_index", "count_axes", "legacy_shape", "offset"),
    *("num", "channels", "height", "width"),
)
"""The calls that return an index, an extent or a number of elements: whole, whatever the elements are."""
_NUMBERS = (*_WHOLE, "data_at", "diff_at", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff")
_VIEWS = {
    "gpu_shape": ("shape", "gpu"),
    **{
        f"{access}{side}_{part}": (part, side)
        for access in ("", "mutable_")
        for side in ("cpu", "gpu")
        for part in ("data", "diff")
    },
}
"""The part and the side of each call that returns a view."""
_AT_CPU, _AT_GPU = ("HEAD_AT_CPU", "SYNCED"), ("HEAD_AT_GPU", "SYNCED")


# --- the program


class _Sigaction(Structure):
    """``struct sigaction`` of Linux."""

    _fields_ = (("handler", c_void_p), ("mask", c_uint64 * 16), ("flags", c_int), ("restorer", c_void_p))


_HANDLER = ctypes.CFUNCTYPE(None, c_int, c_void_p, c_void_p)
_SA_SIGINFO, _SA_RESETHAND = 4, 0x80000000
_ADDRESS_AT = 16
"""Where ``si_addr`` is in ``siginfo_t``, on 64 bits."""


@contextmanager
def explained(heap: Heap) -> Generator[Callable[[int, int, object], None]]:
    """Inside the block a segmentation fault first says what was touched; then it ends the program as ever."""

    def explain(_number: int, info: int, _context: object) -> None:
        address = c_uint64.from_address(info + _ADDRESS_AT).value
        os.write(2, f"the port touched {heap.place(address)}\n".encode())

    handler, before = _HANDLER(explain), _Sigaction()
    action = _Sigaction(ctypes.cast(handler, c_void_p), flags=ctypes.c_int(_SA_SIGINFO | _SA_RESETHAND).value)
    _LIBC.sigaction(signal.SIGSEGV, ctypes.byref(action), ctypes.byref(before))
    try:
        yield explain
    finally:
        _LIBC.sigaction(signal.SIGSEGV, ctypes.byref(before), None)


def serve(library: Library, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more.

    Raises
    ------
    Wrong
        As `Harness.answer`.
    """
    harness = Harness(library)
    with explained(harness.heap):
        for line in requests:
            answers.write(json.dumps(harness.answer(json.loads(line)), separators=(",", ":")).encode() + b"\n")
            answers.flush()
        harness.close()


def refuse(sentence: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer the first request with what is wrong with the library."""
    for line in requests:
        answers.write(json.dumps({"id": json.loads(line)["id"], "refused": sentence}).encode() + b"\n")
        answers.flush()


@contextmanager
def _streams() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Standard input and output, which nobody else has inside the block.

    What the library prints goes to standard error, and it finds its standard input empty.
    """
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        yield requests, answers


def main(arguments: list[str]) -> int:
    """Load the library that is named, and answer requests; the status to exit with."""
    if len(arguments) != 1:
        print("give one shared library: harness.py ./libport.so", file=sys.stderr)  # noqa: T201 -- a program
        return 2
    with _streams() as (requests, answers):
        try:
            library = Library(arguments[0])
        except Wrong as found:
            refuse(str(found), requests, answers)
            return 2
        try:
            serve(library, requests, answers)
        except Wrong as found:
            print(found, file=sys.stderr)  # noqa: T201 -- a program
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
