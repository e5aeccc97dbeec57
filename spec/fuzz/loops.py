"""Programs with loops: ``repeat 1029: allocate(0, 64); free(0)``.

A program is a tuple of steps, and the driver, the oracle and the journal know nothing else.  A loop is only how a
program is written where somebody reads it, and how it is made short.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from syncedmem.model.errors import shown

from .finding import BLOCKS_OF, MOST_STEPS, HeapStep, TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Item", "Repeat", "folded", "items_from_json", "program_as_json", "unfolded"]

_LONGEST_BODY = 6
_FEWEST = 3
"""Two times are written out."""
_MOST_FOLDED = 1 << 18
_LOOP = (3, 4)
"""The lengths of a loop as data, with and without a stride."""


class Repeat(NamedTuple):
    """Steps that are taken several times."""

    times: int
    body: tuple[HeapStep, ...]
    stride: int = 0

    def steps(self) -> Iterator[HeapStep]:
        """All steps, one after the other."""
        for time in range(self.times):
            yield from (_moved(step, time * self.stride) for step in self.body)

    def calls(self) -> list[str]:
        """The body as calls, with ``i`` for the number of the time."""
        moving = "" if not self.stride else "i" if self.stride == 1 else f"{self.stride} * i"
        return [step.call(moving) for step in self.body]

    def __str__(self) -> str:
        return f"repeat {self.times}{' with i' if self.stride else ''}: {'; '.join(self.calls())}"


Item = HeapStep | Repeat


def unfolded(items: Iterable[Item]) -> tuple[HeapStep, ...]:
    """The steps of steps and loops."""
    return tuple(chain.from_iterable(item.steps() if isinstance(item, Repeat) else (item,) for item in items))


def folded(program: tuple[HeapStep, ...]) -> tuple[Item, ...]:
    """The program with its repeated blocks of steps as loops, from its start; the longest loop first."""
    if len(program) > _MOST_FOLDED:
        return program
    items: list[Item] = []
    shapes = [_shape(step) for step in program]
    at = 0
    while at < len(program):
        longest = _longest_at(program, shapes, at)
        items.append(longest or program[at])
        at += longest.times * len(longest.body) if longest else 1
    return tuple(items)


def _shape(step: HeapStep) -> tuple[str | int, ...]:
    """What is the same each time that a step is taken: all but its blocks."""
    blocks = BLOCKS_OF[step.operation]
    return (step.operation, *(number for at, number in enumerate(step.numbers) if at not in blocks))


def _longest_at(program: tuple[HeapStep, ...], shapes: list[tuple[str | int, ...]], at: int) -> Repeat | None:
    """The longest loop that begins here."""
    longest: Repeat | None = None
    for length in range(1, _LONGEST_BODY + 1):
        if longest and length % len(longest.body) == 0:
            continue  # the same steps, two times in each body
        first, second, third = (shapes[at + time * length : at + (time + 1) * length] for time in range(_FEWEST))
        if first == second == third:
            loop = _loop_at(program, at, length)
            covered = len(longest.body) * longest.times if longest else 0
            if loop.times >= _FEWEST and loop.times * length > covered:
                longest = loop
    return longest


def _loop_at(program: tuple[HeapStep, ...], at: int, length: int) -> Repeat:
    """The loop with a body of this many steps that begins here, where the next have the same shape; maybe one time."""
    body, times = program[at : at + length], 1
    after = program[at + length : at + 2 * length]
    stride = next((b - a for one, two in zip(body, after, strict=True) for a, b in _block_pairs(one, two)), 0)
    while stride >= 0 and all(
        _moved(step, times * stride) == other
        for step, other in zip(body, program[at + times * length : at + (times + 1) * length], strict=False)
    ):
        if at + (times + 1) * length > len(program):
            break
        times += 1
    return Repeat(times, body, stride if times > 1 else 0)


def _block_pairs(one: HeapStep, other: HeapStep) -> Iterator[tuple[int, int]]:
    return ((one.numbers[at], other.numbers[at]) for at in BLOCKS_OF[one.operation])


def _moved(step: HeapStep, by: int) -> HeapStep:
    """The step with other blocks."""
    if not by:
        return step
    blocks = BLOCKS_OF[step.operation]
    return HeapStep(
        step.operation, tuple(number + by if at in blocks else number for at, number in enumerate(step.numbers))
    )


def program_as_json(program: tuple[HeapStep, ...]) -> list[Any]:
    """A program as data; a loop is ``["repeat", times, steps]`` or ``["repeat", times, steps, stride]``."""
    return [_item_as_json(item) for item in folded(program)]


def _item_as_json(item: Item) -> list[Any]:
    if isinstance(item, HeapStep):
        return item.as_json()
    data = ["repeat", item.times, [step.as_json() for step in item.body]]
    return [*data, item.stride] if item.stride else data


def items_from_json(data: Iterable[Any]) -> tuple[HeapStep, ...]:
    """The steps of a program from data."""
    items: list[Item] = []
    steps = 0
    for item in data:
        items.append(read := _item_from_json(item))
        steps += read.times * len(read.body) if isinstance(read, Repeat) else 1
        if steps > MOST_STEPS:
            raise TargetError(f"a program has at most {MOST_STEPS:,} steps, and this one has more")
    return unfolded(items)


def _item_from_json(given: Any) -> Item:
    data: list[Any] = cast("Any", given) if isinstance(given, list) else []
    if data[:1] != ["repeat"]:
        return HeapStep.from_json(given)
    loop: list[Any] = [*data[1:], 0][:3] if len(data) in _LOOP else [0, [], 0]
    times, body, stride = loop
    counts = isinstance(times, int) and times > 0 and isinstance(stride, int) and stride >= 0
    if not (counts and isinstance(body, list) and body):
        example = ["repeat", 9, [["allocate", 0, 16], ["free", 0]]]
        raise TargetError(f"not a loop: {shown(data)}; a loop is a list like {example}")
    return Repeat(times, tuple(map(HeapStep.from_json, cast("Any", body))), stride)
