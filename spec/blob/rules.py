"""What is checked one by one for blobs: rules about shapes, axes and positions, and everything that is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from .arithmetic import ARITHMETIC_RULES, many
from .driver import BlobDriver
from .elements import TYPES, numbers, shown
from .ownership import ADOPTION_RULES
from .steps import ACCESSORS, NORMS, SCALES, BlobCall, Other
from .suites import way
from .tables import WAYS

if TYPE_CHECKING:
    from ..engine.subject import Subject
    from .oracle import Shape

__all__ = ["RULES", "Rule"]

Rule = Callable[["Subject"], Iterator[BlobDriver]]
"""A check: it gives the drivers that it made."""

_AXES, _LEGACY = 32, 4
_INT_MAX = (1 << 31) - 1
_NAMES = ("num", "channels", "height", "width")
_SHAPES: tuple[Shape, ...] = ((), (4,), (3, 2), (2, 3, 4), (2, 3, 4, 5), (2, 0, 3), (1, 2, 1, 2, 3))


def forms(subject: Subject) -> Iterator[BlobDriver]:
    """Every way to say a shape says the same (B01, B03, B04, B08)."""
    driver = BlobDriver.of(subject, None, (2, 3, 4, 5))
    driver.shows("B01-empty", "(blob.count, blob.num_axes, tuple(blob.shape))", (0, 0, ()))
    if driver.safe:
        for shape in ((6,), (2, 3), (1, 2, 1, 3, 1)):
            numbers = ", ".join(map(str, shape))
            driver.perform(BlobCall(0, "reshape", (shape,)), text=f"blob.reshape({numbers})", about="B04-reshape-forms")
    for call in ("reshape(2, 3, 4, 5)", "reshape([2, 3, 4, 5])", "reshape(SimpleNamespace(dim=[2, 3, 4, 5]))"):
        driver.perform(BlobCall(0, "reshape", ((2, 3, 4, 5),)), text=f"blob.{call}", about="B04-reshape-forms")
        driver.shows("B03-shape", "(tuple(blob.shape), blob.num_axes, blob.count)", ((2, 3, 4, 5), 4, 120))
        driver.shows("B08-equal-sizes", "(blob.data_memory.size, blob.diff_memory.size)", (480, 480))
        driver.perform(BlobCall(0, "reshape", ((3,),)))
    driver.perform(BlobCall(0, "reshape_like", (Other(1),)), text="blob.reshape_like(blob2)", about="B04-reshape-forms")
    driver.perform(BlobCall(0, "reshape", ((),)), text="blob.reshape(())", about="B03-shape")
    driver.shows("B03-shape", "(tuple(blob.shape), blob.num_axes, blob.count)", ((), 0, 1))
    yield driver.ended()


def axes(subject: Subject) -> Iterator[BlobDriver]:
    """Names, axes and volumes of every kind of shape (B02, B09 to B14)."""
    for shape in _SHAPES:
        driver, axes = BlobDriver.of(subject, shape), len(shape)
        count = "".join(f"{extent} " for extent in shape) + f"({prod(shape)})"
        called = "()" if callable(getattr(driver.blob(0), "shape_string", None)) else ""
        driver.shows("B09-shape-string", f"blob.shape_string{called}", count)
        for axis in range(-axes, axes):
            driver.shows("B10-canonical-axis", f"blob.canonical_axis_index({axis})", axis % axes)
        driver.refused("B10-canonical-axis", *(f"blob.canonical_axis_index({axis})" for axis in (axes, -axes - 1)))
        for start, end in ((a, b) for a in range(axes + 1) for b in range(a, axes + 1)):
            driver.shows("B11-count-axes", f"blob.count_axes({start}, {end})", prod(shape[start:end]))
        driver.shows("B11-count-axes", "blob.count_axes(0)", prod(shape))
        bad = ((-1, axes), (0, -1), (0, axes + 1), (axes + 1, axes + 1), *(((1, 0),) if axes else ()))
        driver.refused("B11-count-axes", *(f"blob.count_axes({start}, {end})" for start, end in bad))
        _compare_legacy(driver, shape)
        yield driver.ended()


def _compare_legacy(driver: BlobDriver, shape: Shape) -> None:
    if len(shape) > _LEGACY:
        calls = [f"blob.{name}" for name in _NAMES] + [f"blob.legacy_shape({axis})" for axis in (-4, 0, 3)]
        driver.refused("B14-legacy-limit", *calls, "blob.offset(0)", "blob.data_at(0)")
        return
    behind = (*shape, *(1,) * (_LEGACY - len(shape)))
    before = (*(1,) * (_LEGACY - len(shape)), *shape)
    for axis, name in enumerate(_NAMES):
        driver.shows("B12-legacy-shape", f"blob.legacy_shape({axis})", behind[axis])
        driver.shows("B12-legacy-shape", f"blob.legacy_shape({axis - _LEGACY})", before[axis])
        driver.shows("B13-legacy-names", f"blob.{name}", behind[axis])
    driver.refused("B14-legacy-limit", "blob.legacy_shape(4)", "blob.legacy_shape(-5)")


def positions(subject: Subject) -> Iterator[BlobDriver]:
    """Offsets, and elements by them (B15, B16, B18, B62, B63)."""
    for shape in ((2, 3, 4, 5), (3, 2), (4,)):
        driver = BlobDriver.of(subject, shape)
        four = (*shape, *(1,) * (_LEGACY - len(shape)))
        # One past the end is taken on every axis that the numbers reach.
        for n, c, h, w in product(*({0, extent // 2, extent} for extent in four)):
            position = ((n * four[1] + c) * four[2] + h) * four[3] + w
            driver.shows("B15-offset-numbers", f"blob.offset({n}, {c}, {h}, {w})", position)
        driver.shows("B15-offset-numbers", "blob.offset(1)", prod(four[1:]))
        beyond = [tuple((extent + 1) * (axis == at) for at in range(_LEGACY)) for axis, extent in enumerate(four)]
        driver.refused("B15-offset-numbers", *(f"blob.offset{indices}" for indices in beyond))
        if driver.safe:
            negative = [tuple(-(axis == at) for at in range(_LEGACY)) for axis in range(1, _LEGACY)]
            driver.refused("B62-negative-index", *(f"blob.offset{indices}" for indices in negative))
        driver.refused("B15-offset-numbers", "blob.offset(-1)")
        for length in range(1, len(shape) + 1):
            indices = tuple(extent - 1 for extent in shape[:length])
            position = sum(index * prod(shape[axis + 1 :]) for axis, index in enumerate(indices))
            driver.shows("B16-offset-sequence", f"blob.offset({list(indices)})", position)
        outside = (list(shape), [-1], [0] * (len(shape) + 1))
        driver.refused("B16-offset-sequence", *(f"blob.offset({indices})" for indices in outside))
        _compare_elements(driver, shape)
        yield driver.ended()
    for many_axes in ((1, 2, 1, 3, 2), (2, *(1,) * (_AXES - 2), 3)):
        driver, last = BlobDriver.of(subject, many_axes), [extent - 1 for extent in many_axes]
        driver.shows("B16-offset-sequence", f"blob.offset({last})", prod(many_axes) - 1)
        _compare_elements(driver, many_axes)
        yield driver.ended()


def _compare_elements(driver: BlobDriver, shape: Shape) -> None:
    last = tuple(extent - 1 for extent in shape)
    for part, accessor in product(("data", "diff"), ("mutable_cpu", "mutable_gpu")):
        if accessor == "mutable_cpu" or driver.world.has_device:
            driver.perform(BlobCall(0, f"{accessor}_{part}"))
        driver.perform(BlobCall(0, f"{part}_at", (last,)))
        driver.perform(BlobCall(0, f"{part}_at", ((0,) * len(shape),)))
        if driver.safe:
            outside = (list(shape), f"*{shape}", [-1])
            driver.refused("B63-element-in-range", *(f"blob.{part}_at({indices})" for indices in outside))


def limits(subject: Subject) -> Iterator[BlobDriver]:
    """Shapes that no blob can have change nothing, whatever the blob holds (B19, B20, B44, B47, B56, B65)."""
    for accessors in (WAYS[head] for head in WAYS):
        if subject.device is None and "gpu" in " ".join(accessors):
            continue
        driver = BlobDriver.of(subject, (2, 3), (6,))
        for step in (*way(0, "data", accessors), *way(0, "diff", accessors), BlobCall(1, "share_data", (Other(0),))):
            driver.perform(step)
        if driver.safe:
            wide = BlobCall(1, "reshape", ((_INT_MAX + 4, 2),))
            driver.perform(
                wide, text=f"blob2.reshape(SimpleNamespace(dim=[{_INT_MAX + 4}, 2]))", about="B47-wide-count"
            )
        driver.refused("B19-max-axes", f"blob.reshape({(1,) * (_AXES + 1)})")
        driver.refused("B20-negative-extent", "blob.reshape((7, 8, -1, 9))", "blob.reshape(7, 8, 9, -1)")
        driver.refused("B20-negative-extent", "blob.reshape((0, -1))", "blob.reshape((-2, -3))")
        if driver.safe:
            many = (f"blob.reshape({(1 << 21, 1 << 21, 1 << 21)})", f"blob.reshape({(1 << 63,)})")
            others = ("(2.5, 2)", "('2', 3)", "None", "'23'", "(None,)", "{2, 3}", "{2: 3}")
            driver.refused("B65-too-large", *many, *(f"blob.reshape({it})" for it in others))
        else:
            driver.refused("B44-int-count", f"blob.reshape({(65536, 65536)})", f"blob.reshape({(_INT_MAX, 2)})")
        driver.perform(BlobCall(0, "reshape", ((1,) * _AXES,)))
        driver.perform(BlobCall(0, "reshape", ((0, _INT_MAX, _INT_MAX),)))
        yield driver.ended()


def strangers(subject: Subject) -> Iterator[BlobDriver]:
    """What does not go with a blob is neither shared nor copied (B27, B42, B58)."""
    driver = BlobDriver.of(subject, (2, 3), (3, 2), (2, 4))
    for step in (BlobCall(0, "mutable_cpu_data"), BlobCall(1, "mutable_cpu_diff"), BlobCall(2, "mutable_cpu_data")):
        driver.perform(step)
    driver.refused("B27-share-count", "blob.share_data(blob3)", "blob.share_diff(blob3)")
    driver.refused("B42-copy-shape", "blob.copy_from(blob2)", "blob.copy_from(blob3)", "blob.copy_from(blob2, True)")
    if driver.safe:
        driver.prepare("stranger = subject.make((2, 3), dtype='int32', host=host, device=device)")
        for other in ("stranger", "None", "blob.data_memory", "object()"):
            calls = (f"share_data({other})", f"share_diff({other})", f"copy_from({other})", f"copy_from({other}, True)")
            driver.refused("B58-type-mismatch", *(f"blob.{call}" for call in calls))
        driver.refused("B58-type-mismatch", "blob.copy_from(stranger, reshape=True)")
        driver.prepare("del stranger")
    yield driver.ended()


def copies(subject: Subject) -> Iterator[BlobDriver]:
    """Copying onto oneself, and with a new shape, within the capacity and beyond (B41, B43)."""
    for part, accessors in product(("data", "diff"), WAYS.values()):
        if subject.device is None and "gpu" in " ".join(accessors):
            continue
        driver = BlobDriver.of(subject, (2, 3), (3, 4), (5,))
        options = (("copy_diff", True),) if part == "diff" else ()
        for n in range(3):
            for step in way(n, "diff" if part == "diff" else "data", accessors):
                driver.perform(step)
        driver.perform(BlobCall(0, "copy_from", (Other(0),), options), about="B43-copy-self")
        for target, source in ((0, 1), (1, 2), (2, 1), (1, 0)):
            step = BlobCall(target, "copy_from", (Other(source),), (*options, ("reshape", True)))
            driver.perform(step, about="B41-copy-reshape")
        yield driver.ended()


def no_elements(subject: Subject) -> Iterator[BlobDriver]:
    """A blob without elements takes every call (B64)."""
    if subject.profile != "safe":
        return
    for shape in (None, (0,), (2, 0, 3)):
        driver, known = BlobDriver.of(subject, shape, shape), "B64-no-elements"
        sides = ("cpu", "gpu") if subject.device is not None else ("cpu",)
        calls = [call for call in ACCESSORS if ACCESSORS[call][1] in sides]
        steps = [BlobCall(0, call) for call in (*calls, *NORMS)]
        steps += [BlobCall(0, call, (2.0,)) for call in SCALES]
        steps += [BlobCall(0, "update"), BlobCall(0, "copy_from", (Other(1),)), BlobCall(0, "share_data", (Other(1),))]
        steps += [
            BlobCall(0, "set_cpu_data", (True,)),
            BlobCall(0, "set_cpu_diff", (True,)),
            BlobCall(0, "shrink_to_fit"),
        ]
        for step in steps:
            driver.perform(step, about=known)
        asked = [it for it in driver.log.calls if it.byte_size or it.operation != "clone"]
        driver.require(not asked, known, "no elements, and yet it called its allocators")
        if subject.device is not None and shape is not None:
            driver.compare_extents()
        yield driver.ended()


def shape_on_the_device(subject: Subject) -> Iterator[BlobDriver]:
    """The extents are on the device when they are asked for, and are not sent twice (B17, B61)."""
    if subject.device is None:
        return
    bare = BlobDriver.of(subject, None)
    bare.refused("B17-gpu-shape", "blob.gpu_shape()")
    yield bare.ended()
    driver = BlobDriver.of(subject, (2, 3))
    for shape in ((2, 3), (6, 1, 1), (1, 6), (6, 1), (1, 2, 1, 3), (1, 1, 3, 1, 2), (*(1,) * (_AXES - 2), 3, 2)):
        driver.perform(BlobCall(0, "reshape", (shape,)))
        driver.compare_extents()
        start = len(driver.log.calls)
        if driver.safe:
            driver.perform(BlobCall(0, "reshape", (shape,)))
            driver.compare_extents()
            again = len(driver.log.calls) - start
            driver.require(not again, "B61-shape-once", "the same extents were sent again")
    yield driver.ended()


def element_types(subject: Subject) -> Iterator[BlobDriver]:
    """What integers have no arithmetic for is refused, written or not (B38)."""
    calls = ["update()", *(f"{norm}()" for norm in NORMS), *(f"{scale}(2)" for scale in SCALES)]
    for dtype in (it for it in TYPES if "int" in it):
        driver = BlobDriver.of(subject, (2, 3), dtype=dtype)
        driver.refused("B38-integers-refused", *(f"blob.{call}" for call in calls))
        driver.perform(BlobCall(0, "mutable_cpu_data"))
        driver.perform(BlobCall(0, "mutable_cpu_diff"))
        driver.refused("B38-integers-refused", *(f"blob.{call}" for call in calls))
        driver.require(numbers(1, 6, dtype) == shown(driver.blob(0).cpu_data()), "B22-elements", "they were lost")
        yield driver.ended()


RULES: tuple[Rule, ...] = (
    forms,
    axes,
    positions,
    limits,
    *ADOPTION_RULES,
    strangers,
    copies,
    shape_on_the_device,
    element_types,
    *ARITHMETIC_RULES,
    no_elements,
    many,
)
"""The checks for every subject; what is about any blob comes before what is about empty ones."""
