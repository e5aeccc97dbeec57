"""Right allocators in Python, each with a freedom that a known library takes; its wrong twin is the class ``Wrong...``.

All are over one base: lists of idle blocks by their sizes, over memory of ctypes.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncedmem.spec.fuzz.streams import Stream, StreamEvent

TOO_MUCH = 1 << 40
MIB = 1 << 20


class _Pool:
    """Lends a block of the same size again, or a new one."""

    def __init__(self) -> None:
        self._memory: dict[int, Any] = {}
        self._idle: dict[int, list[int]] = {}

    def get(self, size: int) -> int:
        if size > TOO_MUCH:
            raise MemoryError
        if idle := self._idle.get(size):
            return idle.pop()
        buffer = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self._memory[address] = buffer
        return address

    def put(self, address: int, size: int) -> None:
        self._idle.setdefault(size, []).append(address)


class Asked(_Pool):
    """Its statistics count the bytes that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.current_bytes = self.current_count = self.peak_bytes = 0

    def allocate(self, nbytes: int) -> int:
        address = self.get(nbytes)
        self.current_count += 1
        self.current_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)
        return address

    def deallocate(self, address: int, nbytes: int) -> None:
        self.current_count -= 1
        self.current_bytes -= nbytes
        self.put(address, nbytes)


class WrongAsked(Asked):
    """A free counts at most a page."""

    def deallocate(self, address: int, nbytes: int) -> None:
        super().deallocate(address, nbytes)
        self.current_bytes += max(nbytes - 4096, 0)


class Rounded(_Pool):
    """Its statistics count the bytes of its blocks, which are rounded up to 512."""

    used = 0

    def used_bytes(self) -> int:
        return self.used

    def allocate(self, size: int) -> int:
        whole = -(-max(size, 1) // 512) * 512
        address = self.get(whole)
        self.used += whole
        return address

    def deallocate(self, address: int, size: int) -> None:
        whole = -(-max(size, 1) // 512) * 512
        self.used -= whole
        self.put(address, whole)


class WrongRounded(Rounded):
    """A free counts what was asked for."""

    def deallocate(self, address: int, size: int) -> None:
        super().deallocate(address, size)
        self.used += -size % 512


class RefusedOnce(_Pool):
    """What is below it refuses now and then, and then it does so too; it lends what it has, and asks again."""

    asked = 0
    dry = forgets = False

    def allocate(self, size: int) -> int:
        if not self._idle.get(size):
            self.asked += 1
            if self.dry or self.asked % 40 == 0:
                self.dry = self.forgets
                raise MemoryError
        return self.get(size)

    def deallocate(self, address: int, size: int) -> None:
        self.put(address, size)


class WrongRefusedOnce(RefusedOnce):
    """After a refusal it never asks again."""

    forgets = True

    def deallocate(self, address: int, size: int) -> None:
        if not self.dry:
            self.put(address, size)


class Budget(_Pool):
    """The live bytes have a limit; what is beyond it is refused, and served again after frees."""

    capacity = 8 * MIB
    spent = 0

    def get_allocated_bytes(self) -> int:
        return self.spent

    def allocate(self, nbytes: int) -> int:
        if self.spent + nbytes > self.capacity:
            raise MemoryError
        self.spent += nbytes
        return self.get(nbytes)

    def deallocate(self, address: int, nbytes: int) -> None:
        self.spent -= nbytes
        self.put(address, nbytes)


class WrongBudget(Budget):
    """What is refused is counted."""

    def allocate(self, nbytes: int) -> int:
        try:
            return super().allocate(nbytes)
        except MemoryError:
            self.spent += nbytes % MIB
            raise


class Aligned(_Pool):
    """A request may name an alignment; a free does nothing."""

    def allocate(self, size: int, alignment: int = 16) -> int:
        whole = size + max(alignment, 16)
        return -(-self.get(whole) // alignment) * alignment

    def deallocate(self, address: int, size: int) -> None:
        """Do nothing."""


class WrongAligned(Aligned):
    """It knows alignments up to a cache line only."""

    def allocate(self, size: int, alignment: int = 16) -> int:
        return super().allocate(size, min(alignment, 64)) + (64 if alignment > 64 else 0)


class TellsSizes(_Pool):
    """A free with a wrong size is an error, and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        address = self.get(size)
        self.live[address] = size
        return address

    def deallocate(self, address: int, size: int) -> None:
        if self.live[address] != size:
            raise ValueError(size)
        self.put(address, self.live.pop(address))


class WrongTellsSizes(TellsSizes):
    """A size that is too small is believed."""

    def deallocate(self, address: int, size: int) -> None:
        super().deallocate(address, max(size, self.live[address]))


class TellsTwice(_Pool):
    """A second free is an error, and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        address = self.get(size)
        self.live[address] = size
        return address

    def deallocate(self, address: int) -> None:
        if address not in self.live:
            raise ValueError(address)
        self.put(address, self.live.pop(address))


class WrongTellsTwice(TellsTwice):
    """A second free of the last block that was freed goes unnoticed."""

    last = 0

    def deallocate(self, address: int) -> None:
        if address != self.last or address in self.live:
            super().deallocate(address)
        self.last = address


class Dropped(_Pool):
    """A block is an object that knows its size, which is rounded up, and is freed when nobody refers to it any more."""

    less = 0

    class Pointer:
        def __init__(self, pool: Dropped, size: int) -> None:
            self.whole = 0
            self.ptr, self.pool, self.whole = pool.get(-(-size // 512) * 512), pool, -(-size // 512) * 512
            self.size = max(self.whole - pool.less, 0)

        def __del__(self) -> None:
            if self.whole:
                self.pool.put(self.ptr, self.whole)

    def malloc(self, size: int) -> Dropped.Pointer:
        return self.Pointer(self, size)


class WrongDropped(Dropped):
    """The size that a block knows is too small by a head."""

    less = 16


class Events(_Pool):
    """A freed block is lent on its stream at once, and on another one only after an event of its stream."""

    def __init__(self) -> None:
        super().__init__()
        self.freed: dict[int, deque[tuple[int, Stream | None, StreamEvent | None]]] = {}

    def may_lend(self, on: Stream | None, stream: Stream | None, event: StreamEvent | None) -> bool:
        return stream is on or event is None or event.query()

    def allocate(self, size: int, stream: Stream | None = None) -> int:
        for freed in (waiting := self.freed.setdefault(size, deque())):
            if self.may_lend(stream, *freed[1:]):
                waiting.remove(freed)
                return freed[0]
        return self.get(size)

    def deallocate(self, address: int, size: int, stream: Stream | None = None) -> None:
        event = None if stream is None else stream.record()
        self.freed.setdefault(size, deque()).append((address, stream, event))


class WrongEvents(Events):
    """A block is lent on any stream at once."""

    def may_lend(self, on: Stream | None, stream: Stream | None, event: StreamEvent | None) -> bool:
        del on, stream, event
        return True


class Waits(Events):
    """A freed block is lent on any stream, which waits for an event of the old one."""

    def may_lend(self, on: Stream | None, stream: Stream | None, event: StreamEvent | None) -> bool:
        del stream
        if event is not None and on is not None:
            on.wait_event(event)
        elif event is not None:
            event.synchronize()
        return True


class WrongWaits(Events):
    """The new stream waits for an event of its own."""

    def may_lend(self, on: Stream | None, stream: Stream | None, event: StreamEvent | None) -> bool:
        del stream
        if event is not None and on is not None:
            on.wait_event(on.record())
        return True
