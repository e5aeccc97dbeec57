"""The copies are the fewest: no rival needs fewer, even if it knows all calls in advance and copies at any time.

These are the rules for a rival.  Before any call it may copy a fresh side to the other, at the price of one copy.  Only
the first side that is requested is filled with zeros, which costs nothing.  A requested side must be fresh; after a
write or an adoption it is the only fresh side.

The machine is followed together with all rivals at the same time.  For each set of sides that a rival can have fresh,
the state has the number of copies that the cheapest such rival has made more than the machine.  The number is limited
by a bound, which only helps the rivals.  There are finitely many such states, so sequences of every length are covered.
All copies have the whole size, so the fewest copies also copy the fewest bytes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Action, Call
from syncedmem.model.head import Verb

from ..engine.calls import ADOPTIONS, PUSHES, READS, SIDES, WRITES, Side
from .exploration import Breach, Versions, steps_from
from .invariants import COPIES, Plain
from .states import start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .states import State, System

__all__ = ["COPYING", "Demand", "demand", "explore_schedules"]

COPYING = frozenset(action for action in Action if action.does is Verb.COPY)
"""The actions that copy bytes."""

Sides = frozenset[Side]
Rivals = tuple[tuple[Sides, int], ...]

_BOUND = 3
_BOTH: Sides = frozenset(("cpu", "gpu"))


class Demand(NamedTuple):
    """The demand of a call: a side that must be fresh, and a side that is the only fresh one afterwards."""

    needed: Side | None
    left: Side | None


def demand(call: Call) -> Demand:
    """The demand of a call, by its meaning."""
    side = SIDES.get(call)
    if call in READS:
        return Demand(side, None)
    if call in WRITES:
        return Demand(side, side)
    if call in ADOPTIONS:
        return Demand(None, side)
    return Demand(PUSHES.get(call), None)


def explore_schedules(system: System) -> Breach | None:
    """Follow every sequence together with all rivals.

    Returns
    -------
    Breach or None
        The shortest sequence for which a rival needs fewer copies; None if there is none.
    """
    contents, logic = Versions(1), Plain()
    first = (start(contents, mode=True), ((Sides(), 0),))
    sequences: dict[tuple[State, Rivals], tuple[str, ...]] = {first: ()}
    waiting: deque[tuple[State, Rivals]] = deque([first])
    while waiting:
        found, rivals = here = waiting.popleft()
        for step in steps_from(system, found, contents, logic):
            if step.row.call.ends:
                continue
            sequence = (*sequences[here], step.row.call.value)
            copies = sum(action in COPYING for action in step.row.actions)
            after = _served(rivals, demand(step.row.call), copies)
            if any(ahead < 0 for _, ahead in after):
                return Breach(COPIES, sequence)
            if (step.after, after) not in sequences:
                sequences[step.after, after] = sequence
                waiting.append((step.after, after))
    return None


def _served(rivals: Rivals, asked: Demand, copies: int) -> Rivals:
    """All rivals after a call, for which the machine made `copies` copies."""
    after: dict[Sides, int] = {}
    for fresh, ahead in _having_copied(rivals):
        served = fresh
        if asked.needed and not fresh:
            served = frozenset((asked.needed,))  # filled with zeros
        elif asked.needed and asked.needed not in fresh:
            continue  # such a rival cannot serve the call
        if asked.left:
            served = frozenset((asked.left,))
        after[served] = min(ahead - copies, after.get(served, _BOUND))
    return tuple(sorted(after.items(), key=lambda it: sorted(it[0])))


def _having_copied(rivals: Rivals) -> Iterable[tuple[Sides, int]]:
    """The rivals that do not copy now, and those that do."""
    for fresh, ahead in rivals:
        yield fresh, ahead
        if len(fresh) == 1:
            yield _BOTH, ahead + 1
