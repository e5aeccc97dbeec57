"""The part that all drivers share: a subject, a growing reproducer, the call log, and the making of violations."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from syncedmem.model.errors import shown

from ..requirements import REQUIREMENTS
from .violation import UnfitError, UnfitMakerError, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from .call_log import CallLog
    from .reproducer import Reproducer
    from .subject import Subject

__all__ = ["HARMLESS", "Run", "blaming", "check_maker"]

_BYTES = {"R": "R10-same-bytes", "B": "B22-elements"}
_HEADS = {"R": "R11-head", "B": "B21-accessors"}

HARMLESS = frozenset(
    {"R09-no-needless-copy", "R26-release-order", "R46-fresh-view", "R47-read-only-view", "R58-push-on-its-stream"}
    | {"B67-shape-lazy", "B69-fresh-view"}
)
"""The requirements whose violation leaves everything else that the kit knows as it is."""

P = ParamSpec("P")


class Run:
    """A run against a subject, with the allocator calls that it makes.

    Parameters
    ----------
    reproducer : Reproducer
        The statements until now; it gets a call log, and allocators that record in it.
    judged : collection of str
        The requirements that the subject is judged by; a difference that breaks another one is no violation.

    Attributes
    ----------
    subject : Subject
    log : CallLog
    log_name : str
        The name of the log in the reproducer.
    allocators : dict of str to str
        The names there of the allocators, by what a maker calls them.
    """

    def __init__(self, reproducer: Reproducer, judged: Collection[str]) -> None:
        self.reproducer: Reproducer = reproducer
        self.judged: Collection[str] = judged
        self.subject: Subject = reproducer.subject
        self.log_name: str = reproducer.fresh("log")
        sides = self.subject.machine.sides
        self.allocators: dict[str, str] = {it: reproducer.fresh(it) for it in map(self.subject.keyword, sides)}
        names = ", ".join((self.log_name, *self.allocators.values()))
        reproducer.run(f"{names if self.allocators else f'{names},'} = recorded(subject)")
        self.log: CallLog = reproducer.names[self.log_name]

    @property
    def arguments(self) -> str:
        """The allocators as further arguments of a maker."""
        return "".join(f", {keyword}={name}" for keyword, name in self.allocators.items())

    @property
    def safe(self) -> bool:
        """Whether promises beyond Caffe's are checked too."""
        return self.subject.profile == "safe"

    @property
    def sees_bytes(self) -> bool:
        """Whether the bytes of the subject are observed."""
        return self.subject.level >= "L1"

    @property
    def sees_actions(self) -> bool:
        """Whether the subject's calls of its allocators are observed."""
        return self.subject.level >= "L2"

    def sees(self, requirement: str) -> bool:
        """Whether the subject's level shows enough to judge a requirement."""
        return REQUIREMENTS[requirement].level <= self.subject.level

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it."""
        return Violation(self._attributed(requirement), message, self.reproducer.complete())

    def _attributed(self, requirement: str) -> str:
        """The requirement that is broken as far as the level shows: wrong bytes, or else wrong heads, if not this."""
        if self.sees(requirement):
            return requirement
        return (_BYTES if self.sees_bytes else _HEADS)[requirement[0]]

    def excused(self, requirement: str) -> bool:
        """Whether a requirement that is violated is excepted, and what comes after it can be judged all the same."""
        excuses = self.subject.excuses
        return excuses is not None and requirement in HARMLESS and excuses(requirement)

    def require(self, holds: bool, requirement: str, message: str) -> None:
        """Raise a violation if something does not hold, and the subject is judged by the requirement.

        Raises
        ------
        Violation
        """
        if not holds:
            self.report(requirement, message)

    def report(self, requirement: str, message: str) -> None:
        """Raise a violation if the subject is judged by the requirement; for checks whose messages take time to make.

        Raises
        ------
        Violation
        """
        if self._attributed(requirement) in self.judged and not self.excused(requirement):
            raise self.violation(requirement, message)


def check_maker(  # noqa: PLR0913 -- how it was called, and what came of it
    subject: Subject,
    made: Any,
    error: BaseException | None,
    calls: Iterable[str],
    arguments: Iterable[object],
    named: Iterable[str],
) -> None:
    """Refuse a maker that no arguments can make right; another error may be that of these alone.

    Raises
    ------
    UnfitMakerError
    """
    if error is None and not any(hasattr(made, call) for call in calls):
        raise UnfitMakerError(f"the maker {subject.name} returned {shown(made)}, which has none of {', '.join(calls)}")
    if isinstance(error, TypeError):
        try:
            signature(subject.make).bind(*arguments, **dict.fromkeys(named))
        except TypeError as why:
            words = ("size" if isinstance(it, int) else "shape" for it in arguments)
            called = ", ".join((*words, *(f"{it}=..." for it in named)))
            raise UnfitMakerError(f"the maker {subject.name} cannot be called with ({called}): {why}") from error
        except ValueError:  # it is written in C, and has no signature
            pass


class AnyDriver(Protocol):
    """The method of a driver that `blaming` needs."""

    def blame(self, error: Exception) -> Violation:
        """The violation for an error that the kit met outside a call."""
        ...


DriverT = TypeVar("DriverT", bound=AnyDriver)


def blaming(act: Callable[Concatenate[DriverT, P], None], /) -> Callable[Concatenate[DriverT, P], None]:
    """Make any error that a subject causes in the kit a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(driver: DriverT, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(driver, *args, **kwargs)
        except (Violation, UnfitError):
            raise
        except Exception as error:
            raise driver.blame(error) from error

    return blamed
