"""A device that does not exist: a second memory space inside the process, with streams of its own.

It is stricter than real devices, so that errors show here that a real device may hide.  New memory is poisoned.  Freed
memory is poisoned and kept in quarantine.  There are red zones around every block (``block``).  A queued copy happens
only when somebody waits for it, or when a seeded scheduler decides; so a race can be repeated.  A queued copy reads its
source when it happens, not when it is queued.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Never, Self

from syncedmem.model import InvalidArgumentError, NotCopyableError
from syncedmem.model.errors import said, words

from ...allocators.pointers import as_integer, check_ordinal
from .block import RED_ZONE, Block, Quarantine, SimulatedDeviceError, exclusive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    _Entry = tuple[int, Callable[[], object], type[Exception]]

__all__ = [
    "ORDINALS",
    "DeviceSpace",
    "SimulatedEvent",
    "SimulatedStream",
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
    """The number of the simulated device that is current in this thread; as ``cudaGetDevice``."""
    return _current.ordinal


class using_device:  # noqa: N801 -- used like a function
    """Make a simulated device current inside a ``with`` block; as ``cudaSetDevice``, with the old device restored.

    The same object may be entered again inside its block.

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
        self._before: list[int] = []  # of each block that was entered, the innermost last

    def __enter__(self) -> None:
        self._before.append(_current.ordinal)
        _current.ordinal = self._ordinal

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _current.ordinal = self._before.pop()


def checked_ordinal(ordinal: int) -> int:
    """The number of a device, after a check that there is such a device; errors as for `check_ordinal`."""
    return check_ordinal(ordinal, "simulated", ORDINALS)


class SimulatedEvent:
    """A point in a simulated stream.

    Parameters
    ----------
    stream : SimulatedStream
    position : int
        The number of the last operation that was queued when the event was recorded.
    before : _Failure
        The last failure that there was then.
    """

    def __init__(self, stream: SimulatedStream, position: int, before: _Failure) -> None:
        self._stream = stream
        self._position = position
        self._before = before

    @property
    def done(self) -> bool:
        """Whether all operations before the event have happened or failed; never waits."""
        return self._stream.finished >= self._position

    def synchronize(self) -> None:
        """Run the stream up to the event, also past operations that fail.

        Raises
        ------
        SimulatedDeviceError
            If an operation failed that was queued when the event was recorded; with the message of the first that
            failed.  It is raised each time.
        """
        with exclusive:
            while not self.done:
                self._stream.perform_first()
            failure = self._before.later
            if failure is not None and failure.number <= self._position:
                raise SimulatedDeviceError(failure.words)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "record another one", "is a point in a stream")


class _Failure:
    """A failed operation of a stream, and the one that failed next.

    An event keeps the last failure before it, and so the later ones, but none that is older; what no event can tell of
    goes.  There are the messages, not the errors: the traceback of an error keeps the frames of all waiting callers,
    and their memory.
    """

    __slots__ = ("later", "number", "words")

    def __init__(self, number: int, words: str) -> None:
        self.number: int = number
        self.words: str = words
        self.later: _Failure | None = None


class _Entered(threading.local):
    """The streams whose ``with`` blocks a thread is in, the innermost last."""

    streams: tuple[SimulatedStream, ...] = ()


