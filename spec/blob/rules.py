"""Rules of blobs as scenarios: about shapes, axes and positions, and about all calls that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode

from .arithmetic import ARITHMETIC_RULES, many
from .cells import way, ways_of
from .claims import offers_messages
from .elements import TYPES
from .messages import MESSAGES
from .oracle import ACCESSORS, NORMS, SCALES
from .ownership import ADOPTION_RULES
from .steps import (
    GIVEN,
    PARTS,
    BlobCase,
    BlobStep,
    Lent,
    Other,
    Shape,
    case_of,
    in_mode,
    new,
    refused,
    valued,
)

if TYPE_CHECKING:
    from ..engine.subject import Subject
__all__ = ["RULES", "Rule", "rules"]

Rule = Callable[["Subject"], Iterator[BlobCase]]
"""The scenarios of one rule."""

_AXES, _LEGACY = 32, 4
_INT_MAX = (1 << 31) - 1
_NAMES = ("num", "channels", "height", "width")
_SHAPES: tuple[Shape, ...] = ((), (4,), (3, 2), (2, 3, 4), (2, 3, 4, 5), (2, 0, 3), (1, 2, 1, 2, 3))


def rules(subject: Subject) -> Iterator[BlobCase]:
    """The scenarios of all rules; those of messages come last, if the blobs have messages."""
    for rule in (*RULES, *MESSAGES) if offers_messages(subject) else RULES:
        yield from rule(subject)


def forms(subject: Subject) -> Iterator[BlobCase]:
    """Every form of a shape has the same effect (B01, B03, B04)."""
    known, four = "B04-reshape-forms", (2, 3, 4, 5)
    steps: list[BlobStep] = [*_described("B01-empty", (), 0)]
    if subject.profile == "safe":
        steps += (BlobStep(0, "reshape", shape, about=known) for shape in ((6,), (2, 3), (1, 2, 1, 3, 1)))
    for given in (four, ([*four],), (SimpleNamespace(dim=[*four]),)):
        steps += (
            BlobStep(0, "reshape", given, about=known),
            *_described("B03-shape", four, 120),
            BlobStep(0, "reshape", ((3,),)),
        )
    steps += (
        BlobStep(0, "reshape_like", (Other(1),), about=known),
        BlobStep(0, "reshape", ((),), about="B03-shape"),
        *_described("B03-shape", (), 1),
    )
    yield case_of((None, four), tuple(steps))


def _described(known: str, shape: Shape, count: int) -> Iterator[BlobStep]:
    yield valued(known, shape, "shape")
    yield valued(known, len(shape), "num_axes")
    yield valued(known, count, "count")


def axes(_: Subject) -> Iterator[BlobCase]:
    """Names, axes and volumes of every kind of shape (B09 to B14)."""
    for shape in _SHAPES:
        count = len(shape)
        steps = [
            valued("B09-shape-string", "".join(f"{extent} " for extent in shape) + f"({prod(shape)})", "shape_string")
        ]
        known = "B10-canonical-axis"
        steps += (valued(known, axis % count, "canonical_axis_index", axis) for axis in range(-count, count))
        steps += (refused(known, "canonical_axis_index", axis) for axis in (count, -count - 1))
        known = "B11-count-axes"
        for start, end in ((a, b) for a in range(count + 1) for b in range(a, count + 1)):
            steps.append(valued(known, prod(shape[start:end]), "count_axes", start, end))
        steps += (valued(known, prod(shape), "count_axes", *given) for given in ((), (0,)))
        bad = ((-1, count), (0, -1), (0, count + 1), (count + 1, count + 1), *(((1, 0),) if count else ()))
        steps += (refused(known, "count_axes", *bounds) for bounds in bad)
        yield case_of((shape,), (*steps, *_legacy(shape)))


def _legacy(shape: Shape) -> Iterator[BlobStep]:
    if len(shape) > _LEGACY:
        known = "B14-legacy-limit"
        yield from (refused(known, name) for name in _NAMES)
        yield from (refused(known, "legacy_shape", axis) for axis in (-4, 0, 3))
        yield from (refused(known, call, 0) for call in ("offset", "data_at"))
        return
    behind = (*shape, *(1,) * (_LEGACY - len(shape)))
    before = (*(1,) * (_LEGACY - len(shape)), *shape)
    for axis, name in enumerate(_NAMES):
        yield valued("B12-legacy-shape", behind[axis], "legacy_shape", axis)
        yield valued("B12-legacy-shape", before[axis], "legacy_shape", axis - _LEGACY)
        yield valued("B13-legacy-names", behind[axis], name)
    yield from (refused("B14-legacy-limit", "legacy_shape", axis) for axis in (4, -5))


def positions(subject: Subject) -> Iterator[BlobCase]:
    """Offsets, and the elements at them (B15, B16, B18, B62, B63)."""
    for shape in ((2, 3, 4, 5), (3, 2), (4,)):
        yield case_of((shape,), (*_offsets(subject, shape), *_elements(subject, shape)))
    for many_axes in ((1, 2, 1, 3, 2), (2, *(1,) * (_AXES - 2), 3)):
        last = [extent - 1 for extent in many_axes]
        offset = valued("B16-offset-sequence", prod(many_axes) - 1, "offset", last)
        yield case_of((many_axes,), (offset, *_elements(subject, many_axes)))


def _offsets(subject: Subject, shape: Shape) -> Iterator[BlobStep]:
    known, four = "B15-offset-numbers", (*shape, *(1,) * (_LEGACY - len(shape)))
    # On every axis that the numbers reach, one past the end is accepted.
    for n, c, h, w in product(*({0, extent // 2, extent} for extent in four)):
        yield valued(known, ((n * four[1] + c) * four[2] + h) * four[3] + w, "offset", n, c, h, w)
    yield valued(known, prod(four[1:]), "offset", 1)
    beyond = [tuple((extent + 1) * (axis == at) for at in range(_LEGACY)) for axis, extent in enumerate(four)]
    yield from (refused(known, "offset", *indices) for indices in beyond)
    if subject.profile == "safe":
        negative = [tuple(-(axis == at) for at in range(_LEGACY)) for axis in range(1, _LEGACY)]
        yield from (refused("B62-negative-index", "offset", *indices) for indices in negative)
    yield refused(known, "offset", -1)
    known = "B16-offset-sequence"
    for length in range(1, len(shape) + 1):
        indices = [extent - 1 for extent in shape[:length]]
        position = sum(index * prod(shape[axis + 1 :]) for axis, index in enumerate(indices))
        yield valued(known, position, "offset", indices)
    yield from (refused(known, "offset", given) for given in ([*shape], [-1], [0] * (len(shape) + 1)))


def _elements(subject: Subject, shape: Shape) -> Iterator[BlobStep]:
    last = tuple(extent - 1 for extent in shape)
    for part, side in product(PARTS, ("cpu", "gpu")):
        if side in subject.sides:
            yield BlobStep(0, f"mutable_{side}_{part}")
        yield BlobStep(0, f"{part}_at", (last,))
        yield BlobStep(0, f"{part}_at", ((0,) * len(shape),))
        if subject.profile == "safe":
            # Without a check of each index, the index behind the first row is an element of the next row.
            beyond = (*(0,) * (len(shape) - 1), shape[-1])
            for given in (([*shape],), shape, ([*beyond],), beyond, ([-1],)):
                yield refused("B63-element-in-range", f"{part}_at", *given)


def limits(subject: Subject) -> Iterator[BlobCase]:
    """Shapes that no blob can have change nothing, at any head (B19, B20, B44, B47, B56, B65)."""
    for accessors in ways_of(subject):
        steps: list[BlobStep] = [
            *way(0, "data", accessors),
            *way(0, "diff", accessors),
            BlobStep(1, "share_data", (Other(0),)),
        ]
        if subject.profile == "safe":
            wide = SimpleNamespace(dim=[(1 << 32) + 3, 2])
            steps.append(BlobStep(1, "reshape", (wide,), about="B47-wide-count"))
        bad = [refused("B19-max-axes", "reshape", (1,) * (_AXES + 1))]
        negative: tuple[tuple[Any, ...], ...] = (((7, 8, -1, 9),), (7, 8, 9, -1), ((0, -1),), ((-2, -3),))
        bad += (refused("B20-negative-extent", "reshape", *given) for given in negative)
        if subject.profile == "safe":
            odd: tuple[Any, ...] = ((2.5, 2), ("2", 3), None, "23", (None,), {2, 3}, {2: 3})
            bad += (refused("B65-too-large", "reshape", given) for given in ((1 << 21,) * 3, (1 << 63,), *odd))
        else:
            bad += (refused("B44-int-count", "reshape", given) for given in ((65536, 65536), (_INT_MAX, 2)))
        good = (BlobStep(0, "reshape", ((1,) * _AXES,)), BlobStep(0, "reshape", ((0, _INT_MAX, _INT_MAX),)))
        # In Caffe a shape that is refused half-way is half set, so nothing comes after it there.
        ends: list[tuple[BlobStep, ...]] = [(*bad, *good)] if subject.profile == "safe" else [(*bad,), good]
        yield from (case_of(((2, 3), (6,)), (*steps, *end)) for end in ends)


def strangers(subject: Subject) -> Iterator[BlobCase]:
    """A blob of another size or type, or another object, is neither shared nor copied (B27, B42, B58)."""
    share, copy = ("share_data", "share_diff"), (("copy_from",), ("copy_from", True))
    steps: list[BlobStep] = [
        BlobStep(0, "mutable_cpu_data"),
        BlobStep(1, "mutable_cpu_diff"),
        BlobStep(2, "mutable_cpu_data"),
        *(refused("B27-share-count", call, Other(2)) for call in share),
        *(refused("B42-copy-shape", "copy_from", *given) for given in ((Other(1),), (Other(2),), (Other(1), True))),
    ]
    if subject.profile == "safe":
        steps.append(new(3, (2, 3), "int32"))
        for other in (Other(3), None, Lent("memory"), Lent("object")):
            calls = *((call, ()) for call in share), *((call, flags) for call, *flags in copy)
            steps += (refused("B58-type-mismatch", call, other, *flags) for call, flags in calls)
        reshaping = refused("B58-type-mismatch", "copy_from", Other(3))
        steps.append(reshaping._replace(options=(("reshape", True),)))
    yield case_of(((2, 3), (3, 2), (2, 4)), tuple(steps))


def copies(subject: Subject) -> Iterator[BlobCase]:
    """Copies from the blob itself, and with a new shape, within the capacity and beyond it (B41, B43)."""
    for part, accessors in product(PARTS, ways_of(subject)):
        options = (("copy_diff", True),) if part == "diff" else ()
        steps: list[BlobStep] = [step for n in range(3) for step in way(n, part, accessors)]
        own = BlobStep(0, "copy_from", (Other(0),), options)
        steps += (own, in_mode(Mode.CPU), own, in_mode(Mode.GPU))
        for target, source in ((0, 1), (1, 2), (2, 1), (1, 0)):
            flags = (*options, ("reshape", True))
            steps.append(BlobStep(target, "copy_from", (Other(source),), flags, about="B41-copy-reshape"))
        yield case_of(((2, 3), (3, 4), (5,)), tuple(steps))


def unequal_memories(subject: Subject) -> Iterator[BlobCase]:
    """A blob grows as soon as one of its two memories is too small (B06, B07, B46)."""
    if subject.profile != "safe":
        return
    for part, accessors in product(PARTS, ways_of(subject)):
        start = (*way(0, "data", accessors), *way(0, "diff", accessors), BlobStep(0, "reshape", ((2, 3),)))
        grows = (BlobStep(0, "reshape", ((3, 4),)), BlobStep(0, "cpu_data"), BlobStep(0, "cpu_diff"))
        yield case_of(((3, 4), (6,)), (*start, BlobStep(0, f"share_{part}", (Other(1),)), *grows))
        yield case_of(((3, 4),), (*start, BlobStep(0, "set_cpu_diff", (GIVEN,)), *grows))


def no_elements(subject: Subject) -> Iterator[BlobCase]:
    """A blob without elements accepts every call (B64)."""
    if subject.profile != "safe":
        return
    known = "B64-no-elements"
    calls = [call for call in ACCESSORS if ACCESSORS[call][1] in subject.sides]
    steps = [BlobStep(0, call) for call in (*calls, *NORMS)]
    steps += [BlobStep(0, call, (2.0,)) for call in SCALES]
    steps += [BlobStep(0, "update"), BlobStep(0, "copy_from", (Other(1),)), BlobStep(0, "share_data", (Other(1),))]
    steps += [
        BlobStep(0, "set_cpu_data", (GIVEN,)),
        BlobStep(0, "set_cpu_diff", (GIVEN,)),
        BlobStep(0, "shrink_to_fit"),
    ]
    about = [step._replace(about=known) for step in steps]
    shapes: tuple[Shape | None, ...] = (None, (0,), (2, 0, 3))
    for shape in shapes:
        extents = (BlobStep(0, "gpu_shape"),) if subject.device is not None and shape is not None else ()
        yield case_of((shape, shape), (*about, *extents))


def shape_on_the_device(subject: Subject) -> Iterator[BlobCase]:
    """The extents are on the device when they are requested, and are not sent twice (B17, B61)."""
    if subject.device is None:
        return
    yield case_of((None,), (refused("B17-gpu-shape", "gpu_shape"),))
    steps: list[BlobStep] = []
    for shape in ((2, 3), (6, 1, 1), (1, 6), (6, 1), (1, 2, 1, 3), (1, 1, 3, 1, 2), (*(1,) * (_AXES - 2), 3, 2)):
        asked = (BlobStep(0, "reshape", (shape,)), BlobStep(0, "gpu_shape"))
        steps += asked * (2 if subject.profile == "safe" else 1)
    yield case_of(((2, 3),), tuple(steps))


def element_types(_: Subject) -> Iterator[BlobCase]:
    """Arithmetic on integers is refused, whether they were written or not (B38)."""
    known = "B38-integers-refused"
    bad = [*(refused(known, call) for call in ("update", *NORMS)), *(refused(known, call, 2) for call in SCALES)]
    for dtype in (kind for kind in TYPES if "int" in kind):
        written = (BlobStep(0, "mutable_cpu_data"), BlobStep(0, "mutable_cpu_diff"))
        yield case_of(((2, 3),), (*bad, *written, *bad), dtype)


RULES: tuple[Rule, ...] = (
    forms,
    axes,
    positions,
    limits,
    *ADOPTION_RULES,
    strangers,
    copies,
    unequal_memories,
    shape_on_the_device,
    element_types,
    *ARITHMETIC_RULES,
    no_elements,
    many,
)
"""The rules for every subject; rules about all blobs come before rules about empty blobs."""
