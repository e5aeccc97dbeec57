"""The line that made a call, and the copy that the call causes: what errors and logs say of both."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Copy", "Line"]


class Line(NamedTuple):
    """A call, and the line of the program that made it.

    Attributes
    ----------
    call : str
        The name of the function, or of the property, that the program used.
    file : str
    number : int
        Of the line, from 1.
    outer : Line or None
        The function of the program that has this line, and the line that called it: if a program wraps its memories, it
        is this one that differs.  None at the level of a module, and where a library has called the function.
    """

    call: str
    file: str
    number: int
    outer: Line | None = None

    def __str__(self) -> str:
        outer = (
            "" if self.outer is None else f" (in {self.outer.call}, called at {self.outer.file}:{self.outer.number})"
        )
        return f"{self.call} at {self.file}:{self.number}{outer}"


class Copy(NamedTuple):
    """One copy, or one allocation, and what caused it.

    Attributes
    ----------
    what : str
        ``"up"`` (to the device), ``"down"`` (to the host) or ``"allocation"``.
    byte_size : int
        In bytes.
    line : Line
        The call, and the line that made it.
    to_write : bool
        Whether a call copied that returns the side to write.  If the caller overwrites all of it, the copy was for
        nothing; whether he does, or reads the bytes first, nobody can see.
    pageable : bool or None
        Whether the host side is pageable memory, with which copies are slower.  None if the device makes no difference,
        and of a copy that was refused.
    """

    what: str
    byte_size: int
    line: Line
    to_write: bool = False
    pageable: bool | None = None

    def __str__(self) -> str:
        notes = (", to write" if self.to_write else "") + (", pageable memory" if self.pageable else "")
        return f"{self.what:<10} {self.byte_size:>12} bytes  {self.line}{notes}"
