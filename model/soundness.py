"""What makes a declaration unsound, refused when the machine is built.

`transitions` accepts all of it silently: of two enabled rows it takes the first, a call without an enabled
row returns False, a misspelt callback is found when it fires, and a head nobody can reach is kept.
"""

from __future__ import annotations

from .dispatch import compile_dispatch
from .errors import DeclarationError
from .exploration import Input, Space, explore
from .head import Call, Fact, Guard, Transition
from .machine import HeadMachine, enabled
from .mode import Mode

__all__ = ["check_soundness"]


def check_soundness(machine: HeadMachine) -> None:
    """Refuse a machine that is ambiguous or incomplete, or that declares what can never happen.

    Raises
    ------
    DeclarationError
        For two rows enabled at once or none (see `compile_dispatch`), a head that cannot be reached, a row
        that never fires, or a guard that never matters.
    """
    table = compile_dispatch(machine)
    calls = [call for call in machine.calls if call is not Call.RELEASE]
    alphabet = tuple(Input(call, data) for call in calls for data in (True, False))
    alphabet += tuple(Input(None, mode=mode) for mode in Mode)
    found = explore(table, alphabet)
    reached = {state.head for state in found.steps}
    for head in machine.edition.heads:
        if head not in reached:
            raise DeclarationError(f"{machine.edition.name}: head {head.name} cannot be reached")
    for row in machine.declaration.rows:
        _check_row(machine, row, found)


def _check_row(machine: HeadMachine, row: Transition, found: Space) -> None:
    name = f"{machine.edition.name}: {row.identifier(row.source[0])}" if row.source else f"{machine.edition.name}: {row}"
    situations = [
        (state.facts, data) for state in found.steps if state.head in row.source for data in _arguments(row.call)
    ]
    if not any(enabled(row, facts, data) for facts, data in situations):
        raise DeclarationError(f"{name}: this row never fires")
    for guard in row.conditions + row.unless:
        if not any(_decides(row, guard, facts, data) for facts, data in situations):
            raise DeclarationError(f"{name}: the guard {guard.value} never matters")


def _decides(row: Transition, guard: Guard, facts: Fact, data: bool) -> bool:
    """Whether this one guard is what keeps the row from firing here."""
    rest = Transition(
        row.call,
        row.source,
        row.dest,
        conditions=tuple(other for other in row.conditions if other is not guard),
        unless=tuple(other for other in row.unless if other is not guard),
    )
    return enabled(rest, facts, data) and not enabled(row, facts, data)


def _arguments(call: Call) -> tuple[bool, ...]:
    return (True, False) if call in (Call.SET_CPU_DATA, Call.SET_GPU_DATA) else (True,)

