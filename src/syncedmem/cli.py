"""The command line: ``verify`` and ``devices``; others are in ``diagram``, ``explore``, ``fuzzing`` and ``vectors``."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import __version__, diagram, explore, fuzzing, vectors
from .model import NoDeviceError, SyncedMemoryError
from .output import name_standard_output, write

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .verdicts import DeviceVerdict, Verification

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Host/device mirrored memory as Caffe defined it: check it, list the devices, draw the machine.",
)

DEFAULT_OUT = Path("build/verify")
DEFAULT_STEPS = 6000
_NARROWEST = 80
_STORAGE = "HYPOTHESIS_STORAGE_DIRECTORY"
"""The environment variable by which Hypothesis is told where it may keep files."""
_MARKS = {"passed": "✓", "failed": "✗", "not checked": "–", "not applicable": "·"}
_COLOURS = {
    "passed": "green",
    "failed": "bold red",
    "unavailable": "dim",
    "not checked": "dim",
    "not applicable": "dim",
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def verify(  # noqa: PLR0913 -- options
    *,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Check this one only; repeat it for more. There are cpu (host memory alone), simulated, "
            "simulated-seeded (the same, with queued copies happening when a seeded scheduler decides), opencl and "
            "cuda. Without this option all of them are checked.",
        ),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            min=0, metavar="NUMBER", help="How many generated steps to take on each device, after the enumerated ones."
        ),
    ] = DEFAULT_STEPS,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="What the generated steps follow from: the same seed, the same steps.")
    ] = 0,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="How many devices to check at a time, each in a process of its own; 1 checks all in this one. Without "
            "this option: as many as there are processors.",
        ),
    ] = None,
    json_path: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write report.json to this file too; - is standard output."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where index.html and report.json go, over what is there. Without this option: "
            f"{DEFAULT_OUT}, or if not all devices are checked {DEFAULT_OUT}-NAME+NAME. Folders that are missing are "
            "made.",
        ),
    ] = None,
) -> None:
    """Check the model, then every device of this machine, against the spec.

    A device that is not here is said, and is no failure.

    Exit status 0: what is here passed.

    Exit status 1: something failed, or nothing could be checked.

    Exit status 2: the command line is wrong, or a file cannot be written.
    """
    from .report import page  # noqa: PLC0415 -- the spec brings Hypothesis, which --help can do without
    from .spec.engine.supervisor import processors  # noqa: PLC0415 -- as below
    from .verification import SUBJECTS  # noqa: PLC0415 -- as above
    from .verification import verify as run_verification  # noqa: PLC0415 -- as above

    console = Console(stderr=json_path == "-")
    names = tuple(dict.fromkeys(device or SUBJECTS))
    with _progress(console) as progress:
        result = run_verification(
            names,
            steps=steps,
            seed=seed,
            processes=processes or min(processors(), len(names)),
            watch=lambda name: _followed(progress, name),
        )
    data = json.dumps(result.as_json(), indent=2) + "\n"
    # The report of some devices does not pass for that of all, nor take its place.
    folder = out or (DEFAULT_OUT if set(names) == set(SUBJECTS) else Path(f"{DEFAULT_OUT}-{'+'.join(names)}"))
    write(folder / "index.html", page(result))
    write(folder / "report.json", data)
    _widen(console)
    _print_verification(console, result)
    console.print(f"Report: {folder / 'index.html'}", highlight=False, soft_wrap=True)
    if json_path is not None:
        write(None if json_path == "-" else Path(json_path), data)
    if not result.passed:
        raise typer.Exit(1)


@app.command()
def devices(
    *, as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")] = False
) -> None:
    """List the devices of this machine: what each one is, or what is missing for it.

    SyncedMemory(size, device=NAME) takes these names, except that host memory alone (cpu) is device=None. Without
    device= it is "auto": the line below the table says what that is here. The variable SYNCEDMEM_DEVICE may name one of
    these devices for it, cpu included.

    "memory only": the device cannot compute, because it cannot compile. Memory and copies work all the same, and with
    OpenCL the host computes.
    """
    from .runtime import probe  # noqa: PLC0415 -- the runtime brings NumPy, which --help can do without
    from .runtime.devices.registry import automatic_name  # noqa: PLC0415 -- as above

    found, automatic, trouble = probe(), "", ""
    try:
        automatic = automatic_name()
    except NoDeviceError as error:
        trouble = str(error)
    if as_json:
        typer.echo(json.dumps([{**vars(report), "auto": report.name == automatic} for report in found], indent=2))
        if trouble:
            typer.echo(f"syncedmem: {trouble}", err=True)
        return
    table = _table("device", "available", "what it is, or what is missing")
    for report in found:
        mark = "[green]yes[/green]" if report.available else "[dim]no[/dim]"
        if report.limits:
            mark += f", {escape(report.limits)}"
        table.add_row(report.name, mark, escape(report.detail))
    console = Console()
    _widen(console)
    console.print(table)
    meaning = f"[bold red]nothing[/]: {escape(trouble)}" if trouble else automatic
    console.print(f'device="auto" is {meaning}', highlight=False, soft_wrap=True)


def _widen(console: Console) -> None:
    """Have room for the tables: a narrower terminal breaks their lines, and nothing is cut off."""
    console.width = max(console.width, _NARROWEST)


def _table(*columns: str) -> Table:
    """A table as narrow as its contents allow; a word that is too long for it is broken, and not cut off."""
    table = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def _progress(console: Console) -> Progress:
    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[cases]} cases"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)


@contextmanager
def _followed(progress: Progress, name: str) -> Generator[Callable[[str, int], None]]:
    """A bar for one device, pulsing because nobody knows how many walks there will be."""
    task = progress.add_task(name, total=None, cases="0")

    def show(suite: str, cases: int) -> None:
        progress.update(task, description=f"{name}: {suite}", cases=f"{cases:,}")

    try:
        yield show
    finally:
        progress.remove_task(task)


def _print_verification(console: Console, result: Verification) -> None:
    counts = result.model.counts
    console.print(
        f"Model: {counts['configurations']} configurations, {counts['cells']} cells ({counts['refusals']} refused), "
        f"{counts['states']} states, {counts['transitions']} transitions; "
        + ("[bold red]is wrong[/bold red]" if result.model.problems else "[green]agrees with Caffe[/green]"),
        soft_wrap=True,
    )
    console.print(
        f"Proofs: {counts['invariants']} invariants in {counts['proved_states']} states; by induction: "
        f"{result.model.induction}",
        highlight=False,
        soft_wrap=True,
    )
    for problem in result.model.problems:
        console.print(f"  {problem}", style="red", markup=False)
    if result.ran:
        console.print(_requirement_table(result))
        console.print(
            "✓ passed, ✗ failed, – not checked: a package is missing, or a suite stopped earlier, · not applicable",
            style="dim",
        )
        if result.unchecked:
            console.print(result.unchecked, style="dim", markup=False, highlight=False, soft_wrap=True)
        console.print(_device_table(result))
    for device in result.devices:
        _print_failure(console, device)
    failed = "failed" if result.ran else "nothing could be checked"
    console.print("[green]passed[/green]" if result.passed else f"[bold red]{failed}[/bold red]", end=". ")


def _device_table(result: Verification) -> Table:
    table = _table("device", "status", "cells", "transitions", "walks", "steps", "seconds")
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    for device in result.devices:
        table.add_row(*_row(device))
    return table


def _row(device: DeviceVerdict) -> list[str]:
    found = device.conformance
    status = f"[{_COLOURS[device.status]}]{device.status}[/]"
    if found is None:
        return [device.name, status, "", "", "", "", ""]
    covered = found.coverage
    return [
        device.name,
        status,
        str(covered.cells),
        f"{covered.transitions}/{covered.transitions + covered.missing}",
        f"{device.walks:,}",
        f"{device.steps:,}",
        f"{device.seconds:.1f}",
    ]


def _requirement_table(result: Verification) -> Table:
    from .spec.requirements import requirements_of  # noqa: PLC0415 -- as in verify

    table = _table("requirement", *(device.name for device in result.ran))
    for column in table.columns[1:]:
        column.justify = "center"
    for identifier in requirements_of("memory", "blob"):
        statuses = [device.requirement_status(identifier) for device in result.ran]
        table.add_row(identifier, *(f"[{_COLOURS[status]}]{_MARKS[status]}[/]" for status in statuses))
    return table


def _print_failure(console: Console, device: DeviceVerdict) -> None:
    if device.conformance is None:
        console.print(f"{device.name}: {device.reason}", style="dim", markup=False)
        return
    for said in filter(None, (device.detail, device.limits)):
        console.print(f"{device.name}: {said}", style="dim", markup=False)
    for violation in device.violations[:1]:
        console.print(f"\n{device.name} breaks {violation.sentence}", style="red", markup=False)
        console.print("The shortest way to see it:\n", markup=False)
        console.print(violation.reproducer, markup=False, highlight=False, soft_wrap=True)
    for what, verdict in (("transitions", device.conformance), ("cells of blobs", device.blobs)):
        if verdict is not None and verdict.coverage.missing:
            missing = verdict.coverage.missing
            console.print(f"{device.name}: {missing} {what} were never taken", style="red", markup=False)


diagram.register(app)
fuzzing.register(app)
explore.register(app)
vectors.register(app)


def main() -> None:
    """Run the command line; errors of this package become one line and exit status 2."""
    name_standard_output()
    try:
        with _nothing_kept():
            app()
    except (SyncedMemoryError, OSError) as error:
        typer.echo(f"syncedmem: {_line(error)}", err=True)
        sys.exit(2)


@contextmanager
def _nothing_kept() -> Generator[None]:
    """Have Hypothesis keep nothing in the current folder, unless the user says where it may.

    What it keeps only saves it a second, and where it cannot make a folder it does without.
    """
    before = {name: value for name, value in os.environ.items() if name == _STORAGE}
    os.environ[_STORAGE] = before.get(_STORAGE) or os.devnull  # which processes that are started inherit
    try:
        yield
    finally:
        del os.environ[_STORAGE]
        os.environ.update(before)


def _line(error: Exception) -> str:
    """What an error says, in one line; one of the system, which file it is about and then what is wrong with it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
