"""The open machine that an edition or a declaration of today means: what is computed from a machine asks for that.

This goes when declarations have become machines.
"""

from __future__ import annotations

from functools import cache

from . import caffe
from .compiled import head_machine
from .declaration import Call, Machine, Row
from .head import Call as TodaysCall
from .head import Fact, Guard
from .machine import AnyEdition as Closed
from .machine import Declaration
from .states import stepper

__all__ = ["AnyCall", "AnyMachine", "machine_of"]

AnyMachine = Closed | Machine
"""What says which machine is meant: the name of an edition, a machine, or a declaration."""

AnyCall = str | Call | TodaysCall
"""A call, or its name."""


@cache
def machine_of(edition: AnyMachine) -> Machine:
    """The machine that is meant, checked.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the machine is unsound.
    """
    if not isinstance(edition, Machine):
        head_machine(edition)
    found = _opened(edition) if isinstance(edition, Declaration) else edition
    machine = caffe.EDITIONS[found] if isinstance(found, str) else found
    stepper(machine)
    return machine


def _opened(declared: Declaration) -> Machine:
    """A declaration, which has only Caffe's words, with these words."""
    edition = declared.edition
    rows = [
        Row(
            row.call.value,
            [head.name for head in row.source],
            row.dest and row.dest.name,
            do=[action.value for action in row.actions],
            when=[guard.value for guard in row.conditions],
            unless=[guard.value for guard in row.unless],
            refused=row.refusal.value if row.refusal else "",
            cite=row.cite,
        )
        for row in declared.rows
        if row.source
    ]
    never = {guard.value for guard in edition.never}
    never |= {guard.value for guard in Guard if guard.fact is not None and guard.fact not in edition.facts}
    if Fact.CPU_MALLOC_USE_CUDA not in edition.facts:
        never.add(caffe.CPU_MALLOC_USE_CUDA.name)
    fix: dict[str, str | bool] = dict.fromkeys(sorted(never & caffe.CAFFE.facts.keys()), False)
    if Fact.OWN_GPU_DATA in edition.implied and Fact.OWN_GPU_DATA in edition.facts:
        fix[caffe.OWN_GPU_DATA.name] = caffe.HAS_GPU_POINTER.name
    calls, whole = {row.call for row in rows}, caffe.CAFFE
    return Machine(
        edition.name,
        rows,
        sides=whole.sides,
        heads=[whole.heads[head.name] for head in edition.heads],
        calls=[call for call in whole.calls.values() if call.name in calls],
        facts=whole.facts.values(),
        actions=whole.actions.values(),
        refusals=[*whole.refusals.values(), caffe.NO_GPU],
        settings=whole.settings.values(),
    ).select(
        edition.name,
        title=f"Head machine of SyncedMemory, edition {edition.name}",
        fix=fix,
        about=edition.about,
        cite=edition.cite,
        cycles=[[call.value for call in cycle] for cycle in edition.cycles],
    )
