"""The command ``fuzz``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn
from rich.table import Table

from .display import progress_bars
from .output import write
from .replay import replaying

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

    from syncedmem.spec.fuzz import Finding, Report

__all__ = ["fuzz"]

DEFAULT_OUT = Path("build/fuzz")
STEPS, SECONDS, HANG = 100_000, 60.0, 5.0
_HURT = (
    "What ended the process may have been hurt long before. A library built with -fsanitize=address, run with "
    "LD_PRELOAD=libasan.so, says where."
)
_MARKS = {
    "passed": "[green]✓ passed[/]",
    "failed": "[bold red]✗ failed[/]",
    "not checked": "[dim]– not checked[/]",
}


def fuzz(  # noqa: PLR0913 -- the options of the command
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The allocator, in one of the forms above.")],
    *,
    promise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Something that the allocator promises, for example alignment=64. Repeat the option for more.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the steps. The same seed gives the same steps.")
    ] = 0,
    steps: Annotated[int, typer.Option(metavar="NUMBER", help="Number of operations of the fast generator.")] = STEPS,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="Time after which each generator stops.")] = SECONDS,
    threads: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Number of threads that use the allocator. More than 1 needs --promise thread_safe=yes.",
        ),
    ] = 1,
    hang: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Time after which a call that has not returned hangs. An import has 12 times as much.",
        ),
    ] = HANG,
    first: Annotated[bool, typer.Option("--first", "-x", metavar="", help="Stop at the first finding.")] = False,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Log of allocations of RMM (CSV) or CuPy (JSON lines), whose requests come first. Repeat it for more.",
        ),
    ] = None,
    json_path: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Also write the report as JSON to this file; - is standard output."
        ),
    ] = None,
    junit: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the report as JUnit XML to this file; - is standard output."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder for a replay file of each finding. Missing folders are created."),
    ] = DEFAULT_OUT,
) -> None:
    """Search an allocator for bugs.

    TARGET is written in one of these forms:
      MODULE:NAME             an object of a Python module
      FILE.py:NAME            an object of a Python file
      MODULE:ALLOC,FREE       two functions of a module
      FILE.so:ALLOC,FREE      two functions of a shared library; ,CALLOC,REALLOC
                              may follow, and ?abi= with malloc, torch, cupy,
                              nep49, resource or umf
      FILE.so:PREFIX_*        all functions of a shared library that have this
                              prefix: PREFIX_malloc, PREFIX_free...

    The interface of an object is recognised by its methods.

    Exit status:
      0  no bug was found
      1  a bug was found
      2  the command line is wrong, or the target or a promise cannot be used
    """
    from syncedmem.spec.fuzz import fuzz as run_fuzz

    console = Console(stderr="-" in (json_path, junit), emoji=False)
    _check_places(json_path, junit, out)
    with progress_bars(console, MofNCompleteColumn()) as progress:
        report = run_fuzz(
            target,
            seed=seed,
            steps=steps,
            seconds=seconds,
            threads=threads,
            promises=_promises(promise or []),
            hang=hang,
            first=first,
            logs=log or (),
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


def _promises(texts: list[str]) -> dict[str, str]:
    from syncedmem.spec.fuzz import TargetError

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


def _follow(progress: Progress) -> Callable[[str, int, int], None]:
    """A bar for each generator."""
    tasks: dict[str, TaskID] = {}

    def show(generator: str, done: int, of: int) -> None:
        if generator not in tasks:
            tasks[generator] = progress.add_task(generator, total=of)
        progress.update(tasks[generator], completed=min(done, of))

    return show


def _print_report(console: Console, report: Report) -> None:
    console.print(f"{report.target}: {report.kind}", markup=False, highlight=False, soft_wrap=True)
    table = Table("requirement", "verdict", "checked", "", box=SIMPLE, pad_edge=False)
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
    console.print(f"{finding.text} Found by {finding.generator}, operation {finding.operations:,}.\n", highlight=False)
    if not finding.repeats and finding.program:
        last = f"the last {len(finding.program)} steps are in the file"
        console.print(f"Its steps, taken again from the start, did not show it; {last}. {_HURT}\n", highlight=False)
    elif not found.shows_steps and finding.program:
        console.print(f"It takes {len(finding.program):,} steps, which are in the file.", highlight=False)
    if not found.shows_steps:
        console.print("These lines make the whole run again:\n", highlight=False)
    console.print(found.python(), markup=False, highlight=False, soft_wrap=True)
    console.print(f"Replay it: {replaying(path, report.target)}", markup=False, highlight=False, soft_wrap=True)


def _write(place: str, text: str) -> None:
    write(None if place == "-" else Path(place), text)
