"""The command line's ``fuzz`` and ``replay``."""

from __future__ import annotations

import json
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .output import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import TaskID

    from .spec.fuzz import Finding, Replay, Report

__all__ = ["fuzz", "register", "replay"]

DEFAULT_OUT = Path("build/fuzz")
STEPS, SECONDS, HANG = 100_000, 60.0, 5.0
_LONGEST = 1000
"""Of the names of targets that are quoted, in characters."""
_HURT = (
    "What ended the process may have been hurt long before. A library built with -fsanitize=address, run with "
    "LD_PRELOAD=libasan.so, says where."
)
_MARKS = {
    "passed": "[green]✓ passed[/]",
    "failed": "[bold red]✗ failed[/]",
    "not checked": "[dim]– not checked[/]",
}


def register(app: typer.Typer) -> None:
    """Make both commands part of an application."""
    app.command()(fuzz)
    app.command()(replay)


def fuzz(  # noqa: PLR0913 -- the options of the command
    target: Annotated[
        str,
        typer.Argument(
            help="module:attr, file.py:attr, module:alloc,free or path/to/lib.so:alloc,free[,calloc,realloc]"
            "[?abi=malloc|torch|cupy|nep49]; what it is, is found out from what it has."
        ),
    ],
    *,
    promise: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What the allocator promises (repeatable): alignment=64 ..."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed takes the same steps.")] = 0,
    steps: Annotated[int, typer.Option(help="Operations of the fast engine.")] = STEPS,
    seconds: Annotated[float, typer.Option(help="The most time for each engine.")] = SECONDS,
    threads: Annotated[int, typer.Option(help="Run from that many threads too; needs thread_safe=yes.")] = 1,
    hang: Annotated[
        float,
        typer.Option(
            help="Seconds after which a call that has not returned never will; an import has 12 times as many."
        ),
    ] = HANG,
    first: Annotated[bool, typer.Option("--first", "-x", help="Stop at the first finding.")] = False,
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH|-", help="Write the report as JSON; - for standard output.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the report as JUnit XML; - for standard output.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where a replay of each finding goes. Folders that are missing are made.")
    ] = DEFAULT_OUT,
) -> None:
    """Find what is wrong with an allocator.

    Exits with 0 if nothing is, with 1 if something is, and with 2 if the target or a promise cannot be used.
    """
    from .spec.fuzz import fuzz as run_fuzz  # noqa: PLC0415 -- the spec brings Hypothesis, which --help can do without

    console = Console(stderr="-" in (json_path, junit), emoji=False)
    _check_places(json_path, junit, out)
    with _progress(console) as progress:
        report = run_fuzz(
            target,
            seed=seed,
            steps=steps,
            seconds=seconds,
            threads=threads,
            promises=_promises(promise or []),
            hang=hang,
            first=first,
            on_progress=_follow(progress),
        )
    _print_report(console, report)
    for finding in report.findings:
        _print_finding(console, report, finding, out)
    if json_path is not None:
        _write(json_path, json.dumps(report.as_json(), indent=2) + "\n")
    if junit is not None:
        _write(junit, report.as_junit())
    console.print("[green]passed[/green]" if report.passed else "[bold red]failed[/bold red]", end=". ")
    console.print(f"Seed {seed}.", highlight=False)
    if not report.passed:
        raise typer.Exit(1)


def replay(
    file: Annotated[Path, typer.Argument(help="A file that fuzz wrote.")],
    target: Annotated[
        str | None,
        typer.Argument(
            help="What to take the steps on, as for fuzz. It is imported and run, so you have to name it, and not the "
            "file. Without it the command only shows what the file names."
        ),
    ] = None,
) -> None:
    """Take the steps of a finding again.

    Exits with 0 if nothing is wrong any more; with 1 if it still fails, or never failed twice, so that nobody knows;
    and with 2 if it cannot be replayed.
    """
    from .spec.fuzz import Replay, TargetError  # noqa: PLC0415 -- as in fuzz

    found = Replay.read(file)
    if target is None:
        raise TargetError(_unnamed(file, found))
    found = found.aimed_at(target)
    finding = found.run()
    if finding is None and not found.finding.repeats:
        typer.echo(
            f"{found.target} did not break {found.finding.requirement} this time. That says little: "
            "it has never been seen twice."
        )
        raise typer.Exit(1)
    if finding is None:
        typer.echo(f"{found.target} no longer breaks {found.finding.requirement}")
        return
    still = "still" if finding.requirement == found.finding.requirement else "now"
    typer.echo(f"{found.target} {still} breaks {finding.requirement}: {finding.message}")
    raise typer.Exit(1)


