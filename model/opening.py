"""The open machine that an edition or a declaration of today means: what is computed from a machine asks for that.

This goes when declarations have become machines.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from . import caffe
from .compiled import head_machine
from .declaration import Call, Machine, Row
from .head import Call as TodaysCall
from .head import Fact
from .machine import AnyEdition as Closed
from .machine import Declaration
from .states import stepper

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["AnyCall", "AnyMachine", "caffes_words", "machine_of"]

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
    return caffes_words(
        edition.name,
        [head.name for head in edition.heads],
        rows,
        never=[guard.value for guard in edition.never],
        flags=[str(fact.name).lower() for fact in Fact if fact in edition.flags],
        implied=[str(fact.name).lower() for fact in Fact if fact in edition.implied],
        about=edition.about,
        cite=edition.cite,
        cycles=[[call.value for call in cycle] for cycle in edition.cycles],
    )


def caffes_words(  # noqa: PLR0913 -- what a declaration says
    name: str,
    heads: Iterable[str],
    rows: list[Row],
    *,
    never: Iterable[str],
    flags: Collection[str],
    implied: Collection[str],
    about: str = "",
    cite: str = "",
    cycles: Iterable[Iterable[str]] = (),
) -> Machine:
    """A machine out of Caffe's words, as declarations and JSON of version 2 have them.

    Parameters
    ----------
    name : str
    heads : iterable of str
    rows : list of Row
    never : iterable of str
        Conditions that cannot hold.
    flags : collection of str
        The flags that a memory has; the others are gone.
    implied : collection of str
        Of flags that it has not: those that always equal the pointer of their side.
    about, cite, cycles
        As for `Machine`.
    """
    whole = caffe.CAFFE
    fix: dict[str, str | bool] = dict.fromkeys([fact for fact in never if fact in whole.facts], False)
    for flag in whole.flags:
        if flag.name in implied:
            fix[flag.name] = next(
                it.name for it in whole.facts.values() if (it.means, it.side) == ("pointer", flag.side)
            )
        elif flag.name not in flags:
            fix[flag.name] = False
    calls = {row.call for row in rows}
    return Machine(
        name,
        rows,
        sides=whole.sides,
        heads=[whole.heads[head] for head in heads],
        calls=[call for call in whole.calls.values() if call.name in calls],
        facts=whole.facts.values(),
        actions=whole.actions.values(),
        refusals=caffe.REFUSALS,
        settings=whole.settings.values(),
        numbered_as=caffe.EVERYTHING,
    ).select(
        name,
        title=caffe.TITLE.format(name),
        fix=fix,
        about=about,
        cite=cite,
        cycles=cycles,
    )
