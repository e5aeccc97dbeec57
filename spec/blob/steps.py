"""The calls that the kit makes on blobs under test, and the oracle's expectation of each."""

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

ACCESSORS: dict[str, tuple[Part, str, bool]] = {
    f"{'mutable_' if write else ''}{side}_{part}": (part, side, write)
    for part in ("data", "diff")
    for side in ("cpu", "gpu")
    for write in (False, True)
}
"""The eight accessors: the part, the side, and whether they are for writing."""

ADOPTIONS: dict[str, tuple[Part, str]] = {
    f"set_{side}_{part}": (part, side) for part in ("data", "diff") for side in ("cpu", "gpu")
}
NORMS: dict[str, tuple[Part, bool]] = {
    f"{norm}_{part}": (part, norm == "sumsq") for norm in ("asum", "sumsq") for part in ("data", "diff")
}
SCALES: dict[str, Part] = {"scale_data": "data", "scale_diff": "diff"}


Numbers = Mapping[int, int]
"""The old number of each blob, and its new number."""

_NAME = re.compile(r"\bblob(\d*)\b")


class Performs(Protocol):
    """A driver: an object that makes calls."""

    def perform(self, step: BlobCall, /) -> None:
        """Make one call, and compare everything with the oracle."""
        ...


class Other(NamedTuple):
    """Another blob of the scenario, as an argument."""

    blob: int


class BlobCall(NamedTuple):
    """One call of one blob, or a change of Caffe's mode.

    Attributes
    ----------
    blob : int
        The number of the blob.
    call : str
        The method, or ``"mode"``.
    arguments : tuple
        Plain values, and other blobs as `Other`.  For an adoption: whether there is a buffer.  For ``from_proto``: the
        contents of the message.
    options : tuple of (str, object)
        Keyword arguments.
    about : str
        The requirement that the whole step checks, if it is not the usual one.
    text : str
        The text of the call in the reproducer, if it is not the usual one.
    values : tuple of float
        The numbers to write through the view that the call returns; if empty, the usual whole numbers.
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
        """The blobs that the call uses."""
        return {self.blob, *(given.blob for given in self.arguments if isinstance(given, Other))}

    @property
    def changed(self) -> set[int]:
        """The blobs that the call may change; a copy also brings its source up to date."""
        return self.blobs if self.call == "copy_from" else {self.blob}

    def take(self, driver: Performs) -> None:
        """Make the call, and compare everything with the oracle."""
        driver.perform(self)

    def renumbered(self, numbers: Numbers) -> BlobCall:
        """The call with other numbers of blobs."""
        if self.call == "mode":
            return self
        arguments = tuple(Other(numbers[it.blob]) if isinstance(it, Other) else it for it in self.arguments)
        return self._replace(blob=numbers[self.blob], arguments=arguments, text=renumbered_text(self.text, numbers))


def unmoved(n: int, numbers: Numbers) -> None:
    """Check that a blob keeps its number.

    Raises
    ------
    KeyError
    """
    if numbers[n] != n:
        raise KeyError(n)


def name_of(n: int) -> str:
    """The name of a blob in reproducers."""
    return "blob" if n == 0 else f"blob{n + 1}"


def renumbered_text(text: str, numbers: Numbers) -> str:
    """A text of a reproducer with other numbers of blobs."""
    return _NAME.sub(lambda found: name_of(numbers[int(found[1] or 1) - 1]), text)


def number_of(world: World, n: int, number: int) -> bytes:
    """The numbers that the step of this number writes into a blob."""
    return numbers(number, world.blobs[n].count, world.dtype)


def foresee(world: World, step: BlobCall, number: int) -> Foreseen:
    """The expected effect of a step.

    Parameters
    ----------
    world : World
    step : BlobCall
    number : int
        The number of the step, which determines the numbers in the buffers that it adopts.
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
    """The number of allocator calls of a step that can be made to fail.

    A copy between blobs makes one call more than is foreseen, but on the host it may make none.  If memory is dropped,
    nobody sees the error of its free, so steps that free are left out.
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


def write_of(call: str) -> tuple[Part, str] | None:
    """The part and the side that a call returns for writing; None for other calls."""
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
