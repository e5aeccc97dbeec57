"""The learned machine beside the declared one, cell by cell.

Both get the same calls.  A difference that no other one precedes is a first difference.  What comes after a difference
is often only its consequence.  So a cell is compared on a way without differences, if there is one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input, State, space
from syncedmem.model.states import stepper

from ..memory.by_table import is_pinned
from .answers import NEWEST, NOT_ASKED, PINNED, UNDEFINED, Answer, has_died

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Configuration, Machine, Move

    from .answers import Sight, Word
    from .learner import LearnedRows

__all__ = ["AnswerDifference", "Comparison", "Declared", "compared", "declared_machine"]

Declared = dict[State, dict[Input, tuple[Answer, State]]]
"""For each state and input of the declared machine the answer and the next state."""

_END = State("")


def declared_machine(machine: Machine, sight: Sight) -> Declared:
    """A machine as far as it is seen, and its end."""
    entries = stepper(machine).inputs(end=True)
    rows = {
        state: {
            entry: (_answer(machine, state, entry, step, sight), _END if entry.ends else step.after)
            for entry, step in row.items()
        }
        for state, row in space(machine, null=True, end=True).steps.items()
    }
    ended = {_END: dict.fromkeys(entries, (NOT_ASKED, _END))} if any(entry.ends for entry in entries) else {}
    return {**rows, **ended}


def _answer(machine: Machine, state: State, entry: Input, step: Move[State], sight: Sight) -> Answer:
    if entry.call is None:
        return ()
    head, flags = ("", []) if entry.ends else (step.after.head, [it for it in sight.flags if it in step.after.facts])
    view = ""
    if entry.does in ("read", "write") and not step.refusal:
        touched = not machine.heads[state.head].fresh
        filled = any(machine.actions[it].does in ("zero", "adopt", "copy") for it in step.actions)
        view = UNDEFINED if touched and not filled else NEWEST
    return sight.answer(_actions(machine, state, step), refused=bool(step.refusal), view=view, head=head, flags=flags)


def _actions(machine: Machine, state: State, step: Move[State]) -> Iterator[str]:
    """The actions that are seen: all but adoptions.  What is freed is of the kind that it was before."""
    for action in map(machine.actions.__getitem__, step.actions):
        decides = {"free": state, "allocate": step.after}.get(action.does)
        pinned = decides is not None and is_pinned(machine, decides, action.side)
        if action.does != "adopt":
            yield action.name + PINNED * pinned


def _agree(declared: Answer, learned: Answer) -> bool:
    """Whether an answer is the declared one; a view of undefined bytes may show any."""
    if ("view", UNDEFINED) not in declared:
        return declared == learned
    return [it for it in declared if it[0] != "view"] == [it for it in learned if it[0] != "view"]


class AnswerDifference(NamedTuple):
    """A cell in which the machines differ.

    Attributes
    ----------
    configuration : Configuration
    word : tuple of Input
        The shortest way to it; its last input is that of the cell.
    declared, learned : Answer
    behind : int
        How many differences are before it on its way.
    """

    configuration: Configuration
    word: Word
    declared: Answer
    learned: Answer
    behind: int

    @property
    def name(self) -> str:
        """The cell: the call, and the configuration in which it is made."""
        return f"{self.word[-1]} in {self.configuration}"


class Comparison(NamedTuple):
    """The result.

    Attributes
    ----------
    cells, reached : int
        The number of cells of the declaration, and how many of them were compared.
    differences : tuple of AnswerDifference
        One for each cell that differs; those that no other precedes are first.
    wrong : frozenset of (int, Input)
        The learned states and the inputs whose answer is not the declared one; no other difference precedes it.
    heads : dict of int to str
        The head of the declared state beside each learned one.
    """

    cells: int
    reached: int
    differences: tuple[AnswerDifference, ...]
    wrong: frozenset[tuple[int, Input]]
    heads: dict[int, str]


def compared(machine: Machine, declared: Declared, learned: LearnedRows) -> Comparison:
    """Compare a learned machine, of which some answers may be missing, with the declared one."""
    configuration_of = space(machine).configuration
    found: dict[tuple[Configuration, Input], AnswerDifference | None] = {}
    levels: dict[tuple[Configuration, Input], int] = {}
    wrong: set[tuple[int, Input]] = set()
    heads: dict[int, str] = {}
    for state, there, word, behind in _pairs(learned, declared):
        configuration = configuration_of(there)
        heads.setdefault(state, there.head)
        for entry, (answer, _) in learned[state].items():
            expected, cell = declared[there][entry][0], (configuration, entry)
            if not _agree(expected, answer) and not behind:
                wrong.add((state, entry))
            if levels.setdefault(cell, behind) == behind and found.get(cell) is None:
                difference = AnswerDifference(configuration, (*word, entry), expected, answer, behind)
                found[cell] = None if _agree(expected, answer) else difference
    every = {(configuration_of(it), entry) for it in declared if it != _END for entry in declared[it] if entry.call}
    differences = sorted(filter(None, found.values()), key=lambda it: (it.behind, len(it.word)))
    return Comparison(len(every), len(found.keys() & every), tuple(differences), frozenset(wrong), heads)


def _pairs(learned: LearnedRows, declared: Declared) -> Iterator[tuple[int, State, Word, int]]:
    """The pairs of states that the same calls lead to, by the way with the fewest differences, then the shortest."""
    order = count()
    waiting: list[tuple[int, int, int, tuple[int, State], Word]] = [(0, 0, next(order), (0, next(iter(declared))), ())]
    seen: set[tuple[int, State]] = set()
    while waiting:
        behind, length, _, pair, word = heappop(waiting)
        if pair in seen:
            continue
        seen.add(pair)
        yield *pair, word, behind
        for entry, (answer, after) in learned[pair[0]].items():
            expected, there = declared[pair[1]][entry]
            if not (entry.ends or has_died(answer)):
                more = behind + (not _agree(expected, answer))
                heappush(waiting, (more, length + 1, next(order), (after, there), (*word, entry)))
