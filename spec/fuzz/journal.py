"""The journal of both engines: what was done until now, in memory that outlives the process that does it.

A process records each step before it takes the step.  If the step ends the process, the last steps are still here.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING, NamedTuple, Self

from syncedmem.model.files import refused

from .finding import MOST_NUMBER, MOST_STEPS, OPERATIONS, HeapStep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["RUNNING", "UNUSABLE", "WRONG", "Counts", "Header", "Journal", "code"]

# What follows is as in driver.c.
_HEADER = struct.Struct("<5Q32x24s928s")
_COUNTS = struct.Struct("<11Q40x")
_RECORD = struct.Struct("<HHIQQQ")
_EACH = _RECORD.size
RUNNING, WRONG, UNUSABLE = 0, 2, 3
_NAMES = ("", *OPERATIONS)
_CODES = {name: number for number, name in enumerate(_NAMES)}
_PLACES = {"stream": 1, "how": 1, "alignment": 2, "block": 3, "count": 3, "size": 4, "source": 4}
"""The place in a record of each number of a step; the last place has the address of the block, where it is known."""

_PLACES_OF = {name: tuple(_PLACES[number] for number in numbers) for name, numbers in OPERATIONS.items()}
_BEYOND, _BEYOND_COUNTING = 1 << 24, 1 << 56
"""The steps that a thread may take beyond those that are asked for; no number comes to the other."""
_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class Header(NamedTuple):
    """What the native driver writes about itself."""

    state: int
    rounds: int
    nanoseconds: int
    busy: int
    readable: int
    requirement: str
    message: str


class Counts(NamedTuple):
    """What a thread has done."""

    steps: int  # of the present program
    moved: int  # calls that returned inside long steps
    round_start: int
    served: int
    freed: int
    zeroed: int
    resized: int
    refused: int
    nothings: int
    done: int
    waits: int


_ROUND, _PROGRAM, _BEFORE, _CHECK = 1, 6, 7, 8
_STEPS, _MOVED, _ROUND_START = (_HEADER.size // 8 + at for at in range(3))
"""The places of what the engine in Python writes: the present round and program, the steps of the job before it."""


class Journal:
    """The steps of one program after the other; of each thread the last ones, as many as there is room for.

    Parameters
    ----------
    path : Path or None
        The file, which other processes can open too.
    capacity, threads : int
        The steps that are kept of each thread.
    most : int
        The steps that a thread is asked for.

    Raises
    ------
    FileAccessError
        If there is no room for the file.
    """

    def __init__(
        self,
        path: Path | None = None,
        capacity: int = MOST_STEPS,
        threads: int = 1,
        most: int = _BEYOND_COUNTING,
    ) -> None:
        self.path: Path | None = path
        self.capacity: int = capacity
        self.threads: int = threads
        size = self.size(capacity, threads)
        if path is None:
            self._memory = mmap.mmap(-1, size)
        else:
            with path.open("a+b") as file:
                _make_room(path, file.fileno(), size)
                self._memory = mmap.mmap(file.fileno(), size)
        self._most = most + _BEYOND
        self._records = _HEADER.size + threads * _COUNTS.size
        self._last = size - _EACH
        self._pack: Callable[..., None] = _RECORD.pack_into
        self._words = memoryview(self._memory).cast("Q")
        self._position, self._marked, self._mark = self._records, [(-1, 0, 0)] * threads, 0
        self.length: int = 0
        """The number of steps of this process in the present program."""

    @staticmethod
    def size(capacity: int = MOST_STEPS, threads: int = 1) -> int:
        """The bytes of a journal."""
        return _HEADER.size + threads * (_COUNTS.size + capacity * _EACH)

    # --- written by the engine in Python, which has one thread

    def begin(self) -> None:
        """Begin a new program, and forget the one before."""
        self._position, self.length = self._records, 0
        self._words[_STEPS] = self._words[_MOVED] = 0
        self._words[_PROGRAM] += 1

    def note(self, code: int, block: int = 0, size: int = 0, alignment: int = 0, stream: int = 0) -> None:
        """Record a step by the number of its operation."""
        position = self._position
        self._pack(self._memory, position, code, stream, alignment, block, size, 0)
        self._position = position + _EACH if position < self._last else self._records
        self.length = self._words[_STEPS] = self.length + 1

    def record(self, operation: str, *numbers: int) -> None:
        """Record a step of any operation, with its numbers in their order."""
        places = [_CODES[operation], 0, 0, 0, 0]
        for place, number in zip(_PLACES_OF[operation], numbers, strict=True):
            places[place] = number
        number, stream, alignment, block, size = places
        self.note(number, block, size, alignment, stream)

    def move(self) -> None:
        """Record that a call has returned inside a step of many calls, so that a watching process sees progress."""
        self._words[_MOVED] += 1

    def enter(self, number: int, before: int) -> None:
        """Record that a round begins: its number, and the number of steps of earlier rounds."""
        words = self._words
        words[_ROUND], words[_BEFORE], words[_ROUND_START] = number, before, self.length
        words[_CHECK] = _sum(number, before, self.length)

    def stay(self) -> None:
        """Keep processes that this one forks from writing here: one that takes a step there ends."""
        if hasattr(mmap, "MADV_DONTFORK"):
            self._memory.madvise(mmap.MADV_DONTFORK)

    # --- read by any process

    def header(self) -> Header:
        """The header."""
        *numbers, requirement, message = _HEADER.unpack_from(self._memory)
        numbers = [
            number if number < _BEYOND_COUNTING else 0 for number in numbers
        ]  # the target may have written there
        return Header._make((*numbers, _text(requirement), _text(message)))

    def counts(self) -> list[Counts]:
        """What each thread has done; nothing if the target has written there."""
        return [count if self._is_sound(count) else Counts(*[0] * len(count)) for count in self._counts()]

    def _counts(self) -> list[Counts]:
        return [Counts._make(item) for item in _COUNTS.iter_unpack(self._memory[_HEADER.size : self._records])]

    def _is_sound(self, counts: Counts) -> bool:
        return counts.steps <= self._most and max(counts._replace(moved=0)) <= max(counts.steps, 1)

    @property
    def sound(self) -> bool:
        """Whether what the threads have done can be as it says."""
        return all(map(self._is_sound, self._counts()))

    def entered(self) -> tuple[int, int, int]:
        """The number of the round, the steps before its program, and where it begins there.

        The number is -1 if the target has written there.
        """
        number, before, start = (self._words[at] for at in (_ROUND, _BEFORE, _ROUND_START))
        return (number, before, start) if self._words[_CHECK] == _sum(number, before, start) else (-1, 0, 0)

    def moved(self) -> tuple[int, int]:
        """The number of the present program, and of the steps of its job of rounds."""
        _, before, start = self.entered()
        return self._words[_PROGRAM], before + self._words[_STEPS] - start

    def calls(self) -> int:
        """The number of steps of the present program, and of calls that returned inside them."""
        return self._words[_STEPS] + self._words[_MOVED]

    @property
    def full(self) -> bool:
        """Whether another step would take the place of the first one."""
        return self.length >= self.capacity

    def mark(self) -> int:
        """A value that changes when each thread has moved since it last changed, unless it waits or is done."""
        program, counts = self._words[_PROGRAM], self._counts()
        now = [(program, count.steps, count.moved) for count in counts]
        if all(
            pair.done or pair.waits or one != other for pair, one, other in zip(counts, now, self._marked, strict=True)
        ):
            self._marked = now
            self._mark += 1
        return self._mark

    def standing(self) -> int:
        """A thread that is neither done nor waits for others: after a hang, the one that has taken the fewest steps."""
        working = [
            (count.steps, thread) for thread, count in enumerate(self._counts()) if not count.done and not count.waits
        ]
        return min(working, default=(0, 0))[1]

    def steps(self) -> tuple[HeapStep, ...]:
        """The steps of the present program of the first thread; the last ones if there were more than are kept."""
        steps = self.counts()[0].steps
        places = range(max(steps - self.capacity, 0), min(steps, _BEYOND))  # no program is as long
        return tuple(self._step(0, at) for at in places)

    def last_round(self) -> int:
        """The position in `steps` where the last round begins."""
        counts = self.counts()[0]
        return max(counts.round_start - max(counts.steps - self.capacity, 0), 0)

    def last_calls(self) -> list[str]:
        """The last call of each thread."""
        calls = [
            str(self._step(thread, count.steps - 1)) if count.steps else "its start"
            for thread, count in enumerate(self.counts())
        ]
        return calls if self.threads == 1 else [f"{call} of thread {thread}" for thread, call in enumerate(calls)]

    def _step(self, thread: int, at: int) -> HeapStep:
        place = self._records + (thread * self.capacity + at % self.capacity) * _EACH
        record: tuple[int, ...] = _RECORD.unpack_from(self._memory, place)
        number, block = record[0], min(record[3], MOST_NUMBER)
        known = 0 < number < len(_NAMES)
        if not known or (block < record[3] and "block" in OPERATIONS[_NAMES[number]]):
            return HeapStep("check", (block,))  # it was handed over, or the target has written there
        return HeapStep(_NAMES[number], tuple(record[item] for item in _PLACES_OF[_NAMES[number]]))

    def close(self) -> None:
        """Release the memory."""
        self._words.release()
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_allocate: Callable[[int, int, int], None] = getattr(
    os, "posix_fallocate", lambda file, _, size: os.ftruncate(file, size)
)


def _make_room(path: Path, file: int, size: int) -> None:
    """Make a file so large, on the disk too: if that were full, a process that writes there would end.

    One that is as large already may be in use, and is left alone.
    """
    if os.fstat(file).st_size < size:
        try:
            _allocate(file, 0, size)
        except OSError as error:
            raise refused(str(path.parent), error) from error


def _sum(*numbers: int) -> int:
    """A check of numbers that a target which writes anywhere does not leave right."""
    return sum(number * factor for number, factor in zip(numbers, _FACTORS, strict=True)) % (1 << 64)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")


def code(operation: str) -> int:
    """The number of an operation in records."""
    return _CODES[operation]
