"""The dispatch table: what the machine does in every state, compiled from the machine itself.

The runtime looks calls up here instead of triggering `transitions`, which is about a hundred times slower.
The table is compiled by walking the built machine, not the declaration, and the tests compare every entry
with the machine live, so it cannot come to mean something else.

A *state* is a small integer: ``head.value << 5 | facts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .errors import DeclarationError
from .head import Action, Call, Fact, Guard, Refusal, SyncedHead
from .machine import STEPS, Guards, HeadMachine, apply_effects, situation
from .mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cell", "Dispatch", "compile_dispatch", "facts_of", "head_of", "state_of"]

_FACT_BITS = len(Fact)
_FACTS = 1 << _FACT_BITS
_STATES = len(SyncedHead) * _FACTS


def state_of(head: SyncedHead, facts: int = 0) -> int:
    """Pack a head and its facts into one integer."""
    return head.value << _FACT_BITS | facts


def head_of(state: int) -> SyncedHead:
    """The head of a packed state."""
    return SyncedHead(state >> _FACT_BITS)


def facts_of(state: int) -> Fact:
    """The pointers and flags of a packed state."""
    return Fact(state & _FACTS - 1)


class Cell(NamedTuple):
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

    def cell(self, call: Call, state: int, *, data: bool = True) -> Cell | None:
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


class _Row(NamedTuple):
    """A row of the built machine, with its names looked up.

    ``effects`` has a pair of masks per mode: what the row keeps of a packed state, and what it sets.
    """

    guards: Guards
    actions: tuple[Action, ...]
    refusal: Refusal | None
    effects: tuple[tuple[int, int], ...]


def _rows(machine: HeadMachine, call: Call, head: SyncedHead) -> list[_Row]:
    """The rows that the built machine has for a call in a head."""
    found: list[_Row] = []
    for row in machine.event(call).transitions.get(head.name, []):
        required, excluded = (
            [Guard(it.func) for it in row.conditions if it.target is wanted] for wanted in (True, False)
        )
        steps = [STEPS[name] for name in row.before]
        actions = tuple(step for step in steps if isinstance(step, Action))
        refusal = next((step for step in steps if isinstance(step, Refusal)), None)
        effects = _effects(machine, actions, SyncedHead[row.dest] if row.dest else head)
        found.append(_Row(Guards.of(required, excluded), actions, refusal, effects))
    return found


def _effects(machine: HeadMachine, actions: tuple[Action, ...], dest: SyncedHead) -> tuple[tuple[int, int], ...]:
    # Actions set a fact, clear it or leave it, so what becomes of all facts and of none says it for any.
    tracked = int(machine.edition.facts)
    starts = (_FACTS - 1, 0)
    ends = [[apply_effects(facts, actions, mode) & tracked for facts in starts] for mode in Mode]
    return tuple((kept, state_of(dest, always)) for kept, always in ends)


def _column(machine: HeadMachine, call: Call, data: bool) -> Column:
    column: list[Cell | None] = [None] * _STATES
    for head in machine.edition.heads:
        rows, first = _rows(machine, call, head), state_of(head)
        for facts in range(_FACTS):
            found = situation(facts, data=data)
            enabled = [row for row in rows if not row.guards.unmet(found)]
            if len(enabled) != 1:
                problem = f"{len(enabled)} rows are enabled at once" if enabled else "no row is enabled"
                where = f"{call.value} in {head.name} with {Fact(facts)!r} and data={data}"
                raise DeclarationError(f"{machine.edition.name}: {where}: {problem}")
            column[first | facts] = _cell(enabled[0], first | facts)
    return tuple(column)


def _cell(row: _Row, state: int) -> Cell:
    if row.refusal is not None:
        return Cell((), (state, state), row.refusal, idle=False)
    cpu, gpu = (state & kept | always for kept, always in row.effects)
    return Cell(row.actions, (cpu, gpu), None, idle=not row.actions and cpu == state)
