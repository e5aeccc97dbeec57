"""What is enumerated for blobs: every cell of the tables, every short word of calls, every failure."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from syncedmem.model import Mode

from .elements import TYPES
from .steps import ACCESSORS, ADOPTIONS, NORMS, SCALES, Other, Step
from .stories import Story, in_mode
from .tables import WAYS, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..subject import Bench
    from .oracle import Part

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
    for first, second in product((step for step in letters if step.call in _TELLING), letters):
        yield Story((_SHAPE, _OTHER), (*_start(bench), first, second))


_TELLING = ("reshape", "share_data", "share_diff", "copy_from", *ADOPTIONS, "shrink_to_fit", "update", "mode")
"""The calls that change what another may do: who holds which memory, how large it is, and where the numbers are."""

_TURNS = ((2, 2), (6,), (1, 2, 3), (0, 4), (3, 4), (), (2, 3))


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
    for shape in (*_TURNS, None):
        for call in ("cpu_data", "mutable_cpu_data", *(("gpu_diff",) if bench.device is not None else ())):
            yield Story((shape,), (Step(0, call), Step(0, "reshape", ((5,),)), Step(0, call)))


def _types(bench: Bench) -> Iterator[Story]:
    """Every call with every type of elements; integers have no arithmetic."""
    for dtype in TYPES:
        for start in ((), _start(bench)):
            for step in alphabet(bench):
                yield Story((_SHAPE, _SHAPE), (*start, step), dtype)


_FAILURES = 5
"""No call of a blob calls its allocators as often."""


def _failures(bench: Bench) -> Iterator[Story]:
    """Each call, from several heads, while the k-th of its allocator calls fails."""
    for accessors, step in product(WAYS.values(), alphabet(bench)):
        if step.call == "mode" or (bench.device is None and "gpu" in f"{' '.join(accessors)} {step.call}"):
            continue
        if step.call in ADOPTIONS and not step.arguments[0]:
            continue
        start = (*way(0, "data", accessors), *way(1, "data", accessors), *way(1, "diff", accessors))
        for k, mode in product(range(1, _FAILURES), Mode):
            yield Story((_SHAPE, _SHAPE), (*start, in_mode(mode), step), failing=k)


SUITES: dict[str, Callable[[Bench], Iterator[Story]]] = {
    "tables": _tables,
    "words": _words,
    "shapes": _shapes,
    "types": _types,
    "failures": _failures,
}
"""The enumerated suites by name."""