class SimulatedStream:
    """A queue of work, which happens when somebody waits for it.

    In a ``with`` block of a stream it is the current one of the thread, as in CuPy.

    Attributes
    ----------
    space : DeviceSpace
    number : int
        Its number in the order of creation; 0 is the default stream.
    """

    def __init__(self, space: DeviceSpace, number: int) -> None:
        self.space = space
        self.number: int = number
        # Each operation with its number.  Numbers rise; after an interrupt one may be missing.
        self._queue: deque[_Entry] = deque()
        self._newest = 0
        self._failure = _Failure(0, "")  # the last one; none has this number

    @property
    def done(self) -> bool:
        """Whether nothing is queued."""
        return not self._queue

    @property
    def finished(self) -> int:
        """The number of the last operation that has happened; taken from the queue, so an interrupt does no harm."""
        try:
            return self._queue[0][0] - 1
        except IndexError:
            return self._newest

    def launch(self, function: Callable[..., object], *arrays: Any) -> None:
        """Queue a kernel: a function that reads and writes the items of arrays when its turn comes.

        The arrays' memory may be freed before: the work that is queued keeps its bytes.

        Parameters
        ----------
        function : callable
            It is called with one ``numpy.ndarray`` for each of `arrays`, which shows the items themselves; those of a
            read-only array cannot be written.  What it raises is told to those who wait for the stream.  One that
            Ctrl-C interrupts is called again when somebody waits again.
        *arrays : SimulatedArray
            Arrays of this device.

        Raises
        ------
        InvalidArgumentError
            If `function` cannot be called, or one of `arrays` is no array of this device; nothing is queued.
        SimulatedDeviceError
            If the memory of one of `arrays` was freed; nothing is queued.
        """
        where = f"simulated:{self.space.ordinal}"
        if not callable(function):
            raise InvalidArgumentError("function", function, "a function of NumPy arrays")
        for array in arrays:
            if not getattr(array, "belongs_to", _nowhere)(self.space):
                raise InvalidArgumentError("arrays", array, f"arrays of {where}, as gpu_data() returns")
        with self.space.entered():
            self.put(partial(function, *[array.lent() for array in arrays]), Exception)

    def __enter__(self) -> Self:
        entered = self.space.entered_streams
        entered.streams = (*entered.streams, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = self.space.entered_streams
        entered.streams = entered.streams[:-1]

    def put(self, operation: Callable[[], object], failures: type[Exception] = SimulatedDeviceError) -> None:
        """Queue an operation: it happens when somebody waits for the stream, or when the scheduler decides.

        It has failed if it raises one of `failures`.  Any other exception is an interrupt: a signal handler raises what
        it likes, and those who wait for this operation may be others than those who are interrupted.
        """
        with exclusive:
            self.space.busy[self.number] = self
            self._newest = number = self._newest + 1
            self._queue.append((number, operation, failures))

    def record(self) -> SimulatedEvent:
        """An event after all operations that are queued so far."""
        with exclusive:
            return SimulatedEvent(self, self._newest, self._failure)

    def wait_event(self, event: SimulatedEvent) -> None:
        """Queue a wait: operations that are queued on this stream later happen after the event.

        Raises
        ------
        InvalidArgumentError
            If `event` is no event of a simulated device; nothing is queued.
        """
        if not isinstance(event, SimulatedEvent):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("event", event, "an event of a simulated device, as its record() returns")
        with exclusive:
            # Whoever reads a memory again and again while a push is in flight asks for the same wait each time.
            if not self._queue or self._queue[-1][1] != event.synchronize:
                self.put(event.synchronize)

    def run(self, position: int) -> None:
        """Perform queued operations, up to number `position`, or the first that fails, whose error is raised here."""
        with exclusive:
            while self.finished < position and self._queue:
                error = self.perform_first()
                try:
                    if error is not None:
                        raise error
                finally:
                    del error  # its traceback has this frame, which would keep it

    def perform_first(self) -> Exception | None:
        """Perform the operation that was queued first; the caller holds the lock of the devices.

        An operation that fails is dropped from the queue, as on a real device, and its error is the result.  One that
        is interrupted stays in the queue, and happens when somebody waits again; the interrupt is raised here.
        ``MemoryError`` and ``RecursionError`` count as interrupts.
        """
        entry = number, operation, failures = self._queue[0]
        try:
            operation()
        except (MemoryError, RecursionError):
            raise
        except failures as error:
            try:
                text = words(error) if isinstance(error, SimulatedDeviceError) else said(error)
                failure = _Failure(number, text)
                if number > self._failure.number:  # else a finaliser has repeated it, and it failed there too
                    self._failure.later = self._failure = failure  # no call comes between the two
            finally:  # at the exit of the interpreter nothing may be left that says what is wrong
                self._drop(entry)
            return error
        self._drop(entry)
        return None

    def _drop(self, entry: _Entry) -> None:
        # It is not first any more if a finaliser, which ran during the operation, waited for this stream and repeated
        # it.
        if self._queue and self._queue[0] is entry:
            self._queue.popleft()
            if not self._queue:
                self.space.busy.pop(self.number, None)

    def synchronize(self) -> None:
        """Perform all queued operations; errors as for `run`."""
        with exclusive:
            self.run(self._newest)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "share it, or make another one", "owns queued work")


def _nowhere(space: DeviceSpace) -> bool:  # noqa: ARG001 -- as SimulatedArray.belongs_to
    """What is no array of a simulated device belongs to none of them."""
    return False


