"""The calls that can be made of blobs under test, and what the oracle foresees of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from syncedmem.model import Mode

from .elements import encoded, numbers
from .oracle import Duty, Foreseen

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.calls import Side
    from .oracle import Part, Shape, World

__all__ = [
    "ACCESSORS",
    "ADOPTIONS",
    "NORMS",
    "SCALES",
    "BlobCall",
    "Numbers",
    "Other",
    "failing_calls",
    "foresee",
    "name_of",
    "number_of",
    "renumbered_text",
    "unmoved",
    "write_of",
]

ACCESSORS: dict[str, tuple[Part, Side, bool]] = {
    f"{'mutable_' if write else ''}{side}_{part}": (part, side, write)
    for part in ("data", "diff")
    for side in ("cpu", "gpu")
    for write in (False, True)
}
"""The eight accessors: of which part, on which side, and whether to write."""

ADOPTIONS: dict[str, tuple[Part, Side]] = {
    f"set_{side}_{part}": (part, side) for part in ("data", "diff") for side in ("cpu", "gpu")
}
NORMS: dict[str, tuple[Part, bool]] = {
    f"{norm}_{part}": (part, norm == "sumsq") for norm in ("asum", "sumsq") for part in ("data", "diff")
}
SCALES: dict[str, Part] = {"scale_data": "data", "scale_diff": "diff"}


Numbers = Mapping[int, int]
"""The numbers that blobs had, and those that they have now."""

_NAME = re.compile(r"\bblob(\d*)\b")


class Performs(Protocol):
    """What makes calls: a driver."""

    def perform(self, step: BlobCall, /) -> None:
        """Make one call, and compare everything."""
        ...


class Other(NamedTuple):
    """Another blob of the scenario, as an argument."""

    blob: int


class BlobCall(NamedTuple):
    """One call of one blob, or a change of Caffe's mode.

    Attributes
    ----------
    blob : int
        Which one.
    call : str
        The method, or ``"mode"``.
    arguments : tuple
        Plain values, other blobs as `Other`.  An adoption takes whether anything is handed in, and ``from_proto``
        what is in the message.
    options : tuple of (str, object)
        Keyword arguments.
    about : str
        The requirement that all of it is for, where it is not the usual one.
    text : str
        How the reproducer says it, where that is not the usual way.
    values : tuple of float
        What to write through the view that the call hands out, in place of whole numbers of its own.
    """

    blob: int
    call: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    about: str = ""
    text: str = ""
    values: tuple[float, ...] = ()

    @property
    def blobs(self) -> set[int]:
        """The blobs that it names."""
        return {self.blob, *(given.blob for given in self.arguments if isinstance(given, Other))}

    @property
    def changed(self) -> set[int]:
        """The blobs that it may change: a copy brings its source up to date too."""
        return self.blobs if self.call == "copy_from" else {self.blob}

    def take(self, driver: Performs) -> None:
        """Make the call, and compare everything."""
        driver.perform(self)

    def renumbered(self, numbers: Numbers) -> BlobCall:
        """The call with other numbers of blobs."""
        if self.call == "mode":
            return self
        arguments = tuple(Other(numbers[it.blob]) if isinstance(it, Other) else it for it in self.arguments)
        return self._replace(blob=numbers[self.blob], arguments=arguments, text=renumbered_text(self.text, numbers))


def unmoved(n: int, numbers: Numbers) -> None:
    """See that a blob keeps its number.

    Raises
    ------
    KeyError
    """
    if numbers[n] != n:
        raise KeyError(n)


def name_of(n: int) -> str:
    """What reproducers call a blob."""
    return "blob" if n == 0 else f"blob{n + 1}"


def renumbered_text(text: str, numbers: Numbers) -> str:
    """A text of a reproducer with other numbers of blobs."""
    return _NAME.sub(lambda found: name_of(numbers[int(found[1] or 1) - 1]), text)


def number_of(world: World, n: int, number: int) -> bytes:
    """The numbers that the step of this number writes into a blob."""
    return numbers(number, world.blobs[n].count, world.dtype)


def foresee(world: World, step: BlobCall, number: int) -> Foreseen:
    """What must be seen of a step.

    Parameters
    ----------
    world : World
    step : BlobCall
    number : int
        Of the step: what it hands in are these numbers.
    """
    n, call, arguments, options, *_ = step
    if call in ACCESSORS:
        part, side, write = ACCESSORS[call]
        return world.access(n, part, side, write=write)
    if call in ADOPTIONS:
        return world.adopt(n, *ADOPTIONS[call], number_of(world, n, number) if arguments[0] else None)
    if call in NORMS:
        return world.norm(n, *NORMS[call])
    if call in SCALES:
        return world.scale(n, SCALES[call], *arguments)
    return _CALLS[call](world, n, *arguments, **dict(options))


def failing_calls(world: World, step: BlobCall) -> int:
    """How many allocator calls of a step can be made to fail.

    A copy between blobs is one call more than is foreseen; on the host it need not be one.  A free of memory that is
    dropped has nobody to tell, so what frees is left alone.
    """
    foreseen = foresee(world, step, 0)
    if foreseen.refused or step.call == "mode":
        return 0
    on_device, frees = world.mode is Mode.GPU and world.has_device, world.held - foreseen.after.held
    return sum(map(len, foreseen.calls)) + (step.call == "copy_from" and (on_device or not frees))


def _reshape_like(world: World, n: int, other: Other) -> Foreseen:
    return world.reshape(n, world.blobs[other.blob].shape)


def _copy_from(world: World, n: int, other: Other, copy_diff: bool = False, reshape: bool = False) -> Foreseen:
    return world.copy_from(n, other.blob, copy_diff=copy_diff, reshape=reshape)


def _mode(world: World, _: int, mode: Mode) -> Foreseen:
    known = "B21-accessors"
    return Foreseen(Duty(known, known), world.in_mode(mode))


def write_of(call: str) -> tuple[Part, Side] | None:
    """The part and the side that a call hands out to be written; None for others."""
    part, side, write = ACCESSORS.get(call, ("data", "cpu", False))
    return (part, side) if write else None


def _shrink(world: World, n: int) -> Foreseen:
    return world.shrink_to_fit(n)


def _update(world: World, n: int) -> Foreseen:
    return world.update(n)


def _reshape(world: World, n: int, *shape: Any) -> Foreseen:
    return world.reshape(n, shape[0] if len(shape) == 1 else shape)


def _from_proto(world: World, n: int, shape: Shape, numbers: dict[Part, tuple[float, ...]]) -> Foreseen:
    return world.load(n, shape, {part: encoded(values, world.dtype) for part, values in numbers.items()})


def _shared(part: Part, world: World, n: int, other: Other) -> Foreseen:
    return world.share(n, part, other.blob)


def _element(part: Part, world: World, n: int, indices: Shape) -> Foreseen:
    return world.at(n, part, indices)


_CALLS: dict[str, Callable[..., Foreseen]] = {
    **{f"share_{part}": partial(_shared, part) for part in ("data", "diff")},
    **{f"{part}_at": partial(_element, part) for part in ("data", "diff")},
    "reshape": _reshape,
    "reshape_like": _reshape_like,
    "shrink_to_fit": _shrink,
    "update": _update,
    "copy_from": _copy_from,
    "mode": _mode,
    "from_proto": _from_proto,
}
