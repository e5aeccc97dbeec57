"""The memory that is lent to a library, and what the library does with it.

Every allocation, copy and fill is seen, and can be told to fail.  A block lies at the end of its pages, between bytes
that are compared after every call, and before a page that nobody may touch.  Freed memory and device memory may not be
touched by the library either: a library that does so ends with a segmentation fault, after a line that says what it
touched.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from contextlib import contextmanager
from ctypes import c_int, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple

from .abi import KINDS, LAUNCH, STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

__all__ = ["SIDES", "Heap", "LentBuffer"]

Action = dict[str, Any]

_HOST, _PINNED, _DEVICE = (KINDS[name] for name in ("HOST", "PINNED", "DEVICE"))
_IN_WORDS = {
    _HOST: "host block",
    _PINNED: "page-locked block",
    _DEVICE: "device block, which only copies and fills may touch,",
}
SIDES = {"cpu": _HOST, "gpu": _DEVICE}
"""The kind of a buffer of the caller on each side."""

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

_QUARANTINE = 256
"""How many freed blocks keep their pages, so that nobody else gets the address."""

_BUFFERS = 4096
"""How many buffers of the caller are kept; a process may have only some ten thousand mappings."""


class LentBlock:
    """A block of memory on pages of its own; nobody but the harness may touch it if it is guarded."""

    __slots__ = ("_base", "_length", "_tail", "address", "guarded", "kind", "name", "number", "size")

    def __init__(self, number: int, kind: int, size: int, name: str = "", *, guarded: bool) -> None:
        self.number: int = number
        self.kind: int = kind
        self.size: int = size
        self.name: str = name
        self.guarded: bool = guarded
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
        if guarded:
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


@contextmanager
def _opened(blocks: Iterable[LentBlock | None]) -> Generator[None]:
    """Let guarded blocks be touched inside the block."""
    guarded = [block for block in blocks if block is not None and block.guarded]
    for block in guarded:
        block.open()
    yield
    for block in guarded:
        block.close()


def _within(block: LentBlock | None, address: int, size: int) -> int:
    """How many of so many bytes are not beyond the end of a block."""
    return size if block is None else min(size, block.address + block.size - address)


class LentBuffer(NamedTuple):
    """A buffer of the caller."""

    side: str
    address: int
    size: int


class Heap:
    """The memory that is lent to a library, and what it does with it.

    Parameters
    ----------
    own : Structure or None
        The allocators of a library with a device of its own.
    guards : bool
        Whether device memory is guarded: not from a library whose actions are not seen, because its device may be
        memory that the host can read and write too.

    Attributes
    ----------
    buffers : dict
        The buffers of the caller, by name.
    newest : dict
        The address of the last new block on each side, since it was last cleared.
    actions : list of dict
        The actions since they were last cleared, as the protocol describes them.
    defers : bool
        Whether asynchronous copies happen only when somebody waits.
    fail : int
        The number of the action that has to fail, counted from 1; 0 for none.
    partial : bool
        Whether the failing action does half of its work.
    table : Structure
        The functions for the library, ``smp_allocators``.
    launch : function of C
        Runs a kernel of the library.
    """

    def __init__(self, own: Any = None, *, guards: bool = True) -> None:
        self.actions: list[Action] = []
        self.newest: dict[str, int] = {}
        self.buffers: dict[str, LentBuffer] = {}
        self.defers = False
        self.fail: int = 0
        self.partial = False
        self._guards = guards
        self._own = own
        self._blocks: dict[int, LentBlock] = {}
        self._freed: dict[int, LentBlock] = {}
        self._queued: dict[int, list[tuple[int, int, int]]] = {}
        self._strayed: int | None = None
        self._number = 0
        table = STRUCTURES["allocators"]
        self.table: Any = table(None, *(kind(getattr(self, f"_{name}")) for name, kind in table._fields_[1:]))
        self.launch: Any = LAUNCH(self._launch)

    # --- for the harness

    def buffer(self, name: str, side: str, content: bytes) -> None:
        """Make a buffer of the caller; on a device that only the library knows, with the library's own allocators."""
        if side == "gpu" and self._own:
            pointer = c_void_p()
            self._own.allocate(self._own.context, _DEVICE, len(content), ctypes.byref(pointer))
            address = pointer.value or 0
        else:
            address = self._new(SIDES[side], len(content), name).address
        self.buffers[name] = LentBuffer(side, address, len(content))
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
        with _opened([block]):
            return ctypes.string_at(address, size)

    def write(self, side: str, address: int, content: bytes) -> None:
        """Write bytes at an address, but not beyond the end of its block."""
        block = self._find(address)
        if block is None and side == "gpu" and self._own:
            self._own.copy(self._own.context, address, ctypes.create_string_buffer(content), len(content))
            return
        with _opened([block]):
            ctypes.memmove(address, content, _within(block, address, len(content)))

    def wait(self, stream: int | None = None) -> None:
        """Do what is queued on a stream, or on all."""
        for number in [stream] if stream is not None else list(self._queued):
            for destination, source, size in self._queued.pop(number, ()):
                self._move(destination, source, size)

    def is_freed(self, address: int) -> bool:
        """Whether a block was at an address until it was freed."""
        return address in self._freed

    def was_in_freed(self, address: int) -> bool:
        """Whether an address was in a block until that was freed."""
        return any(block.address <= address < block.address + max(block.size, 1) for block in self._freed.values())

    def place(self, address: int) -> str:
        """Where an address is, in words."""
        for word, blocks in (("", self._blocks), ("freed ", self._freed)):
            for block in blocks.values():
                if block.around(address):
                    return f"byte {address - block.address} of a {word}{_IN_WORDS[block.kind]} of {block.size} bytes"
        return f"memory that was not lent, at {address:#x}"

    def misdeed(self, addresses: Iterable[int]) -> str:
        """What the library did that none may do, or wrote beside one of the blocks at these addresses, if anything."""
        if self._strayed is not None:
            return f"the port made device {self._strayed} current, and there is only device 0"
        damages = (block.damage() for address in addresses if (block := self._blocks.get(address)))
        return next(filter(None, damages), "")

    @contextmanager
    def explained(self) -> Generator[None]:
        """Inside the block a segmentation fault first says what was touched; then it ends the program as ever."""

        def explain(_number: int, info: int, _context: object) -> None:
            address = c_uint64.from_address(info + _ADDRESS_AT).value
            os.write(2, f"the port touched {self.place(address)}\n".encode())

        handler, before = _HANDLER(explain), _Sigaction()
        action = _Sigaction(ctypes.cast(handler, c_void_p), flags=c_int(_SA_SIGINFO | _SA_RESETHAND).value)
        _LIBC.sigaction(signal.SIGSEGV, ctypes.byref(action), ctypes.byref(before))
        try:
            yield
        finally:
            _LIBC.sigaction(signal.SIGSEGV, ctypes.byref(before), None)

    # --- the functions for the library; each returns 0, or another number if it failed

    def _allocate(self, _context: int, kind: int, size: int, pointer: Any) -> int:
        side = "gpu" if kind == _DEVICE else "cpu"
        if self._fails({"action": f"allocate_{side}", "size": size, "pinned": kind == _PINNED}):
            return 1
        try:
            block = self._new(kind, size)
        except MemoryError:
            self.actions[-1]["failed"] = True
            return 1
        self.actions[-1]["block"] = block.number
        self.newest[side] = pointer[0] = block.address
        return 0

    def _deallocate(self, _context: int, kind: int, address: int | None) -> int:
        block = self._blocks.get(address or 0)
        action: Action = {"action": f"free_{'gpu' if kind == _DEVICE else 'cpu'}", "pinned": kind == _PINNED}
        if block is not None and block.name:
            action["buffer"] = block.name
        else:
            action["block"] = None if block is None else block.number
        if self._fails(action) or block is None or block.name or block.kind != kind:
            return 1
        self._drop(block)
        return 0

    def _zero(self, _context: int, address: int, size: int) -> int:
        block = self._find(address)
        failed = self._fails({"action": f"zero_{self._side(address)}", "size": size})
        if not failed or self.partial:
            with _opened([block]):
                ctypes.memset(address, 0, _within(block, address, size // 2 if failed else size))
        return int(failed)

    def _copy(self, _context: int, destination: int, source: int, size: int) -> int:
        return self._copy_on(None, destination, source, size)

    def _copy_async(self, _context: int, destination: int, source: int, size: int, stream: int | None) -> int:
        return self._copy_on(stream or 0, destination, source, size)

    def _copy_on(self, stream: int | None, destination: int, source: int, size: int) -> int:
        """Copy on a stream, or at once."""
        origin, side = self._side(source), self._side(destination)
        pushed = stream is not None and (origin, side) == ("cpu", "gpu")
        across = f"copy_to_{side}{'_async' if pushed else ''}"
        name = across if origin != side else f"copy_{side}"
        failed = self._fails({"action": name, "size": size, **({"stream": stream} if pushed else {})})
        if failed:
            if self.partial:
                self._move(destination, source, size // 2)
        elif self.defers and stream is not None:
            self._queued.setdefault(stream, []).append((destination, source, size))
        else:
            self._move(destination, source, size)
        return int(failed)

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
        with _opened(self._blocks.values()):
            _KERNEL(kernel)(argument)
        return 0

    # --- below

    def _fails(self, action: Action) -> bool:
        """Note an action; whether it has to fail."""
        self.actions.append(action)
        self.fail -= 1
        if self.fail == 0:
            action["failed"] = True
        return self.fail == 0

    def _new(self, kind: int, size: int, name: str = "") -> LentBlock:
        self._number += 1
        block = LentBlock(self._number, kind, size, name, guarded=self._guards and kind == _DEVICE)
        self._blocks[block.address] = block
        return block

    def _drop(self, block: LentBlock) -> None:
        """Free a block, and forget the queued copies from or to it: its pages may belong to somebody else soon."""
        del self._blocks[block.address]
        for number, copies in self._queued.items():
            self._queued[number] = [copy for copy in copies if not (block.around(copy[0]) or block.around(copy[1]))]
        block.close()
        self._freed[block.address] = block
        if len(self._freed) > _QUARANTINE:
            self._freed.pop(next(iter(self._freed))).unmap()

    def _forget(self, name: str) -> None:
        """Drop a buffer of the caller."""
        address = self.buffers.pop(name).address
        if address in self._blocks:
            self._drop(self._blocks[address])
        else:
            self._own.deallocate(self._own.context, _DEVICE, address)

    def _find(self, address: int) -> LentBlock | None:
        """The block at an address, or around it; None for memory that is not lent."""
        if block := self._blocks.get(address):
            return block
        blocks = self._blocks.values()
        return next((block for block in blocks if block.address < address < block.address + block.size), None)

    def _side(self, address: int) -> str:
        block = self._find(address)
        return "gpu" if block is not None and block.kind == _DEVICE else "cpu"

    def _move(self, destination: int, source: int, size: int) -> None:
        """Copy, but not beyond the end of a block: the kit sees the size that was asked for."""
        target, origin = self._find(destination), self._find(source)
        size = min(_within(target, destination, size), _within(origin, source, size))
        with _opened([target, origin]):
            ctypes.memmove(destination, source, size)


_KERNEL = ctypes.CFUNCTYPE(None, c_void_p)
_HANDLER = ctypes.CFUNCTYPE(None, c_int, c_void_p, c_void_p)
_SA_SIGINFO, _SA_RESETHAND = 4, 0x80000000
_ADDRESS_AT = 16
"""Where ``si_addr`` is in ``siginfo_t``, on 64 bits."""


class _Sigaction(ctypes.Structure):
    """``struct sigaction`` of Linux."""

    _fields_ = (("handler", c_void_p), ("mask", c_uint64 * 16), ("flags", c_int), ("restorer", c_void_p))
