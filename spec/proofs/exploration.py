"""Visits every reachable state, with contents counted modulo K, and finds the first that breaks an invariant.

Numbers wrap around at K, so a stale side can seem fresh.  A breach that is found is real; what holds for several K
is proved for all contents by ``induction``.  Other checkers count the same states, so the counts are compared too.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .invariants import ON_STATES, ON_STEPS, Plain, enabled
from .states import start, take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Transition

    from .states import State, StateChange, System

__all__ = ["Breach", "Explored", "Versions", "broken_by", "explore_contents", "steps_from"]


class Breach(NamedTuple):
    """An invariant that does not hold, with a shortest sequence that shows it."""

    invariant: str
    sequence: tuple[str, ...]


@dataclass(frozen=True)
class Explored:
    """The result of an exploration.

    Attributes
    ----------
    states : frozenset of State
        All reachable states; if an invariant is broken, all states that were reached.
    transitions : int
        The number of calls that are not refused, and of changes of mode, in all these states.
    breaches : tuple of Breach
        For each broken invariant, the shortest sequence.
    """

    states: frozenset[State]
    transitions: int
    breaches: tuple[Breach, ...]


class Versions:
    """Contents as numbers modulo K: 0 is zeros, and each write makes the next one.

    Parameters
    ----------
    modulus : int
    """

    def __init__(self, modulus: int) -> None:
        self._modulus = modulus

    def zero(self) -> int:
        """The contents after zeroing."""
        return 0

    def garbage(self) -> None:
        """Undefined contents, which equal no other contents."""

    def written(self, newest: int) -> int:
        """The contents of a write after these newest contents."""
        return (newest + 1) % self._modulus


def explore_contents(system: System, modulus: int) -> Explored:
    """Search breadth-first for everything that calls and changes of mode can reach.

    Parameters
    ----------
    system : System
    modulus : int
        The number of contents that are distinguished: K.
    """
    contents, logic = Versions(modulus), Plain()
    found = start(contents, mode=True)
    sequences: dict[State, tuple[str, ...]] = {found: ()}
    waiting, transitions, breaches = deque([found]), 0, dict[str, Breach]()
    while waiting:
        found = waiting.popleft()
        for name, holds in ON_STATES.items():
            if not holds(logic, found):
                breaches.setdefault(name, Breach(name, sequences[found]))
        for label, after, broken in _successors(system, found, contents, logic):
            transitions += 1
            for name in broken:
                breaches.setdefault(name, Breach(name, (*sequences[found], label)))
            if after is not None and after not in sequences:
                sequences[after] = (*sequences[found], label)
                waiting.append(after)
    return Explored(frozenset(sequences), transitions, tuple(breaches.values()))


def _successors(
    system: System, found: State, contents: Versions, logic: Plain
) -> Iterator[tuple[str, State | None, list[str]]]:
    """The next steps: the name of each, the state after it (none after release), and what it breaks."""
    yield f"set_mode({'CPU' if found.mode else 'GPU'})", found._replace(mode=not found.mode), []
    for step in steps_from(system, found, contents, logic):
        gone = step.row.call.ends
        yield step.row.call.value, None if gone else step.after, broken_by(logic, step)


def steps_from(system: System, found: State, contents: Versions, logic: Plain) -> Iterator[StateChange]:
    """Take every row that is enabled in a state and not refused."""
    for row in system.rows:
        if row.refusal is None and _applies(row, found, logic):
            yield take(system, row, found, contents)


def _applies(row: Transition, found: State, logic: Plain) -> bool:
    return found.head in row.source and bool(enabled(logic, row, found))


def broken_by(logic: Plain, step: StateChange) -> list[str]:
    """The names of the sentences about steps that a step breaks."""
    return [name for name, holds in ON_STEPS.items() if not holds(logic, step)]
