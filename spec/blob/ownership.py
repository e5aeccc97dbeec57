"""Rules of adoption by blobs: objects that are not suitable buffers, and memory that a blob still uses."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from .elements import USUAL, itemsize
from .oracle import PARTS, ExportingBlob, Other
from .scenarios import Scenario
from .steps import UNCHANGED, BlobCall, Check, Extents, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .oracle import Part
    from .steps import BlobStep

__all__ = ["ADOPTION_RULES"]


def buffers(subject: Subject) -> Iterator[Scenario]:
    """A bad buffer is refused and changes nothing, whether the memory fits the blob or is larger (B49, B56, B68)."""
    size, safe, known = 6 * itemsize(USUAL), subject.profile == "safe", "B49-bad-buffer-refused"
    for shape in ((2, 3), (3, 4)):
        steps: list[BlobStep] = [*_written("cpu"), BlobCall(0, "reshape", ((2, 3),))]
        for part in PARTS if safe else ("data",):
            steps += refused("B68-null-refused", f"blob.set_cpu_{part}(None)")
            if safe:
                bad = (f"bytearray({size - 1})", f"array('d', bytes({2 * size}))", "object()", f"bytes({size})")
                steps += refused(known, *(f"blob.set_cpu_{part}({it})" for it in bad))
            if subject.device is not None:
                steps += refused("B68-null-refused", f"blob.set_gpu_{part}(None)")
                if safe:
                    there = (f"subject.device.empty({size - 1})", f"bytearray({size})")
                    steps += refused(known, *(f"blob.set_gpu_{part}({it})" for it in there))
        yield Scenario((shape, (2, 3)), tuple(steps))


def renewals(subject: Subject) -> Iterator[Scenario]:
    """Adopting for the data of a blob whose memory is larger renews both memories (B24)."""
    for side in subject.sides:
        adopt = BlobCall(0, f"set_{side}_data", (True,))
        smaller = BlobCall(0, "reshape", ((2, 3),))
        yield Scenario(((3, 4),), (*_written(side), smaller, adopt, BlobCall(0, "cpu_diff")))
        if subject.program is None:  # also if the buffer is a part of the caller's larger one, which is not freed
            yield Scenario(((3, 4),), (adopt, smaller, adopt._replace(arguments=(ExportingBlob(0),))))


def own_memory(subject: Subject) -> Iterator[Scenario]:
    """Memory that a blob still uses is not freed, whether the memory fits the blob or is larger (B66)."""
    sides, known = _judged_sides(subject), "B66-own-memory"
    for side, larger in product(sides, (False, True)):
        steps: list[BlobStep] = [*_written(side)]
        if larger:
            steps.append(BlobCall(0, "reshape", ((2, 3),)))
            steps += refused(known, f"blob.set_{side}_data(blob.mutable_{side}_diff())")
        for part in PARTS:
            steps += refused(known, f"blob.set_{side}_{part}(blob.mutable_{side}_{part}())")
        for adopt in (_adopt(1, side), _adopt(0, side, "diff")):
            steps += (adopt, *refused(known, "blob.share_data(blob2)"))
        yield Scenario(((2, 4) if larger else (2, 3), (2, 3)), tuple(steps))
    for side in sides:
        buffer = "bytearray(24)" if side == "cpu" else "subject.device.empty(24)"
        adopted = (BlobCall(0, f"mutable_{side}_data"), _adopt(0, side, "diff"))
        yield Scenario(((2, 3),), (*adopted, *refused(known, f"blob.set_{side}_data({buffer})")))


def kept_memory(subject: Subject) -> Iterator[Scenario]:
    """What both parts use is not freed if it is the caller's, or on the other side; so adopting is allowed (B23)."""
    for side, other in product(_judged_sides(subject), repeat=2):
        start = BlobCall(0, f"set_{side}_data", (True,)) if side == other else BlobCall(0, f"mutable_{side}_data")
        yield Scenario(((2, 3),), (start, _adopt(0, side, "diff"), BlobCall(0, f"set_{other}_data", (True,))))


def exporters(subject: Subject) -> Iterator[Scenario]:
    """Memory that is larger than the blob stays if the other part has adopted a part of it (B66)."""
    sides = _judged_sides(subject)
    for side, exporter in product(sides, PARTS):
        # After sharing, the other part has memory of the blob's size, so its adoption does not renew the exporter.
        other = PARTS[exporter == "data"]
        steps = (
            BlobCall(0, f"mutable_{side}_{exporter}"),
            BlobCall(0, "reshape", ((2, 3),)),
            BlobCall(0, f"share_{other}", (Other(1),)),
            _adopt(0, side, other, exporter),
            Check("B66-own-memory", "blob.shrink_to_fit()", UNCHANGED),
        )
        yield Scenario(((2, 4), (2, 3)), steps)


def extents(subject: Subject) -> Iterator[Scenario]:
    """The memory of the shape cannot be adopted for numbers: another number of axes frees it (B66)."""
    if "gpu" in _judged_sides(subject):
        own = refused("B66-own-memory", *(f"blob.set_gpu_{part}(blob.gpu_shape())" for part in PARTS))
        yield Scenario(((1,),), (Extents(), *own), dtype="int32")


def _judged_sides(subject: Subject) -> tuple[str, ...]:
    """The sides where B66 is judged; a program gets no views as arguments."""
    return subject.sides if subject.profile == "safe" and subject.program is None else ()


def _adopt(n: int, side: str, part: Part = "data", exporter: Part = "data") -> BlobCall:
    """A part of a blob adopts memory of a part of the first blob."""
    return BlobCall(n, f"set_{side}_{part}", (ExportingBlob(0, exporter),), about="B66-own-memory")


def _written(side: str) -> tuple[BlobCall, ...]:
    return tuple(BlobCall(0, f"mutable_{side}_{part}") for part in PARTS)


ADOPTION_RULES: tuple[Callable[[Subject], Iterator[Scenario]], ...] = (
    buffers,
    renewals,
    own_memory,
    kept_memory,
    exporters,
    extents,
)
"""The rules of adoption."""
