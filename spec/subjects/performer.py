"""What does steps on real memories: one for memories that are objects of Python, one for those of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .objects import ObjectMemories
from .programs import ProgramMemories

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from ..record.observation import Observation
    from ..record.steps import Step

__all__ = ["Performer", "performer_of"]


class Performer(Protocol):
    """A subject: it does steps, and says what is seen."""

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation, with what led to it: requests, or statements."""
        ...

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        ...

    def program(self) -> tuple[str, ...]:
        """What was done in this case: requests, or statements."""
        ...

    def begin(self) -> None:
        """Let a new case begin, whose memories and buffers have nothing to do with those of others."""
        ...

    def perform(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        """Do a step.

        Parameters
        ----------
        step : Step
        settings : mapping of str to str
            Those of the machine.
        sides : collection of str
            The sides to look at; others may be shown too.
        buffers : collection of str
            The buffers of the caller to look at.

        Raises
        ------
        Violation
            If there is no answer, or one that is none.
        """
        ...


def performer_of(subject: Subject) -> Performer:
    """What does steps on the memories of a subject."""
    program: Any = subject.program
    return ObjectMemories(subject) if program is None else ProgramMemories(program)
