"""The part that all drivers share: a subject, a growing reproducer, the call log, and the making of violations."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from .call_log import CallLog
    from .reproducer import Reproducer
    from .subject import Subject

__all__ = ["Run", "blaming"]

_BYTES, _HEADS = "R10-same-bytes", "R11-head"

P = ParamSpec("P")


class Run:
    """A run against a subject, with the allocator calls that it makes.

    Parameters
    ----------
    reproducer : Reproducer
        The statements until now; it gets a call log, and allocators that record in it.

    Attributes
    ----------
    subject : Subject
    log : CallLog
    log_name, host, device : str
        The names of the log and of the allocators in the reproducer.
    """

    def __init__(self, reproducer: Reproducer) -> None:
        self.reproducer: Reproducer = reproducer
        self.subject: Subject = reproducer.subject
        self.log_name: str
        self.host: str
        self.device: str
        self.log_name, self.host, self.device = map(reproducer.fresh, ("log", "host", "device"))
        reproducer.run(f"{self.log_name}, {self.host}, {self.device} = recorded(subject)")
        self.log: CallLog = reproducer.names[self.log_name]

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

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it.

        If the subject is not judged by this requirement at its level, its bytes are wrong, or else its heads.
        """
        if not self.subject.judges(requirement):
            requirement = _BYTES if self.sees_bytes else _HEADS
        return Violation(requirement, message, self.reproducer.complete())

    def require(self, holds: bool, requirement: str, message: str) -> None:
        """Raise a violation if something does not hold.

        Raises
        ------
        Violation
        """
        if not holds:
            raise self.violation(requirement, message)


class Driver(Protocol):
    """The method of a driver that `blaming` needs."""

    def blame(self, error: Exception) -> Violation:
        """The violation for an error that the kit met outside a call."""
        ...


DriverT = TypeVar("DriverT", bound=Driver)


def blaming(act: Callable[Concatenate[DriverT, P], None], /) -> Callable[Concatenate[DriverT, P], None]:
    """Make any error that a subject causes in the kit a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(driver: DriverT, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(driver, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            raise driver.blame(error) from error

    return blamed
