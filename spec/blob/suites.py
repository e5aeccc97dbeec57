"""What is enumerated for blobs: every cell of the tables, every short word of calls, every failure."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from syncedmem.model import Mode

from .elements import TYPES, USUAL
from .oracle import World
from .scenarios import Story, in_mode
from .steps import ACCESSORS, ADOPTIONS, NORMS, SCALES, Other, Step, failing_calls, foresee
from .tables import WAYS, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Bench
    from .oracle import Part, Shape

__all__ = ["SUITES", "alphabet", "way"]

_SHAPE, _OTHER = (2, 3), (3, 2)


def way(n: int, part: Part, accessors: tuple[str, ...]) -> tuple[Step, ...]:
    """The steps that bring a part of a blob to a head."""
    return tuple(Step(n, f"{accessor}_{part}") for accessor in accessors)


def _tables(bench: Bench) -> Iterator[Story]:
    """Every cell of the tables, in both modes."""
    for row in rows(bench.device is not None):
        starts = (way(n, part, WAYS[head]) for (n, part), head in zip(row.parts, row.cell.heads, strict=True))
        steps = (in_mode(row.cell.mode), *(step for start in starts for step in start))
        yield Story((_SHAPE, _SHAPE), steps, row=row)


def alphabet(bench: Bench) -> tuple[Step, ...]:
    """Everything that two blobs can be made to do, and can be refused."""
    found = [
        *(Step(n, "reshape", (shape,)) for n in (0, 1) for shape in ((2, 2), (3, 4))),
        Step(0, "reshape", (1, 2, 3, 1)),
        Step(0, "reshape_like", (Other(1),)),
        *(Step(n, f"share_{part}", (Other(1 - n),)) for n in (0, 1) for part in ("data", "diff")),
        *(Step(n, "copy_from", (Other(1 - n),), options) for n in (0, 1) for options in _COPIES),
        Step(0, "copy_from", (Other(0),)),
        *(Step(0, call, (True,)) for call in ADOPTIONS if bench.profile == "safe" or call.endswith("data")),
        Step(1, "set_cpu_data", (True,)),
        Step(0, "set_cpu_data", (False,)),
        *(Step(0, call) for call in ACCESSORS),
        *(Step(1, call) for call in ("mutable_cpu_data", "gpu_data", "mutable_gpu_diff")),
        *(Step(n, "update") for n in (0, 1)),
        *(Step(0, call) for call in NORMS),
        *(Step(0, call, (0.5,)) for call in SCALES),
        Step(0, "data_at", ((1, 1),)),
        Step(0, "diff_at", ((0, 2),)),
        in_mode(Mode.CPU),
    ]
    return (*found, Step(0, "shrink_to_fit")) if bench.profile == "safe" else tuple(found)


_COPIES: tuple[tuple[tuple[str, bool], ...], ...] = ((), (("copy_diff", True),), (("reshape", True),))
_BOTH = (*way(0, "data", ("mutable_cpu",)), *way(1, "data", ("mutable_gpu",)), *way(0, "diff", ("mutable_gpu",)))
_ON_HOST = (*way(0, "data", ("mutable_cpu",)), *way(1, "data", ("mutable_cpu",)), *way(0, "diff", ("mutable_cpu",)))


def _start(bench: Bench) -> tuple[Step, ...]:
    return _ON_HOST if bench.device is None else _BOTH


def _words(bench: Bench) -> Iterator[Story]:
    """Every call of two blobs: while nothing is written, with numbers everywhere, and after each call that tells."""
    letters = alphabet(bench)
    for step in letters:
        yield Story((_SHAPE, _OTHER), (step,))
        yield Story((_SHAPE, _OTHER), (*_start(bench), step))
    for first, second in product(filter(_tells, letters), letters):
        yield Story((_SHAPE, _OTHER), (*_start(bench), first, second))


def _tells(step: Step) -> bool:
    """Whether a call of the first blob changes what another may do, and is not refused."""
    return step.call in _TELLING and not step.blob and not any(given is False for given in step.arguments)


_TELLING = ("reshape", "share_data", "share_diff", "copy_from", *ADOPTIONS, "shrink_to_fit", "mode")
"""The calls that change what another may do: who holds which memory, how large it is, and where it is worked on."""

_TURNS: tuple[Shape, ...] = ((2, 2), (6,), (1, 2, 3), (0, 4), (3, 4), (), (2, 3))


def _shapes(bench: Bench) -> Iterator[Story]:
    """From each head through a row of shapes and back, within the capacity and beyond, alone and shared."""
    looks = (Step(0, "cpu_data"), Step(0, "cpu_diff"), Step(1, "cpu_data"))
    for accessors in WAYS.values():
        if bench.device is None and "gpu" in " ".join(accessors):
            continue
        start = (*way(0, "data", accessors), *way(0, "diff", accessors))
        for shape, other in product(_TURNS, repeat=2):
            word = tuple(Step(0, "reshape", (it,)) for it in (shape, other))
            yield Story((_SHAPE, (1,)), (*start, *word, *looks))
            shared = (Step(1, "share_data", (Other(0),)), *word, *looks)
            yield Story((_SHAPE, _OTHER), (*start, *shared))
    every: tuple[Shape | None, ...] = (*_TURNS, None)
    for it in every:
        for call in ("cpu_data", "mutable_cpu_data", *(("gpu_diff",) if bench.device is not None else ())):
            yield Story((it,), (Step(0, call), Step(0, "reshape", ((5,),)), Step(0, call)))


def _types(bench: Bench) -> Iterator[Story]:
    """Every call with every other type of elements; integers have no arithmetic."""
    for dtype in (it for it in TYPES if it != USUAL):
        for step in alphabet(bench):
            yield Story((_SHAPE, _SHAPE), (*_start(bench), step), dtype)


def _failures(bench: Bench) -> Iterator[Story]:
    """Each call, from several heads and in both modes, while the k-th of its allocator calls fails."""
    for accessors, step, mode in product(WAYS.values(), alphabet(bench), Mode):
        if bench.device is None and "gpu" in f"{' '.join(accessors)} {step.call}":
            continue
        start = (*way(0, "data", accessors), *way(1, "data", accessors), *way(1, "diff", accessors), in_mode(mode))
        if step.call == "shrink_to_fit":
            start = (*start, Step(0, "reshape", (_LESS,)))
        for other in (_SHAPE, *_SOURCES) if ("reshape", True) in step.options else (_SHAPE,):
            shapes = (_SHAPE, other) if step.blob == 0 else (other, _SHAPE)
            for k in range(1, failing_calls(_after(bench, shapes, start), step) + 1):
                yield Story(shapes, (*start, step), failing=k)


_LESS: Shape = (2, 2)
"""So that there is something to give back."""

_SOURCES: tuple[Shape, ...] = ((3, 2), (2, 2), (3, 4))
"""What is copied with its shape: as many elements as there were, fewer, and more than there is memory for."""


def _after(bench: Bench, shapes: tuple[Shape, Shape], steps: tuple[Step, ...]) -> World:
    """What must be the case after some steps of two blobs."""
    world = World(USUAL, bench.device is not None, Mode.GPU).make(shapes[0]).make(shapes[1])
    for step in steps:
        world = foresee(world, step, 0).after
    return world


SUITES: dict[str, Callable[[Bench], Iterator[Story]]] = {
    "tables": _tables,
    "words": _words,
    "shapes": _shapes,
    "types": _types,
    "failures": _failures,
}
"""The enumerated suites by name."""
