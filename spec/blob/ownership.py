"""What blobs adopt, checked one by one: what is no buffer for them, and what would be freed under them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from .driver import BlobDriver
from .elements import USUAL, itemsize
from .inspection import PARTS
from .steps import BlobCall, Other

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.calls import Side
    from ..engine.subject import Subject
    from .oracle import Part

__all__ = ["ADOPTION_RULES"]


def buffers(subject: Subject) -> Iterator[BlobDriver]:
    """What cannot be adopted changes nothing, whether the memory fits the blob or is larger (B49, B56)."""
    size = 6 * itemsize(USUAL)
    for shape in ((2, 3), (3, 4)):
        driver = BlobDriver.of(subject, shape, (2, 3))
        driver.perform(BlobCall(0, "mutable_cpu_data"))
        driver.perform(BlobCall(0, "mutable_cpu_diff"))
        driver.perform(BlobCall(0, "reshape", ((2, 3),)))
        known = "B49-bad-buffer-refused"
        for part in ("data", "diff") if driver.safe else ("data",):
            driver.refused(known, f"blob.set_cpu_{part}(None)")
            if driver.safe:
                bad = (f"bytearray({size - 1})", f"array('d', bytes({2 * size}))", "object()", f"bytes({size})")
                driver.refused(known, *(f"blob.set_cpu_{part}({it})" for it in bad))
            if subject.device is not None:
                driver.refused(known, f"blob.set_gpu_{part}(None)")
                if driver.safe:
                    there = (f"subject.device.empty({size - 1})", f"bytearray({size})")
                    driver.refused(known, *(f"blob.set_gpu_{part}({it})" for it in there))
        yield driver.ended()


def own_memory(subject: Subject) -> Iterator[BlobDriver]:
    """Nothing that a blob goes on using is freed, whether its memory fits or is larger (B66)."""
    sides = subject.sides if subject.profile == "safe" else ()
    for side, shape in product(sides, ((2, 3), (2, 4))):
        driver, known, larger = BlobDriver.of(subject, shape, (2, 3)), "B66-own-memory", shape != (2, 3)
        for part in PARTS:
            driver.perform(BlobCall(0, f"mutable_{side}_{part}"))
        if larger:
            driver.perform(BlobCall(0, "reshape", ((2, 3),)))
            driver.refused(known, f"blob.set_{side}_data(blob.mutable_{side}_diff())")
        for part in PARTS:
            driver.refused(known, f"blob.set_{side}_{part}(blob.mutable_{side}_{part}())")
        _lend(driver, 1, side)
        driver.refused(known, "blob.share_data(blob2)")
        _lend(driver, 0, side, "diff")
        driver.refused(known, "blob.share_data(blob2)")
        yield driver.ended()
    for side in sides:
        driver = BlobDriver.of(subject, (2, 3))
        driver.perform(BlobCall(0, f"mutable_{side}_data"))
        _lend(driver, 0, side, "diff")
        buffer = "bytearray(24)" if side == "cpu" else "subject.device.empty(24)"
        driver.refused("B66-own-memory", f"blob.set_{side}_data({buffer})")
        yield driver.ended()


def lenders(subject: Subject) -> Iterator[BlobDriver]:
    """Memory that is larger than the blob stays if the other part lies in it (B66)."""
    sides = subject.sides if subject.profile == "safe" else ()
    for side, lender in product(sides, PARTS):
        # Sharing gives the borrower memory of the blob's size, so that adopting does not renew the lender.
        driver, borrower = BlobDriver.of(subject, (2, 4), (2, 3)), PARTS[lender == "data"]
        driver.perform(BlobCall(0, f"mutable_{side}_{lender}"))
        driver.perform(BlobCall(0, "reshape", ((2, 3),)))
        driver.perform(BlobCall(0, f"share_{borrower}", (Other(1),)))
        _lend(driver, 0, side, borrower, lender)
        driver.unchanged("B66-own-memory", "blob.shrink_to_fit()")
        yield driver.ended()


def extents(subject: Subject) -> Iterator[BlobDriver]:
    """The memory of the shape is no memory for numbers: another number of axes frees it (B66)."""
    if subject.profile == "safe" and subject.device is not None:
        driver = BlobDriver.of(subject, (1,), dtype="int32")
        driver.compare_extents()
        driver.refused("B66-own-memory", *(f"blob.set_gpu_{part}(blob.gpu_shape())" for part in PARTS))
        yield driver.ended()


def _lend(driver: BlobDriver, n: int, side: Side, part: Part = "data", lender: Part = "data") -> None:
    """Have a part of a blob adopt a part of the first, which stays where it is, so that is no offence."""
    if not driver.takes():
        return
    call = f"{driver.name(n)}.set_{side}_{part}(blob.mutable_{side}_{lender}())"
    raised = driver.reproducer.call(call, driver.world.mode).raised
    driver.require(raised is None, "B66-own-memory", f"nothing would be freed, and yet it raised {raised!r}")
    driver.world = driver.world.adopt(n, part, side, driver.world.content(0, lender, side)).after


ADOPTION_RULES: tuple[Callable[[Subject], Iterator[BlobDriver]], ...] = (buffers, own_memory, lenders, extents)
"""The checks of adoption."""
