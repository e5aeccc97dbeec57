"""Vectors of blobs: the cells of arithmetic and copies, and refusals, with their expected results.

The calls are those of the kit of blobs, and the results those of its oracle.
"""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import EDITIONS, Mode, SyncedHead
from syncedmem.model.caffe import CPU_ONLY, edition_for

from ..blob.cells import WAYS, samples, way
from ..blob.elements import USUAL, decoded, numbers
from ..blob.oracle import ACCESSORS, ADOPTIONS, NORMS, PARTS, SCALES, BlobStates, Other, foresee, write_of
from ..blob.steps import BlobCall, in_mode
from ..engine.heads import FRESH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model import Machine

    from ..blob.oracle import Foreseen, Shape
    from ..requirements import Profile

__all__ = [
    "BLOB_REFUSALS",
    "BLOB_SUITES",
    "RELEASE",
    "BlobProgram",
    "BlobSuite",
    "blob_programs",
    "expected_blob_steps",
]

RELEASE = "release"
"""The operation that drops a blob."""

_SHAPE: Shape = (2, 3)
_OTHER: Shape = (2, 2)
_MOST_AXES = 32
_SIDES: tuple[str, ...] = ("cpu", "gpu")

_WHY: dict[str, tuple[str, str]] = {
    "B30-update-unwritten": ("not_written", "`update` of data that was never written"),
    "B38-integers-refused": ("integers", "arithmetic with integers"),
    "B42-copy-shape": ("other_shape", "a copy from a blob of another shape, without `reshape`"),
    "B27-share-count": ("other_count", "sharing with a blob of another number of elements"),
    "B48-no-device": ("no_gpu", "a call for the device in a build without one"),
    "B68-null-refused": ("null_data", "the argument of `set_*_data` was NULL"),
    "B63-element-in-range": ("out_of_range", "an element that the blob does not have"),
    "B04-extents-checked": ("extents", "a negative extent, or more than 32 axes"),
}
BLOB_REFUSALS: dict[str, str] = dict(_WHY.values())
"""The values of `refusal` in a step of a blob with their meanings."""


class BlobProgram(NamedTuple):
    """Calls on new blobs of one type.

    Attributes
    ----------
    edition : str
    type : str
        The type of the elements.
    shapes : tuple of tuple of int
        The shape of each blob.
    calls : tuple of BlobCall
    profile : {"caffe", "safe"}
    """

    edition: str
    type: str
    shapes: tuple[Shape, ...]
    calls: tuple[BlobCall, ...]
    profile: Profile = "caffe"

    @property
    def machine(self) -> Machine:
        """The edition that its memories are of."""
        return EDITIONS[self.edition]

    @property
    def start(self) -> dict[str, Any]:
        """The blobs at the start, as data."""
        return {"type": self.type, "shapes": [[*shape] for shape in self.shapes]}

    @property
    def operations(self) -> tuple[dict[str, Any], ...]:
        """The calls as data."""
        ends = ({"call": RELEASE, **_of(n)} for n in range(len(self.shapes)))
        return (*(_operation(self, call, number) for number, call in enumerate(self.calls, 1)), *ends)


class BlobSuite(NamedTuple):
    """A group of programs with one purpose.

    Attributes
    ----------
    text : str
    programs : callable
        Makes the programs, with a device or without.
    """

    text: str
    programs: Callable[[bool], Iterator[BlobProgram]]


def blob_programs(suite: str, machine: Machine) -> tuple[BlobProgram, ...]:
    """The programs of a suite, without duplicates; there are none for the edition ``early`` and for other machines.

    Raises
    ------
    KeyError
        If there is no such suite.
    """
    make, has_device = BLOB_SUITES[suite].programs, machine != CPU_ONLY
    return tuple(dict.fromkeys(make(has_device))) if machine == edition_for(has_device=has_device) else ()


def expected_blob_steps(program: BlobProgram) -> list[dict[str, Any]]:
    """The steps of a program: each operation with its expected result."""
    states, steps = _start_of(program), list[dict[str, Any]]()
    calls, operations = iter(program.calls), program.operations
    for number, (operation, call) in enumerate(zip(operations, calls, strict=False), 1):
        if call.call == "mode":
            states = foresee(states, call, number).after
            steps.append(operation)
            continue
        foreseen = _foreseen(states, call, number)
        states = foreseen.after
        if "write" in operation:
            part, side = write_of(call.call) or ("data", "cpu")
            states = states.wrote(call.blob, part, side, numbers(number, states.blobs[call.blob].count, program.type))
        steps.append(
            {**operation, **_result(foreseen, program.type), "blobs": [_seen(states, n) for n in states.blobs]}
        )
    return steps + [{**it, "refusal": None} for it in operations[len(steps) :]]


def _start_of(program: BlobProgram) -> BlobStates:
    states = BlobStates(program.type, program.edition != "cpu_only", Mode.GPU)
    for n, shape in enumerate(program.shapes):
        states = states.make(n, shape)
    return states


def _foreseen(states: BlobStates, call: BlobCall, number: int) -> Foreseen:
    """The expected effect of a call; the oracle has no shapes that are refused."""
    if call.call == "reshape" and (len(call.arguments[0]) > _MOST_AXES or min(call.arguments[0]) < 0):
        refused = foresee(states, call._replace(arguments=(_SHAPE,)), number)
        return refused._replace(after=states, refused="B04-extents-checked", calls=())
    return foresee(states, call, number)


