"""What blobs adopt, checked one by one: what is no buffer for them, and what would be freed under them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from .driver import BlobTrial
from .elements import USUAL, itemsize
from .inspection import PARTS
from .steps import Other, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.calls import Side
    from ..engine.subject import Bench
    from .oracle import Part

__all__ = ["ADOPTION_RULES"]


def buffers(bench: Bench) -> Iterator[BlobTrial]:
    """What cannot be adopted changes nothing, whether the memory fits the blob or is larger (B49, B56)."""
    size = 6 * itemsize(USUAL)
    for shape in ((2, 3), (3, 4)):
        trial = BlobTrial.of(bench, shape, (2, 3))
        trial.perform(Step(0, "mutable_cpu_data"))
        trial.perform(Step(0, "mutable_cpu_diff"))
        trial.perform(Step(0, "reshape", ((2, 3),)))
        known = "B49-bad-buffer-refused"
        for part in ("data", "diff") if trial.safe else ("data",):
            trial.refused(known, f"blob.set_cpu_{part}(None)")
            if trial.safe:
                bad = (f"bytearray({size - 1})", f"array('d', bytes({2 * size}))", "object()", f"bytes({size})")
                trial.refused(known, *(f"blob.set_cpu_{part}({it})" for it in bad))
            if bench.device is not None:
                trial.refused(known, f"blob.set_gpu_{part}(None)")
                if trial.safe:
                    there = (f"bench.device.empty({size - 1})", f"bytearray({size})")
                    trial.refused(known, *(f"blob.set_gpu_{part}({it})" for it in there))
        yield trial.ended()


def own_memory(bench: Bench) -> Iterator[BlobTrial]:
    """Nothing that a blob goes on using is freed, whether its memory fits or is larger (B66)."""
    sides = bench.sides if bench.profile == "safe" else ()
    for side, shape in product(sides, ((2, 3), (2, 4))):
        trial, known, larger = BlobTrial.of(bench, shape, (2, 3)), "B66-own-memory", shape != (2, 3)
        for part in PARTS:
            trial.perform(Step(0, f"mutable_{side}_{part}"))
        if larger:
            trial.perform(Step(0, "reshape", ((2, 3),)))
            trial.refused(known, f"blob.set_{side}_data(blob.mutable_{side}_diff())")
        for part in PARTS:
            trial.refused(known, f"blob.set_{side}_{part}(blob.mutable_{side}_{part}())")
        _lend(trial, 1, side)
        trial.refused(known, "blob.share_data(blob2)")
        _lend(trial, 0, side, "diff")
        trial.refused(known, "blob.share_data(blob2)")
        yield trial.ended()
    for side in sides:
        trial = BlobTrial.of(bench, (2, 3))
        trial.perform(Step(0, f"mutable_{side}_data"))
        _lend(trial, 0, side, "diff")
        buffer = "bytearray(24)" if side == "cpu" else "bench.device.empty(24)"
        trial.refused("B66-own-memory", f"blob.set_{side}_data({buffer})")
        yield trial.ended()


def lenders(bench: Bench) -> Iterator[BlobTrial]:
    """Memory that is larger than the blob stays if the other part lies in it (B66)."""
    sides = bench.sides if bench.profile == "safe" else ()
    for side, lender in product(sides, PARTS):
        # Sharing gives the borrower memory of the blob's size, so that adopting does not renew the lender.
        trial, borrower = BlobTrial.of(bench, (2, 4), (2, 3)), PARTS[lender == "data"]
        trial.perform(Step(0, f"mutable_{side}_{lender}"))
        trial.perform(Step(0, "reshape", ((2, 3),)))
        trial.perform(Step(0, f"share_{borrower}", (Other(1),)))
        _lend(trial, 0, side, borrower, lender)
        trial.unchanged("B66-own-memory", "blob.shrink_to_fit()")
        yield trial.ended()


def extents(bench: Bench) -> Iterator[BlobTrial]:
    """The memory of the shape is no memory for numbers: another number of axes frees it (B66)."""
    if bench.profile == "safe" and bench.device is not None:
        trial = BlobTrial.of(bench, (1,), dtype="int32")
        trial.compare_extents()
        trial.refused("B66-own-memory", *(f"blob.set_gpu_{part}(blob.gpu_shape())" for part in PARTS))
        yield trial.ended()


def _lend(trial: BlobTrial, n: int, side: Side, part: Part = "data", lender: Part = "data") -> None:
    """Have a part of a blob adopt a part of the first, which stays where it is, so that is no offence."""
    if not trial.takes():
        return
    call = f"{trial.name(n)}.set_{side}_{part}(blob.mutable_{side}_{lender}())"
    raised = trial.script.call(call, trial.world.mode).raised
    trial.require(raised is None, "B66-own-memory", f"nothing would be freed, and yet it raised {raised!r}")
    trial.world = trial.world.adopt(n, part, side, trial.world.content(0, lender, side)).after


ADOPTION_RULES: tuple[Callable[[Bench], Iterator[BlobTrial]], ...] = (buffers, own_memory, lenders, extents)
"""The checks of adoption."""
