"""`Violation`, the finding of a kit: a broken requirement, and the statements that show it."""

from __future__ import annotations

from textwrap import indent
from typing import Any

from syncedmem import interrupts

from ..requirements import REQUIREMENTS

__all__ = ["UnfitError", "UnfitMakerError", "UnfitPolicyError", "Violation"]


class Violation(AssertionError):
    """A broken requirement; after an interrupt there is none, and the interrupt is raised again in its place.

    Attributes
    ----------
    requirement : str
    message : str
    statements : tuple of str
        The statements that show it: a Python program that needs a ``subject``.
    repeats : bool
        Whether there is another violation of the requirement, with a shortest program.
    """

    def __init__(self, requirement: str, message: str, statements: tuple[str, ...] = ()) -> None:
        interrupts.check()  # what is wrong while we are being interrupted may be our own doing
        super().__init__(requirement, message, statements)
        self.requirement = requirement
        self.message = message
        self.statements = statements
        self.repeats: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, and what is required."""
        known = REQUIREMENTS.get(self.requirement)
        required = f"\n(required: {known.text})" if known else ""
        return f"{self.requirement}: {self.message}{required}"

    @property
    def reproducer(self) -> str:
        """The statements as a program, with what is wrong as a comment in the last line."""
        wrong = " ".join(f"{self.requirement}: {self.message}".splitlines())
        return "\n".join((*self.statements, f"# {wrong}"))

    def as_json(self) -> dict[str, Any]:
        """The violation as data."""
        return {"requirement": self.requirement, "message": self.message, "statements": [*self.statements]}

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{indent(self.reproducer, '    ')}" if self.statements else self.sentence


class UnfitError(ValueError):
    """What a subject is made of is wrong, so that there is no memory to judge."""


class UnfitMakerError(UnfitError):
    """A maker cannot be called as makers are, or returns something that has none of the calls."""


class UnfitPolicyError(UnfitError):
    """A policy and the table of its machine say different things: then no memory is to blame."""
