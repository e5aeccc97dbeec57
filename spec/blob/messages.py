"""Rules of messages: what a blob reads from a BlobProto, and what it writes into one (blob.cpp:410-554).

The messages are made from a message that the blob under test writes, so no package is needed here.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from .oracle import Other
from .scenarios import Scenario
from .steps import BlobCall, Check, FailingStep, Prepare, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .oracle import Part, Shape
    from .steps import BlobStep

__all__ = ["MESSAGES"]


def _shapes(_: Subject, dtype: str) -> Iterator[BlobStep]:
    """The old fields are the shape if any is set; those that are not set count as zero (B50)."""
    known, six = "B50-message-shape", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    cases: tuple[tuple[tuple[str, ...], Shape], ...] = (
        (("shape.dim.extend([2, 3])",), (2, 3)),
        (("num = 1", "channels = 2", "height = 1", "width = 3"), (1, 2, 1, 3)),
        (("num = 1", "channels = 2", "height = 1", "width = 3", "shape.dim.extend([6])"), (1, 2, 1, 3)),
        (("num = 2", "width = 3"), (2, 0, 0, 3)),
        (("shape.dim.extend([0, 4])",), (0, 4)),
        ((), ()),
    )
    for fields, shape in cases:
        values = six[: prod(shape)]
        yield from _message(dtype, *fields, f"data.extend({list(values)})")
        yield _load(known, shape, {"data": values})


def _numbers(_: Subject, dtype: str) -> Iterator[BlobStep]:
    """Doubles are preferred to floats; a diff is read only if there is one (B51)."""
    known, floats, doubles = "B51-message-numbers", (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)
    data, double = f"data.extend({list(floats)})", f"double_data.extend({list(doubles)})"
    diff, double_diff = f"diff.extend({list(floats)})", f"double_diff.extend({list(doubles)})"
    cases: tuple[tuple[tuple[str, ...], dict[Part, tuple[float, ...]]], ...] = (
        ((data, diff), {"data": floats, "diff": floats}),
        ((data,), {"data": floats}),
        ((data, double), {"data": doubles}),
        ((double, diff, double_diff), {"data": doubles, "diff": doubles}),
    )
    for fields, numbers in cases:
        yield from _message(dtype, "shape.dim.extend([3])", *fields)
        yield _load(known, (3,), numbers)


def _counts(_: Subject, dtype: str) -> Iterator[BlobStep]:
    """The message has as many numbers as the shape, or nothing is read (B52, B56)."""
    enough, few = "data.extend([1.0, 2.0, 3.0])", "data.extend([1.0, 2.0])"
    bad = (
        (few,),
        (),
        (enough, "diff.extend([1.0])"),
        (few, "double_data.extend([1.0])"),
        (enough, "diff.extend([1.0] * 4)"),
    )
    for fields in bad:
        yield from _message(dtype, "shape.dim.extend([3])", *fields)
        yield from refused("B52-message-count", "blob.from_proto(message)")
    yield from _message(dtype)
    yield from refused("B52-message-count", "blob.from_proto(message)")


def _same_shape(_: Subject, dtype: str) -> Iterator[BlobStep]:
    """Without reshaping, only a message with the blob's own shape is read (B53, B55)."""
    known = "B53-message-same-shape"
    yield BlobCall(0, "reshape", ((3, 2),))
    values, data = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), "data.extend([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])"
    cases = (
        (("shape.dim.extend([3, 2])",), True),
        (("num = 1", "channels = 1", "height = 3", "width = 2"), True),
        (("num = 3", "channels = 2", "height = 1", "width = 1"), False),
        (("shape.dim.extend([2, 3])",), False),
        (("shape.dim.extend([1, 1, 3, 2])",), False),
        (("shape.dim.extend([6])",), False),
        ((), False),
    )
    for fields, same in cases:
        yield from _message(dtype, *fields, data)
        yield Check("B55-shape-equals", "blob.shape_equals(message)", same)
        if same:
            yield _load(known, (3, 2), {"data": values}, reshape=False)
        else:
            yield from refused(known, f"blob.from_proto(message{_ONLY_SAME})")


def _written(_: Subject, dtype: str) -> Iterator[BlobStep]:
    """The numbers that are written are read back (B54)."""
    known, values = "B54-message-written", tuple(map(float, range(1, prod(_SHAPE) + 1)))
    held = {"data": values, "diff": values[::-1]}
    for part, numbers in held.items():
        yield BlobCall(0, f"mutable_cpu_{part}", values=numbers)
    double = "double_" if dtype == "float64" else ""
    for text, parts in (("", ("data",)), ("True", ("data", "diff"))):
        yield Prepare(f"message = blob.to_proto({text})")
        yield Check(known, "tuple(message.shape.dim)", _SHAPE)
        for part, numbers in held.items():
            yield Check(known, f"tuple(message.{double}{part})", numbers if part in parts else ())


def _failures(subject: Subject, dtype: str) -> Iterator[BlobStep]:
    """After a failure neither shape nor numbers were read, whether the blob had to grow or not (B57)."""
    for k, grows in product(range(1, _MOST_CALLS + 1), (False, True)) if subject.profile == "safe" else ():
        for part in ("data", "diff"):
            yield BlobCall(0, f"mutable_{subject.sides[-1]}_{part}")
        shape = (2 + k * grows, 4)
        values = tuple(map(float, range(prod(shape))))
        numbers: dict[Part, tuple[float, ...]] = {"data": values, "diff": values[::-1]}
        fields = (f"{part}.extend({list(it)})" for part, it in numbers.items())
        yield from _message(dtype, f"shape.dim.extend({list(shape)})", *fields)
        yield FailingStep(_load("", shape, numbers), k)


_MOST_CALLS = 4
"""Two allocations, each then filled with zeros."""

_SHAPE: Shape = (2, 4)

_CHECKS = (_numbers, _shapes, _counts, _same_shape, _written, _failures)


def _rule(subject: Subject) -> Iterator[Scenario]:
    """Each check, on blobs of both types of numbers in messages, with numbers on the device, and shared."""
    side = subject.sides[-1]
    for check, dtype in product(_CHECKS, ("float32", "float64")):
        before = (
            BlobCall(0, f"mutable_{side}_data"),
            BlobCall(0, f"mutable_{side}_diff"),
            BlobCall(1, "share_diff", (Other(0),)),
        )
        yield Scenario((_SHAPE, (4, 2)), (*before, *check(subject, dtype)), dtype)


def _message(dtype: str, *fields: str) -> Iterator[BlobStep]:
    """A message with these fields, which is called ``message`` in later steps."""
    made = f"subject.make((1,), dtype={dtype!r}, host=subject.host, device=subject.device)"
    yield Prepare(f"message = type({made}.to_proto())()")
    yield from (Prepare(f"message.{field}") for field in fields)


def _load(known: str, shape: Shape, values: dict[Part, tuple[float, ...]], *, reshape: bool = True) -> BlobCall:
    text = f"blob.from_proto(message{'' if reshape else _ONLY_SAME})"
    options = (("reshape", reshape),)
    return BlobCall(0, "from_proto", (shape, tuple(values.items())), options, known, text)


_ONLY_SAME = ", reshape=False"


MESSAGES: tuple[Callable[[Subject], Iterator[Scenario]], ...] = (_rule,)
"""The rules of blobs that have messages."""