def _result(foreseen: Foreseen, dtype: str) -> dict[str, Any]:
    """The expected result of a call: its refusal, its actions on each memory, and its answer."""
    groups = [[_action(it.operation, it.side) for it, _ in group] for group in foreseen.calls if group]
    result: dict[str, Any] = {"refusal": _WHY[foreseen.refused][0] if foreseen.refused else None, "actions": groups}
    if foreseen.value is not None:
        result["value"] = _whole(foreseen.value)
    if foreseen.view is not None:
        result["shows"] = _numbers(foreseen.view, dtype)
    return result


def _action(operation: str, side: str) -> str:
    return f"{operation}_to_{side}" if operation == "copy" else f"{operation}_{side}"


def _seen(states: BlobStates, n: int) -> dict[str, Any]:
    """What is seen of a blob: its shape, and the head and the numbers of both parts."""
    blob = states.blobs[n]
    parts: dict[str, Any] = {}
    for part in PARTS:
        head = states.head(n, part)
        fresh = {side: _numbers(states.content(n, part, side), states.dtype) for side in _SIDES if side in FRESH[head]}
        parts[part] = {"head": head.name, **{side: fresh.get(side) for side in _SIDES}}
    return {"shape": list(blob.shape), **parts}


def _numbers(content: bytes, dtype: str) -> list[float]:
    return [_whole(it) for it in decoded(content, dtype)]


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _of(n: int) -> dict[str, int]:
    return {"blob": n} if n else {}


def _operation(program: BlobProgram, call: BlobCall, number: int) -> dict[str, Any]:
    if call.call == "mode":
        return {"call": "set_mode", "argument": call.arguments[0].name}
    done: dict[str, Any] = {"call": call.call, **_of(call.blob)}
    if call.call in ADOPTIONS:
        done["argument"] = None
    elif call.arguments:
        first = call.arguments[0]
        done["argument"] = {"blob": first.blob, **dict(call.options)} if isinstance(first, Other) else first
    if write_of(call.call) and (program.edition != "cpu_only" or "gpu" not in call.call):
        done["write"] = _numbers(numbers(number, prod(program.shapes[call.blob]), program.type), program.type)
    return done


# --- suites


def _cells(has_device: bool) -> Iterator[BlobProgram]:
    """Every cell, in both modes."""
    for cell, parts, step in samples(has_device):
        starts = (way(n, part, WAYS[head]) for (n, part), head in zip(parts, cell.heads, strict=True))
        calls = (in_mode(cell.mode), *chain.from_iterable(starts), step)
        yield BlobProgram(edition_for(has_device=has_device).name, USUAL, (_SHAPE, _SHAPE), calls)


def _refusals(has_device: bool) -> Iterator[BlobProgram]:
    """Every refused call, from every head of the data."""
    heads = tuple(SyncedHead) if has_device else (SyncedHead.UNINITIALIZED, SyncedHead.HEAD_AT_CPU)
    for head in heads:
        for dtype, call in _refused(has_device):
            calls, profile = (*way(0, "data", WAYS[head]), call), _profile(head, call)
            yield BlobProgram(edition_for(has_device=has_device).name, dtype, (_SHAPE, _OTHER), calls, profile)


def _profile(head: SyncedHead, call: BlobCall) -> Profile:
    """Whose promise it is that the call changes nothing; the data has this head, and the diff was never written.

    Caffe brings the host side up to date before it checks an index (blob.hpp:191-207), and has changed the count before
    it checks an extent (blob.cpp:23-33).
    """
    looks_first = call.call == "diff_at" or (call.call == "data_at" and "cpu" not in FRESH[head])
    counts_first = call.call == "reshape" and min(call.arguments[0]) < 0
    return "safe" if looks_first or counts_first else "caffe"


def _refused(has_device: bool) -> Iterator[tuple[str, BlobCall]]:
    integers = ("update", *NORMS, *SCALES)
    yield from (("int32", BlobCall(0, call, (2,) if call in SCALES else ())) for call in integers)
    for diff in (False, True):
        yield USUAL, BlobCall(0, "copy_from", (Other(1),), (("copy_diff", True),) if diff else ())
        yield USUAL, BlobCall(0, f"share_{PARTS[diff]}", (Other(1),))
    sides = _SIDES if has_device else ("cpu",)
    yield from ((USUAL, BlobCall(0, f"set_{side}_data", (False,))) for side in sides)
    for indices in ((2, 0), (0, 3), (-1, 0), (0, 0, 0)):
        yield from ((USUAL, BlobCall(0, f"{part}_at", (indices,))) for part in PARTS)
    yield from ((USUAL, BlobCall(0, "reshape", (shape,))) for shape in ((-1,), (2, -3), (1,) * (_MOST_AXES + 1)))
    if not has_device:
        yield from ((USUAL, BlobCall(0, call)) for call, (_, side, _) in ACCESSORS.items() if side == "gpu")


BLOB_SUITES: dict[str, BlobSuite] = {
    "blob-cells": BlobSuite("every cell of arithmetic and copies of blobs, in both modes", _cells),
    "blob-refusals": BlobSuite("every call of a blob that is refused, from every head of its data", _refusals),
}
"""Every suite of blobs by name."""
