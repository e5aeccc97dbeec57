"""Moves: everything that can be done to the blobs of a driver, and checked; rules consist of moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from .steps import BlobCall, renumbered_text, unmoved

if TYPE_CHECKING:
    from .driver import BlobDriver
    from .oracle import Part
    from .steps import Numbers

__all__ = [
    "AdoptPart",
    "AskedNothing",
    "Extents",
    "Fail",
    "Move",
    "Prepare",
    "Refusal",
    "Shows",
    "Unchanged",
    "refused",
]


class Move(Protocol):
    """Something that is done to the blobs of a driver, and what it checks."""

    def take(self, driver: BlobDriver, /) -> None:
        """Do it, and check the result.

        Raises
        ------
        Violation
        """
        ...

    def renumbered(self, numbers: Numbers, /) -> Move:
        """The same move after blobs got other numbers.

        Raises
        ------
        KeyError
            If it uses a blob that has no new number, or one that must keep its number.
        """
        ...


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
    """A call, by its text in the reproducer, that must be refused, and the requirement that says so."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """Check that the call raises and changes nothing."""
        driver.refused(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Refusal:
        """The call with other numbers of blobs."""
        return Refusal(self.requirement, renumbered_text(self.call, numbers))


class Unchanged(NamedTuple):
    """A call that must be accepted and change nothing, and the requirement that says so."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """Check that the call changes nothing."""
        driver.unchanged(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Unchanged:
        """The call with other numbers of blobs."""
        return Unchanged(self.requirement, renumbered_text(self.call, numbers))


class Shows(NamedTuple):
    """An expression with the value that it must have, and the requirement that says so."""

    requirement: str
    expression: str
    expected: object

    def take(self, driver: BlobDriver) -> None:
        """Check the value, and that reading it changes nothing."""
        driver.shows(self.requirement, self.expression, self.expected)

    def renumbered(self, numbers: Numbers) -> Shows:
        """The expression with other numbers of blobs."""
        return self._replace(expression=renumbered_text(self.expression, numbers))


class Prepare(NamedTuple):
    """A statement that defines a name for later steps."""

    statement: str

    def take(self, driver: BlobDriver) -> None:
        """Run it."""
        driver.prepare(self.statement)

    def renumbered(self, numbers: Numbers) -> Prepare:
        """The statement with other numbers of blobs."""
        return Prepare(renumbered_text(self.statement, numbers))


class AdoptPart(NamedTuple):
    """A part of a blob adopts memory of a part of the first blob, which keeps it."""

    blob: int
    side: str
    part: Part = "data"
    exporter: Part = "data"

    def take(self, driver: BlobDriver) -> None:
        """Check that the adoption is allowed."""
        driver.adopt_part(*self)

    def renumbered(self, numbers: Numbers) -> AdoptPart:
        """The step with another number of the blob; the first stays the first."""
        unmoved(0, numbers)
        return self._replace(blob=numbers[self.blob])


class Extents(NamedTuple):
    """The first blob's extents on the device; `again` if they have not changed since the last check."""

    again: bool = False

    def take(self, driver: BlobDriver) -> None:
        """Check that they are right, and that unchanged extents were not sent again."""
        driver.compare_extents(again=self.again)

    def renumbered(self, numbers: Numbers) -> Extents:
        """The same step, if the first blob is still the first."""
        unmoved(0, numbers)
        return self


class AskedNothing(NamedTuple):
    """The allocators have not been called for a single byte, and the requirement that says so."""

    requirement: str

    def take(self, driver: BlobDriver) -> None:
        """Check it."""
        driver.asked_nothing(self.requirement)

    def renumbered(self, _: Numbers) -> AskedNothing:
        """The same step: it is about all blobs."""
        return self


def refused(requirement: str, *calls: str) -> tuple[Refusal, ...]:
    """Several calls that must be refused because of one requirement."""
    return tuple(Refusal(requirement, call) for call in calls)
