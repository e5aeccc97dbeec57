"""What a kit finds: a requirement that is not met, and the statements that show it."""

from __future__ import annotations

from textwrap import indent

from ..requirements import REQUIREMENTS

__all__ = ["Violation"]


class Violation(AssertionError):
    """A requirement is not met.

    Attributes
    ----------
    requirement : str
    message : str
    statements : tuple of str
        Those that show it: a Python program, given a ``subject``.
    """

    def __init__(self, requirement: str, message: str, statements: tuple[str, ...] = ()) -> None:
        super().__init__(requirement, message, statements)
        self.requirement = requirement
        self.message = message
        self.statements = statements

    @property
    def sentence(self) -> str:
        """What is wrong, and what is required."""
        known = REQUIREMENTS.get(self.requirement)
        required = f"\n(required: {known.text})" if known else ""
        return f"{self.requirement}: {self.message}{required}"

    @property
    def reproducer(self) -> str:
        """The statements as a program; its last line says what is wrong then."""
        wrong = " ".join(f"{self.requirement}: {self.message}".splitlines())
        return "\n".join((*self.statements, f"# {wrong}"))

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{indent(self.reproducer, '    ')}" if self.statements else self.sentence
