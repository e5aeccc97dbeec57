"""A device that does not exist: a second memory space inside the process, with streams of its own.

It is stricter than real devices, so that what is wrong there shows here: fresh memory is poisoned, freed
memory is poisoned and kept in quarantine, red zones lie around every block, and a queued copy happens only
when its stream is synchronised, or when a seeded scheduler says so, so a race replays.  A queued copy reads
its source when it happens, not when it is queued.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import NoDeviceError, SyncedMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .allocator import HostArray

__all__ = [
    "ORDINALS",
    "Block",
    "SimulatedDeviceError",
    "SimulatedEvent",
    "SimulatedStream",
    "Space",
    "current_device",
    "using_device",
]

ORDINALS = 4
"""How many simulated devices there are."""

RED_ZONE = 64
FRESH, FREED, GUARD = 0xA5, 0xDD, 0xFB
"""The bytes of memory never written, of memory freed, and of red zones."""

_QUARANTINE_BYTES = 4 << 20


class SimulatedDeviceError(SyncedMemoryError, RuntimeError):
    """The simulated device caught its user: a stray write, a use after free, a wrong device, a wrong free."""


class _Current(threading.local):
    ordinal = 0


_current = _Current()


def current_device() -> int:
    """The simulated device that is current in this thread, as ``cudaGetDevice``."""
    return _current.ordinal


@contextmanager
def using_device(ordinal: int) -> Iterator[None]:
    """Make a simulated device current inside a ``with`` block, as ``cudaSetDevice`` and back.

    Raises
    ------
    NoDeviceError
        If there is no such device.
    """
    before, _current.ordinal = _current.ordinal, checked_ordinal(ordinal)
    try:
        yield
    finally:
        _current.ordinal = before


def checked_ordinal(ordinal: int) -> int:
    """An ordinal that exists.

    Raises
    ------
    NoDeviceError
    """
    if ordinal not in range(ORDINALS):
        raise NoDeviceError(f"there is no simulated device {ordinal!r}; there are 0 to {ORDINALS - 1}")
    return ordinal


class Block:
    """A piece of simulated memory: its bytes lie between two red zones and are nobody else's business.

    Attributes
    ----------
    address : int
        Where it pretends to be; nothing is mapped there.
    size : int
        In bytes.
    live : bool
    """

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        self.live = True
        self._storage = np.full(size + 2 * RED_ZONE, GUARD, np.uint8)
        self._bytes: HostArray = self._storage[RED_ZONE : RED_ZONE + size]
        self._bytes.fill(FRESH)

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
        """Poison the block, so that whoever still reads it notices."""
        self.live = False
        self._bytes.fill(FREED)

    def check(self) -> None:
        """Look for stray writes: into the red zones, or into the bytes after they were freed.

        Raises
        ------
        SimulatedDeviceError
        """
        before, after = self._storage[:RED_ZONE], self._storage[RED_ZONE + self.size :]
        if (before != GUARD).any() or (after != GUARD).any():
            raise SimulatedDeviceError(f"something wrote into the red zone of {self}")
        if not self.live and (self._bytes != FREED).any():
            raise SimulatedDeviceError(f"something wrote into {self} after it was freed")

    def __str__(self) -> str:
        return f"the block of {self.size} bytes at {self.address:#x}"


class SimulatedEvent:
    """A point in a simulated stream."""

    def __init__(self, stream: SimulatedStream, position: int) -> None:
        self._stream = stream
        self._position = position

    @property
    def done(self) -> bool:
        """Whether the stream has passed the point."""
        return self._stream.finished >= self._position

    def synchronize(self) -> None:
        """Run the stream up to the point."""
        self._stream.run(self._position)


class SimulatedStream:
    """A queue of work that happens when somebody waits for it.

    Attributes
    ----------
    space : Space
    number : int
        In order of creation; 0 is the default stream.
    finished : int
        How many operations have happened.
    """

    def __init__(self, space: Space, number: int) -> None:
        self.space = space
        self.number = number
        self.finished = 0
        self._queue: deque[Callable[[], None]] = deque()

    @property
    def done(self) -> bool:
        """Whether nothing is queued."""
        return not self._queue

    def put(self, operation: Callable[[], None]) -> None:
        """Queue an operation."""
        self._queue.append(operation)

    def record(self) -> SimulatedEvent:
        """An event after everything queued so far."""
        return SimulatedEvent(self, self.finished + len(self._queue))

    def wait_event(self, event: SimulatedEvent) -> None:
        """Queue a wait: what is queued here later happens after the event."""
        self.put(event.synchronize)

    def run(self, position: int) -> None:
        """Perform queued operations until `position` have happened.

        An operation that fails is dropped from the queue, as a device does, and its error is raised here.
        """
        while self.finished < position and self._queue:
            operation = self._queue.popleft()
            self.finished += 1
            operation()

    def synchronize(self) -> None:
        """Perform everything that is queued."""
        self.run(self.finished + len(self._queue))


class Space:
    """The memory and the streams of one simulated device.

    Parameters
    ----------
    ordinal : int
        Which device it is.
    capacity : int or None
        The most bytes that may be allocated at once; None for no limit.
    seed : int or None
        Seeds the scheduler that lets queued operations happen at any call; None lets them happen only when
        somebody waits.
    """

    def __init__(self, ordinal: int, capacity: int | None, seed: int | None) -> None:
        self.ordinal = ordinal
        self.capacity = capacity
        self.used = 0
        self.default_stream = SimulatedStream(self, 0)
        self._scheduler = None if seed is None else random.Random(seed)  # noqa: S311 -- replayable races, not secrets
        self._created = 0
        self._streams: weakref.WeakSet[SimulatedStream] = weakref.WeakSet()
        self._quarantine: deque[Block] = deque()
        self._quarantined = 0
        self._next_address = 0x7F00_0000_0000 + (ordinal << 40)

    def new_stream(self) -> SimulatedStream:
        """A stream that the scheduler knows and does not keep alive."""
        self._created += 1
        stream = SimulatedStream(self, self._created)
        self._streams.add(stream)
        return stream

    def enter(self) -> None:
        """What every operation does first: check the current device, and let queued work happen or not.

        Raises
        ------
        SimulatedDeviceError
            If another device is current.
        """
        if _current.ordinal != self.ordinal:
            raise SimulatedDeviceError(f"device {self.ordinal} was used while device {_current.ordinal} was current")
        if self._scheduler is not None:
            waiting = sorted((s for s in self._streams if not s.done), key=lambda s: s.number)
            while waiting and self._scheduler.random() < 0.5:
                stream = self._scheduler.choice(waiting)
                stream.run(stream.finished + 1)
                waiting = [s for s in waiting if not s.done]

    def allocate(self, size: int) -> Block:
        """A poisoned block.

        Raises
        ------
        MemoryError
            If the capacity is exceeded.
        """
        if self.capacity is not None and self.used + size > self.capacity:
            raise MemoryError(f"{self.used} of {self.capacity} bytes are in use")
        block = Block(self._next_address, size)
        # Addresses are never used twice, so a stale one cannot pass for a new one.
        self._next_address += (size + 2 * RED_ZONE + 255) & ~255
        self.used += size
        return block

    def free(self, block: Block) -> None:
        """Free a block into quarantine; the oldest blocks there are checked and let go.

        Raises
        ------
        SimulatedDeviceError
            If the block's red zone was written; it stays allocated.
        """
        block.check()
        block.retire()
        self.used -= block.size
        self._quarantine.append(block)
        self._quarantined += block.size
        while self._quarantined > _QUARANTINE_BYTES:
            oldest = self._quarantine.popleft()
            self._quarantined -= oldest.size
            oldest.check()

    def forget(self, size: int) -> None:
        """Count bytes as free whose block nobody looks at any more."""
        self.used -= size

    def check(self) -> None:
        """Check every block in quarantine.

        Raises
        ------
        SimulatedDeviceError
        """
        for block in self._quarantine:
            block.check()

    def synchronize(self) -> None:
        """Perform everything queued on every stream."""
        for stream in [self.default_stream, *self._streams]:
            stream.synchronize()

    def now(self, stream: Any, operation: Callable[[], None]) -> None:
        """Queue an operation on a stream, or perform it behind the default stream if `stream` is None."""
        target = self.default_stream if stream is None else stream
        target.put(operation)
        if stream is None:
            target.synchronize()
