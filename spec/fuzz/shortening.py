"""Makes the program of a finding short: the engine's shrinker, with knowledge about the steps of an allocator.

The effort is limited in programs that are tried and in their steps, and never in seconds.  So the same finding always
becomes the same program.  A bug that shows only after many calls becomes a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.shrinking import shrink
from .finding import OPERATIONS, Step
from .loops import Item, Repeat, folded, unfolded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DEATH_TRIES", "HANG_TRIES", "TRIES", "shortened"]

Program = tuple[Step, ...]

TRIES, DEATH_TRIES, HANG_TRIES = 400, 150, 60
"""The most programs that are tried: in one process, each in its own, and each in its own, where a hang takes time."""
_STEPS, _AS_OFTEN = 200_000, 40
"""The most steps of all tries: so many, or so many times those of the program."""
_LONG = 24
"""Only longer programs are tried as loops, and with all sizes alike."""
_SIZE = 64
_NEEDS_BLOCKS = ("free", "check", "resize", "resize_too_much", "copy", "free_wrong_size", "work", "use_all")
_TAKES = ("allocate", "calloc")
_SIZED = ("allocate", "calloc", "resize")
_SMALLEST_ALIGNMENT = 16
_ROUND = (1, 8, 64, 4096)
"""Sizes that are tried first, because they are easy to read."""


def shortened(program: Program, fails: Callable[[Program], bool], tries: int = TRIES) -> Program:
    """The shortest program that still fails, as far as it is found with this many tries.

    Parameters
    ----------
    program : tuple of Step
    fails : callable
        Whether a program breaks the same requirement.
    tries : int

    Returns
    -------
    tuple of Step
        The program itself, without steps that do nothing, if it does not fail again.
    """
    program = _effective(program)
    asked = _Budget(fails, tries, max(_STEPS, _AS_OFTEN * _calls(program)))
    if not asked.fails(program):
        return program
    if len(program) > _LONG:
        program = _alike(_as_loop(program, asked), asked)
    before: Program = ()
    while program != before:  # a shorter program may have more that repeats
        before = program
        items = shrink(folded(program), lambda it: asked.fails(_effective(unfolded(it))), simpler=_simpler)
        program = _effective(unfolded(items))
    renumbered = _renumbered(program)
    return renumbered if renumbered == program or asked.fails(renumbered) else program


class _Budget:
    """The question whether a program fails; when the budget is spent, the answer is always no."""

    def __init__(self, fails: Callable[[Program], bool], tries: int, steps: int) -> None:
        self._fails = fails
        self._tries = tries
        self._steps = steps
        self._known: dict[Program, bool] = {}

    def fails(self, program: Program) -> bool:
        """Whether a program fails; a program is run only once."""
        found = self._known.get(program)
        if found is None:
            if self._tries <= 0 or self._steps <= 0 or not program:
                return False
            self._tries -= 1
            self._steps -= _calls(program)
            found = self._known[program] = self._fails(program)
        return found


def _effective(program: Program) -> Program:
    """The program without steps on blocks that do not exist."""
    there: set[int] = set()
    kept: list[Step] = []
    for step in program:
        numbers = dict(zip(OPERATIONS[step.operation], step.numbers, strict=True))
        needed = {numbers[name] for name in ("block", "source") if name in numbers}
        if step.operation in _TAKES:
            there |= needed
        elif step.operation in _NEEDS_BLOCKS and not needed <= there:
            continue
        if step.operation == "free":
            there -= needed
        kept.append(step)
    return tuple(kept)


def _calls(program: Program) -> int:
    """The number of calls of a program, with those in its cycles."""
    return sum(step.numbers[1] if step.operation == "cycle" else 1 for step in program)


# --- long programs


def _as_loop(program: Program, asked: _Budget) -> Program:
    """The shortest loop that fails too; else the program."""
    for loop in _loops(program):
        if asked.fails(tuple(loop.steps())):
            low, high = 0, loop.times
            while high - low > 1:
                middle = (low + high) // 2
                fails = asked.fails(tuple(loop._replace(times=middle).steps()))
                low, high = (low, middle) if fails else (middle, high)
            return tuple(loop._replace(times=high).steps())
    return program


def _loops(program: Program) -> Iterator[Repeat]:
    """The loops that may show a bug that depends on how often something was done, or on how many blocks are live."""
    example = {step.operation: step for step in program}  # the last of each
    calls = _calls(program)
    sizes = {_SIZE: None, **({example["allocate"].numbers[1]: None} if "allocate" in example else {})}
    for size in sizes:
        one, two = (Step("allocate", (number, size, 0, 0)) for number in (0, 1))
        gone, other = (Step("free", (number, 0)) for number in (0, 1))
        yield Repeat(calls, (one, gone))
        yield Repeat(calls, (one,), 1)
        yield Repeat(calls, (one, two, gone, other))
    for operation, step in example.items():
        if operation not in {"allocate", "free", "check", "compare", "cycle", "fill"}:
            yield Repeat(calls, _around(step))


def _around(step: Step) -> Program:
    """A step with its blocks, which are allocated before it and freed after it."""
    names = OPERATIONS[step.operation]
    numbers = list(step.numbers)
    blocks = [names.index(name) for name in ("block", "source") if name in names]
    for block, at in enumerate(blocks):
        numbers[at] = block
    there = () if step.operation in _TAKES else tuple(Step("allocate", (it, _SIZE, 0, 0)) for it in range(len(blocks)))
    gone = tuple(Step("free", (it, 0)) for it in range(len(blocks)))
    return (*there, Step(step.operation, tuple(numbers)), *gone)


def _alike(program: Program, asked: _Budget) -> Program:
    """The program without whole operations, with all sizes the same, and with plain requests, as far as it fails."""
    for operation in OPERATIONS:
        without = _effective(tuple(it for it in program if it.operation != operation))
        if without != program and asked.fails(without):
            program = without
    for change in (_plain, _of_one_size):
        changed = tuple(map(change, program))
        if changed != program and asked.fails(changed):
            program = changed
    renumbered = _renumbered(program)
    return renumbered if renumbered != program and asked.fails(renumbered) else program


def _plain(step: Step) -> Step:
    """A request without alignment and stream."""
    return Step("allocate", (*step.numbers[:2], 0, 0)) if step.operation == "allocate" else step


def _of_one_size(step: Step) -> Step:
    number, *rest = step.numbers or (0,)
    return Step(step.operation, (number, _SIZE, *rest[1:])) if step.operation in _SIZED and rest[0] else step


# --- single steps


def _simpler(item: Item) -> Iterator[Item]:
    """A step with one smaller number, or a loop with fewer times or a simpler body; the simplest first."""
    if isinstance(item, Step):
        yield from _simpler_step(item)
        return
    yield from (item._replace(times=times) for times in _smaller(item.times, 1))
    for at, step in enumerate(item.body):
        rest = item.body[:at], item.body[at + 1 :]
        if len(item.body) > 1:
            yield item._replace(body=rest[0] + rest[1])
        yield from (item._replace(body=(*rest[0], it, *rest[1])) for it in _simpler_step(step))


def _simpler_step(step: Step) -> Iterator[Step]:
    """A request that must be too large stays as it is; others stay what a target accepts."""
    if step.operation in {"request_too_much", "request_too_many", "resize_too_much"}:
        return
    for at, name in enumerate(OPERATIONS[step.operation]):
        number = step.numbers[at]
        if name == "alignment":
            smaller = tuple(_smaller_alignments(number))
        elif name in {"size", "count"}:
            smaller = (*(it for it in _ROUND if it < number), *_smaller(number, 1))
        else:
            continue
        for it in dict.fromkeys(smaller):
            yield Step(step.operation, (*step.numbers[:at], it, *step.numbers[at + 1 :]))


def _smaller(number: int, least: int) -> Iterator[int]:
    """Numbers from the least up to one below: the distance to the number halves each time."""
    distance = number - least
    while distance > 0:
        yield number - distance
        distance //= 2


def _smaller_alignments(number: int) -> Iterator[int]:
    """No alignment, and smaller powers of two."""
    if number:
        yield 0
    power = _SMALLEST_ALIGNMENT
    while power < number:
        yield power
        power *= 2


# --- numbers of blocks


def _renumbered(program: Program) -> Program:
    """The program with the smallest free number for each new block."""
    keeps = any(step.operation == "free_again" for step in program)  # which names a block that is gone
    new: dict[int, int] = {}
    live: set[int] = set()
    found: list[Step] = []
    for step in program:
        names = OPERATIONS[step.operation]
        numbers = list(step.numbers)
        for at, name in enumerate(names):
            if name not in {"block", "source"}:
                continue
            old = numbers[at]
            if old not in new or (step.operation in _TAKES and new[old] not in live):
                new[old] = len(new) if keeps else next(it for it in range(len(live) + 1) if it not in live)
                live.add(new[old])
            numbers[at] = new[old]
        if step.operation == "free" and not keeps:
            live.discard(numbers[0])
        found.append(Step(step.operation, tuple(numbers)))
    return tuple(found)
