"""The editions compared: every walk of one is a walk of another.

One edition refines another if, whatever it does, the other does too: the same actions in the same order, the same
head, and the same flags as far as it has them.  Calls that it refuses for want of a device are left out, because
nothing happens there; a refusal for any other reason the other must give too.

Both machines are followed at once, from the beginning on, through every pair of states that they can be in together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS, Call, Refusal, inputs, space
from syncedmem.model.editions import dispatch

if TYPE_CHECKING:
    from syncedmem.model import State
    from syncedmem.model.exploration import Space

__all__ = ["REFINEMENTS", "refinement_breaches"]

REFINEMENTS = (("early", "caffe"), ("cpu_only", "caffe"), ("cpu_only", "early"))
"""Pairs of editions; every walk of the first is a walk of the second."""


def refinement_breaches(finer: str, coarser: str, follower: Space | None = None) -> list[str]:
    """What one edition does and another does not.

    Parameters
    ----------
    finer, coarser : str
        Names of editions.
    follower : Space, optional
        The space to follow in, in place of the second edition's own.

    Returns
    -------
    list of str
        For each pair of states and each input in which they differ, a sentence; empty for a refinement.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    leader, follower = space(finer), follower or space(coarser)
    problems: list[str] = []
    waiting = [(leader.start, follower.start)]
    seen: set[tuple[State, State]] = set()
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        one, other = pair
        problems += _unlike(finer, coarser, one, other)
        for entry in inputs(finer):
            step = leader.steps[one][entry]
            if step.refusal is Refusal.NO_GPU:
                continue
            match = follower.steps[other].get(entry)
            if match is None or (match.actions, match.refusal) != (step.actions, step.refusal):
                problems.append(f"{entry} in {one.configuration}: {finer} {step}, {coarser} {match}")
            else:
                waiting.append((step.after, match.after))
    return problems


def _unlike(finer: str, coarser: str, one: State, other: State) -> list[str]:
    """How two states differ: in head, mode or facts, as far as both editions have these, and in what is freed."""
    common = EDITIONS[finer].facts & EDITIONS[coarser].facts
    seen = [
        (state.head, state.mode, state.facts & common, _freed(name, state))
        for name, state in ((finer, one), (coarser, other))
    ]
    return [] if seen[0] == seen[1] else [f"{finer} {seen[0]}, {coarser} {seen[1]}"]


def _freed(edition: str, state: State) -> object:
    """What release does in a state."""
    cell = dispatch(edition).cell(Call.RELEASE, state.packed)
    return cell and cell.actions
