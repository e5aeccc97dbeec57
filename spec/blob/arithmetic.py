"""Numbers for the checks of arithmetic, besides the whole numbers that no arithmetic rounds.

Whole numbers do not show a rounded factor, a sum with too few bits, or a loop that ends too early.  So there
are fractions, infinities and NaN here, and more elements than a block or a 16-bit counter has.
"""

from __future__ import annotations

from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING

from .elements import INTEGERS, USUAL, itemsize, types_for
from .oracle import NORMS, SCALES
from .steps import PARTS, BlobStep, case_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .steps import BlobCase

__all__ = ["ARITHMETIC_RULES", "many"]

_SHAPE = (2, 3)
_POWERS = (1.0, -2.0, 4.0, 0.5, 0.0, -8.0)
_FRACTIONS = (0.1, -1 / 3, 2 / 3, 1e-3, -7.7, 3.0)
_STEPS = (1 / 7, 0.1, -1e-3, 1 / 3, 0.3, 5.1)
_LIMITS = (inf, 1.0, -inf, nan, inf, 0.0)
_OTHERS = (1.0, inf, 2.0, 3.0, inf, nan)
_FACTORS = (0.1, 1 / 3, -0.7, nan, inf, 1.0)
_MANY = (1003, (1 << 16) + 3)  # odd: just above a thousand, and above 65,537


def _real(subject: Subject) -> tuple[str, ...]:
    """The types that have arithmetic."""
    return tuple(dtype for dtype in types_for(subject.profile) if dtype not in INTEGERS)


def factors(subject: Subject) -> Iterator[BlobCase]:
    """A factor is used unrounded, and the factor one changes the head like any other (B35, B36)."""
    for dtype, side in product(_real(subject), subject.sides):
        steps: list[BlobStep] = []
        # Some types have fewer bits than a factor.  With powers of two it makes no difference if it is rounded first.
        values = _FRACTIONS if dtype == "float64" else _POWERS
        for (call, part), factor in product(SCALES.items(), _FACTORS):
            steps += (BlobStep(0, f"mutable_{side}_{part}", values=values), BlobStep(0, call, (factor,)))
        yield case_of((_SHAPE,), tuple(steps), dtype)
    for call, part in SCALES.items():
        up = () if subject.device is None else (BlobStep(0, f"gpu_{part}"),)
        yield case_of((_SHAPE,), (BlobStep(0, f"mutable_cpu_{part}"), *up, BlobStep(0, call, (1.0,))))


def sums(subject: Subject) -> Iterator[BlobCase]:
    """Norms and elements are as exact as their type, for all numbers (B18, B31, B32)."""
    for dtype, side in product(_real(subject), subject.sides):
        steps: list[BlobStep] = []
        for values in (_FRACTIONS, (inf, *_POWERS[1:]), _LIMITS):
            for call, (part, _) in NORMS.items():
                steps += (BlobStep(0, f"mutable_{side}_{part}", values=values), BlobStep(0, call))
            steps += (BlobStep(0, f"{part}_at", (at,)) for part, at in product(PARTS, ((0, 0), (0, 1), (1, 1))))
        yield case_of((_SHAPE,), tuple(steps), dtype)


def differences(subject: Subject) -> Iterator[BlobCase]:
    """An update rounds once, for all numbers (B28)."""
    for dtype, side in product(_real(subject), subject.sides):
        steps: list[BlobStep] = []
        for values, subtracted in ((_FRACTIONS, _STEPS), (_LIMITS, _OTHERS)):
            steps += (
                BlobStep(0, f"mutable_{side}_data", values=values),
                BlobStep(0, f"mutable_{side}_diff", values=subtracted),
                BlobStep(0, "update"),
            )
        yield case_of((_SHAPE,), tuple(steps), dtype)


def many(subject: Subject) -> Iterator[BlobCase]:
    """Arithmetic reaches all elements, for any number of elements (B28, B31, B32, B35)."""
    # A program may add up in the precision of its elements, so the error of its norms grows with their number.
    few = _MANY if subject.program is None else _MANY[:1]
    counts = [length for length in few if length * itemsize(USUAL) <= subject.largest]
    for count, side in product(counts, subject.sides):
        written = (BlobStep(0, f"mutable_{side}_{part}") for part in ("data", "diff"))
        scaled = (BlobStep(0, call, (0.5,)) for call in SCALES)
        yield case_of(((count,),), (*written, BlobStep(0, "update"), *scaled, *(BlobStep(0, norm) for norm in NORMS)))


ARITHMETIC_RULES: tuple[Callable[[Subject], Iterator[BlobCase]], ...] = (factors, sums, differences)
"""The rules about the numbers in arithmetic; `many`, which takes longest, is separate."""
