"""What is checked one by one for blobs: rules about shapes, axes and positions, and everything that is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from .arithmetic import ARITHMETIC_RULES, many
from .driver import BlobTrial
from .elements import TYPES, numbers, shown
from .ownership import ADOPTION_RULES
from .steps import ACCESSORS, NORMS, SCALES, Other, Step
from .suites import way
from .tables import WAYS

if TYPE_CHECKING:
    from ..engine.subject import Bench
    from .oracle import Shape

__all__ = ["RULES", "Rule"]

Rule = Callable[["Bench"], Iterator[BlobTrial]]
"""A check: it gives the trials that it made."""

_AXES, _LEGACY = 32, 4
_INT_MAX = (1 << 31) - 1
_NAMES = ("num", "channels", "height", "width")
_SHAPES: tuple[Shape, ...] = ((), (4,), (3, 2), (2, 3, 4), (2, 3, 4, 5), (2, 0, 3), (1, 2, 1, 2, 3))


def forms(bench: Bench) -> Iterator[BlobTrial]:
    """Every way to say a shape says the same (B01, B03, B04, B08)."""
    trial = BlobTrial.of(bench, None, (2, 3, 4, 5))
    trial.shows("B01-empty", "(blob.count, blob.num_axes, tuple(blob.shape))", (0, 0, ()))
    if trial.safe:
        for shape in ((6,), (2, 3), (1, 2, 1, 3, 1)):
            numbers = ", ".join(map(str, shape))
            trial.perform(Step(0, "reshape", (shape,)), text=f"blob.reshape({numbers})", about="B04-reshape-forms")
    for call in ("reshape(2, 3, 4, 5)", "reshape([2, 3, 4, 5])", "reshape(SimpleNamespace(dim=[2, 3, 4, 5]))"):
        trial.perform(Step(0, "reshape", ((2, 3, 4, 5),)), text=f"blob.{call}", about="B04-reshape-forms")
        trial.shows("B03-shape", "(tuple(blob.shape), blob.num_axes, blob.count)", ((2, 3, 4, 5), 4, 120))
        trial.shows("B08-equal-sizes", "(blob.data_memory.size, blob.diff_memory.size)", (480, 480))
        trial.perform(Step(0, "reshape", ((3,),)))
    trial.perform(Step(0, "reshape_like", (Other(1),)), text="blob.reshape_like(blob2)", about="B04-reshape-forms")
    trial.perform(Step(0, "reshape", ((),)), text="blob.reshape(())", about="B03-shape")
    trial.shows("B03-shape", "(tuple(blob.shape), blob.num_axes, blob.count)", ((), 0, 1))
    yield trial.ended()


def axes(bench: Bench) -> Iterator[BlobTrial]:
    """Names, axes and volumes of every kind of shape (B02, B09 to B14)."""
    for shape in _SHAPES:
        trial, axes = BlobTrial.of(bench, shape), len(shape)
        count = "".join(f"{extent} " for extent in shape) + f"({prod(shape)})"
        called = "()" if callable(getattr(trial.blob(0), "shape_string", None)) else ""
        trial.shows("B09-shape-string", f"blob.shape_string{called}", count)
        for axis in range(-axes, axes):
            trial.shows("B10-canonical-axis", f"blob.canonical_axis_index({axis})", axis % axes)
        trial.refused("B10-canonical-axis", *(f"blob.canonical_axis_index({axis})" for axis in (axes, -axes - 1)))
        for start, end in ((a, b) for a in range(axes + 1) for b in range(a, axes + 1)):
            trial.shows("B11-count-axes", f"blob.count_axes({start}, {end})", prod(shape[start:end]))
        trial.shows("B11-count-axes", "blob.count_axes(0)", prod(shape))
        bad = ((-1, axes), (0, -1), (0, axes + 1), (axes + 1, axes + 1), *(((1, 0),) if axes else ()))
        trial.refused("B11-count-axes", *(f"blob.count_axes({start}, {end})" for start, end in bad))
        _compare_legacy(trial, shape)
        yield trial.ended()


def _compare_legacy(trial: BlobTrial, shape: Shape) -> None:
    if len(shape) > _LEGACY:
        calls = [f"blob.{name}" for name in _NAMES] + [f"blob.legacy_shape({axis})" for axis in (-4, 0, 3)]
        trial.refused("B14-legacy-limit", *calls, "blob.offset(0)", "blob.data_at(0)")
        return
    behind = (*shape, *(1,) * (_LEGACY - len(shape)))
    before = (*(1,) * (_LEGACY - len(shape)), *shape)
    for axis, name in enumerate(_NAMES):
        trial.shows("B12-legacy-shape", f"blob.legacy_shape({axis})", behind[axis])
        trial.shows("B12-legacy-shape", f"blob.legacy_shape({axis - _LEGACY})", before[axis])
        trial.shows("B13-legacy-names", f"blob.{name}", behind[axis])
    trial.refused("B14-legacy-limit", "blob.legacy_shape(4)", "blob.legacy_shape(-5)")


def positions(bench: Bench) -> Iterator[BlobTrial]:
    """Offsets, and elements by them (B15, B16, B18, B62, B63)."""
    for shape in ((2, 3, 4, 5), (3, 2), (4,)):
        trial = BlobTrial.of(bench, shape)
        four = (*shape, *(1,) * (_LEGACY - len(shape)))
        # One past the end is taken on every axis that the numbers reach.
        for n, c, h, w in product(*({0, extent // 2, extent} for extent in four)):
            position = ((n * four[1] + c) * four[2] + h) * four[3] + w
            trial.shows("B15-offset-numbers", f"blob.offset({n}, {c}, {h}, {w})", position)
        trial.shows("B15-offset-numbers", "blob.offset(1)", prod(four[1:]))
        beyond = [tuple((extent + 1) * (axis == at) for at in range(_LEGACY)) for axis, extent in enumerate(four)]
        trial.refused("B15-offset-numbers", *(f"blob.offset{indices}" for indices in beyond))
        if trial.safe:
            negative = [tuple(-(axis == at) for at in range(_LEGACY)) for axis in range(1, _LEGACY)]
            trial.refused("B62-negative-index", *(f"blob.offset{indices}" for indices in negative))
        trial.refused("B15-offset-numbers", "blob.offset(-1)")
        for length in range(1, len(shape) + 1):
            indices = tuple(extent - 1 for extent in shape[:length])
            position = sum(index * prod(shape[axis + 1 :]) for axis, index in enumerate(indices))
            trial.shows("B16-offset-sequence", f"blob.offset({list(indices)})", position)
        outside = (list(shape), [-1], [0] * (len(shape) + 1))
        trial.refused("B16-offset-sequence", *(f"blob.offset({indices})" for indices in outside))
        _compare_elements(trial, shape)
        yield trial.ended()
    for many_axes in ((1, 2, 1, 3, 2), (2, *(1,) * (_AXES - 2), 3)):
        trial, last = BlobTrial.of(bench, many_axes), [extent - 1 for extent in many_axes]
        trial.shows("B16-offset-sequence", f"blob.offset({last})", prod(many_axes) - 1)
        _compare_elements(trial, many_axes)
        yield trial.ended()


def _compare_elements(trial: BlobTrial, shape: Shape) -> None:
    last = tuple(extent - 1 for extent in shape)
    for part, accessor in product(("data", "diff"), ("mutable_cpu", "mutable_gpu")):
        if accessor == "mutable_cpu" or trial.world.has_device:
            trial.perform(Step(0, f"{accessor}_{part}"))
        trial.perform(Step(0, f"{part}_at", (last,)))
        trial.perform(Step(0, f"{part}_at", ((0,) * len(shape),)))
        if trial.safe:
            outside = (list(shape), f"*{shape}", [-1])
            trial.refused("B63-element-in-range", *(f"blob.{part}_at({indices})" for indices in outside))


def limits(bench: Bench) -> Iterator[BlobTrial]:
    """Shapes that no blob can have change nothing, whatever the blob holds (B19, B20, B44, B47, B56, B65)."""
    for accessors in (WAYS[head] for head in WAYS):
        if bench.device is None and "gpu" in " ".join(accessors):
            continue
        trial = BlobTrial.of(bench, (2, 3), (6,))
        for step in (*way(0, "data", accessors), *way(0, "diff", accessors), Step(1, "share_data", (Other(0),))):
            trial.perform(step)
        if trial.safe:
            wide = Step(1, "reshape", ((_INT_MAX + 4, 2),))
            trial.perform(wide, text=f"blob2.reshape(SimpleNamespace(dim=[{_INT_MAX + 4}, 2]))", about="B47-wide-count")
        trial.refused("B19-max-axes", f"blob.reshape({(1,) * (_AXES + 1)})")
        trial.refused("B20-negative-extent", "blob.reshape((7, 8, -1, 9))", "blob.reshape(7, 8, 9, -1)")
        trial.refused("B20-negative-extent", "blob.reshape((0, -1))", "blob.reshape((-2, -3))")
        if trial.safe:
            many = (f"blob.reshape({(1 << 21, 1 << 21, 1 << 21)})", f"blob.reshape({(1 << 63,)})")
            others = ("(2.5, 2)", "('2', 3)", "None", "'23'", "(None,)", "{2, 3}", "{2: 3}")
            trial.refused("B65-too-large", *many, *(f"blob.reshape({it})" for it in others))
        else:
            trial.refused("B44-int-count", f"blob.reshape({(65536, 65536)})", f"blob.reshape({(_INT_MAX, 2)})")
        trial.perform(Step(0, "reshape", ((1,) * _AXES,)))
        trial.perform(Step(0, "reshape", ((0, _INT_MAX, _INT_MAX),)))
        yield trial.ended()


def strangers(bench: Bench) -> Iterator[BlobTrial]:
    """What does not go with a blob is neither shared nor copied (B27, B42, B58)."""
    trial = BlobTrial.of(bench, (2, 3), (3, 2), (2, 4))
    for step in (Step(0, "mutable_cpu_data"), Step(1, "mutable_cpu_diff"), Step(2, "mutable_cpu_data")):
        trial.perform(step)
    trial.refused("B27-share-count", "blob.share_data(blob3)", "blob.share_diff(blob3)")
    trial.refused("B42-copy-shape", "blob.copy_from(blob2)", "blob.copy_from(blob3)", "blob.copy_from(blob2, True)")
    if trial.safe:
        trial.prepare("stranger = bench.make((2, 3), dtype='int32', host=host, device=device)")
        for other in ("stranger", "None", "blob.data_memory", "object()"):
            calls = (f"share_data({other})", f"share_diff({other})", f"copy_from({other})", f"copy_from({other}, True)")
            trial.refused("B58-type-mismatch", *(f"blob.{call}" for call in calls))
        trial.refused("B58-type-mismatch", "blob.copy_from(stranger, reshape=True)")
        trial.prepare("del stranger")
    yield trial.ended()


def copies(bench: Bench) -> Iterator[BlobTrial]:
    """Copying onto oneself, and with a new shape, within the capacity and beyond (B41, B43)."""
    for part, accessors in product(("data", "diff"), WAYS.values()):
        if bench.device is None and "gpu" in " ".join(accessors):
            continue
        trial = BlobTrial.of(bench, (2, 3), (3, 4), (5,))
        options = (("copy_diff", True),) if part == "diff" else ()
        for n in range(3):
            for step in way(n, "diff" if part == "diff" else "data", accessors):
                trial.perform(step)
        trial.perform(Step(0, "copy_from", (Other(0),), options), about="B43-copy-self")
        for target, source in ((0, 1), (1, 2), (2, 1), (1, 0)):
            step = Step(target, "copy_from", (Other(source),), (*options, ("reshape", True)))
            trial.perform(step, about="B41-copy-reshape")
        yield trial.ended()


def no_elements(bench: Bench) -> Iterator[BlobTrial]:
    """A blob without elements takes every call (B64)."""
    if bench.profile != "safe":
        return
    for shape in (None, (0,), (2, 0, 3)):
        trial, known = BlobTrial.of(bench, shape, shape), "B64-no-elements"
        sides = ("cpu", "gpu") if bench.device is not None else ("cpu",)
        calls = [call for call in ACCESSORS if ACCESSORS[call][1] in sides]
        steps = [Step(0, call) for call in (*calls, *NORMS)]
        steps += [Step(0, call, (2.0,)) for call in SCALES]
        steps += [Step(0, "update"), Step(0, "copy_from", (Other(1),)), Step(0, "share_data", (Other(1),))]
        steps += [Step(0, "set_cpu_data", (True,)), Step(0, "set_cpu_diff", (True,)), Step(0, "shrink_to_fit")]
        for step in steps:
            trial.perform(step, about=known)
        asked = [it for it in trial.ledger.entries if it.byte_size or it.operation != "clone"]
        trial.require(not asked, known, "no elements, and yet it called its allocators")
        if bench.device is not None and shape is not None:
            trial.compare_extents()
        yield trial.ended()


def shape_on_the_device(bench: Bench) -> Iterator[BlobTrial]:
    """The extents are on the device when they are asked for, and are not sent twice (B17, B61)."""
    if bench.device is None:
        return
    bare = BlobTrial.of(bench, None)
    bare.refused("B17-gpu-shape", "blob.gpu_shape()")
    yield bare.ended()
    trial = BlobTrial.of(bench, (2, 3))
    for shape in ((2, 3), (6, 1, 1), (1, 6), (6, 1), (1, 2, 1, 3), (1, 1, 3, 1, 2), (*(1,) * (_AXES - 2), 3, 2)):
        trial.perform(Step(0, "reshape", (shape,)))
        trial.compare_extents()
        start = len(trial.ledger.entries)
        if trial.safe:
            trial.perform(Step(0, "reshape", (shape,)))
            trial.compare_extents()
            again = len(trial.ledger.entries) - start
            trial.require(not again, "B61-shape-once", "the same extents were sent again")
    yield trial.ended()


def element_types(bench: Bench) -> Iterator[BlobTrial]:
    """What integers have no arithmetic for is refused, written or not (B38)."""
    calls = ["update()", *(f"{norm}()" for norm in NORMS), *(f"{scale}(2)" for scale in SCALES)]
    for dtype in (it for it in TYPES if "int" in it):
        trial = BlobTrial.of(bench, (2, 3), dtype=dtype)
        trial.refused("B38-integers-refused", *(f"blob.{call}" for call in calls))
        trial.perform(Step(0, "mutable_cpu_data"))
        trial.perform(Step(0, "mutable_cpu_diff"))
        trial.refused("B38-integers-refused", *(f"blob.{call}" for call in calls))
        trial.require(numbers(1, 6, dtype) == shown(trial.blob(0).cpu_data()), "B22-elements", "they were lost")
        yield trial.ended()


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
"""The checks that every bench of blobs can be put to; what is about any blob comes before what is about empty ones."""
