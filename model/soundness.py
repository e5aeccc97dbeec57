"""Checks for unsound declarations, which are refused when the machine is built.

`transitions` would accept all of them silently: of two enabled rows it takes the first, a call without an enabled
row returns False, a misspelt callback is found when it fires, and an unreachable head is kept.  `Declaration.of`
checks names before anything is built, and `compile_dispatch` checks that rows are exclusive and complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import DeclarationError
from .machine import Guards, HeadMachine, guard_bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .dispatch import Dispatch
    from .head import Transition

__all__ = ["check_soundness"]


def check_soundness(machine: HeadMachine, table: Dispatch) -> None:
    """Refuse a machine that declares something that can never happen.

    Parameters
    ----------
    machine : HeadMachine
    table : Dispatch
        The compiled machine; compiling has already refused ambiguous and incomplete rows.

    Raises
    ------
    DeclarationError
        For a head that cannot be reached, a row that never fires, or a guard that never matters.
    """
    name = machine.edition.name
    reached = _reachable(table)
    missing = set(machine.edition.heads) - {machine.names.head_of(state) for state in reached}
    if missing:
        leading = [
            row.identifier(head)
            for row in machine.declaration.rows
            for head in row.source
            if row.dest in missing and head not in missing
        ]
        why = "no row leads there from a head that can be"
        if leading:
            why = f"what leads there never fires: {', '.join(leading)}"
        raise DeclarationError(f"{name}: cannot be reached: {', '.join(sorted(head.name for head in missing))} ({why})")
    for row in machine.declaration.rows:
        _check_row(machine, row, reached)


def _reachable(table: Dispatch) -> set[int]:
    """Every packed state that calls, with and without data, and changes of mode can lead to."""
    columns = [column for call, pair in table.columns.items() if not call.ends for column in pair]
    reached: set[int] = set()
    waiting = [table.start]
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += [after for column in columns if (cell := column[state]) for after in cell.next]
    return reached


def _check_row(machine: HeadMachine, row: Transition, reached: Iterable[int]) -> None:
    names, edition = machine.names, machine.edition.name
    name = f"{edition}: {', '.join(row.identifier(head) for head in row.source) or row}"
    guards = Guards.of(row.conditions, row.unless, names)
    arguments = (True, False) if row.call.takes_data else (True,)
    unmet = {
        guards.unmet(guard_bits(names.facts_of(state), data=data, names=names))
        for state in reached
        if names.head_of(state) in row.source
        for data in arguments
    }
    if 0 not in unmet:
        raise DeclarationError(f"{name}: this row never fires")
    for guard in row.conditions + row.unless:
        # In some state this guard alone must keep the row from firing.
        if names.bits((guard,)) not in unmet:
            raise DeclarationError(f"{name}: the guard {guard.value} never matters")
