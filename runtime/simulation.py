"""A device that does not exist: a second memory space inside the process, with streams of its own.

It is stricter than real devices, so that what is wrong there shows here: fresh memory is poisoned, freed
memory is poisoned and kept in quarantine, red zones lie around every block (``simulated_block``), and a queued
copy happens only when its stream is synchronised, or when a seeded scheduler says so, so a race replays.  A
queued copy reads its source when it happens, not when it is queued.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from syncedmem.model import InvalidArgumentError
from syncedmem.model.errors import said

from .pointers import as_integer, check_ordinal
from .simulated_block import RED_ZONE, Block, Quarantine, SimulatedDeviceError, exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = [
    "ORDINALS",
    "SimulatedEvent",
    "SimulatedStream",
    "Space",
    "current_device",
    "using_device",
]

ORDINALS = 4
"""How many simulated devices there are."""

_NOW_OR_LATER = 0.5


class _Current(threading.local):
    ordinal = 0


_current = _Current()


def current_device() -> int:
    """The simulated device that is current in this thread, as ``cudaGetDevice``."""
    return _current.ordinal


@contextmanager
def using_device(ordinal: int) -> Generator[None]:
    """Make a simulated device current inside a ``with`` block, as ``cudaSetDevice`` and back.

    Raises
    ------
    NoDeviceError, InvalidArgumentError
        If there is no such device, or `ordinal` is no integer.
    """
    before, _current.ordinal = _current.ordinal, checked_ordinal(ordinal)
    try:
        yield
    finally:
        _current.ordinal = before


def checked_ordinal(ordinal: int) -> int:
    """An ordinal that exists; see `check_ordinal`."""
    return check_ordinal(ordinal, "simulated", ORDINALS)


class SimulatedEvent:
    """A point in a simulated stream.

    Parameters
    ----------
    stream : SimulatedStream
    start, position : int
        The operations that were queued when it was recorded, as the stream counts them.
    """

    def __init__(self, stream: SimulatedStream, start: int, position: int) -> None:
        self._stream = stream
        self._start = start
        self._position = position

    @property
    def done(self) -> bool:
        """Whether the stream has passed the point."""
        return self._stream.finished >= self._position

    def synchronize(self) -> None:
        """Run the stream up to the point, past what fails on the way.

        Raises
        ------
        SimulatedDeviceError
            Every time, if an operation failed that was queued when the event was recorded: with what the first
            of them said.
        """
        with exclusive:
            while not self.done:
                with suppress(Exception):  # the stream knows
                    self._stream.run(self._position)
            self._stream.check(self._start, self._position)


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
        # What they said, and not the errors: their tracebacks hold everybody who waited, with their memory.
        self._failures: dict[int, str] = {}

    @property
    def done(self) -> bool:
        """Whether nothing is queued."""
        return not self._queue

    def put(self, operation: Callable[[], None]) -> None:
        """Queue an operation."""
        with exclusive:
            self._queue.append(operation)
            self.space.busy[self.number] = self

    def record(self) -> SimulatedEvent:
        """An event after everything queued so far."""
        with exclusive:
            return SimulatedEvent(self, self.finished, self.finished + len(self._queue))

    def wait_event(self, event: SimulatedEvent) -> None:
        """Queue a wait: what is queued here later happens after the event."""
        self.put(event.synchronize)

    def run(self, position: int) -> None:
        """Perform queued operations until `position` have happened.

        An operation that fails is dropped from the queue, as a device does, and its error is raised here.  One
        that is interrupted stays, and happens when somebody waits again.
        """
        with exclusive:
            while self.finished < position and self._queue:
                operation = self._queue[0]
                try:
                    operation()
                except Exception as error:
                    self._failures[self.finished + 1] = (
                        str(error) if isinstance(error, SimulatedDeviceError) else said(error)
                    )
                    self._drop(operation)
                    raise
                self._drop(operation)

    def _drop(self, operation: Callable[[], None]) -> None:
        # It is gone if a finaliser, run within the operation, waited for this stream and performed it once more.
        if self._queue and self._queue[0] is operation:
            self.finished += 1
            self._queue.popleft()
            if not self._queue:
                self.space.busy.pop(self.number, None)

    def check(self, start: int, position: int) -> None:
        """Look whether an operation after `start` and up to `position` failed.

        Raises
        ------
        SimulatedDeviceError
            With what the first of them said.
        """
        for number, words in self._failures.items():
            if start < number <= position:
                raise SimulatedDeviceError(words)

    def synchronize(self) -> None:
        """Perform everything that is queued."""
        with exclusive:
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

    Attributes
    ----------
    used : int
        The bytes allocated now.
    default_stream : SimulatedStream
    busy : dict
        The streams that hold work, by number; they live until it has happened, whoever let go of them.
    """

    def __init__(self, ordinal: int, capacity: int | None, seed: int | None) -> None:
        self.ordinal = ordinal
        self.capacity = capacity
        self.used = 0
        self.default_stream = SimulatedStream(self, 0)
        self.busy: dict[int, SimulatedStream] = {}
        self._scheduler: random.Random | None = None
        if seed is not None:
            self._scheduler = random.Random(as_integer(seed, "seed", "an integer"))  # noqa: S311 -- replayable races, not secrets
        self._created = 0
        self._quarantine = Quarantine()
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        self._next_address = 0x7F00_0000_0000 + (ordinal << 40)

    @property
    def defers(self) -> bool:
        """Whether queued operations happen only when somebody waits: there is no scheduler."""
        return self._scheduler is None

    def new_stream(self) -> SimulatedStream:
        """A stream with a number of its own."""
        with exclusive:
            self._created += 1
            return SimulatedStream(self, self._created)

    def check_stream(self, stream: object) -> None:
        """Refuse what is no stream of this device.

        Raises
        ------
        InvalidArgumentError
        """
        if not isinstance(stream, SimulatedStream) or stream.space is not self:
            raise InvalidArgumentError(
                "stream", stream, f"a stream of simulated:{self.ordinal}, as its stream() returns"
            )

    @contextmanager
    def entered(self) -> Generator[None]:
        """What every operation does first: take the lock, make the device current, let queued work happen or not."""
        with exclusive, using_device(self.ordinal):
            while self._scheduler is not None and self.busy and self._scheduler.random() < _NOW_OR_LATER:
                stream = self.busy[self._scheduler.choice(list(self.busy))]
                stream.run(stream.finished + 1)
            yield

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
        self._blocks.add(block)
        return block

    def free(self, block: Block) -> None:
        """Free a block into quarantine.

        Raises
        ------
        SimulatedDeviceError
            See `Quarantine.take`; the block stays allocated.
        """
        was_live = block.live
        self._quarantine.take(block)
        self.used -= block.size if was_live else 0

    def forget(self, size: int) -> None:
        """Count bytes as free whose block nobody looks at any more."""
        with exclusive:
            self.used -= size

    def check(self) -> None:
        """Check every block, those that are in use and those in quarantine.

        Raises
        ------
        SimulatedDeviceError
        """
        with exclusive:
            for block in [block for block in self._blocks if block.live]:
                block.check()
            self._quarantine.check()

    def synchronize(self) -> None:
        """Perform everything queued on every stream, in the order in which they got work."""
        with exclusive:
            for number in list(self.busy):
                if number in self.busy:  # else another stream waited for it
                    self.busy[number].synchronize()

    def now(self, stream: SimulatedStream | None, operation: Callable[[], None]) -> None:
        """Queue an operation on a stream, or perform it behind the default stream if `stream` is None."""
        if stream is None:
            self.default_stream.synchronize()
            operation()
        else:
            stream.put(operation)
