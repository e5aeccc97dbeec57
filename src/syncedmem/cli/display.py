"""How commands show tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["table", "widen"]

NARROWEST = 80


def widen(console: Console) -> None:
    """Have room for the tables: a narrower terminal breaks their lines, and nothing is cut off."""
    console.width = max(console.width, NARROWEST)


def table(*columns: str) -> Table:
    """A table as narrow as its contents allow; a word that is too long for it is broken, and not cut off."""
    made = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in made.columns:
        column.overflow = "fold"
    return made
