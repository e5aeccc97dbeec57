"""Comparison of the editions: every sequence of calls of one is also one of another.

One edition refines another if the other does the same in every step: the same actions in the same order, the same
head, and the same flags as far as it has them.  Calls that it refuses because it has no device are left out, because
they do nothing.  If it refuses a call for any other reason, the other must refuse it too.

Both machines are followed at the same time, through every pair of states that they can reach together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS, Call, Refusal, inputs, space
from syncedmem.model.compiled import dispatch

if TYPE_CHECKING:
    from syncedmem.model import State
    from syncedmem.model.exploration import Space

__all__ = ["REFINEMENTS", "refinement_breaches"]

REFINEMENTS = (("early", "caffe"), ("cpu_only", "caffe"), ("cpu_only", "early"))
"""Pairs of editions; every sequence of calls of the first is one of the second."""


def refinement_breaches(finer: str, coarser: str, follower: Space | None = None) -> list[str]:
    """The differences that keep one edition from being a refinement of another.

    Parameters
    ----------
    finer, coarser : str
        Names of editions.
    follower : Space, optional
        The space that is followed, instead of the second edition's own.

    Returns
    -------
    list of str
        A sentence for each pair of states and each input in which they differ; empty for a refinement.

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
    """The difference of two states: in head, mode or common facts, or in what a release frees."""
    common = EDITIONS[finer].facts & EDITIONS[coarser].facts
    seen = [
        (state.head, state.mode, state.facts & common, _freed(name, state))
        for name, state in ((finer, one), (coarser, other))
    ]
    return [] if seen[0] == seen[1] else [f"{finer} {seen[0]}, {coarser} {seen[1]}"]


def _freed(edition: str, state: State) -> object:
    """The actions of a release in a state."""
    cell = dispatch(edition).cell(Call.RELEASE, state.packed)
    return cell and cell.actions
