"""What can be done to the blobs of a driver besides plain calls, with what must be seen of it: rules are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from .steps import BlobCall, renumbered_text, unmoved

if TYPE_CHECKING:
    from ..engine.calls import Side
    from .driver import BlobDriver
    from .oracle import Part
    from .steps import Numbers

__all__ = [
    "AskedNothing",
    "Extents",
    "Fail",
    "Lend",
    "Move",
    "Prepare",
    "Refusal",
    "Shows",
    "Unchanged",
    "refused",
]


class Move(Protocol):
    """Something to do to the blobs of a driver, and what to see of it."""

    def take(self, driver: BlobDriver, /) -> None:
        """Do it.

        Raises
        ------
        Violation
        """
        ...

    def renumbered(self, numbers: Numbers, /) -> Move:
        """The move where blobs have other numbers.

        Raises
        ------
        KeyError
            If it names a blob that has none, or one that has to keep its own.
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
    """A call, as the reproducer has it, that must be refused; what it breaks if it is not."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """See that it raises and changes nothing."""
        driver.refused(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Refusal:
        """The call with other numbers of blobs."""
        return Refusal(self.requirement, renumbered_text(self.call, numbers))


class Unchanged(NamedTuple):
    """A call that is taken and changes nothing; what it breaks if it does."""

    requirement: str
    call: str

    def take(self, driver: BlobDriver) -> None:
        """See that it changes nothing."""
        driver.unchanged(self.requirement, self.call)

    def renumbered(self, numbers: Numbers) -> Unchanged:
        """The call with other numbers of blobs."""
        return Unchanged(self.requirement, renumbered_text(self.call, numbers))


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
        return self._replace(expression=renumbered_text(self.expression, numbers))


class Prepare(NamedTuple):
    """A statement: something that later steps name."""

    statement: str

    def take(self, driver: BlobDriver) -> None:
        """Run it."""
        driver.prepare(self.statement)

    def renumbered(self, numbers: Numbers) -> Prepare:
        """The statement with other numbers of blobs."""
        return Prepare(renumbered_text(self.statement, numbers))


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


def refused(requirement: str, *calls: str) -> tuple[Refusal, ...]:
    """Several calls that must be refused for one reason."""
    return tuple(Refusal(requirement, call) for call in calls)
