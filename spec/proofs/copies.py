"""The copies are the fewest: no rival needs fewer, even if it knows all calls in advance and copies at any time.

These are the rules for a rival.  Before any call it may copy a fresh side to another, at the price of one copy, but
only between sides that can copy directly.  The first side that is asked for is there for nothing.  A side that is asked
for must be fresh; after a write or an adoption it is the only fresh side.

The machine is followed together with all rivals at the same time.  For each set of sides that a rival can have fresh,
the state has the number of copies that the cheapest such rival has made more than the machine.  The number is limited
by a bound, which only helps the rivals.  There are finitely many such states, so sequences of every length are covered.
All copies have the whole size, so the fewest copies also copy the fewest bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from syncedmem.model.errors import InvalidArgumentError
from syncedmem.model.moves import Stepper

from ..memory.oracle import Copy, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model.declaration import Call, Machine
    from syncedmem.model.moves import State

    from ..memory.policy import Policy

__all__ = ["FEWEST", "find_fewer_copies"]

FEWEST = "No sequence of calls makes more copies than somebody who knows it in advance would need."

Sides = frozenset[str]
Rivals = tuple[tuple[Sides, int], ...]


def find_fewer_copies(machine: Machine, policy: Policy) -> tuple[str, ...] | None:
    """Follow every sequence together with all rivals.

    Returns
    -------
    tuple of str or None
        The shortest sequence for which a rival needs fewer copies; None if there is none.
    """
    copying = {action.name for action in machine.actions.values() if action.does == "copy"}
    table = Stepper(machine)
    calls = [(entry, entry.call) for entry in table.inputs(settings=False) if entry.call and entry.call.does]
    policy = replace(policy, says=())  # a rival has no heads, so it need not forget what they cannot say
    first = (table.start, ((policy.born_fresh, 0),))
    sequences: dict[tuple[State, Rivals], tuple[str, ...]] = {first: ()}
    waiting: deque[tuple[State, Rivals]] = deque([first])
    while waiting:
        state, rivals = here = waiting.popleft()
        for entry, call in calls:
            step = table.step(state, entry)
            if step is None or step.refusal:
                continue
            after = _served(rivals, call, sum(action in copying for action in step.actions), policy)
            if any(ahead < 0 for _, ahead in after):
                return (*sequences[here], str(entry))
            if (step.after, after) not in sequences:
                sequences[step.after, after] = (*sequences[here], str(entry))
                waiting.append((step.after, after))
    return None


def _served(rivals: Rivals, call: Call, copies: int, policy: Policy) -> Rivals:
    """All rivals after a call, for which the machine made `copies` copies."""
    after: dict[Sides, int] = {}
    for fresh, ahead in _having_copied(rivals, policy):
        served = _having_done(fresh, call, policy)
        if served is not None:
            after[served] = min(ahead - copies, after.get(served, len(policy.sides) + 1))
    return tuple(sorted(after.items(), key=lambda rival: sorted(rival[0])))


def _having_done(fresh: Sides, call: Call, policy: Policy) -> Sides | None:
    """What a rival has fresh after a call, by the oracle; None if the call would copy, or needs a home and has none."""
    copies = {side: Copy("memory", side in fresh) for side in policy.sides}
    try:
        expected = Oracle(policy, 1, None, copies).expect(call, {}, b"")
    except InvalidArgumentError:
        return None
    return None if any(step.does == "copy" for step in expected.steps) else expected.after.fresh


def _having_copied(rivals: Rivals, policy: Policy) -> Iterator[tuple[Sides, int]]:
    """The rivals after they have made any copies, or none."""
    waiting, known = list(rivals), set[tuple[Sides, int]]()
    while waiting:
        fresh, ahead = rival = waiting.pop()
        if rival in known:
            continue
        known.add(rival)
        yield rival
        reached = (side for side in set(policy.sides) - fresh if any(policy.route(at, side) == (side,) for at in fresh))
        waiting += [(fresh | {side}, ahead + 1) for side in reached]
