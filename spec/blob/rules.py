"""Rules of blobs as scenarios: about shapes, axes and positions, and about all calls that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from syncedmem.model import Mode

from .arithmetic import ARITHMETIC_RULES, many
from .cells import WAYS, way
from .claims import offers_messages
from .elements import TYPES
from .messages import MESSAGES
from .oracle import ACCESSORS, NORMS, PARTS, SCALES, Other
from .ownership import ADOPTION_RULES
from .scenarios import Scenario
from .steps import BlobCall, Check, Extents, Prepare, in_mode, refused

if TYPE_CHECKING:
    from ..engine.subject import Subject
    from .oracle import Shape
    from .steps import BlobStep

__all__ = ["RULES", "Rule", "rules"]

Rule = Callable[["Subject"], Iterator[Scenario]]
"""The scenarios of one rule."""

_AXES, _LEGACY = 32, 4
_INT_MAX = (1 << 31) - 1
_NAMES = ("num", "channels", "height", "width")
_SHAPES: tuple[Shape, ...] = ((), (4,), (3, 2), (2, 3, 4), (2, 3, 4, 5), (2, 0, 3), (1, 2, 1, 2, 3))
# A copy of no bytes may be asked for.
_ASKED = "tuple(it.operation for it in log.calls if it.byte_size or it.operation != 'clone')"
_SHAPE_STRING = "blob.shape_string() if callable(blob.shape_string) else blob.shape_string"


def rules(subject: Subject) -> Iterator[Scenario]:
    """The scenarios of all rules; those of messages come last, if the blobs have messages."""
    for rule in (*RULES, *MESSAGES) if offers_messages(subject) else RULES:
        yield from rule(subject)


def forms(subject: Subject) -> Iterator[Scenario]:
    """Every form of a shape has the same effect (B01, B03, B04, B08)."""
    known, four = "B04-reshape-forms", (2, 3, 4, 5)
    shape_and_count = "(tuple(blob.shape), blob.num_axes, blob.count)"
    steps: list[BlobStep] = [Check("B01-empty", "(blob.count, blob.num_axes, tuple(blob.shape))", (0, 0, ()))]
    if subject.profile == "safe":
        for shape in ((6,), (2, 3), (1, 2, 1, 3, 1)):
            numbers = ", ".join(map(str, shape))
            steps.append(BlobCall(0, "reshape", (shape,), about=known, text=f"blob.reshape({numbers})"))
    for text in ("2, 3, 4, 5", "[2, 3, 4, 5]", "SimpleNamespace(dim=[2, 3, 4, 5])"):
        steps += (
            BlobCall(0, "reshape", (four,), about=known, text=f"blob.reshape({text})"),
            Check("B03-shape", shape_and_count, (four, 4, 120)),
            Check("B08-equal-sizes", "(blob.data_memory.size, blob.diff_memory.size)", (480, 480)),
            BlobCall(0, "reshape", ((3,),)),
        )
    steps += (
        BlobCall(0, "reshape_like", (Other(1),), about=known),
        BlobCall(0, "reshape", ((),), about="B03-shape"),
        Check("B03-shape", shape_and_count, ((), 0, 1)),
    )
    yield Scenario((None, four), tuple(steps))


def axes(_: Subject) -> Iterator[Scenario]:
    """Names, axes and volumes of every kind of shape (B02, B09 to B14)."""
    for shape in _SHAPES:
        count = len(shape)
        text = "".join(f"{extent} " for extent in shape) + f"({prod(shape)})"
        steps: list[BlobStep] = [Check("B09-shape-string", _SHAPE_STRING, text)]
        steps += (
            Check("B10-canonical-axis", f"blob.canonical_axis_index({axis})", axis % count)
            for axis in range(-count, count)
        )
        steps += refused("B10-canonical-axis", *(f"blob.canonical_axis_index({it})" for it in (count, -count - 1)))
        for start, end in ((a, b) for a in range(count + 1) for b in range(a, count + 1)):
            steps.append(Check("B11-count-axes", f"blob.count_axes({start}, {end})", prod(shape[start:end])))
        steps.append(Check("B11-count-axes", "blob.count_axes(0)", prod(shape)))
        bad = ((-1, count), (0, -1), (0, count + 1), (count + 1, count + 1), *(((1, 0),) if count else ()))
        steps += refused("B11-count-axes", *(f"blob.count_axes({start}, {end})" for start, end in bad))
        yield Scenario((shape,), (*steps, *_legacy(shape)))


def _legacy(shape: Shape) -> Iterator[BlobStep]:
    if len(shape) > _LEGACY:
        calls = [f"blob.{name}" for name in _NAMES] + [f"blob.legacy_shape({axis})" for axis in (-4, 0, 3)]
        yield from refused("B14-legacy-limit", *calls, "blob.offset(0)", "blob.data_at(0)")
        return
    behind = (*shape, *(1,) * (_LEGACY - len(shape)))
    before = (*(1,) * (_LEGACY - len(shape)), *shape)
    for axis, name in enumerate(_NAMES):
        yield Check("B12-legacy-shape", f"blob.legacy_shape({axis})", behind[axis])
        yield Check("B12-legacy-shape", f"blob.legacy_shape({axis - _LEGACY})", before[axis])
        yield Check("B13-legacy-names", f"blob.{name}", behind[axis])
    yield from refused("B14-legacy-limit", "blob.legacy_shape(4)", "blob.legacy_shape(-5)")


def positions(subject: Subject) -> Iterator[Scenario]:
    """Offsets, and the elements at them (B15, B16, B18, B62, B63)."""
    for shape in ((2, 3, 4, 5), (3, 2), (4,)):
        yield Scenario((shape,), (*_offsets(subject, shape), *_elements(subject, shape)))
    for many_axes in ((1, 2, 1, 3, 2), (2, *(1,) * (_AXES - 2), 3)):
        last = [extent - 1 for extent in many_axes]
        offset = Check("B16-offset-sequence", f"blob.offset({last})", prod(many_axes) - 1)
        yield Scenario((many_axes,), (offset, *_elements(subject, many_axes)))


def _offsets(subject: Subject, shape: Shape) -> Iterator[BlobStep]:
    four = (*shape, *(1,) * (_LEGACY - len(shape)))
    # On every axis that the numbers reach, one past the end is accepted.
    for n, c, h, w in product(*({0, extent // 2, extent} for extent in four)):
        position = ((n * four[1] + c) * four[2] + h) * four[3] + w
        yield Check("B15-offset-numbers", f"blob.offset({n}, {c}, {h}, {w})", position)
    yield Check("B15-offset-numbers", "blob.offset(1)", prod(four[1:]))
    beyond = [tuple((extent + 1) * (axis == at) for at in range(_LEGACY)) for axis, extent in enumerate(four)]
    yield from refused("B15-offset-numbers", *(f"blob.offset{indices}" for indices in beyond))
    if subject.profile == "safe":
        negative = [tuple(-(axis == at) for at in range(_LEGACY)) for axis in range(1, _LEGACY)]
        yield from refused("B62-negative-index", *(f"blob.offset{indices}" for indices in negative))
    yield from refused("B15-offset-numbers", "blob.offset(-1)")
    for length in range(1, len(shape) + 1):
        indices = tuple(extent - 1 for extent in shape[:length])
        position = sum(index * prod(shape[axis + 1 :]) for axis, index in enumerate(indices))
        yield Check("B16-offset-sequence", f"blob.offset({list(indices)})", position)
    outside = (list(shape), [-1], [0] * (len(shape) + 1))
    yield from refused("B16-offset-sequence", *(f"blob.offset({indices})" for indices in outside))


def _elements(subject: Subject, shape: Shape) -> Iterator[BlobStep]:
    last = tuple(extent - 1 for extent in shape)
    for part, side in product(PARTS, ("cpu", "gpu")):
        if side in subject.sides:
            yield BlobCall(0, f"mutable_{side}_{part}")
        yield BlobCall(0, f"{part}_at", (last,))
        yield BlobCall(0, f"{part}_at", ((0,) * len(shape),))
        if subject.profile == "safe":
            # Without a check of each index, the index behind the first row is an element of the next row.
            beyond = (*(0,) * (len(shape) - 1), shape[-1])
            outside = (list(shape), f"*{shape}", list(beyond), f"*{beyond}", [-1])
            yield from refused("B63-element-in-range", *(f"blob.{part}_at({indices})" for indices in outside))


def limits(subject: Subject) -> Iterator[Scenario]:
    """Shapes that no blob can have change nothing, at any head (B19, B20, B44, B47, B56, B65)."""
    for accessors in _ways(subject):
        steps: list[BlobStep] = [
            *way(0, "data", accessors),
            *way(0, "diff", accessors),
            BlobCall(1, "share_data", (Other(0),)),
        ]
        if subject.profile == "safe":
            text = f"blob2.reshape(SimpleNamespace(dim=[{(1 << 32) + 3}, 2]))"
            steps.append(BlobCall(1, "reshape", (((1 << 32) + 3, 2),), about="B47-wide-count", text=text))
        bad = [*refused("B19-max-axes", f"blob.reshape({(1,) * (_AXES + 1)})")]
        bad += refused("B20-negative-extent", "blob.reshape((7, 8, -1, 9))", "blob.reshape(7, 8, 9, -1)")
        bad += refused("B20-negative-extent", "blob.reshape((0, -1))", "blob.reshape((-2, -3))")
        if subject.profile == "safe":
            too_many = (f"{(1 << 21, 1 << 21, 1 << 21)}", f"{(1 << 63,)}")
            others = ("(2.5, 2)", "('2', 3)", "None", "'23'", "(None,)", "{2, 3}", "{2: 3}")
            bad += refused("B65-too-large", *(f"blob.reshape({it})" for it in (*too_many, *others)))
        else:
            bad += refused("B44-int-count", f"blob.reshape({(65536, 65536)})", f"blob.reshape({(_INT_MAX, 2)})")
        good = (BlobCall(0, "reshape", ((1,) * _AXES,)), BlobCall(0, "reshape", ((0, _INT_MAX, _INT_MAX),)))
        # In Caffe a shape that is refused half-way is half set, so nothing comes after it there.
        ends: list[tuple[BlobStep, ...]] = [(*bad, *good)] if subject.profile == "safe" else [(*bad,), good]
        yield from (Scenario(((2, 3), (6,)), (*steps, *end)) for end in ends)


def _ways(subject: Subject) -> Iterator[tuple[str, ...]]:
    """The ways to the heads that this subject has."""
    return (it for it in WAYS.values() if subject.device is not None or "gpu" not in " ".join(it))


def strangers(subject: Subject) -> Iterator[Scenario]:
    """A blob of another size or type, or another object, is neither shared nor copied (B27, B42, B58)."""
    steps: list[BlobStep] = [
        BlobCall(0, "mutable_cpu_data"),
        BlobCall(1, "mutable_cpu_diff"),
        BlobCall(2, "mutable_cpu_data"),
        *refused("B27-share-count", "blob.share_data(blob3)", "blob.share_diff(blob3)"),
        *refused("B42-copy-shape", "blob.copy_from(blob2)", "blob.copy_from(blob3)", "blob.copy_from(blob2, True)"),
    ]
    if subject.profile == "safe":
        steps.append(Prepare("stranger = subject.make((2, 3), dtype='int32', host=host, device=device)"))
        for other in ("stranger", "None", "blob.data_memory", "object()"):
            calls = (f"share_data({other})", f"share_diff({other})", f"copy_from({other})", f"copy_from({other}, True)")
            steps += refused("B58-type-mismatch", *(f"blob.{call}" for call in calls))
        steps += refused("B58-type-mismatch", "blob.copy_from(stranger, reshape=True)")
        if subject.program is not None:
            steps.append(Prepare("stranger.drop()"))
        steps.append(Prepare("del stranger"))
    yield Scenario(((2, 3), (3, 2), (2, 4)), tuple(steps))


def copies(subject: Subject) -> Iterator[Scenario]:
    """Copies from the blob itself, and with a new shape, within the capacity and beyond it (B41, B43)."""
    for part, accessors in product(PARTS, _ways(subject)):
        options = (("copy_diff", True),) if part == "diff" else ()
        steps: list[BlobStep] = [step for n in range(3) for step in way(n, part, accessors)]
        own = BlobCall(0, "copy_from", (Other(0),), options)
        steps += (own, in_mode(Mode.CPU), own, in_mode(Mode.GPU))
        for target, source in ((0, 1), (1, 2), (2, 1), (1, 0)):
            flags = (*options, ("reshape", True))
            steps.append(BlobCall(target, "copy_from", (Other(source),), flags, about="B41-copy-reshape"))
        yield Scenario(((2, 3), (3, 4), (5,)), tuple(steps))


def unequal_memories(subject: Subject) -> Iterator[Scenario]:
    """A blob grows as soon as one of its two memories is too small (B06, B07, B46)."""
    if subject.profile != "safe":
        return
    for part, accessors in product(PARTS, _ways(subject)):
        start = (*way(0, "data", accessors), *way(0, "diff", accessors), BlobCall(0, "reshape", ((2, 3),)))
        grows = (BlobCall(0, "reshape", ((3, 4),)), BlobCall(0, "cpu_data"), BlobCall(0, "cpu_diff"))
        yield Scenario(((3, 4), (6,)), (*start, BlobCall(0, f"share_{part}", (Other(1),)), *grows))
        yield Scenario(((3, 4),), (*start, BlobCall(0, "set_cpu_diff", (True,)), *grows))


def no_elements(subject: Subject) -> Iterator[Scenario]:
    """A blob without elements accepts every call (B64)."""
    if subject.profile != "safe":
        return
    known = "B64-no-elements"
    calls = [call for call in ACCESSORS if ACCESSORS[call][1] in subject.sides]
    steps = [BlobCall(0, call) for call in (*calls, *NORMS)]
    steps += [BlobCall(0, call, (2.0,)) for call in SCALES]
    steps += [BlobCall(0, "update"), BlobCall(0, "copy_from", (Other(1),)), BlobCall(0, "share_data", (Other(1),))]
    steps += [BlobCall(0, "set_cpu_data", (True,)), BlobCall(0, "set_cpu_diff", (True,)), BlobCall(0, "shrink_to_fit")]
    about = [step._replace(about=known) for step in steps]
    shapes: tuple[Shape | None, ...] = (None, (0,), (2, 0, 3))
    for shape in shapes:
        extents = (Extents(),) if subject.device is not None and shape is not None else ()
        yield Scenario((shape, shape), (*about, Check(known, _ASKED, ()), *extents))


def shape_on_the_device(subject: Subject) -> Iterator[Scenario]:
    """The extents are on the device when they are requested, and are not sent twice (B17, B61)."""
    if subject.device is None:
        return
    yield Scenario((None,), refused("B17-gpu-shape", "blob.gpu_shape()"))
    steps: list[BlobStep] = []
    for shape in ((2, 3), (6, 1, 1), (1, 6), (6, 1), (1, 2, 1, 3), (1, 1, 3, 1, 2), (*(1,) * (_AXES - 2), 3, 2)):
        reshape = BlobCall(0, "reshape", (shape,))
        steps += (reshape, Extents())
        if subject.profile == "safe":
            steps += (reshape, Extents(again=True))
    yield Scenario(((2, 3),), tuple(steps))


def element_types(_: Subject) -> Iterator[Scenario]:
    """Arithmetic on integers is refused, whether they were written or not (B38)."""
    calls = ["update()", *(f"{norm}()" for norm in NORMS), *(f"{scale}(2)" for scale in SCALES)]
    bad = refused("B38-integers-refused", *(f"blob.{call}" for call in calls))
    for dtype in (it for it in TYPES if "int" in it):
        written = (BlobCall(0, "mutable_cpu_data"), BlobCall(0, "mutable_cpu_diff"))
        yield Scenario(((2, 3),), (*bad, *written, *bad), dtype)


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
