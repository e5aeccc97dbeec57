"""The oracle of blobs against tables of what Caffe was observed to do to heads in arithmetic and in copies.

Arithmetic depends on where the numbers are, copies between blobs on Caffe's mode (blob.cpp:174-463).  The actions
are for memories that came to their head in the shortest way, so they have no side that is not needed.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from syncedmem.model import Mode, SyncedHead
from syncedmem.spec.blob.cells import Sample, cell_of, samples, way_to
from syncedmem.spec.blob.oracle import NORMS, SCALES, BlobStates, foresee
from syncedmem.spec.blob.steps import case_of, in_mode

U, C, G, S = SyncedHead.UNINITIALIZED, SyncedHead.HEAD_AT_CPU, SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED
Heads = tuple[SyncedHead, ...]

_UP, _DOWN = ("allocate gpu", "copy gpu"), ("allocate cpu", "copy cpu")
_NEW_CPU, _NEW_GPU = ("allocate cpu", "zero cpu"), ("allocate gpu", "zero gpu")


class Effect(NamedTuple):
    """The allocator calls, in order, and the heads afterwards."""

    actions: tuple[str, ...]
    heads: Heads


UPDATE: dict[Heads, Effect | None] = {
    (U, U): None,
    (U, C): None,
    (U, G): None,
    (U, S): None,
    (C, U): Effect(_NEW_CPU, (C, C)),
    (C, C): Effect((), (C, C)),
    (C, G): Effect(_DOWN, (C, S)),
    (C, S): Effect((), (C, S)),
    (G, U): Effect(_NEW_GPU, (G, G)),
    (G, C): Effect(_UP, (G, S)),
    (G, G): Effect((), (G, G)),
    (G, S): Effect((), (G, S)),
    (S, U): Effect(_NEW_GPU, (G, G)),
    (S, C): Effect(_UP, (G, S)),
    (S, G): Effect((), (G, G)),
    (S, S): Effect((), (G, S)),
}
"""``update`` by the heads of data and diff, in either mode; None if it is refused."""

NORM: dict[SyncedHead, Effect] = {head: Effect((), (head,)) for head in SyncedHead}
"""``asum_*`` and ``sumsq_*``: no head moves, and a memory that was never written is not touched."""

SCALE: dict[SyncedHead, Effect] = {
    U: Effect((), (U,)),
    C: Effect((), (C,)),
    G: Effect((), (G,)),
    S: Effect((), (G,)),
}
"""``scale_*``: if both sides are fresh, the numbers are multiplied on the device."""

COPY_TARGET: dict[Mode, dict[SyncedHead, Effect]] = {
    Mode.CPU: {U: Effect(_NEW_CPU, (C,)), C: Effect((), (C,)), G: Effect(_DOWN, (C,)), S: Effect((), (C,))},
    Mode.GPU: {U: Effect(_NEW_GPU, (G,)), C: Effect(_UP, (G,)), G: Effect((), (G,)), S: Effect((), (G,))},
}
"""``copy_from``, the part that is written: first brought to the mode's side, although it is then overwritten."""

COPY_SOURCE: dict[Mode, dict[SyncedHead, Effect]] = {
    Mode.CPU: {U: Effect(_NEW_CPU, (C,)), C: Effect((), (C,)), G: Effect(_DOWN, (S,)), S: Effect((), (S,))},
    Mode.GPU: {U: Effect(_NEW_GPU, (G,)), C: Effect(_UP, (S,)), G: Effect((), (G,)), S: Effect((), (S,))},
}
"""``copy_from``, the part that is read."""


def observed(sample: Sample, has_device: bool) -> list[Effect] | None:
    """Return the effect on each memory; None if the call is refused."""
    call, mode, heads = sample.cell
    if call == "update":
        effect = UPDATE[heads]
        return None if effect is None else [effect]
    if call in NORMS or call in SCALES:
        return [(NORM if call in NORMS else SCALE)[heads[0]]]
    side = mode if has_device else Mode.CPU
    return [COPY_TARGET[side][heads[0]], COPY_SOURCE[side][heads[1]]]


@pytest.mark.parametrize("has_device", [True, False])
def test_the_oracle_agrees_with_what_was_observed(has_device: bool) -> None:
    """In each cell both have the same heads and the same calls of allocators."""
    found = list(samples(has_device))
    assert (144 if has_device else 48) == len({sample.cell for sample in found})
    for sample in found:
        heads = zip(sample.parts, sample.cell.heads, strict=True)
        ways = (step for (n, part), head in heads for step in way_to(head, n, part))
        states = BlobStates(has_device)
        for step in case_of(((2,), (2,)), (in_mode(sample.cell.mode), *ways)):
            states = foresee(states, step).after
        assert sample.cell == cell_of(states, sample.step)
        foreseen, effects = foresee(states, sample.step), observed(sample, has_device)
        seen = [tuple(f"{call.operation} {call.side}" for call, _ in done) for done in foreseen.calls or () if done]

        assert bool(foreseen.refused) == (effects is None)
        assert sorted(seen) == sorted(effect.actions for effect in effects or () if effect.actions)
        if effects is not None:
            after = tuple(foreseen.after.head(n, part) for n, part in sample.parts)
            assert after == tuple(head for effect in effects for head in effect.heads)
