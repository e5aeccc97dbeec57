"""What every driver has, whatever it drives: a subject, a reproducer that grows, the call log, and how to blame."""

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

P = ParamSpec("P")


class Run:
    """What is run against a subject, and the allocator calls that it makes.

    Parameters
    ----------
    reproducer : Reproducer
        What was run so far; it gets a call log, and allocators that write into that.

    Attributes
    ----------
    subject : Subject
    log : CallLog
    log_name, host, device : str
        What the reproducer calls the log and the allocators.
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
        """Whether more is asked than Caffe promises."""
        return self.subject.profile == "safe"

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the statements that led to it."""
        return Violation(requirement, message, self.reproducer.complete())

    def require(self, holds: bool, requirement: str, message: str) -> None:
        """Report what does not hold.

        Raises
        ------
        Violation
        """
        if not holds:
            raise self.violation(requirement, message)


class Driver(Protocol):
    """What `blaming` needs of a driver."""

    def blame(self, error: Exception) -> Violation:
        """The violation that an error means which the kit stumbled over."""
        ...


DriverT = TypeVar("DriverT", bound=Driver)


def blaming(act: Callable[Concatenate[DriverT, P], None], /) -> Callable[Concatenate[DriverT, P], None]:
    """Whatever a subject makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(driver: DriverT, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(driver, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            raise driver.blame(error) from error

    return blamed
