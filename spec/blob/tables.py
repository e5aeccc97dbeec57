"""Tables of what arithmetic and copies do to heads.  They come from observing Caffe; the oracle does not read them.

Arithmetic depends on where the numbers are, copies between blobs on Caffe's mode (blob.cpp:174-463).  The actions
are for memories that came to their head in the shortest way, so they have no side that is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Mode, SyncedHead

from .steps import NORMS, SCALES, BlobCall, Other

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .oracle import Part, World

__all__ = ["COPY_SOURCE", "COPY_TARGET", "NORM", "SCALE", "UPDATE", "WAYS", "Cell", "Row", "cell_of", "rows", "way"]

U, C, G, S = SyncedHead.UNINITIALIZED, SyncedHead.HEAD_AT_CPU, SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED
Heads = tuple[SyncedHead, ...]

_UP, _DOWN = ("allocate gpu", "copy gpu"), ("allocate cpu", "copy cpu")
_NEW_CPU, _NEW_GPU = ("allocate cpu", "zero cpu"), ("allocate gpu", "zero gpu")


class Effect(NamedTuple):
    """The observed effect of a call.

    Attributes
    ----------
    actions : tuple of str
        Allocator calls, in order.
    heads : tuple of SyncedHead
        The heads after the call.
    """

    actions: tuple[str, ...]
    heads: Heads


WAYS: dict[SyncedHead, tuple[str, ...]] = {U: (), C: ("mutable_cpu",), G: ("mutable_gpu",), S: ("mutable_cpu", "gpu")}
"""The accessors that bring a memory to a head in the shortest way."""


def way(n: int, part: Part, accessors: tuple[str, ...]) -> tuple[BlobCall, ...]:
    """The steps that bring a part of a blob to a head."""
    return tuple(BlobCall(n, f"{accessor}_{part}") for accessor in accessors)


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


class Cell(NamedTuple):
    """A cell of the tables; coverage counts cells.

    Attributes
    ----------
    call : str
        The method; followed by ``diff`` for a copy of diffs.
    mode : Mode
    heads : tuple of SyncedHead
        The heads before the call: of data and diff, of the one part, or of the target's and the source's part.
    """

    call: str
    mode: Mode
    heads: Heads


class Row(NamedTuple):
    """A cell, its call, and the observed effect.

    Attributes
    ----------
    cell : Cell
    parts : tuple of (int, Part)
        The blobs and parts whose heads the cell has.
    step : BlobCall
    effects : tuple of Effect
        For ``copy_from`` the effects on the target and on the source, in either order; empty if the call is refused.
    """

    cell: Cell
    parts: tuple[tuple[int, Part], ...]
    step: BlobCall
    effects: tuple[Effect, ...]


def cell_of(world: World, step: BlobCall) -> Cell | None:
    """The cell of a step; None for calls that are in no table."""
    n, call, arguments, options, *_ = step
    if call == "update":
        return Cell(call, world.mode, (world.head(n, "data"), world.head(n, "diff")))
    if call in NORMS or call in SCALES:
        part = NORMS[call][0] if call in NORMS else SCALES[call]
        return Cell(call, world.mode, (world.head(n, part),))
    if call == "copy_from":
        diff = dict(options).get("copy_diff", False)
        heads = tuple(world.head(blob, "diff" if diff else "data") for blob in (n, arguments[0].blob))
        return Cell("copy_from diff" if diff else call, world.mode, heads)
    return None


def rows(has_device: bool) -> Iterator[Row]:
    """Every cell, in both modes.  Without a device there are two heads, and copies are made on the host."""
    heads = tuple(SyncedHead) if has_device else (U, C)
    for mode in Mode:
        for data in heads:
            yield from (_update(mode, (data, diff)) for diff in heads)
            yield from (_alone(mode, call, NORMS[call][0], data, NORM) for call in NORMS)
            yield from (_alone(mode, call, SCALES[call], data, SCALE) for call in SCALES)
            side = mode if has_device else Mode.CPU
            for other in heads:
                parts: tuple[Part, ...] = ("data", "diff")
                yield from (_copy(mode, side, part, (data, other)) for part in parts)


def _update(mode: Mode, heads: Heads) -> Row:
    effect = UPDATE[heads]
    return Row(
        Cell("update", mode, heads),
        ((0, "data"), (0, "diff")),
        BlobCall(0, "update"),
        () if effect is None else (effect,),
    )


def _alone(mode: Mode, call: str, part: Part, head: SyncedHead, table: dict[SyncedHead, Effect]) -> Row:
    step = BlobCall(0, call, (-2.0,) if call in SCALES else ())
    return Row(Cell(call, mode, (head,)), ((0, part),), step, (table[head],))


def _copy(mode: Mode, side: Mode, part: Part, heads: Heads) -> Row:
    call, options = ("copy_from diff", (("copy_diff", True),)) if part == "diff" else ("copy_from", ())
    effects = (COPY_TARGET[side][heads[0]], COPY_SOURCE[side][heads[1]])
    return Row(Cell(call, mode, heads), ((0, part), (1, part)), BlobCall(0, "copy_from", (Other(1),), options), effects)