def _promises(texts: list[str]) -> dict[str, str]:
    from .spec.fuzz import TargetError  # noqa: PLC0415 -- as in fuzz

    promises: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise TargetError(f"a promise is written as NAME=VALUE, got {text!r}")
        if promises.setdefault(name, value) != value:
            raise TargetError(f"{name} is promised twice: {promises[name]} and {value}")
    return promises


def _check_places(json_path: str | None, junit: str | None, out: Path) -> None:
    """Refuse places that cannot be written to, before anything is looked for."""
    if json_path == junit == "-":
        raise typer.BadParameter("only one of --json and --junit can go to standard output")
    for option, place in (("--json", json_path), ("--junit", junit), ("--out", out / "replay.json")):
        if place is None or place == "-":
            continue
        path = Path(place)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path.parent):
                pass
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder")
        except OSError as error:
            raise typer.BadParameter(f"{option} cannot be written: {error}") from error


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def _follow(progress: Progress) -> Callable[[str, int, int], None]:
    """A bar for each engine."""
    tasks: dict[str, TaskID] = {}

    def show(engine: str, done: int, of: int) -> None:
        if engine not in tasks:
            tasks[engine] = progress.add_task(engine, total=of)
        progress.update(tasks[engine], completed=min(done, of))

    return show


def _print_report(console: Console, report: Report) -> None:
    console.print(f"{report.target}: {report.kind}", markup=False, highlight=False, soft_wrap=True)
    table = Table("requirement", "verdict", "looked at", "", box=SIMPLE, pad_edge=False)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    table.columns[2].justify = "right"
    for verdict in report.verdicts():
        times = f"{verdict.times:,}" if verdict.times else ""
        table.add_row(verdict.requirement, _MARKS[verdict.status], times, escape(verdict.detail))
    console.print(table)
    for run in report.suites:
        console.print(
            f"{run.name}: {run.steps:,} operations in {run.seconds:.1f} s, {run.rate:,.0f} a second",
            style="dim",
            highlight=False,
        )


def _print_finding(console: Console, report: Report, finding: Finding, out: Path) -> None:
    """A finding as Python, and as a file to replay."""
    found = report.replay(finding)
    path = out / f"{finding.requirement}.json"
    _write(str(path), found.text())
    console.print(f"\n{finding.requirement}: {finding.message}", style="red", markup=False, soft_wrap=True)
    console.print(f"{finding.text} Found by {finding.engine}, operation {finding.operations:,}.\n", highlight=False)
    if not finding.repeats and finding.program:
        last = f"the last {len(finding.program)} steps are in the file"
        console.print(f"Its steps, taken again from the start, did not show it; {last}. {_HURT}\n", highlight=False)
    elif not found.shows_steps and finding.program:
        console.print(f"It takes {len(finding.program):,} steps, which are in the file.", highlight=False)
    if not found.shows_steps:
        console.print("These lines make the whole run again:\n", highlight=False)
    console.print(found.python(), markup=False, highlight=False, soft_wrap=True)
    console.print(f"Replay it: {_again(path, report.target)}", markup=False, highlight=False, soft_wrap=True)


def _unnamed(file: Path, found: Replay) -> str:
    """Why nothing is run without a target, and what to say if what the file names is to be trusted."""
    why = "a replay imports and runs its target, so you have to name it"
    if not found.named:
        return f"{why} after the file: it came from an object in a program, {found.target!r:.{_LONGEST}}"
    if not found.target.isprintable() or len(found.target) > _LONGEST:
        return f"{why} after the file, which names {found.target!r:.{_LONGEST}}"
    return f"{why}; the file names {found.target!r}, and if you trust that: {_again(file, found.target)}"


def _again(file: Path, target: str) -> str:
    """The command that takes the steps of a file again, as a shell reads it."""
    return f"syncedmem replay {shlex.quote(str(file))} {shlex.quote(target)}"


def _write(place: str, text: str) -> None:
    write(None if place == "-" else Path(place), text)
