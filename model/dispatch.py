"""The dispatch table: what the machine does in every state, compiled from the machine itself.

The runtime looks calls up here instead of triggering `transitions`, which is about a hundred times slower.
The table is compiled by walking the built machine, not the declaration, and the tests compare every entry
with the machine live, so it cannot come to mean something else.

A *state* is a small integer: ``head.value << 5 | facts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .errors import DeclarationError
from .head import Action, Call, Fact, Guard, Refusal, SyncedHead
from .machine import HeadMachine, apply_effects, head_machine
from .mode import Mode

__all__ = ["Cell", "Dispatch", "compile_dispatch", "dispatch", "facts_of", "head_of", "state_of"]

_FACT_BITS = 5
_FACTS = 1 << _FACT_BITS
STATES = len(SyncedHead) * _FACTS


def state_of(head: SyncedHead, facts: Fact = Fact(0)) -> int:
    """Pack a head and its facts into one integer."""
    return head.value << _FACT_BITS | int(facts)


def head_of(state: int) -> SyncedHead:
    """The head of a packed state."""
    return SyncedHead(state >> _FACT_BITS)


def facts_of(state: int) -> Fact:
    """The pointers and flags of a packed state."""
    return Fact(state & _FACTS - 1)


@dataclass(frozen=True, slots=True)
class Cell:
    """What one call does in one state.

    Attributes
    ----------
    actions : tuple of Action
        In order; empty for a refusal and for a call with nothing to do.
    next : tuple of int
        The packed state afterwards, in CPU mode and in GPU mode.
    refusal : Refusal or None
    idle : bool
        True when the call does nothing at all: no action, and the state stays as it is.
    """

    actions: tuple[Action, ...]
    next: tuple[int, int]
    refusal: Refusal | None
    idle: bool


Column = tuple[Cell | None, ...]


@dataclass(frozen=True)
class Dispatch:
    """The compiled table of one edition.

    Attributes
    ----------
    columns : mapping of Call to a pair of columns
        For each call a column for "no argument" and one for "with an argument", indexed by packed state.
        None stands where the edition has no such head.
    """

    columns: Mapping[Call, tuple[Column, Column]]

    def cell(self, call: Call, state: int, data: bool = True) -> Cell | None:
        """One entry: None where the edition has no such call or head."""
        return self.columns[call][data][state] if call in self.columns else None


def compile_dispatch(machine: HeadMachine) -> Dispatch:
    """Compile a machine into a dense table.

    Raises
    ------
    DeclarationError
        If in some head two rows are enabled at once, or none is, for the same valuation of the guards.
        (`transitions` would silently take the first, or do nothing and return False.)
    """
    return Dispatch({call: (_column(machine, call, False), _column(machine, call, True)) for call in machine.calls})


@cache
def dispatch(edition: str = "caffe") -> Dispatch:
    """The shared table of an edition, compiled on first use."""
    return compile_dispatch(head_machine(edition))


def _column(machine: HeadMachine, call: Call, data: bool) -> Column:
    candidates = {head: machine.event(call).transitions.get(head.name, []) for head in SyncedHead}
    return tuple(_cell(machine, call, state, data, candidates[head_of(state)]) for state in range(STATES))


def _cell(machine: HeadMachine, call: Call, state: int, data: bool, candidates: list[Any]) -> Cell | None:
    head, facts = head_of(state), facts_of(state)
    if head not in machine.edition.heads:
        return None
    found = [row for row in candidates if all(_holds(test, facts, data) for test in row.conditions)]
    if len(found) != 1:
        problem = "no row is enabled" if not found else f"{len(found)} rows are enabled at once"
        raise DeclarationError(
            f"{machine.edition.name}: {call.value} in {head.name} with {facts!r} and data={data}: {problem}"
        )
    return _as_cell(machine, found[0], state)


def _holds(test: Any, facts: Fact, data: bool) -> bool:
    fact = Guard(test.func).fact
    return (data if fact is None else bool(fact & facts)) is test.target


def _as_cell(machine: HeadMachine, row: Any, state: int) -> Cell:
    if row.before and row.before[0] in _REFUSALS:
        return Cell((), (state, state), Refusal(row.before[0]), False)
    actions = tuple(Action(name) for name in row.before)
    head = SyncedHead[row.dest] if row.dest else head_of(state)
    after = [state_of(head, apply_effects(facts_of(state), actions, machine.edition, mode)) for mode in Mode]
    return Cell(actions, (after[0], after[1]), None, not actions and after[0] == state)


_REFUSALS = frozenset(refusal.value for refusal in Refusal)
