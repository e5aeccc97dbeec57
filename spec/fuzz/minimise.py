"""Makes a program short: steps are left out as long as the same property is broken, then numbers are made small."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .finding import OPERATIONS, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["minimise"]

Program = tuple[Step, ...]

_NEEDS_BLOCKS = ("free", "check", "resize", "resize_too_much", "copy", "free_wrong_size", "work")


def minimise(program: Program, fails: Callable[[Program], bool], seconds: float) -> Program:
    """The shortest program found in a time that still fails.

    Parameters
    ----------
    program : tuple of Step
    fails : callable
        Whether a program breaks the property that this one breaks.
    seconds : float

    Returns
    -------
    tuple of Step
        The program itself, without steps that do nothing, if it does not fail again.
    """
    search = _Search(fails, time.perf_counter() + seconds)
    program = _effective(program)
    if not search.fails(program):
        return program
    while True:
        shorter = _smaller_numbers(_fewer_steps(program, search), search)
        if shorter == program:
            return _renumbered(shorter, search)
        program = shorter


def _effective(program: Program) -> Program:
    """Without steps on blocks that are not there."""
    there: set[int] = set()
    kept: list[Step] = []
    for step in program:
        numbers = dict(zip(OPERATIONS[step.operation], step.numbers, strict=True))
        needed = {numbers[name] for name in ("block", "source") if name in numbers}
        if step.operation in ("allocate", "calloc"):
            there |= needed
        elif step.operation in _NEEDS_BLOCKS and not needed <= there:
            continue
        if step.operation == "free":
            there -= needed
        kept.append(step)
    return tuple(kept)


@dataclass
class _Search:
    """A question that is asked until time is up; after that every answer is no."""

    question: Callable[[Program], bool]
    deadline: float

    def fails(self, program: Program) -> bool:
        return time.perf_counter() < self.deadline and self.question(program)


def _fewer_steps(program: Program, search: _Search) -> Program:
    """Delta debugging: leave out halves, then quarters, down to single steps."""
    size = max(len(program) // 2, 1)
    while True:
        start = len(program)
        while start > 0:
            start = max(start - size, 0)
            candidate = program[:start] + program[start + size :]
            if search.fails(candidate):
                program = candidate
        if size == 1:
            break
        size //= 2
    return program


def _smaller_numbers(program: Program, search: _Search) -> Program:
    for at, step in enumerate(program):
        for candidate in _simpler(step):
            shorter = (*program[:at], candidate, *program[at + 1 :])
            if search.fails(shorter):
                program = shorter
                break
    return program


def _simpler(step: Step) -> Iterator[Step]:
    """The step with one number smaller, the smallest first; what is to be too much stays too much."""
    if step.operation in ("request_too_much", "request_too_many", "resize_too_much"):
        return
    for at, name in enumerate(OPERATIONS[step.operation]):
        if name in ("block", "source", "stream", "how"):
            continue
        number = step.numbers[at]
        for smaller in sorted({0, 1, 2, 8, 16, 64, 256, 1024, 4096, number // 2, number - 1}):
            if 0 <= smaller < number:
                yield Step(step.operation, (*step.numbers[:at], smaller, *step.numbers[at + 1 :]))


def _renumbered(program: Program, search: _Search) -> Program:
    """Blocks counted from 0 in the order in which they appear."""
    new: dict[int, int] = {}
    steps = [Step(step.operation, tuple(_counted(step, new))) for step in program]
    return tuple(steps) if search.fails(tuple(steps)) else program


def _counted(step: Step, new: dict[int, int]) -> Sequence[int]:
    names = OPERATIONS[step.operation]
    return [
        new.setdefault(number, len(new)) if name in ("block", "source") else number
        for name, number in zip(names, step.numbers, strict=True)
    ]
