"""Coverage of the state space, by the states of the oracle and not by the memory's own account."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from syncedmem.model import Input, Machine, State, matrix, space
from syncedmem.model.states import stepper

if TYPE_CHECKING:
    from collections.abc import Iterable

    class Visitor(Protocol):
        """Something that took transitions."""

        @property
        def visited(self) -> Iterable[tuple[State, Input]]:
            """The states and inputs that were taken."""
            ...


__all__ = ["Coverage"]


@dataclass(repr=False)
class Coverage:
    """The transitions of the state space that were taken, by the states of the oracle."""

    unit: ClassVar[str] = "transitions"

    machine: Machine
    taken: set[tuple[State, Input]] = field(default_factory=set[tuple[State, Input]])

    def __repr__(self) -> str:
        return f"<Coverage of {self.machine.name}: {self.count} transitions>"

    def add(self, visitor: Visitor) -> None:
        """Add the transitions that a trial took."""
        self.taken.update(visitor.visited)

    @property
    def count(self) -> int:
        """The number of transitions of the space that were taken."""
        return len(self.taken & transitions_of(self.machine))

    @property
    def missing(self) -> int:
        """The number of transitions that were not taken."""
        return len(transitions_of(self.machine) - self.taken)

    def unreached(self) -> list[str]:
        """The transitions that were not taken, each in words."""
        return sorted(_sentence(*transition) for transition in transitions_of(self.machine) - self.taken)

    @property
    def states(self) -> int:
        """The number of states of the space that were visited."""
        return len({state for state, _ in self.taken & transitions_of(self.machine)})

    @property
    def cells(self) -> int:
        """The number of cells of the matrix, configuration by call, that were visited."""
        named = space(self.machine).configuration
        known = {(configuration, entry) for configuration, row in matrix(self.machine).items() for entry in row}
        return len({(named(state), entry) for state, entry in self.taken} & known)

    def identifiers(self) -> set[str]:
        """The rows of the table that were used, by their `Row.identifier`."""
        table, known = stepper(self.machine), set(self.machine.calls.values())
        moves = (table.step(state, entry) for state, entry in self.taken if entry.call in known)
        return {move.identifier for move in moves if move}


@cache
def transitions_of(machine: Machine) -> frozenset[tuple[State, Input]]:
    """The transitions of a machine's state space that can be taken: those at which nothing more is given."""
    return frozenset((move.before, move.input) for move in space(machine).moves if not move.input.given)


def _sentence(state: State, entry: Input) -> str:
    facts = f" with {', '.join(sorted(state.facts))}" if state.facts else ""
    return f"{entry} at {state.head}{facts}, in mode {', '.join(state.settings)}"
