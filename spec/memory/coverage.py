"""Coverage of the state space, by the states of the oracle and not by the memory's own account."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from syncedmem.model import Configuration, Input, Mode, Side, head_machine, matrix, space
from syncedmem.model.head import Fact

from .driver import State

if TYPE_CHECKING:
    from .driver import MemoryDriver

__all__ = ["Coverage"]


@dataclass
class Coverage:
    """The transitions of the state space that were taken, by the states of the oracle."""

    unit: ClassVar[str] = "transitions"

    edition: str
    taken: set[tuple[State, Input]] = field(default_factory=set[tuple[State, Input]])

    def add(self, driver: MemoryDriver) -> None:
        """Add the transitions that a driver took."""
        self.taken.update(driver.visited)

    @property
    def transitions(self) -> int:
        """The number of transitions of the space that were taken."""
        return len(self.taken & transitions_of(self.edition))

    @property
    def missing(self) -> int:
        """The number of transitions that were not taken."""
        return len(transitions_of(self.edition) - self.taken)

    def unreached(self) -> list[str]:
        """The transitions that were not taken, each in words."""
        return sorted(_sentence(*transition) for transition in transitions_of(self.edition) - self.taken)

    @property
    def states(self) -> int:
        """The number of states of the space that were visited."""
        return len({state for state, _ in self.taken & transitions_of(self.edition)})

    @property
    def cells(self) -> int:
        """The number of cells of the matrix, configuration by call, that were visited."""
        known = {(state, entry) for state, row in matrix(self.edition).items() for entry in row}
        return len({(_configuration(state), entry) for state, entry in self.taken} & known)

    def identifiers(self) -> set[str]:
        """The rows of the table that were used, by their `Transition.identifier`."""
        machine = head_machine(self.edition)
        return {
            machine.row(entry.call, state[0], _facts(state), entry.data).identifier(state[0])
            for state, entry in self.taken
            if entry.call in machine.calls and state[0] in machine.edition.heads
        }


_OWNERS = {Side.NULL: "nobody", Side.OWNED: "memory", Side.EXTERNAL: "caller"}
_WORDS = {"nobody": "not there", "memory": "its own", "caller": "the caller's"}
_SIDES = {owner: side for side, owner in _OWNERS.items()}


def _configuration(state: State) -> Configuration:
    return Configuration(state[0], _SIDES[state[1]], _SIDES[state[2]])


@cache
def transitions_of(edition: str) -> frozenset[tuple[State, Input]]:
    """The model's state space, as states of the oracle."""
    return frozenset(
        (_in_words(state.configuration, bool(state.facts & Fact.CPU_MALLOC_USE_CUDA), state.mode), entry)
        for state, row in space(edition).steps.items()
        for entry in row
    )


def _in_words(configuration: Configuration, pinned: bool, mode: Mode) -> State:
    return (configuration.head, _OWNERS[configuration.cpu], _OWNERS[configuration.gpu], pinned, mode)


def _sentence(state: State, entry: Input) -> str:
    head, cpu, gpu, pinned, mode = state
    call = f"set_mode({entry.mode})" if entry.call is None else entry.call.value
    sides = f"the host side is {_WORDS[cpu]}{', page-locked' if pinned else ''}, the device side {_WORDS[gpu]}"
    return f"{call}{'' if entry.data else ' with NULL'} at {head.name}, where {sides}, in mode {mode.name}"


def _facts(state: State) -> Fact:
    cpu = {"nobody": Fact(0), "caller": Fact.CPU_POINTER, "memory": Fact.CPU_POINTER | Fact.OWN_CPU_DATA}
    gpu = {"nobody": Fact(0), "caller": Fact.GPU_POINTER, "memory": Fact.GPU_POINTER | Fact.OWN_GPU_DATA}
    return cpu[state[1]] | gpu[state[2]]
