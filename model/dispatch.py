"""The dispatch table: what the machine does in every state, compiled from the machine itself.

The runtime looks calls up here, because triggering `transitions` is about a hundred times slower.
The table is compiled by walking the built machine, not the declaration.  The tests compare every entry
with the running machine, so the two always mean the same.

A *state* is a small integer: ``head.value << 5 | facts``; a machine with another number of facts has another shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .errors import DeclarationError
from .head import CAFFE_NAMES, Action, Call, Fact, Refusal, SyncedHead, Vocabulary
from .machine import HeadMachine, Row, guard_bits
from .mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cell", "Dispatch", "compile_dispatch", "facts_of", "head_of", "state_of"]

_FACT_BITS = len(Fact)
_FACTS = 1 << _FACT_BITS


def state_of(head: SyncedHead, facts: int = 0) -> int:
    """Pack one of Caffe's heads and its facts into one integer."""
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
        In order; empty for a refusal and for a call that has nothing to do.
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
        An entry is None if the edition has no such head.
    start : int
        The packed state of a new memory.
    names : Vocabulary
        What packs and unpacks its states.
    """

    columns: Mapping[Call, tuple[Column, Column]]
    start: int
    names: Vocabulary = CAFFE_NAMES

    def cell(self, call: Call, state: int, *, data: bool = True) -> Cell | None:
        """One entry, or None if the edition has no such call or head."""
        return self.columns[call][data][state] if call in self.columns else None


def compile_dispatch(machine: HeadMachine) -> Dispatch:
    """Compile a machine into a dense table.

    Raises
    ------
    DeclarationError
        If in some head, for some values of the guards, two rows are enabled at once, or none.
        (`transitions` would silently take the first, or do nothing and return False.)
    """
    columns = {call: (_column(machine, call, False), _column(machine, call, True)) for call in machine.calls}
    return Dispatch(columns, machine.names.state_of(machine.edition.initial), machine.names)


def _column(machine: HeadMachine, call: Call, data: bool) -> Column:
    names = machine.names
    column: list[Cell | None] = [None] * (len(names.heads) * names.data)
    for head in machine.edition.heads:
        rows = machine.rows_at(call, head)
        for facts in range(names.data):
            found = guard_bits(facts, data=data, names=names)
            enabled = [row for row in rows if row.fires(found)]
            if len(enabled) != 1:
                problem = f"{len(enabled)} rows are enabled at once" if enabled else "no row is enabled"
                named = ", ".join(row.identifier for row in enabled or rows) or "it has no row there"
                held = ", ".join(str(fact.name).lower() for fact in names.facts(facts)) or "no fact"
                argument = f" and {'data' if data else 'no data'}" if call.takes_data else ""
                where = f"{call.value} in {head.name} with {held}{argument}"
                raise DeclarationError(f"{machine.edition.name}: {where}: {problem}: {named}")
            column[names.state_of(head, facts)] = _cell(enabled[0], facts, names)
    return tuple(column)


def _cell(row: Row, facts: int, names: Vocabulary) -> Cell:
    state = names.state_of(row.head, facts)
    if row.refusal is not None:
        return Cell((), (state, state), row.refusal, idle=False)
    cpu, gpu = (names.state_of(row.dest, row.facts_after(facts, mode)) for mode in Mode)
    return Cell(row.actions, (cpu, gpu), None, idle=not row.actions and cpu == state)
