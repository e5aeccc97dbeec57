"""Makes the program of a finding short: the engine's shrinker, with knowledge about the steps of an allocator.

The effort is limited in programs that are tried and in the steps of all of them, so that the same finding becomes the
same program.  Who tries them may say that there is no time for more.  A bug that shows only after many calls becomes a
loop, which is looked for first: a program of a hundred thousand steps can be tried only a few times.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from ..engine.shrinking import shrink
from .finding import BLOCKS_OF, OPERATIONS, TAKES, HeapStep, allocated, freed
from .loops import Item, Repeat, folded, unfolded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DEATH_TRIES", "HANG_TRIES", "TRIES", "SpentError", "raised", "shortened"]

Program = tuple[HeapStep, ...]
Items = tuple[Item, ...]

TRIES, DEATH_TRIES, HANG_TRIES = 400, 150, 60
"""The most programs that are tried: in one process, each in its own, and each in its own, where a hang takes time."""
_STEPS = 1_000_000
"""The most steps of all tries together, which take seconds; the last try may go beyond."""
_LONG = 24
"""Only longer programs are tried from a later start, as loops, and with all sizes alike."""
_FEW = 128
"""So many steps can be left out one by one, also those of loops."""
_LAST_SIZES = 3
"""How many of the last sizes are tried in loops."""
_TAILS = (0, 1, 2, 4, 8, 16)
"""So many of the last steps are tried after a loop that makes a process old."""
_SIZE = 64
_SIZED = ("allocate", "calloc", "resize")
_SMALLEST_ALIGNMENT = 16
_RAISED_ALIGNMENTS, _RAISED_SIZES = (256, 4096, 65536), (0, 15, 255)
"""Larger alignments, and bytes that are added to sizes, for programs that show a bug only by luck."""
_ROUND = (1, 8, 64, 4096)
"""Sizes that are tried first, because they are easy to read."""


def shortened(
    program: Program,
    fails: Callable[[Program], bool],
    tries: int = TRIES,
    count_calls: Callable[[], int] | None = None,
) -> Program:
    """The shortest program that still fails, as far as it is found with this many tries, or until a `SpentError`."""
    budget = _Budget(_effective(program), fails, tries, count_calls)
    with suppress(SpentError):
        # Many bugs need only their last step, and a try of all steps may take long.
        if budget.fails(program[-1:]) or budget.fails(budget.shortest):
            _shorten(budget)
    return budget.shortest


def _shorten(budget: _Budget) -> None:
    """Ask about shorter programs, until no one fails."""
    if len(budget.shortest) > _LONG:
        _from_later(budget)
        if not _as_loop(budget):
            _alike(budget)
    before: Items = ()
    items = folded(budget.shortest)
    while items != before:  # a shorter program may have more that repeats
        before = items
        items = _reduced(items, budget)
        for at, item in enumerate(items):
            if isinstance(item, Repeat):
                items = _fewer_times(items, at, item, budget)
        if len(budget.shortest) <= _FEW:
            _reduced(budget.shortest, budget)  # a step may need only the last time of a loop
        items = folded(budget.shortest)
    budget.fails(_renumbered(budget.shortest))


def _reduced(items: Items, budget: _Budget) -> Items:
    """Without the steps and loops that are not needed, and the others as simple as they may be."""
    return shrink(items, budget.fails, simpler=_simpler)


class SpentError(Exception):
    """The budget is spent; a question whether a program fails may say so too, if there is no time for its answer."""


class _Budget:
    """The question whether a program fails, for a limited number of programs and of their steps."""

    def __init__(
        self,
        program: Program,
        fails: Callable[[Program], bool],
        tries: int,
        count_calls: Callable[[], int] | None,
    ) -> None:
        self.shortest = program
        self.steps = len(program)
        self._fails = fails
        self._count_calls = count_calls
        self._tries = tries
        self._left = _STEPS
        self._known: dict[int, bool] = {}

    def fails(self, items: Items) -> bool:
        """Whether a program fails; a program is run only once."""
        if self._known.get(hash(items)) is False:  # the programs themselves would take much memory
            return False
        program = _effective(unfolded(items))
        fails = self._known.get(hash(program))
        if fails is None:
            fails = bool(program) and self._run(program)
        if fails:
            self.shortest = program
        self._known[hash(items)] = self._known[hash(program)] = fails
        return fails

    def _run(self, program: Program) -> bool:
        if self._tries <= 0 or self._left <= 0:
            raise SpentError
        self._tries -= 1
        fails = self._fails(program)
        calls = _calls(program) if self._count_calls is None else self._count_calls()
        self.steps = min(calls, len(program)) if fails else len(program)
        self._left -= calls
        return fails


def _effective(program: Program) -> Program:
    """The program without steps on blocks that do not exist."""
    there: set[int] = set()
    steps: list[HeapStep] = []
    for step in program:
        operation, numbers = step
        if operation in TAKES:
            there.add(numbers[0])
        elif operation != "free_again" and not there.issuperset(numbers[at] for at in BLOCKS_OF[operation]):
            continue
        elif operation == "free":
            there.remove(numbers[0])
        elif operation == "reset":
            there.clear()
        steps.append(step)
    return tuple(steps)


def _calls(program: Program) -> int:
    """The number of calls of a program, with those in its cycles."""
    return sum(step.numbers[1] if step.operation in {"cycle", "reuse"} else 1 for step in program)


# --- long programs


def _from_later(budget: _Budget) -> None:
    """Leave out the start, if a bug does not depend on how much was done before; a short end is tried first."""
    program, length = budget.shortest, _LONG
    while length < len(program) and not budget.fails(program[-length:]):
        length *= 4


def _as_loop(budget: _Budget) -> bool:
    """Find a loop that fails too, alone or before the last steps, and its fewest times; return whether there is one."""
    program = budget.shortest
    for loop in _loops(program):
        if budget.fails((loop,)):
            reached = loop._replace(times=-(-budget.steps // len(loop.body)))
            shorter = reached if budget.fails((reached,)) else loop
            _fewer_times((shorter,), 0, shorter, budget)
            return True
    # A process that has grown old: by as many calls as there were, whatever they did.
    aging = Repeat(_calls(program), (allocated(0, _SIZE), freed(0)))
    for length in _TAILS:
        items: Items = (aging, *program[len(program) - length :])
        if budget.fails(items):
            _fewer_times(items, 0, aging, budget)
            return True
    return False


def _fewer_times(items: Items, at: int, loop: Repeat, budget: _Budget) -> Items:
    """The items with the fewest times of a loop, found by halves; if one time less is too few, so are all."""

    def fails(times: int) -> Items | None:
        fewer = (*items[:at], loop._replace(times=times), *items[at + 1 :])
        return fewer if budget.fails(fewer) else None

    low, high = 0, loop.times - 1
    fewest = fails(high)
    if fewest is None:
        return items
    while high - low > 1:
        middle = (low + high) // 2
        fewer = fails(middle)
        low, high, fewest = (middle, high, fewest) if fewer is None else (low, middle, fewer)
    return fewest


def _loops(program: Program) -> Iterator[Repeat]:
    """The loops that may show a bug that depends on how often something was done, or on how many blocks are live."""
    example = {step.operation: step for step in program}  # the last of each
    times = Counter(step.operation for step in program)
    blocks = sum(times[operation] for operation in TAKES)
    # One of the last sizes may be the one that shows the bug: that of the last block, or of the one that it meets.
    sizes = dict.fromkeys(step.numbers[1] for step in reversed(program) if step.operation == "allocate")
    for size in islice(sizes, _LAST_SIZES):
        yield from _of_blocks(blocks, size)
    for operation, step in example.items():
        if operation not in {"allocate", "free", "check", "compare", "cycle", "fill", "reset", "reuse"}:
            yield Repeat(times[operation], _around(step))
    yield from _of_blocks(blocks, _SIZE)


def _of_blocks(blocks: int, size: int) -> Iterator[Repeat]:
    """Loops that allocate so many blocks: one at a time, two at a time, and all together."""
    one, two = allocated(0, size), allocated(1, size)
    yield Repeat(blocks, (one, freed(0)))
    yield Repeat(-(-blocks // 2), (one, two, freed(0), freed(1)))
    yield Repeat(blocks, (one,), 1)


def _around(step: HeapStep) -> Program:
    """A step with its blocks, which are allocated before it and freed after it."""
    numbers = list(step.numbers)
    blocks = range(len(BLOCKS_OF[step.operation]))
    for block, at in enumerate(BLOCKS_OF[step.operation]):
        numbers[at] = block
    there = [allocated(block, _SIZE) for block in blocks if step.operation not in TAKES]
    return (*there, HeapStep(step.operation, tuple(numbers)), *map(freed, blocks))


def _alike(budget: _Budget) -> None:
    """Leave out whole operations, make all sizes the same, and requests plain, as far as it fails."""
    for operation in OPERATIONS:
        budget.fails(tuple(item for item in budget.shortest if item.operation != operation))
    for change in (_plain, _of_one_size):
        budget.fails(tuple(map(change, budget.shortest)))
    budget.fails(_renumbered(budget.shortest))


def _plain(step: HeapStep) -> HeapStep:
    """A request without alignment and stream."""
    return HeapStep("allocate", (*step.numbers[:2], 0, 0)) if step.operation == "allocate" else step


def _of_one_size(step: HeapStep) -> HeapStep:
    number, *rest = step.numbers or (0,)
    return HeapStep(step.operation, (number, _SIZE, *rest[1:])) if step.operation in _SIZED and rest[0] else step


# --- single steps


def _simpler(item: Item) -> Iterator[Item]:
    """A step with one smaller number, or a loop with a simpler body; the simplest first."""
    if isinstance(item, HeapStep):
        yield from _simpler_step(item)
        return
    for at, step in enumerate(item.body):
        rest = item.body[:at], item.body[at + 1 :]
        if len(item.body) > 1:
            yield item._replace(body=rest[0] + rest[1])
        yield from (item._replace(body=(*rest[0], entry, *rest[1])) for entry in _simpler_step(step))


def _simpler_step(step: HeapStep) -> Iterator[HeapStep]:
    """A request that must be too large and a number of forks stay as they are; others stay what a target accepts."""
    if step.operation in {"request_too_much", "request_too_many", "resize_too_much", "fork"}:
        return
    for at, name in enumerate(OPERATIONS[step.operation]):
        number = step.numbers[at]
        if name == "alignment":
            smaller = tuple(_smaller_alignments(number))
        elif name in {"size", "count"}:
            smaller = (*(item for item in _ROUND if item < number), *_smaller(number, 1))
        else:
            continue
        for item in dict.fromkeys(smaller):
            yield HeapStep(step.operation, (*step.numbers[:at], item, *step.numbers[at + 1 :]))


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


def raised(program: Program) -> Iterator[Program]:
    """The program with larger alignments, then with larger sizes too."""
    for alignment in _RAISED_ALIGNMENTS:
        for more in _RAISED_SIZES:
            yield tuple(_raised_step(step, alignment, more) for step in program)


def _raised_step(step: HeapStep, alignment: int, more: int) -> HeapStep:
    named = step.named
    if named.get("alignment"):
        named["alignment"] = max(named["alignment"], alignment)
    if step.operation in _SIZED and named["size"]:
        named["size"] += more
    return HeapStep(step.operation, tuple(named.values()))


def _renumbered(program: Program) -> Program:
    """The program with the smallest free number for each new block."""
    keeps = any(step.operation == "free_again" for step in program)  # which names a block that is gone
    new: dict[int, int] = {}
    live: set[int] = set()
    unused: list[int] = []  # a heap of the numbers below the next one
    steps: list[HeapStep] = []
    for step in program:
        numbers = list(step.numbers)
        for at in BLOCKS_OF[step.operation]:
            old = numbers[at]
            if old not in new or (step.operation in TAKES and new[old] not in live):
                new[old] = heappop(unused) if unused else len(new) if keeps else len(live)
                live.add(new[old])
            numbers[at] = new[old]
        if step.operation == "free" and not keeps and numbers[0] in live:
            live.remove(numbers[0])
            heappush(unused, numbers[0])
        steps.append(HeapStep(step.operation, tuple(numbers)))
    return tuple(steps)
