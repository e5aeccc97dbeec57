"""Levels of observation: how much of a subject can be seen, each level with all that the lower ones have.

L0 is heads, sizes, flags and refusals; L1 also bytes; L2 also actions, in order; L3 also failures of actions; L4 also
streams, threads, and the lifetimes of views, buffers and memories.  A requirement has the lowest level at which it can
be judged.  A Python maker is seen at L4.
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["LEVELS", "Level", "by_level"]

Level = Literal["L0", "L1", "L2", "L3", "L4"]
LEVELS: tuple[Level, ...] = get_args(Level)


def by_level(**numbers: str) -> dict[str, Level]:
    """The level of each number, from the numbers of each level."""
    return {number: level for level in LEVELS for number in numbers.get(level, "").split()}
