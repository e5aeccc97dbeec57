"""The journal of the native driver."""

from __future__ import annotations

import mmap
import struct
import tempfile
from pathlib import Path
from typing import NamedTuple, Self

from ..finding import HeapStep

__all__ = ["RUNNING", "UNUSABLE", "WRONG", "Header", "NativeJournal"]

# What follows is as in driver.c.
_OPERATIONS: tuple[str, ...] = ("", "allocate", "free", "check", "calloc", "resize", "request_too_much", "check")
_HEADER = struct.Struct("<6Q24s952s")
_COUNTS = struct.Struct("<10Q48x")
_RECORD = struct.Struct("<IIQQ")
RUNNING, WRONG, UNUSABLE = 0, 2, 3

_BEYOND, _BEYOND_COUNTING = 1 << 24, 1 << 56
"""The steps that a thread may take beyond those that are asked for; no number of a header comes to the other."""


class Header(NamedTuple):
    """The header of a journal."""

    state: int
    finder: int
    rounds: int
    nanoseconds: int
    busy: int
    readable: int
    requirement: str
    message: str


class _Counts(NamedTuple):
    """What a thread has done."""

    steps: int
    round_start: int
    served: int
    freed: int
    zeroed: int
    resized: int
    refused: int
    nothings: int
    done: int
    waits: int


class NativeJournal:
    """The journal of one process of the driver, in a file that any process can open."""

    def __init__(self, path: str, threads: int, capacity: int, most: int = _BEYOND_COUNTING) -> None:
        self.path: str = path
        self.threads: int = threads
        self.capacity: int = capacity
        self._most = most + _BEYOND
        self._records = _HEADER.size + threads * _COUNTS.size
        with Path(path).open("a+b") as file:
            file.truncate(self._records + threads * capacity * _RECORD.size)
            self._memory = mmap.mmap(file.fileno(), 0)
        self._marked = [0] * threads
        self._mark = 0

    @classmethod
    def new(cls, threads: int, capacity: int, most: int) -> Self:
        """A journal in a folder of its own, which goes with it."""
        folder = tempfile.TemporaryDirectory(prefix="syncedmem-")
        journal = cls(f"{folder.name}/journal", threads, capacity, most)
        journal._folder = folder
        return journal

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def header(self) -> Header:
        """The header."""
        *numbers, requirement, message = _HEADER.unpack_from(self._memory)
        numbers = [it if it < _BEYOND_COUNTING else 0 for it in numbers]
        return Header._make((*numbers, _text(requirement), _text(message)))

    def counts(self) -> list[_Counts]:
        """What each thread has done; nothing if the target has written there."""
        return [it if self._is_sound(it) else _Counts._make([0] * len(it)) for it in self._counts()]

    def _counts(self) -> list[_Counts]:
        return [_Counts._make(it) for it in _COUNTS.iter_unpack(self._memory[_HEADER.size : self._records])]

    def _is_sound(self, counts: _Counts) -> bool:
        return counts.steps <= self._most and max(counts) <= max(counts.steps, 1)

    @property
    def sound(self) -> bool:
        """Whether what the threads have done can be as it says."""
        return all(map(self._is_sound, self._counts()))

    def mark(self) -> int:
        """A value that changes when each thread has taken a step since it last changed, unless it waits or is done."""
        counts = self._counts()
        if all(it.done or it.waits or it.steps != before for it, before in zip(counts, self._marked, strict=True)):
            self._marked = [it.steps for it in counts]
            self._mark += 1
        return self._mark

    def standing(self) -> int:
        """A thread that is neither done nor waits for others: after a hang, the one that has taken the fewest steps."""
        working = [(it.steps, thread) for thread, it in enumerate(self._counts()) if not it.done and not it.waits]
        return min(working, default=(0, 0))[1]

    def program(self) -> tuple[HeapStep, ...]:
        """The steps of a single thread; the last ones if there were more than are kept."""
        steps = self.counts()[0].steps
        return tuple(self._step(0, at) for at in range(max(steps - self.capacity, 0), steps))

    def last_round(self) -> int:
        """The position in the program where the last round begins."""
        steps, start, *_ = self.counts()[0]
        return max(start - max(steps - self.capacity, 0), 0)

    def last_calls(self) -> list[str]:
        """The last call of each thread."""
        calls = [
            str(self._step(thread, it.steps - 1)) if it.steps else "its start"
            for thread, it in enumerate(self.counts())
        ]
        return calls if self.threads == 1 else [f"{call} of thread {thread}" for thread, call in enumerate(calls)]

    def _step(self, thread: int, at: int) -> HeapStep:
        place = self._records + (thread * self.capacity + at % self.capacity) * _RECORD.size
        record: tuple[int, int, int, int] = _RECORD.unpack_from(self._memory, place)
        operation, number, size, _ = record
        name = _OPERATIONS[operation] if 0 < operation < len(_OPERATIONS) else "check"  # the target has written there
        numbers = {
            "allocate": (number, size, 0, 0),
            "free": (number, 0),
            "check": (number,),
            "request_too_much": (size, 0),
        }
        return HeapStep(name, numbers.get(name, (number, size)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        if self._folder is not None:
            self._folder.cleanup()


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")
