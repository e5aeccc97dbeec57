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
from typing import TYPE_CHECKING, Never

from syncedmem.model import InvalidArgumentError, NotCopyableError
from syncedmem.model.errors import said

from ...allocators.pointers import as_integer, check_ordinal
from .block import RED_ZONE, Block, Quarantine, SimulatedDeviceError, exclusive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

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
_FEW = 64


class _Current(threading.local):
    ordinal = 0


_current = _Current()


def current_device() -> int:
    """The simulated device that is current in this thread, as ``cudaGetDevice``."""
    return _current.ordinal


class using_device:  # noqa: N801 -- used like a function
    """Make a simulated device current inside a ``with`` block, as ``cudaSetDevice`` and back.

    Parameters
    ----------
    ordinal : int

    Raises
    ------
    NoDeviceError, InvalidArgumentError
        If there is no such device, or `ordinal` is no integer.
    """

    __slots__ = ("_before", "_ordinal")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = checked_ordinal(ordinal)

    def __enter__(self) -> None:
        self._before = _current.ordinal
        _current.ordinal = self._ordinal

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _current.ordinal = self._before


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
                try:
                    self._stream.run(self._position)
                except (MemoryError, RecursionError):
                    raise  # the operation is still queued, and trying again here would have no end
                except Exception:  # noqa: BLE001, S112 -- it is dropped from the queue, and the stream knows
                    continue
            self._stream.check(self._start, self._position)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "record another one", "is a point in a stream")


class SimulatedStream:
    """A queue of work that happens when somebody waits for it.

    Attributes
    ----------
    space : Space
    number : int
        In order of creation; 0 is the default stream.
    """

    def __init__(self, space: Space, number: int) -> None:
        self.space = space
        self.number = number
        # Each with its number; numbers rise, and after an interrupt one may be missing.
        self._queue: deque[tuple[int, Callable[[], None]]] = deque()
        self._newest = 0
        # What they said, and not the errors: their tracebacks hold everybody who waited, with their memory.
        self._failures: dict[int, str] = {}

    @property
    def done(self) -> bool:
        """Whether nothing is queued."""
        return not self._queue

    @property
    def finished(self) -> int:
        """The number up to which operations have happened; taken from the queue, so it is true after an interrupt."""
        try:
            return self._queue[0][0] - 1
        except IndexError:
            return self._newest

    def put(self, operation: Callable[[], None]) -> None:
        """Queue an operation."""
        with exclusive:
            self.space.busy[self.number] = self
            self._newest = number = self._newest + 1
            self._queue.append((number, operation))

    def record(self) -> SimulatedEvent:
        """An event after everything queued so far."""
        with exclusive:
            return SimulatedEvent(self, self.finished, self._newest)

    def wait_event(self, event: SimulatedEvent) -> None:
        """Queue a wait: what is queued here later happens after the event."""
        self.put(event.synchronize)

    def run(self, position: int) -> None:
        """Perform queued operations until `position` have happened.

        An operation that fails is dropped from the queue, as a device does, and its error is raised here.  One
        that is interrupted, by ``MemoryError`` or ``RecursionError`` too, stays, and happens when somebody waits again.
        """
        with exclusive:
            while self.finished < position and self._queue:
                entry = number, operation = self._queue[0]
                try:
                    operation()
                except (MemoryError, RecursionError):
                    raise
                except Exception as error:
                    self._failures[number] = str(error) if isinstance(error, SimulatedDeviceError) else said(error)
                    self._drop(entry)
                    raise
                self._drop(entry)

    def _drop(self, entry: tuple[int, Callable[[], None]]) -> None:
        # It is gone if a finaliser, run within the operation, waited for this stream and performed it once more.
        if self._queue and self._queue[0] is entry:
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
            self.run(self._newest)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "share it, or make another one", "owns queued work")


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
    default_stream : SimulatedStream
    busy : dict
        The streams that hold work, by number; they live until it has happened, whoever let go of them.
    """

    def __init__(self, ordinal: int, capacity: int | None, seed: int | None) -> None:
        self.ordinal = ordinal
        self.capacity = capacity
        self.default_stream: SimulatedStream = SimulatedStream(self, 0)
        self.busy: dict[int, SimulatedStream] = {}
        self._scheduler: random.Random | None = None
        if seed is not None:
            self._scheduler = random.Random(as_integer(seed, "seed", "an integer"))  # noqa: S311 -- replayable races, not secrets
        self._created = 0
        self._quarantine = Quarantine()
        # Without callbacks, in which an interrupt would be lost; from time to time those that are gone are forgotten.
        self._blocks: list[weakref.ref[Block]] = []
        self._many = _FEW
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

    def entered(self) -> AbstractContextManager[bool]:
        """What every operation does first: let queued work happen or not.  Returns the lock, for the ``with`` block.

        The lock itself, because an interrupt can leave a block without the end of a context manager that is written in
        Python.
        """
        if self._scheduler is not None:
            with exclusive:
                while self.busy and self._scheduler.random() < _NOW_OR_LATER:
                    stream = self.busy[self._scheduler.choice(list(self.busy))]
                    stream.run(stream.finished + 1)
        return exclusive

    def new_block(self, size: int) -> Block:
        """A poisoned block, for who holds the lock; it counts as allocated until it is freed or nobody knows it.

        Raises
        ------
        MemoryError
            If the capacity is exceeded.
        """
        if self.capacity is not None and (used := self.used) + size > self.capacity:
            raise MemoryError(f"{used} of {self.capacity} bytes are in use")
        # Addresses are never used twice, so a stale one cannot pass for a new one.
        address = self._next_address
        self._next_address = address + ((size + 2 * RED_ZONE + 255) & ~255)
        block = Block(address, size)
        if len(self._blocks) >= self._many:
            self._blocks = [it for it in self._blocks if (known := it()) is not None and known.live]
            self._many = 2 * len(self._blocks) + _FEW
        self._blocks.append(weakref.ref(block))
        return block

    @property
    def used(self) -> int:
        """The bytes allocated now: counted, because a number could be wrong after an interrupt."""
        return sum([block.size for block in self._allocated()])

    def _allocated(self) -> list[Block]:
        """The blocks that are allocated."""
        return [block for it in list(self._blocks) if (block := it()) is not None and block.live]

    def free(self, block: Block) -> None:
        """Free a block into quarantine.

        Raises
        ------
        SimulatedDeviceError
            See `Quarantine.take`; the block stays allocated.
        """
        self._quarantine.take(block)

    def check(self) -> None:
        """Check every block, those that are in use and those in quarantine.

        Raises
        ------
        SimulatedDeviceError
        """
        with exclusive:
            for block in self._allocated():
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
