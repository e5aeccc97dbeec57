"""The cells of blobs: what arithmetic and copies do depends on heads, and on Caffe's mode (blob.cpp:174-463).

A run counts the cells that it takes, by the states of the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from syncedmem.model import Mode, SyncedHead

from .oracle import NORMS, SCALES
from .steps import PARTS, BlobStep, Other

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.subject import Subject
    from .oracle import BlobStates
    from .steps import Part
    from .trial import BlobTrial

__all__ = ["BlobCell", "BlobCoverage", "Sample", "cell_of", "samples", "way", "way_to", "ways_of"]

U, C, G, S = SyncedHead.UNINITIALIZED, SyncedHead.HEAD_AT_CPU, SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED
Heads = tuple[SyncedHead, ...]

_WAYS: dict[SyncedHead, tuple[str, ...]] = {U: (), C: ("mutable_cpu",), G: ("mutable_gpu",), S: ("mutable_cpu", "gpu")}
"""The accessors that bring a memory to a head in the shortest way."""


def ways_of(subject: Subject) -> tuple[tuple[str, ...], ...]:
    """The ways to the heads that a subject has."""
    return tuple(_WAYS[head] for head in _heads(subject.device is not None))


def _heads(has_device: bool) -> Heads:
    return tuple(SyncedHead) if has_device else (U, C)


def way_to(head: SyncedHead, n: int, part: Part) -> tuple[BlobStep, ...]:
    """The steps that bring a part of a blob to a head."""
    return way(n, part, _WAYS[head])


def way(n: int, part: Part, accessors: tuple[str, ...]) -> tuple[BlobStep, ...]:
    """Calls of accessors of a part of a blob."""
    return tuple(BlobStep(n, f"{accessor}_{part}") for accessor in accessors)


class BlobCell(NamedTuple):
    """A call, at heads, in a mode.

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


class Sample(NamedTuple):
    """A cell, and a call that takes it.

    Attributes
    ----------
    cell : BlobCell
    parts : tuple of (int, Part)
        The blobs and parts whose heads the cell has.
    step : BlobStep
    """

    cell: BlobCell
    parts: tuple[tuple[int, Part], ...]
    step: BlobStep


def cell_of(states: BlobStates, step: BlobStep) -> BlobCell | None:
    """The cell of a step; None for calls that have none."""
    n, call, arguments, options, *_ = step
    if call == "update":
        return BlobCell(call, states.mode, (states.head(n, "data"), states.head(n, "diff")))
    if call in NORMS or call in SCALES:
        part = NORMS[call][0] if call in NORMS else SCALES[call]
        return BlobCell(call, states.mode, (states.head(n, part),))
    if call == "copy_from":
        diff = dict(options).get("copy_diff", False)
        heads = tuple(states.head(blob, "diff" if diff else "data") for blob in (n, arguments[0].blob))
        return BlobCell("copy_from diff" if diff else call, states.mode, heads)
    return None


def samples(has_device: bool) -> Iterator[Sample]:
    """Every cell, in both modes.  Without a device there are two heads."""
    heads = _heads(has_device)
    for mode in Mode:
        for data in heads:
            yield from (_update(mode, (data, diff)) for diff in heads)
            yield from (_alone(mode, call, NORMS[call][0], data) for call in NORMS)
            yield from (_alone(mode, call, SCALES[call], data, -2.0) for call in SCALES)
            for other in heads:
                yield from (_copy(mode, part, (data, other)) for part in PARTS)


def _update(mode: Mode, heads: Heads) -> Sample:
    return Sample(BlobCell("update", mode, heads), ((0, "data"), (0, "diff")), BlobStep(0, "update"))


def _alone(mode: Mode, call: str, part: Part, head: SyncedHead, *arguments: float) -> Sample:
    return Sample(BlobCell(call, mode, (head,)), ((0, part),), BlobStep(0, call, arguments))


def _copy(mode: Mode, part: Part, heads: Heads) -> Sample:
    call, options = ("copy_from diff", (("copy_diff", True),)) if part == "diff" else ("copy_from", ())
    return Sample(BlobCell(call, mode, heads), ((0, part), (1, part)), BlobStep(0, "copy_from", (Other(1),), options))


@cache
def _cells(has_device: bool) -> frozenset[BlobCell]:
    return frozenset(sample.cell for sample in samples(has_device))


@dataclass
class BlobCoverage:
    """The cells that were taken.

    Attributes
    ----------
    has_device : bool
    taken : set of BlobCell
    """

    unit: ClassVar[str] = "cells"

    has_device: bool
    taken: set[BlobCell] = field(default_factory=set[BlobCell])

    def add(self, driver: BlobTrial) -> None:
        """Add the cells that a trial took."""
        self.taken.update(driver.visited)

    @property
    def count(self) -> int:
        """The number of cells that were taken."""
        return len(self.taken & _cells(self.has_device))

    def unreached(self) -> list[str]:
        """The cells that were not taken, each in words."""
        return sorted(str(cell) for cell in _cells(self.has_device) - self.taken)

    @property
    def missing(self) -> int:
        """The number of cells that were not taken."""
        return len(_cells(self.has_device) - self.taken)