class DeviceSpace:
    """The memory and the streams of one simulated device.

    Parameters
    ----------
    ordinal : int
        Which device it is.
    capacity : int or None
        The most bytes that may be allocated at once; None for no limit.
    seed : int or None
        The seed of a scheduler that lets queued operations happen during any call.  None: they happen only when
        somebody waits.

    Attributes
    ----------
    default_stream : SimulatedStream
    entered_streams : threading.local
        Which streams this thread has made current.
    quarantine : Quarantine
    busy : dict
        The streams that have queued work, by number.  They are kept until the work has happened, even if nobody else
        keeps them.
    """

    def __init__(self, ordinal: int, capacity: int | None, seed: int | None) -> None:
        self.ordinal = ordinal
        self.capacity = capacity
        self.default_stream: SimulatedStream = SimulatedStream(self, 0)
        self.entered_streams: _Entered = _Entered()
        self.busy: dict[int, SimulatedStream] = {}
        self._scheduler: random.Random | None = None
        if seed is not None:
            self._scheduler = random.Random(as_integer(seed, "seed", "an integer"))  # noqa: S311 -- replayable races, not secrets
        self._created = 0
        self.quarantine: Quarantine = Quarantine()
        # Plain weak references: an interrupt in a callback would be lost.  Dead references are removed from time to
        # time.
        self._blocks: list[weakref.ref[Block]] = []
        self._many = _FEW
        self._next_address = 0x7F00_0000_0000 + (ordinal << 40)

    @property
    def defers(self) -> bool:
        """Whether queued operations happen only when somebody waits: then there is no scheduler."""
        return self._scheduler is None

    @property
    def current_stream(self) -> SimulatedStream:
        """The stream of this thread's work that names none: the innermost ``with`` block's, or the default one."""
        entered = self.entered_streams.streams
        return entered[-1] if entered else self.default_stream

    def new_stream(self) -> SimulatedStream:
        """A new stream, with a number of its own."""
        with exclusive:
            self._created += 1
            return SimulatedStream(self, self._created)

    def check_stream(self, stream: object) -> None:
        """Refuse an object that is not a stream of this device."""
        if not isinstance(stream, SimulatedStream) or stream.space is not self:
            raise InvalidArgumentError(
                "stream", stream, f"a stream of simulated:{self.ordinal}, as its stream() returns"
            )

    def entered(self) -> AbstractContextManager[bool]:
        """The first step of every operation: the scheduler may perform queued work.  Returns the lock, for ``with``.

        It returns the lock itself.  A context manager written in Python would not be safe: an interrupt can leave its
        block without running its end.
        """
        if self._scheduler is not None:
            with exclusive:
                while self.busy and self._scheduler.random() < _NOW_OR_LATER:
                    stream = self.busy[self._scheduler.choice(list(self.busy))]
                    stream.run(stream.finished + 1)
        return exclusive

    def new_block(self, size: int) -> Block:
        """A new poisoned block; the caller has the lock.  It counts as allocated until it is freed or nobody has it."""
        if self.capacity is not None and (used := self.used) + size > self.capacity:
            raise MemoryError(f"{used} of {self.capacity} bytes are in use")
        # Addresses are never used twice, so an old address is never taken for a new one.
        address = self._next_address
        self._next_address = address + ((size + 2 * RED_ZONE + 255) & ~255)
        block = Block(address, size)
        if len(self._blocks) >= self._many:
            self._blocks = [known for known in self._blocks if (there := known()) is not None and there.live]
            self._many = 2 * len(self._blocks) + _FEW
        self._blocks.append(weakref.ref(block))
        return block

    @property
    def used(self) -> int:
        """How many bytes are allocated now; added up each time, because after an interrupt a counter could be wrong."""
        return sum([block.size for block in self._allocated()])

    def _allocated(self) -> list[Block]:
        """The blocks that are allocated now."""
        return [block for known in list(self._blocks) if (block := known()) is not None and block.live]

    def check(self) -> None:
        """Check every block, those that are allocated and those in quarantine."""
        with exclusive:
            for block in self._allocated():
                block.check()
            self.quarantine.check()

    def synchronize(self) -> None:
        """Perform all queued work on all streams, in the order in which the streams got work."""
        with exclusive:
            for number in list(self.busy):
                if number in self.busy:  # another stream may have waited for this one, so that it is done
                    self.busy[number].synchronize()

    def now(self, stream: SimulatedStream | None, operation: Callable[[], object]) -> None:
        """Queue an operation on a stream, or perform it if `stream` is None; after all work on the current stream."""
        entered = self.entered_streams.streams
        current = entered[-1] if entered else self.default_stream
        if stream is None:
            if self.busy:
                current.synchronize()
            operation()
            return
        if stream is not current and not current.done:
            stream.wait_event(current.record())
        stream.put(operation)
