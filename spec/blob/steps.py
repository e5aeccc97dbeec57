"""What can be done to blobs under test: steps, and what the oracle foresees of each call."""

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
    from .driver import BlobDriver
    from .oracle import Part, Shape, World

__all__ = [
    "ACCESSORS",
    "ADOPTIONS",
    "NORMS",
    "SCALES",
    "AskedNothing",
    "BlobCall",
    "Extents",
    "Fail",
    "Lend",
    "Numbers",
    "Other",
    "Prepare",
    "Refusal",
    "Shows",
    "Step",
    "Unchanged",
    "failing_calls",
    "foresee",
    "name_of",
    "number_of",
    "refused",
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

    def take(self, driver: BlobDriver) -> None:
        """Make the call, and compare everything."""
        driver.perform(self)

    def renumbered(self, numbers: Numbers) -> BlobCall:
        """The call with other numbers of blobs."""
        if self.call == "mode":
            return self
        arguments = tuple(Other(numbers[it.blob]) if isinstance(it, Other) else it for it in self.arguments)
        return self._replace(blob=numbers[self.blob], arguments=arguments, text=_renumbered(self.text, numbers))


class Fail(NamedTuple):
    """A call whose k-th allocator call fails, from 1."""

    step: BlobCall
    k: int

    def take(self, driver: BlobDriver) -> None:
        """Make the call, which fails, and make it again."""
        driver.perform_failing(self.step, self.k)

    def renumbered(self, numbers: Numbers) -> Fail:
        """The call with other numbers of blobs."""
        return Fail(self.step.renumbered(numbers), self.k)


class Refusal(NamedTuple):
    """A call, as the reproducer has it, that must be refused; what it breaks if it is not."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """See that it raises and changes nothing."""
        driver.refused(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Refusal:
        """The call with other numbers of blobs."""
        return Refusal(self.requirement, _renumbered(self.call, numbers))


class Unchanged(NamedTuple):
    """A call that is taken and changes nothing; what it breaks if it does."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """See that it changes nothing."""
        driver.unchanged(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Unchanged:
        """The call with other numbers of blobs."""
        return Unchanged(self.requirement, _renumbered(self.call, numbers))


class Shows(NamedTuple):
    """An expression, and what it must be; what it breaks if it is not."""

    requirement: str
    expression: str
    expected: object

    def take(self, driver: BlobDriver) -> None:
        """See what it is, and that looking changes nothing."""
        driver.shows(self.requirement, self.expression, self.expected)

    def renumbered(self, numbers: Numbers) -> Shows:
        """The expression with other numbers of blobs."""
        return self._replace(expression=_renumbered(self.expression, numbers))


class Prepare(NamedTuple):
    """A statement: something that later steps name."""

    statement: str

    def take(self, driver: BlobDriver) -> None:
        """Run it."""
        driver.prepare(self.statement)

    def renumbered(self, numbers: Numbers) -> Prepare:
        """The statement with other numbers of blobs."""
        return Prepare(_renumbered(self.statement, numbers))


class Lend(NamedTuple):
    """A part of a blob adopts a part of the first, which stays where it is."""

    blob: int
    side: Side
    part: Part = "data"
    lender: Part = "data"

    def take(self, driver: BlobDriver) -> None:
        """See that this is no offence."""
        driver.lend(*self)

    def renumbered(self, numbers: Numbers) -> Lend:
        """The step with another number of the blob; the first stays the first."""
        unmoved(0, numbers)
        return self._replace(blob=numbers[self.blob])


class Extents(NamedTuple):
    """The first blob's extents on the device; whether they are those that were seen last."""

    again: bool = False

    def take(self, driver: BlobDriver) -> None:
        """See that they are right, and were not sent again."""
        driver.compare_extents(again=self.again)

    def renumbered(self, numbers: Numbers) -> Extents:
        """The step itself, if the first blob is still the first."""
        unmoved(0, numbers)
        return self


class AskedNothing(NamedTuple):
    """The allocators were not asked for a byte so far; what is broken if they were."""

    requirement: str

    def take(self, driver: BlobDriver) -> None:
        """See that they were not."""
        driver.asked_nothing(self.requirement)

    def renumbered(self, _: Numbers) -> AskedNothing:
        """The step itself: it is about all blobs."""
        return self


class Step(Protocol):
    """Something to do to the blobs of a driver, and what to see of it."""

    def take(self, driver: BlobDriver, /) -> None:
        """Do it.

        Raises
        ------
        Violation
        """
        ...

    def renumbered(self, numbers: Numbers, /) -> Step:
        """The step where blobs have other numbers.

        Raises
        ------
        KeyError
            If it names a blob that has none, or one that has to keep its own.
        """
        ...


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


def _renumbered(text: str, numbers: Numbers) -> str:
    return _NAME.sub(lambda found: name_of(numbers[int(found[1] or 1) - 1]), text)


def refused(requirement: str, *calls: str) -> tuple[Refusal, ...]:
    """Several calls that must be refused for one reason."""
    return tuple(Refusal(requirement, call) for call in calls)


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
