"""A machine as a dense table, for who performs calls: what a call does is one look-up, without a look at rows.

A *packed state* is a small integer: the number of the head, and then a bit for each fact.  A selection of a machine has
the numbers of that machine, so one integer means the same in the tables of all its selections.

There is a cell for every head and all values of the facts, and not only for those that calls lead to.  Who performs
calls passes through others: that of a memory of which one side is freed and the other is not yet.

Settings are in no packed state, because they select no row.  What follows has one entry for each combination of their
values.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .errors import DeclarationError
from .stepper import Input, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .declaration import Call, Machine
    from .stepper import Stepper

__all__ = ["Cell", "Column", "Table"]


class Cell(NamedTuple):
    """What one call does in one state.

    Attributes
    ----------
    actions : tuple of str
        In their order; none for a refusal, and for a call that has nothing to do.
    next : tuple of int
        The packed state afterwards, for each combination of the settings' values, in the order of `itertools.product`.
    refusal : str
        Empty unless the call is refused.
    idle : bool
        Whether the call does nothing at all: it has no action, and the state stays as it is.
    """

    actions: tuple[str, ...]
    next: tuple[int, ...]
    refusal: str
    idle: bool


Column = tuple[Cell | None, ...]
"""The cells of a call by packed state; None where no row is enabled, or more than one."""


class Table:
    """What every call of a machine does in every state.

    Parameters
    ----------
    stepper : Stepper

    Attributes
    ----------
    machine : Machine
    bits : mapping of str to int
        The bit of each fact.
    columns : mapping of str to (Column, Column)
        For each call its cells without its argument and with it; these are the same if it takes none.
    start : int
        The packed state of a new memory.
    """

    def __init__(self, stepper: Stepper) -> None:
        self.machine: Machine = stepper.machine
        everything = self.machine.numbered_as
        self._stepper = stepper
        self._heads = tuple(everything.heads)
        self._settings = tuple(product(*(setting.values for setting in self.machine.settings.values())))
        self.bits: Mapping[str, int] = MappingProxyType({fact: 1 << bit for bit, fact in enumerate(everything.facts)})
        states = [self.unpacked(state) for state in range(len(self._heads) << len(self.bits))]
        self.columns: Mapping[str, tuple[Column, Column]] = MappingProxyType(
            {call.name: self._columns(call, states) for call in self.machine.calls.values()}
        )
        self.start: int = self.packed(stepper.start)

    def packed(self, state: State) -> int:
        """The integer of a state, without its settings."""
        return self._heads.index(state.head) << len(self.bits) | sum(self.bits[fact] for fact in state.facts)

    def unpacked(self, state: int) -> State:
        """The state of an integer, without settings."""
        head = self._heads[state >> len(self.bits)]
        return State(head, frozenset(fact for fact, bit in self.bits.items() if state & bit))

    def _columns(self, call: Call, states: list[State]) -> tuple[Column, Column]:
        given = tuple(self._cell(Input(call), state) for state in states)
        return (tuple(self._cell(Input(call, data=False), state) for state in states) if call.takes else given), given

    def _cell(self, entry: Input, state: State) -> Cell | None:
        if state.head not in self.machine.heads or not state.facts <= self.machine.facts.keys():
            return None
        found = []
        with suppress(DeclarationError):  # where nobody can be, rows need not be complete and exclusive
            found = [self._stepper.step(state._replace(settings=values), entry) for values in self._settings]
        steps = [step for step in found if step is not None]
        if not steps:
            return None
        actions, refusal, after = steps[0].actions, steps[0].refusal, tuple(self.packed(step.after) for step in steps)
        return Cell(actions, after, refusal, idle=not (actions or refusal) and {*after} == {self.packed(state)})
