"""What commands show on a terminal: help, tables and progress bars."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from syncedmem import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import Console
    from rich.progress import ProgressColumn

__all__ = ["help_of", "progress_bars", "sayer", "table", "widen"]

NARROWEST = 80


def help_of(command: Callable[..., Any]) -> str:
    """The docstring of a command; a paragraph that has indented lines, such as a list, is printed as it is."""
    paragraphs = (getdoc(command) or "").split("\n\n")
    return "\n\n".join(f"\b\n{paragraph}" if "\n " in paragraph else paragraph for paragraph in paragraphs)


@contextmanager
def progress_bars(console: Console, *columns: ProgressColumn) -> Generator[Progress]:
    """Progress bars, which are shown on a terminal only; elsewhere Rich would print an empty line for them.

    What was interrupted meanwhile has no result, even if it believes that it has one.
    """
    start = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    bars = Progress(*start, *columns, TimeElapsedColumn(), console=console, transient=True)
    with bars if console.is_interactive else nullcontext():
        yield bars
    interrupts.check()


def sayer(console: Console) -> Callable[..., None]:
    """A function that prints lines as they are: without markup, and not broken."""
    return partial(console.print, markup=False, highlight=False, soft_wrap=True)


def widen(console: Console) -> None:
    """Have room for the tables: a narrower terminal breaks their lines, and nothing is cut off."""
    console.width = max(console.width, NARROWEST)


def table(*columns: str) -> Table:
    """A table as narrow as its contents allow; a word that is too long for it is broken, and not cut off."""
    rows = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in rows.columns:
        column.overflow = "fold"
    return rows
