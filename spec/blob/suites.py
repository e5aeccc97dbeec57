"""The enumerated tests of blobs: rules, every cell of arithmetic and copies, short sequences of calls, and failures."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from syncedmem.model import Mode

from .cells import samples, way, way_to, ways_of
from .elements import USUAL, types_for
from .oracle import ACCESSORS, ADOPTIONS, NORMS, SCALES, BlobStates, failing_calls, foresee
from .rules import rules
from .steps import GIVEN, PARTS, BlobStep, Other, case_of, in_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .steps import BlobCase, Shape

__all__ = ["SUITES", "alphabet"]

_SHAPE, _OTHER = (2, 3), (3, 2)


def _tables(subject: Subject) -> Iterator[BlobCase]:
    """Every cell, in both modes."""
    for cell, parts, step in samples(subject.device is not None):
        starts = (way_to(head, n, part) for (n, part), head in zip(parts, cell.heads, strict=True))
        steps = (in_mode(cell.mode), *(before for start in starts for before in start))
        yield case_of((_SHAPE, _SHAPE), (*steps, step))


def alphabet(subject: Subject) -> tuple[BlobStep, ...]:
    """All calls of two blobs that the suites use, also some that are refused."""
    steps = [
        *(BlobStep(n, "reshape", (shape,)) for n in (0, 1) for shape in ((2, 2), (3, 4))),
        BlobStep(0, "reshape", (1, 2, 3, 1)),
        BlobStep(0, "reshape_like", (Other(1),)),
        *(BlobStep(n, f"share_{part}", (Other(1 - n),)) for n in (0, 1) for part in PARTS),
        *(BlobStep(n, "copy_from", (Other(1 - n),), options) for n in (0, 1) for options in _COPIES),
        BlobStep(0, "copy_from", (Other(0),)),
        *(BlobStep(0, call, (GIVEN,)) for call in ADOPTIONS if subject.profile == "safe" or call.endswith("data")),
        BlobStep(1, "set_cpu_data", (GIVEN,)),
        BlobStep(0, "set_cpu_data", (None,)),
        *(BlobStep(0, call) for call in ACCESSORS),
        *(BlobStep(1, call) for call in ("mutable_cpu_data", "gpu_data", "mutable_gpu_diff")),
        *(BlobStep(n, "update") for n in (0, 1)),
        *(BlobStep(0, call) for call in NORMS),
        *(BlobStep(0, call, (0.5,)) for call in SCALES),
        BlobStep(0, "data_at", ((1, 1),)),
        BlobStep(0, "diff_at", ((0, 2),)),
        in_mode(Mode.CPU),
    ]
    return (*steps, BlobStep(0, "shrink_to_fit")) if subject.profile == "safe" else tuple(steps)


_COPIES: tuple[tuple[tuple[str, bool], ...], ...] = ((), (("copy_diff", True),), (("reshape", True),))
_BOTH = (*way(0, "data", ("mutable_cpu",)), *way(1, "data", ("mutable_gpu",)), *way(0, "diff", ("mutable_gpu",)))
_ON_HOST = (*way(0, "data", ("mutable_cpu",)), *way(1, "data", ("mutable_cpu",)), *way(0, "diff", ("mutable_cpu",)))


def _start(subject: Subject) -> tuple[BlobStep, ...]:
    return _ON_HOST if subject.device is None else _BOTH


def _sequences(subject: Subject) -> Iterator[BlobCase]:
    """Every call of two blobs: on new blobs, with numbers everywhere, and after each call that affects later calls.

    And every view for reading before and after a write.
    """
    calls = alphabet(subject)
    for step in calls:
        yield case_of((_SHAPE, _OTHER), (step,))
        yield case_of((_SHAPE, _OTHER), (*_start(subject), step))
    for first, second in product(filter(_tells, calls), calls):
        yield case_of((_SHAPE, _OTHER), (*_start(subject), first, second))
    for part, here, there in product(PARTS, *(subject.sides,) * 2):
        look = BlobStep(0, f"{here}_{part}")
        yield case_of((_SHAPE, _OTHER), (*_start(subject), look, BlobStep(0, f"mutable_{there}_{part}"), look))


def _tells(step: BlobStep) -> bool:
    """Whether a call of the first blob affects later calls, and is not refused."""
    return step.call in _TELLING and not step.blob and None not in step.arguments


_TELLING = ("reshape", "share_data", "share_diff", "copy_from", *ADOPTIONS, "shrink_to_fit", "mode")
"""Calls that affect later calls: they change who holds a memory, its size, or the side of the work."""


def _has_elements(shape: Shape) -> bool:
    return 0 not in shape


_TURNS: tuple[Shape, ...] = ((2, 2), (6,), (1, 2, 3), (0, 4), (3, 4), (), (2, 3))


def _shapes(subject: Subject) -> Iterator[BlobCase]:
    """From each head through two shapes and back, within the capacity and beyond it, alone and shared."""
    looks = (BlobStep(0, "cpu_data"), BlobStep(0, "cpu_diff"), BlobStep(1, "cpu_data"))
    for accessors in ways_of(subject):
        start = (*way(0, "data", accessors), *way(0, "diff", accessors))
        for shape, other in product(_TURNS, repeat=2):
            sequence = tuple(BlobStep(0, "reshape", (given,)) for given in (shape, other))
            yield case_of((_SHAPE, (1,)), (*start, *sequence, *looks))
            shared = (BlobStep(1, "share_data", (Other(0),)), *sequence, *looks)
            yield case_of((_SHAPE, _OTHER), (*start, *shared))
    every: tuple[Shape | None, ...] = (*_TURNS, None)
    # Caffe makes no memories for a blob that never had an element, and has no data there (blob.cpp:40, 85).
    for turn in every if subject.profile == "safe" else filter(_has_elements, _TURNS):
        for call in ("cpu_data", "mutable_cpu_data", *(("gpu_diff",) if subject.device is not None else ())):
            yield case_of((turn,), (BlobStep(0, call), BlobStep(0, "reshape", ((5,),)), BlobStep(0, call)))


def _types(subject: Subject) -> Iterator[BlobCase]:
    """Every call with every other type of elements; integers have no arithmetic."""
    for dtype in (dtype for dtype in types_for(subject.profile) if dtype != USUAL):
        for step in alphabet(subject):
            yield case_of((_SHAPE, _SHAPE), (*_start(subject), step), dtype)


def _failures(subject: Subject) -> Iterator[BlobCase]:
    """Each call, from several heads and in both modes, with a failure of the k-th of its allocator calls."""
    for accessors, step, mode in product(ways_of(subject), alphabet(subject), Mode):
        if subject.device is None and "gpu" in step.call:
            continue
        start = (*way(0, "data", accessors), *way(1, "data", accessors), *way(1, "diff", accessors), in_mode(mode))
        if step.call == "shrink_to_fit":
            start = (*start, BlobStep(0, "reshape", (_LESS,)))
        for other in (_SHAPE, *_SOURCES) if ("reshape", True) in step.options else (_SHAPE,):
            shapes = (_SHAPE, other) if step.blob == 0 else (other, _SHAPE)
            for k in range(1, failing_calls(_after(subject, shapes, start), step) + 1):
                yield case_of(shapes, (*start, step._replace(fail=k)))


_LESS: Shape = (2, 2)
"""A smaller shape, so that `shrink_to_fit` has memory to free."""

_SOURCES: tuple[Shape, ...] = ((3, 2), (2, 2), (3, 4))
"""Shapes of sources: with as many elements as before, with fewer, and with more than fit into the memory."""


def _after(subject: Subject, shapes: tuple[Shape, Shape], steps: tuple[BlobStep, ...]) -> BlobStates:
    """The expected state after some steps of two blobs."""
    states = BlobStates(subject.device is not None)
    for step in case_of(shapes, steps):
        states = foresee(states, step).after
    return states


SUITES: dict[str, Callable[[Subject], Iterator[BlobCase]]] = {
    "rules": rules,
    "tables": _tables,
    "sequences": _sequences,
    "shapes": _shapes,
    "types": _types,
    "failures": _failures,
}
"""The enumerated suites by name."""
