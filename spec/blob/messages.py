"""Rules of messages: what a blob reads from a BlobProto, and what it writes into one (blob.cpp:410-554).

The messages are made from a message that the blob under test writes, so no package is needed here.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from .steps import FORESEEN, PARTS, REFUSED, BlobStep, Message, Other, case_of, refused, valued

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .steps import BlobCase, Shape

__all__ = ["MESSAGES"]


_SIX = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def _shapes(_: Subject) -> Iterator[BlobStep]:
    """The old fields are the shape if any is set; those that are not set count as zero (B50)."""
    old = (("num", 1), ("channels", 2), ("height", 1), ("width", 3))
    cases: tuple[tuple[tuple[Any, ...], Shape], ...] = (
        ((("shape.dim", (2, 3)),), (2, 3)),
        (old, (1, 2, 1, 3)),
        ((*old, ("shape.dim", (6,))), (1, 2, 1, 3)),
        ((("num", 2), ("width", 3)), (2, 0, 0, 3)),
        ((("shape.dim", (0, 4)),), (0, 4)),
        ((), ()),
    )
    for fields, shape in cases:
        yield _load("B50-message-shape", *fields, ("data", _SIX[: prod(shape)]))


def _numbers(_: Subject) -> Iterator[BlobStep]:
    """Doubles are preferred to floats; a diff is read only if there is one (B51)."""
    floats, doubles = (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)
    data, double = ("data", floats), ("double_data", doubles)
    diff, double_diff = ("diff", floats), ("double_diff", doubles)
    for fields in ((data, diff), (data,), (data, double), (double, diff, double_diff)):
        yield _load("B51-message-numbers", ("shape.dim", (3,)), *fields)


def _counts(_: Subject) -> Iterator[BlobStep]:
    """The message has as many numbers as the shape, or nothing is read (B52, B56)."""
    known, enough, few = "B52-message-count", ("data", _SIX[:3]), _SIX[:2]
    bad = (
        (("data", few),),
        (),
        (enough, ("diff", _SIX[:1])),
        (enough, ("double_data", few)),
        (enough, ("diff", (1.0,) * 4)),
    )
    for fields in bad:
        yield refused(known, "from_proto", Message((("shape.dim", (3,)), *fields)))
    yield refused(known, "from_proto", Message())


def _same_shape(_: Subject) -> Iterator[BlobStep]:
    """Without reshaping, only a message with the blob's own shape is read (B53, B55)."""
    known, only_same = "B53-message-same-shape", (("reshape", False),)
    yield BlobStep(0, "reshape", ((3, 2),))
    cases: tuple[tuple[tuple[Any, ...], bool], ...] = (
        ((("shape.dim", (3, 2)),), True),
        ((("num", 1), ("channels", 1), ("height", 3), ("width", 2)), True),
        ((("num", 3), ("channels", 2), ("height", 1), ("width", 1)), False),
        ((("shape.dim", (2, 3)),), False),
        ((("shape.dim", (1, 1, 3, 2)),), False),
        ((("shape.dim", (6,)),), False),
        ((), False),
    )
    for fields, same in cases:
        message = Message((*fields, ("data", _SIX)))
        yield valued("B55-shape-equals", same, "shape_equals", message)
        due = FORESEEN if same else REFUSED
        yield BlobStep(0, "from_proto", (message,), only_same, known, due)


def _written(_: Subject) -> Iterator[BlobStep]:
    """The numbers that are written are read back (B54)."""
    values = tuple(map(float, range(1, prod(_SHAPE) + 1)))
    held = {"data": values, "diff": values[::-1]}
    for part, numbers in held.items():
        yield BlobStep(0, f"mutable_cpu_{part}", values=numbers)
    for flags, diff in (((), ()), ((True,), held["diff"])):
        yield valued("B54-message-written", (_SHAPE, values, diff), "to_proto", *flags)


def _failures(subject: Subject) -> Iterator[BlobStep]:
    """After a failure neither shape nor numbers were read, whether the blob had to grow or not (B57)."""
    for k, grows in product(range(1, _MOST_CALLS + 1), (False, True)) if subject.profile == "safe" else ():
        for part in PARTS:
            yield BlobStep(0, f"mutable_{subject.sides[-1]}_{part}")
        shape = (2 + k * grows, 4)
        values = tuple(map(float, range(prod(shape))))
        yield _load("", ("shape.dim", shape), ("data", values), ("diff", values[::-1]))._replace(fail=k)


_MOST_CALLS = 4
"""Two allocations, each then filled with zeros."""

_SHAPE: Shape = (2, 4)

_CHECKS = (_numbers, _shapes, _counts, _same_shape, _written, _failures)


def _rule(subject: Subject) -> Iterator[BlobCase]:
    """Each check, on blobs of both types of numbers in messages, with numbers on the device, and shared."""
    side = subject.sides[-1]
    for check, dtype in product(_CHECKS, ("float32", "float64")):
        before = (
            BlobStep(0, f"mutable_{side}_data"),
            BlobStep(0, f"mutable_{side}_diff"),
            BlobStep(1, "share_diff", (Other(0),)),
        )
        yield case_of((_SHAPE, (4, 2)), (*before, *check(subject)), dtype)


def _load(known: str, *fields: tuple[str, Any]) -> BlobStep:
    return BlobStep(0, "from_proto", (Message(fields),), about=known)


MESSAGES: tuple[Callable[[Subject], Iterator[BlobCase]], ...] = (_rule,)
"""The rules of blobs that have messages."""
