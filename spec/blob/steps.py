"""Steps: everything that can be done to blobs under test and checked; scenarios are lists of steps.

What a call does is foreseen by the oracle.  A `Check` has an expectation of its own, because the oracle knows nothing
of axes and positions, and refuses only what Caffe refuses.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .oracle import ExportingBlob, Other

if TYPE_CHECKING:
    from .driver import BlobDriver
    from .oracle import Shape

__all__ = [
    "REFUSED",
    "UNCHANGED",
    "BlobCall",
    "BlobOutcome",
    "BlobStep",
    "Check",
    "Extents",
    "FailingStep",
    "Make",
    "Prepare",
    "in_mode",
    "name_of",
    "refused",
]

_NAME = re.compile(r"\bblob(\d*)\b")


class BlobStep(Protocol):
    """Something that is done to the blobs of a driver, and what it checks."""

    @property
    def blobs(self) -> set[int]:
        """The blobs that have to be there."""
        ...

    def take(self, driver: BlobDriver, /) -> None:
        """Do it, and check the result.

        Raises
        ------
        Violation
        """
        ...


class Make(NamedTuple):
    """Makes a blob with a shape, or without."""

    blob: int
    shape: Shape | None

    @property
    def blobs(self) -> set[int]:
        """The blob itself."""
        return {self.blob}

    def take(self, driver: BlobDriver) -> None:
        """Make it, and check that this allocates nothing."""
        driver.make(self.shape, self.blob)


class BlobCall(NamedTuple):
    """One call of one blob, or a change of Caffe's mode.

    Attributes
    ----------
    blob : int
        The number of the blob.
    call : str
        The method, or ``"mode"``.
    arguments : tuple
        Plain values, and other blobs as `Other`.  For an adoption: whether there is a buffer, or whose it is as
        `ExportingBlob`.  For ``from_proto``: the contents of the message.
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
        others = {given.blob for given in self.arguments if isinstance(given, Other | ExportingBlob)}
        return others if self.call == "mode" else {self.blob, *others}

    @property
    def changed(self) -> set[int]:
        """The blobs that the call may change; a copy also brings its source up to date."""
        return self.blobs if self.call == "copy_from" else {self.blob}

    def take(self, driver: BlobDriver) -> None:
        """Make the call, and compare everything with the oracle."""
        driver.perform(self)


class FailingStep(NamedTuple):
    """A call whose k-th allocator call fails, from 1."""

    step: BlobCall
    k: int

    @property
    def blobs(self) -> set[int]:
        """The blobs that the call uses."""
        return self.step.blobs

    def take(self, driver: BlobDriver) -> None:
        """Make the call, which fails, and make it again."""
        driver.perform_failing(self.step, self.k)


class BlobOutcome(Enum):
    """What a checked call must do, if its value does not matter."""

    REFUSED = auto()
    UNCHANGED = auto()


REFUSED, UNCHANGED = BlobOutcome.REFUSED, BlobOutcome.UNCHANGED


class Check(NamedTuple):
    """A call or an expression with an expectation of its own, which must call no allocator.

    Attributes
    ----------
    requirement : str
        The requirement that it breaks otherwise.
    text : str
        In the reproducer.
    expected : object
        `REFUSED`: it raises and changes nothing.  `UNCHANGED`: it is accepted and changes nothing.  Else: its value.
    """

    requirement: str
    text: str
    expected: object

    @property
    def blobs(self) -> set[int]:
        """The blobs that it names."""
        return _named(self.text)

    def take(self, driver: BlobDriver) -> None:
        """Check it."""
        driver.check(self)


class Prepare(NamedTuple):
    """A statement that defines a name for later steps."""

    text: str

    @property
    def blobs(self) -> set[int]:
        """The blobs that it names."""
        return _named(self.text)

    def take(self, driver: BlobDriver) -> None:
        """Run it."""
        driver.prepare(self.text)


class Extents(NamedTuple):
    """The first blob's extents on the device; `again` if they have not changed since the last check."""

    again: bool = False

    @property
    def blobs(self) -> set[int]:
        """The first blob."""
        return {0}

    def take(self, driver: BlobDriver) -> None:
        """Check that they are right, and that unchanged extents were not sent again."""
        driver.compare_extents(again=self.again)


def refused(requirement: str, *calls: str) -> tuple[Check, ...]:
    """Several calls that must be refused because of one requirement."""
    return tuple(Check(requirement, call, REFUSED) for call in calls)


def in_mode(mode: Any) -> BlobCall:
    """The step that changes Caffe's mode."""
    return BlobCall(0, "mode", (mode,))


def name_of(n: int) -> str:
    """The name of a blob in reproducers."""
    return "blob" if n == 0 else f"blob{n + 1}"


def _named(text: str) -> set[int]:
    """The blobs that a text of a reproducer names."""
    return {int(number or 1) - 1 for number in _NAME.findall(text)}
