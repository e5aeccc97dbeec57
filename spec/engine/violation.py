"""`Violation`, the finding of a kit: a broken requirement, and the statements that show it."""

from __future__ import annotations

from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING, Any

from ..requirements import REQUIREMENTS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

__all__ = ["UnfitError", "UnfitMakerError", "UnfitPolicyError", "Violation", "noting"]


Played = tuple[tuple[int, ...], tuple[tuple[int, object], ...]]


class Violation(AssertionError):
    """A broken requirement.

    Attributes
    ----------
    requirement : str
    message : str
    statements : tuple of str
        The statements that show it: a Python program that needs a ``subject``.
    played : (sizes, moves) or None
        For memories: their sizes, and the moves with the number of the memory of each; a test vector can be made of it.
    vector : str
        A test vector that shows it, as a line; empty if none was made.
    repeats : bool
        Whether there is another violation of the requirement, with a shortest program.
    """

    def __init__(self, requirement: str, message: str, statements: tuple[str, ...] = ()) -> None:
        super().__init__(requirement, message, statements)
        self.requirement = requirement
        self.message = message
        self.statements = statements
        self.played: Played | None = None
        self.vector: str = ""
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
        vector = {"vector": self.vector} if self.vector else {}
        statements = [*self.statements]
        return {"requirement": self.requirement, "message": self.message, "statements": statements, **vector}

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{indent(self.reproducer, '    ')}" if self.statements else self.sentence


class UnfitError(ValueError):
    """What a subject is made of is wrong, so that there is no memory to judge."""


class UnfitMakerError(UnfitError):
    """A maker cannot be called as makers are, or returns something that has none of the calls."""


class UnfitPolicyError(UnfitError):
    """A policy and the table of its machine say different things: then no memory is to blame."""


@contextmanager
def noting(sizes: tuple[int, ...], moves: Iterable[tuple[int, object]]) -> Generator[None]:
    """Note in a violation what was played."""
    try:
        yield
    except Violation as violation:
        violation.played = sizes, tuple(moves)
        raise
