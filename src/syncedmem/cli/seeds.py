"""Several seeds in one run: the options, which several commands have, and the table of machines."""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Group
from rich.live import Live

from syncedmem.model import InvalidArgumentError
from syncedmem.model.defaults import FUZZ

from .display import table, widen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from rich.console import Console
    from rich.table import Table

    from syncedmem.spec.engine.cluster import Spread

__all__ = ["MOST", "Asked", "Jobs", "Scheduler", "Seeds", "asked_for", "machines_shown", "unfinished"]

Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST..LAST",
        help="Run each of these seeds, for example 1..64, with all steps and in a process of its own. They make "
        "one report. Default: --seed; with --jobs, so many seeds from --seed on.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        metavar="NUMBER",
        help="Number of seeds that run at a time on this machine. Default: the number of processors.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run the seeds on the workers of this Dask scheduler, for example tcp://HOST:8786, and not on this "
        "machine. The target must have the same name there.",
    ),
]


MOST = 100_000
"""The most seeds of a run: their results are in memory."""

_RANGE = re.compile(r"(\d{1,15})\.\.(\d{1,15})", re.ASCII)


class Asked(NamedTuple):
    """The seeds that a command line asks for, and where they run."""

    seeds: range
    jobs: int
    scheduler: str | None


def asked_for(seed: int, seeds: str | None, jobs: int | None, scheduler: str | None) -> Asked | None:
    """What the options ask for; None if it is one seed in this process.

    Raises
    ------
    InvalidArgumentError
        If `seeds` is no range, or an option contradicts another.
    """
    from syncedmem.spec.engine.supervisor import processors

    if seeds is None and jobs is None and scheduler is None:
        return None
    if jobs is not None and scheduler is not None:
        raise InvalidArgumentError("--jobs", jobs, "left out, because --scheduler says where the seeds run")
    if seeds is None and jobs is None:
        raise InvalidArgumentError("--scheduler", scheduler, "given with --seeds, for example --seeds 1..64")
    if seeds is not None and seed != FUZZ.seed:
        raise InvalidArgumentError("--seed", seed, "left out, because --seeds has all of them")
    return Asked(range(seed, seed + (jobs or 1)) if seeds is None else _range(seeds), jobs or processors(), scheduler)


def _range(text: str) -> range:
    """The seeds of a range that has both its ends.

    Raises
    ------
    InvalidArgumentError
    """
    found = _RANGE.fullmatch(text)
    seeds = range(int(found[1]), int(found[2]) + 1) if found else range(0)
    if not 0 < len(seeds) <= MOST:
        raise InvalidArgumentError("--seeds", text, f"the first and the last seed, as in 1..64, {MOST:,} seeds at most")
    return seeds


@contextmanager
def machines_shown(console: Console) -> Generator[Callable[[Spread], None]]:
    """A live table of the machines, on a terminal only; at the end it stays, with the numbers in a line."""
    latest: list[Spread] = []

    def drawn() -> Group:
        return Group(*map(_table, latest), *(it.line for it in latest))

    # It is drawn a few times in a second, however many seeds there are.
    live = Live(get_renderable=drawn, console=console, transient=True)

    def show(spread: Spread) -> None:
        latest[:] = [spread]

    try:
        with live if console.is_interactive else nullcontext():
            yield show
    finally:
        if latest and latest[0].answered:
            widen(console)
            console.print(_table(latest[0]))
            console.print(latest[0].line, highlight=False, soft_wrap=True)


def unfinished(spread: Mapping[str, Any]) -> None:
    """Say on standard error which seeds have no result; if there is one, exit with status 2."""
    without = spread.get("without_result", ())
    for line in without:
        typer.echo(f"syncedmem: {line}", err=True)
    if without:
        raise typer.Exit(2)


def _table(spread: Spread) -> Table:
    rows = table("machine", "at a time", "seeds", "operations")
    for column in rows.columns[1:]:
        column.justify = "right"
    for name, it in sorted(spread.machines.items()):
        rows.add_row(name, f"{len(it.workers):,}", f"{it.seeds:,}", f"{it.operations:,}")
    return rows
