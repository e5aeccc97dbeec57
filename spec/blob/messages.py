"""What is checked of messages: what a blob takes from a BlobProto, and writes into one (blob.cpp 410-553).

The messages are made from the one that the blob under test writes, so that no package is needed here.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from .driver import BlobDriver
from .elements import USUAL, decoded, itemsize, shown
from .steps import BlobCall, Other

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.calls import Side
    from ..engine.subject import Subject
    from .oracle import Part, Shape

__all__ = ["MESSAGES", "offers_messages"]


def offers_messages(subject: Subject) -> bool:
    """Whether blobs of a subject have messages, and what these need is installed."""
    make: Any = subject.make
    try:
        blob = make((1,), dtype=USUAL, host=subject.host, device=subject.device)
        if not hasattr(blob, "to_proto"):
            return False
        blob.to_proto()
    except ImportError:
        return False
    except Exception:  # noqa: BLE001 -- whatever a blob makes of that: the rules say what is wrong with it
        return True
    return True


def _shapes(driver: BlobDriver) -> None:
    """Old fields are the shape where there are any, missing ones zero (B50)."""
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
        _message(driver, *fields, f"data.extend({list(values)})")
        _load(driver, known, shape, {"data": values})


def _numbers(driver: BlobDriver) -> None:
    """Doubles before floats; a diff only where there is one (B51)."""
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
        _message(driver, "shape.dim.extend([3])", *fields)
        _load(driver, known, (3,), numbers)


def _counts(driver: BlobDriver) -> None:
    """As many numbers as the shape has, or nothing is taken (B52, B56)."""
    enough, few = "data.extend([1.0, 2.0, 3.0])", "data.extend([1.0, 2.0])"
    bad = (
        (few,),
        (),
        (enough, "diff.extend([1.0])"),
        (few, "double_data.extend([1.0])"),
        (enough, "diff.extend([1.0] * 4)"),
    )
    for fields in bad:
        _message(driver, "shape.dim.extend([3])", *fields)
        driver.refused("B52-message-count", "blob.from_proto(message)")
    _message(driver)
    driver.refused("B52-message-count", "blob.from_proto(message)")


def _same_shape(driver: BlobDriver) -> None:
    """Without reshaping only the blob's own shape is taken (B53), and what that is (B55)."""
    driver.perform(BlobCall(0, "reshape", ((3, 2),)))
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
        _message(driver, *fields, data)
        driver.shows("B55-shape-equals", "blob.shape_equals(message)", same)
        if same:
            _load(driver, "B53-message-same-shape", (3, 2), {"data": values}, ", reshape=False")
        else:
            driver.refused("B53-message-same-shape", "blob.from_proto(message, reshape=False)")


def _written(driver: BlobDriver) -> None:
    """What is written is read back (B54)."""
    known = "B54-message-written"
    for part in ("data", "diff"):
        driver.perform(BlobCall(0, f"mutable_cpu_{part}"))
    size = itemsize(driver.world.dtype)
    held = {part: shown(getattr(driver.blob(0), f"cpu_{part}")()) for part in ("data", "diff")}
    double = "double_" if size == itemsize("float64") else ""
    for text, parts in (("", ("data",)), ("True", ("data", "diff"))):
        driver.prepare(f"message = blob.to_proto({text})")
        driver.shows(known, "tuple(message.shape.dim)", driver.world.blobs[0].shape)
        for part in ("data", "diff"):
            expected = decoded(held[part], driver.world.dtype) if part in parts else ()
            driver.shows(known, f"tuple(message.{double}{part})", expected)


def _failures(driver: BlobDriver) -> None:
    """What fails takes neither shape nor numbers, whether there is memory for them or not (B57)."""
    if driver.subject.profile != "safe":
        return
    side: Side = "cpu" if driver.subject.device is None else "gpu"
    for k, grows in product(range(1, _MOST_CALLS + 1), (False, True)):
        for part in ("data", "diff"):
            driver.perform(BlobCall(0, f"mutable_{side}_{part}"))
        shape = (2 + k * grows, 4)
        values = tuple(map(float, range(prod(shape))))
        numbers: dict[Part, tuple[float, ...]] = {"data": values, "diff": values[::-1]}
        fields = (f"{part}.extend({list(it)})" for part, it in numbers.items())
        _message(driver, f"shape.dim.extend({list(shape)})", *fields)
        driver.perform_failing(BlobCall(0, "from_proto", (shape, numbers)), k, text="blob.from_proto(message)")


_MOST_CALLS = 4  # two allocations, and each filled with zeros


_CHECKS = (_numbers, _shapes, _counts, _same_shape, _written, _failures)


def _rule(subject: Subject) -> Iterator[BlobDriver]:
    """Each check, on blobs of both types that messages have, with numbers on the device, and shared."""
    for check, dtype in product(_CHECKS, ("float32", "float64")):
        driver = BlobDriver.of(subject, (2, 4), (4, 2), dtype=dtype)
        side = "cpu" if subject.device is None else "gpu"
        for step in (
            BlobCall(0, f"mutable_{side}_data"),
            BlobCall(0, f"mutable_{side}_diff"),
            BlobCall(1, "share_diff", (Other(0),)),
        ):
            driver.perform(step)
        check(driver)
        yield driver.ended()


def _message(driver: BlobDriver, *fields: str) -> None:
    """A message with these fields, known to the reproducer as ``message``."""
    made = f"subject.make((1,), dtype={driver.world.dtype!r}, host=subject.host, device=subject.device)"
    driver.prepare(f"message = type({made}.to_proto())()", *(f"message.{field}" for field in fields))


def _load(
    driver: BlobDriver, known: str, shape: Shape, numbers: dict[Part, tuple[float, ...]], options: str = ""
) -> None:
    step = BlobCall(0, "from_proto", (shape, numbers))
    driver.perform(step, text=f"blob.from_proto(message{options})", about=known)


MESSAGES: tuple[Callable[[Subject], Iterator[BlobDriver]], ...] = (_rule,)
"""The checks of blobs that have messages."""
