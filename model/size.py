"""How large a machine may be, which is said before anything is computed: a few lines may declare any number of moves.

There are two numbers.  *Words* are what is written: of each kind, and of the rows, which count once for each head.
*Moves* are what may follow: heads, facts, settings and inputs, multiplied.  Nothing else is limited.
"""

from __future__ import annotations

from math import log10

from .errors import DeclarationError

__all__ = ["MOST_MOVES", "MOST_WORDS", "check_size"]

MOST_WORDS = 25_000
"""Of one kind, and of all rows; Caffe's rows have 183."""

MOST_MOVES = 200_000
"""Caffe's machine has 3,072 by multiplication, of which 744 can happen; so many take some seconds."""

_LONGEST = 15
"""The digits of a number that is worth reading."""


def check_size(machine: str, number: int, most: int, what: str) -> None:
    """Refuse a machine that has more than so many of something.

    Raises
    ------
    DeclarationError
    """
    if number > most:
        digits = log10(number)
        text = f"{number:,}" if digits < _LONGEST else f"about 10^{digits:.0f}"
        raise DeclarationError(f"{machine}: {text} {what}; at most {most:,}")
