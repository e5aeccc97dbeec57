"""The rows of an edition as numbers: what generated code needs instead of names.

A fact is a bit.  So a row is met where ``facts & required == required`` and ``facts & excluded == 0``, with one more
bit for "there is data"; and the facts afterwards are ``facts & kept | set``, with a pair of masks for each mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..editions import head_machine
from ..head import Fact
from ..machine import Guards, apply_effects, situation
from ..mode import Mode

if TYPE_CHECKING:
    from ..head import Action, Call, Refusal, SyncedHead

__all__ = ["DATA", "Row", "longest", "rows_of"]

DATA = situation(0, data=True)
"""The bit of a situation that says that there is data."""


class Row(NamedTuple):
    """A transition.

    Attributes
    ----------
    identifier, cite : str
    call : Call
    head, dest : SyncedHead
        The same one where the head is left alone.
    required, excluded : int
        Masks over the facts and `DATA`.
    actions : tuple of Action
    refusal : Refusal or None
    kept, sets : tuple of (int, int)
        Masks over the facts, in CPU mode and in GPU mode.
    """

    identifier: str
    cite: str
    call: Call
    head: SyncedHead
    dest: SyncedHead
    required: int
    excluded: int
    actions: tuple[Action, ...]
    refusal: Refusal | None
    kept: tuple[int, int]
    sets: tuple[int, int]


def rows_of(edition: str) -> tuple[Row, ...]:
    """Every row in each of its heads, in the order they are declared.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    machine = head_machine(edition)
    tracked = int(machine.edition.facts)
    found: list[Row] = []
    for row in machine.declaration.rows:
        guards = Guards.of(row.conditions, row.unless)
        # Actions set a fact, clear it or leave it, so what becomes of all facts and of none says it for any.
        kept, sets = (
            tuple(apply_effects(facts, row.actions, mode) & tracked for mode in Mode) for facts in (int(~Fact(0)), 0)
        )
        found += [
            Row(row.identifier(head), row.cite, row.call, head, row.dest or head, *guards, row.actions, row.refusal,
                (kept[0], kept[1]), (sets[0], sets[1]))
            for head in row.source
        ]  # fmt: skip
    return tuple(found)


def longest(rows: tuple[Row, ...]) -> int:
    """The most actions that a row has."""
    return max(len(row.actions) for row in rows)
