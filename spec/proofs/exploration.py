"""Every state that can be reached, with contents counted modulo K, and the first that breaks an invariant.

Numbers wrap around at K, so a stale side can seem fresh; what is found broken is broken, and what holds for several K
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
    """An invariant that does not hold, and a shortest way to see it."""

    invariant: str
    sequence: tuple[str, ...]


@dataclass(frozen=True)
class Explored:
    """What exploration found.

    Attributes
    ----------
    states : frozenset of State
        All that can be reached; all that were, where something is broken.
    transitions : int
        Calls that are not refused, and changes of mode, from all of these.
    breaches : tuple of Breach
        For each invariant that is broken the shortest sequence.
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
        """Zeros."""
        return 0

    def garbage(self) -> None:
        """What nobody may rely on, which equals no content."""

    def written(self, newest: int) -> int:
        """What is written after the newest content."""
        return (newest + 1) % self._modulus


def explore_contents(system: System, modulus: int) -> Explored:
    """Breadth-first search of everything that calls and changes of mode can reach.

    Parameters
    ----------
    system : System
    modulus : int
        How many contents to tell apart: K.
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
    """What can happen next: what it is called, where it leads (release: nowhere), and what it breaks."""
    yield f"set_mode({'CPU' if found.mode else 'GPU'})", found._replace(mode=not found.mode), []
    for step in steps_from(system, found, contents, logic):
        gone = step.row.call.ends
        yield step.row.call.value, None if gone else step.after, broken_by(logic, step)


def steps_from(system: System, found: State, contents: Versions, logic: Plain) -> Iterator[StateChange]:
    """Every row that is enabled in a state and not refused, carried out."""
    for row in system.rows:
        if row.refusal is None and _applies(row, found, logic):
            yield take(system, row, found, contents)


def _applies(row: Transition, found: State, logic: Plain) -> bool:
    return found.head in row.source and bool(enabled(logic, row, found))


def broken_by(logic: Plain, step: StateChange) -> list[str]:
    """The names of the sentences about steps that one does not meet."""
    return [name for name, holds in ON_STEPS.items() if not holds(logic, step)]
