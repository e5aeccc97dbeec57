"""Makes the program of a finding short: the engine's shrinker, with knowledge about the steps of an allocator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..engine.shrinking import shrink
from .finding import OPERATIONS, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["shortened"]

Program = tuple[Step, ...]

_NEEDS_BLOCKS = ("free", "check", "resize", "resize_too_much", "copy", "free_wrong_size", "work", "use_all")


def shortened(program: Program, fails: Callable[[Program], bool], seconds: float) -> Program:
    """The shortest program that still fails, as far as it is found in this time.

    Parameters
    ----------
    program : tuple of Step
    fails : callable
        Whether a program breaks the same requirement.
    seconds : float

    Returns
    -------
    tuple of Step
        The program itself, without steps that do nothing, if it does not fail again.
    """
    deadline = time.perf_counter() + seconds
    program = _effective(program)
    if seconds <= 0 or not fails(program):
        return program
    program = shrink(program, fails, simpler=_simpler, seconds=deadline - time.perf_counter())
    renumbered = _renumbered(program)
    return renumbered if time.perf_counter() < deadline and fails(renumbered) else program


def _effective(program: Program) -> Program:
    """The program without steps on blocks that do not exist."""
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


def _simpler(step: Step) -> Iterator[Step]:
    """The step with one smaller number, the smallest first; a request that must be too large stays so."""
    if step.operation in ("request_too_much", "request_too_many", "resize_too_much"):
        return
    for at, name in enumerate(OPERATIONS[step.operation]):
        if name in ("block", "source", "stream", "how"):
            continue
        number = step.numbers[at]
        for smaller in sorted({0, 1, 2, 8, 16, 64, 256, 1024, 4096, number // 2, number - 1}):
            if 0 <= smaller < number:
                yield Step(step.operation, (*step.numbers[:at], smaller, *step.numbers[at + 1 :]))


def _renumbered(program: Program) -> Program:
    """The program with blocks counted from 0 in the order of their first use."""
    new: dict[int, int] = {}
    return tuple(Step(step.operation, tuple(_counted(step, new))) for step in program)


def _counted(step: Step, new: dict[int, int]) -> Sequence[int]:
    names = OPERATIONS[step.operation]
    return [
        new.setdefault(number, len(new)) if name in ("block", "source") else number
        for name, number in zip(names, step.numbers, strict=True)
    ]
