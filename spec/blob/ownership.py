"""Rules of adoption by blobs: objects that are not suitable buffers, and memory that a blob still uses."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from .elements import USUAL, itemsize
from .steps import GIVEN, PARTS, UNCHANGED, BlobStep, Exported, Lent, Other, case_of, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .steps import BlobCase, Part

__all__ = ["ADOPTION_RULES"]


def buffers(subject: Subject) -> Iterator[BlobCase]:
    """A bad buffer is refused and changes nothing, whether the memory fits the blob or is larger (B49, B56, B68)."""
    size, safe, known = 6 * itemsize(USUAL), subject.profile == "safe", "B49-bad-buffer-refused"
    for shape in ((2, 3), (3, 4)):
        steps: list[BlobStep] = [*_written("cpu"), BlobStep(0, "reshape", ((2, 3),))]
        for part in PARTS if safe else ("data",):
            here = (Lent("bytearray", size - 1), Lent("doubles", 2 * size), Lent("object"), Lent("read-only", size))
            there = (Lent("device", size - 1), Lent("bytearray", size))
            for side, bad in zip(subject.sides, (here, there), strict=False):
                steps.append(refused("B68-null-refused", f"set_{side}_{part}", None))
                steps += (refused(known, f"set_{side}_{part}", buffer) for buffer in bad if safe)
        yield case_of((shape, (2, 3)), tuple(steps))


def renewals(subject: Subject) -> Iterator[BlobCase]:
    """Adopting for the data of a blob whose memory is larger renews both memories (B24)."""
    for side in subject.sides:
        adopt = BlobStep(0, f"set_{side}_data", (GIVEN,))
        smaller = BlobStep(0, "reshape", ((2, 3),))
        yield case_of(((3, 4),), (*_written(side), smaller, adopt, BlobStep(0, "cpu_diff")))
        if subject.program is None:  # also if the buffer is a part of the caller's larger one, which is not freed
            yield case_of(((3, 4),), (adopt, smaller, adopt._replace(arguments=(Exported(0),))))


def own_memory(subject: Subject) -> Iterator[BlobCase]:
    """Memory that a blob still uses is not freed, whether the memory fits the blob or is larger (B66)."""
    sides, known = _judged_sides(subject), "B66-own-memory"
    for side, larger in product(sides, (False, True)):
        steps: list[BlobStep] = [*_written(side)]
        if larger:
            steps.append(BlobStep(0, "reshape", ((2, 3),)))
            steps.append(refused(known, f"set_{side}_data", Exported(0, "diff")))
        steps += (refused(known, f"set_{side}_{part}", Exported(0, part)) for part in PARTS)
        for adopt in (_adopt(1, side), _adopt(0, side, "diff")):
            steps += (adopt, refused(known, "share_data", Other(1)))
        yield case_of(((2, 4) if larger else (2, 3), (2, 3)), tuple(steps))
    for side in sides:
        adopted = (BlobStep(0, f"mutable_{side}_data"), _adopt(0, side, "diff"))
        buffer = Lent("bytearray" if side == "cpu" else "device", 24)
        yield case_of(((2, 3),), (*adopted, refused(known, f"set_{side}_data", buffer)))


def kept_memory(subject: Subject) -> Iterator[BlobCase]:
    """What both parts use is not freed if it is the caller's, or on the other side; so adopting is allowed (B23)."""
    for side, other in product(_judged_sides(subject), repeat=2):
        start = BlobStep(0, f"set_{side}_data", (GIVEN,)) if side == other else BlobStep(0, f"mutable_{side}_data")
        yield case_of(((2, 3),), (start, _adopt(0, side, "diff"), BlobStep(0, f"set_{other}_data", (GIVEN,))))


def exporters(subject: Subject) -> Iterator[BlobCase]:
    """Memory that is larger than the blob stays if the other part has adopted a part of it (B66)."""
    sides = _judged_sides(subject)
    for side, exporter in product(sides, PARTS):
        # After sharing, the other part has memory of the blob's size, so its adoption does not renew the exporter.
        other = PARTS[exporter == "data"]
        steps = (
            BlobStep(0, f"mutable_{side}_{exporter}"),
            BlobStep(0, "reshape", ((2, 3),)),
            BlobStep(0, f"share_{other}", (Other(1),)),
            _adopt(0, side, other, exporter),
            BlobStep(0, "shrink_to_fit", about="B66-own-memory", expected=UNCHANGED),
        )
        yield case_of(((2, 4), (2, 3)), steps)


def extents(subject: Subject) -> Iterator[BlobCase]:
    """The memory of the shape cannot be adopted for numbers: another number of axes frees it (B66)."""
    if "gpu" in _judged_sides(subject):
        own = (refused("B66-own-memory", f"set_gpu_{part}", Exported(0, "shape")) for part in PARTS)
        yield case_of(((1,),), (BlobStep(0, "gpu_shape"), *own), dtype="int32")


def _judged_sides(subject: Subject) -> tuple[str, ...]:
    """The sides where B66 is judged; a program gets no views as arguments."""
    return subject.sides if subject.profile == "safe" and subject.program is None else ()


def _adopt(n: int, side: str, part: Part = "data", exporter: Part = "data") -> BlobStep:
    """A part of a blob adopts memory of a part of the first blob."""
    return BlobStep(n, f"set_{side}_{part}", (Exported(0, exporter),), about="B66-own-memory")


def _written(side: str) -> tuple[BlobStep, ...]:
    return tuple(BlobStep(0, f"mutable_{side}_{part}") for part in PARTS)


ADOPTION_RULES: tuple[Callable[[Subject], Iterator[BlobCase]], ...] = (
    buffers,
    renewals,
    own_memory,
    kept_memory,
    exporters,
    extents,
)
"""The rules of adoption."""
