"""The journal: the steps that were taken, in memory that outlives the process that takes them.

A worker records each step before it takes the step.  If the step ends the process, the last steps are still here.  A
record has the number of its program, so a new program begins with a single write.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, ClassVar

from .finding import MOST_STEPS, OPERATIONS, HeapStep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Journal"]

_HEADER = struct.Struct("<6Q")  # the program, the number of calls that returned inside long steps, and the round
_COUNTS, _ROUND = struct.Struct("<QQ"), struct.Struct("<4Q")
_RECORD = struct.Struct("<IQQII")
_NAMES = tuple(OPERATIONS)
_CODES = {name: code for code, name in enumerate(_NAMES, 1)}
_PROGRAMS = 1 << 24
_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class Journal:
    """The steps of one program after the other."""

    SIZE: ClassVar[int] = _HEADER.size + (MOST_STEPS + 1) * _RECORD.size
    """The bytes of a journal of the usual capacity."""

    def __init__(self, path: Path | None = None, capacity: int = MOST_STEPS) -> None:
        size = _HEADER.size + (capacity + 1) * _RECORD.size
        if path is None:
            self._memory = mmap.mmap(-1, size)
        else:
            with path.open("a+b") as file:
                file.truncate(size)
                self._memory = mmap.mmap(file.fileno(), size)
        self._last = size - _RECORD.size
        self._pack: Callable[..., None] = _RECORD.pack_into
        self._program, self._returned, *_ = _HEADER.unpack_from(self._memory)
        self._position = _HEADER.size

    def begin(self) -> None:
        """Begin a new program, and forget the one before."""
        self._program, self._returned = (self._program + 1) % _PROGRAMS, 0
        _COUNTS.pack_into(self._memory, 0, self._program, self._returned)
        self._position = _HEADER.size

    def note(self, code: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> None:
        """Record a step."""
        position = self._position
        self._pack(self._memory, position, self._program << 8 | code, first, second, third, fourth)
        if position < self._last:
            self._position = position + _RECORD.size
        else:
            self.move()  # a step that finds no room is progress all the same

    def move(self) -> None:
        """Record that a call has returned inside a step of many calls, so that a watching process sees progress."""
        self._returned += 1
        _COUNTS.pack_into(self._memory, 0, self._program, self._returned)

    def enter(self, number: int, before: int) -> None:
        """Record that a round begins: its number, and the number of steps of earlier rounds."""
        start = self.length
        _ROUND.pack_into(self._memory, _COUNTS.size, number, before, start, _sum(number, before, start))

    def entered(self) -> tuple[int, int, int]:
        """The number of the round, the steps before it, and where it begins in the journal; by any process.

        The number is -1 if the target has written there.
        """
        number, before, start, check = _ROUND.unpack_from(self._memory, _COUNTS.size)
        return (number, before, start) if check == _sum(number, before, start) else (-1, 0, 0)

    def moved(self) -> tuple[int, int]:
        """The number of the present program, and of the steps of its job of rounds; by any process."""
        program, steps, _ = self.mark()
        _, before, start = self.entered()
        return program, before + steps - start

    def calls(self) -> int:
        """The number of steps of the present program, and of calls that returned inside them; by any process."""
        _, steps, returned = self.mark()
        return steps + returned

    def stay(self) -> None:
        """Keep processes that this one forks from writing here: one that takes a step there ends."""
        if hasattr(mmap, "MADV_DONTFORK"):
            self._memory.madvise(mmap.MADV_DONTFORK)

    @property
    def length(self) -> int:
        """The number of recorded steps of this process in the present program."""
        return (self._position - _HEADER.size) // _RECORD.size

    @property
    def full(self) -> bool:
        """Whether there is no room for another step."""
        return self._position >= self._last

    def steps(self) -> tuple[HeapStep, ...]:
        """The steps of the present program, recorded by any process."""
        program, _ = _COUNTS.unpack_from(self._memory)
        program_steps: list[HeapStep] = []
        for position in range(_HEADER.size, self._last, _RECORD.size):
            record: tuple[int, ...] = _RECORD.unpack_from(self._memory, position)
            tag, numbers = record[0], record[1:]
            if tag >> 8 != program or not 0 < tag & 0xFF <= len(_NAMES):
                break
            name = _NAMES[(tag & 0xFF) - 1]
            program_steps.append(HeapStep(name, numbers[: len(OPERATIONS[name])]))
        return tuple(program_steps)

    def mark(self) -> tuple[int, int, int]:
        """A value that changes with every step and every `move`; a watching process notices a hang by it."""
        program, returned = _COUNTS.unpack_from(self._memory)
        low, high = 0, (self._last - _HEADER.size) // _RECORD.size
        while low < high:  # records of this program come first
            middle = (low + high) // 2
            tag = _RECORD.unpack_from(self._memory, _HEADER.size + middle * _RECORD.size)[0]
            low, high = (middle + 1, high) if tag >> 8 == program and tag & 0xFF else (low, middle)
        return program, low, returned

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()


def _sum(*numbers: int) -> int:
    """A check of numbers that a target which writes anywhere does not leave right."""
    return sum(number * factor for number, factor in zip(numbers, _FACTORS, strict=True)) % (1 << 64)


def code(operation: str) -> int:
    """The number of an operation in records."""
    return _CODES[operation]
