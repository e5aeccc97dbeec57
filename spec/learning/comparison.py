"""The learned machine beside the declared one, cell by cell.

Both get the same calls.  A difference that no other one precedes is a first difference.  What comes after a difference
is often only its consequence.  So a cell is compared on a way without differences, if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Configuration, Input

    from .answers import Answer, Word
    from .declared import DeclaredMachine
    from .mealy import Mealy

__all__ = ["Cell", "Comparison", "Difference", "compared"]

Cell = tuple["Configuration", "Input"]


@dataclass(frozen=True)
class Difference:
    """A cell in which the machines differ.

    Attributes
    ----------
    cell : (Configuration, Input)
    word : tuple of Input
        The shortest way to it; its last input is that of the cell.
    declared, learned : Answer
    behind : int
        How many differences are before it on its way.
    """

    cell: Cell
    word: Word
    declared: Answer
    learned: Answer
    behind: int

    @property
    def name(self) -> str:
        """The cell: the call, and the configuration in which it is made."""
        return f"{self.cell[1]} in {self.cell[0]}"


@dataclass(frozen=True)
class Comparison:
    """The result.

    Attributes
    ----------
    cells : int
        The number of cells of the declaration.
    reached : int
        How many of them were compared.
    differences : tuple of Difference
        One for each cell that differs; those that no other precedes are first.
    wrong : frozenset of (int, Input)
        The learned states and the inputs whose answer is not the declared one; no other difference precedes it.
    heads : dict of int to str
        The head of the declared state beside each learned one.
    """

    cells: int
    reached: int
    differences: tuple[Difference, ...]
    wrong: frozenset[tuple[int, Input]]
    heads: dict[int, str]

    @property
    def first(self) -> tuple[Difference, ...]:
        """The differences that no other precedes."""
        return tuple(it for it in self.differences if not it.behind)


def compared(learned: Mealy, declared: DeclaredMachine) -> Comparison:
    """Compare a learned machine, of which some answers may be missing, with the declared one."""
    found: dict[Cell, Difference | None] = {}
    levels: dict[Cell, int] = {}
    wrong: set[tuple[int, Input]] = set()
    heads: dict[int, str] = {}
    for state, number, word, behind in _pairs(learned, declared.machine):
        configuration = declared.configurations[number]
        heads.setdefault(state, configuration.head)
        for entry, (answer, _) in learned.steps[state].items():
            expected = declared.machine.steps[number][entry][0]
            cell = configuration, entry
            if answer != expected and not behind:
                wrong.add((state, entry))
            if levels.setdefault(cell, behind) == behind and found.get(cell) is None:
                differs = answer != expected
                found[cell] = Difference(cell, (*word, entry), expected, answer, behind) if differs else None
    every = {(it, entry) for it in declared.configurations for entry in declared.machine.steps[0] if entry.call}
    differences = sorted(filter(None, found.values()), key=lambda it: (it.behind, len(it.word)))
    return Comparison(len(every), len(found.keys() & every), tuple(differences), frozenset(wrong), heads)


def _pairs(learned: Mealy, declared: Mealy) -> Iterator[tuple[int, int, Word, int]]:
    """The pairs of states that the same calls lead to, by the way with the fewest differences, then the shortest."""
    order = count()
    waiting: list[tuple[int, int, int, tuple[int, int], Word]] = [(0, 0, next(order), (0, 0), ())]
    seen: set[tuple[int, int]] = set()
    while waiting:
        behind, length, _, pair, word = heappop(waiting)
        if pair in seen or learned.is_end(pair[0]) or declared.is_end(pair[1]):
            continue
        seen.add(pair)
        yield *pair, word, behind
        for entry, (answer, after) in learned.steps[pair[0]].items():
            expected, there = declared.steps[pair[1]][entry]
            heappush(waiting, (behind + (answer != expected), length + 1, next(order), (after, there), (*word, entry)))
