"""The command ``verify``."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import TextColumn

from syncedmem.model.defaults import DEFAULT_STEPS
from syncedmem.model.errors import InvalidArgumentError, InvalidExportError
from syncedmem.model.exports.declared import MACHINE
from syncedmem.model.interface import DeviceType

from .display import progress_bars, table, widen
from .machines import POLICY, machine_and_policy
from .options import Force  # noqa: TC001 -- typer reads it
from .output import as_text, check_place, check_report, signed, write_over, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.progress import Progress
    from rich.table import Table

    from syncedmem.model import Machine
    from syncedmem.spec import Policy
    from syncedmem.verification import DeviceVerdict, Verification

__all__ = ["verify"]

DEFAULT_OUT = Path("build/verify")
_COLOURS = {
    "passed": "green",
    "failed": "bold red",
    "unavailable": "dim",
    "not checked": "dim",
    "not applicable": "dim",
}

_KINDS = ", ".join(kind.name.lower() for kind in DeviceType if kind > DeviceType.CPU)


def verify(  # noqa: PLR0913 -- options
    *,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Check only this device: cpu (host memory alone), {_KINDS}. A number says which one of its kind, "
            "as in cuda:1. Repeat the option for more. Default: all of them. simulated-seeded, whose seeded scheduler "
            "decides when queued copies happen, is checked only if it is named.",
        ),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            min=0, metavar="NUMBER", help="Number of generated steps on each device, after the enumerated ones."
        ),
    ] = DEFAULT_STEPS,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the generated steps. The same seed gives the same steps.")
    ] = 0,
    json_path: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Also write report.json to this file; - is standard output."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for index.html and report.json, which replace those of an earlier run. Missing folders are "
            f"created. Default: {DEFAULT_OUT}, or "
            f"{DEFAULT_OUT}-NAME+NAME if not all devices are checked.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MACHINE",
            help=f"Check only the table of this machine, and no device: the name of an edition. Or {MACHINE}",
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help=f"{POLICY} With --model, its table is compared with this.")
    ] = None,
    force: Force = False,
) -> None:
    """Check the model and all devices against the specification.

    The model is compared with what was observed of Caffe. On each device of this machine, memories, blobs and all
    allocators and adaptors are tested against every requirement. A device that is not available is listed with the
    reason. This is no failure, but if you named it with --device, the verdict is "incomplete".

    With --model, only the table of one machine is checked, which may be your own: that it is sound, and with a policy
    that it does what follows from it, for all bytes and sequences of calls.

    Exit status:
      0  the model and every available device passed
      1  something failed, or no device or not every named one was available
      2  the command line is wrong, a machine is unsound, or a file cannot be written
    """
    from syncedmem.spec.engine.supervisor import processors
    from syncedmem.verification import CHECKED, page
    from syncedmem.verification import verify as run_verification

    machine, decided = machine_and_policy("--model", model, policy)
    if machine is not None:
        for option, value in {"--device": device, "--out": out}.items():
            if value:
                raise InvalidArgumentError(option, value, "left out, because --model checks a machine alone")
        _verify_machine(machine, decided, json_path, force=force)
        return
    console = Console(stderr=json_path == "-")
    names = tuple(dict.fromkeys(device or CHECKED))
    # The report of some devices does not pass for that of all, nor take its place.
    folder = out or (DEFAULT_OUT if set(names) == set(CHECKED) else Path(f"{DEFAULT_OUT}-{'+'.join(names)}"))
    check_place(folder / "index.html", force=force, within=folder)
    check_place(folder / "report.json", force=force, within=folder)
    check_report("--json", json_path, force=force)
    with progress_bars(console, TextColumn("{task.fields[cases]} cases")) as progress:
        result = run_verification(
            names,
            steps=steps,
            seed=seed,
            processes=processors(),
            watch=lambda name: _followed(progress, name),
        )
    result.named = tuple(device or ())
    data = as_text(result.as_json())
    files = {folder / "index.html": signed(page(result), "html"), folder / "report.json": signed(data, "json")}
    write_over(files, force=force, within=folder)
    widen(console)
    _print_verification(console, result)
    console.print(f"Report: {folder / 'index.html'}", highlight=False, soft_wrap=True)
    write_report(json_path, data, force=force)
    if not result.passed:
        raise typer.Exit(1)


def _verify_machine(machine: Machine, policy: Policy | None, json_path: str | None, *, force: bool) -> None:
    """Check the table of one machine, and say what was found."""
    from syncedmem.spec import UnfitPolicyError
    from syncedmem.spec.memory.policy import mute_calls
    from syncedmem.verification import verify_machine

    check_report("--json", json_path, force=force)
    try:
        verdict = verify_machine(machine, policy)
    except UnfitPolicyError as error:
        raise InvalidExportError(str(error)) from error
    counts = verdict.counts
    typer.echo(
        f"{machine} is sound: {counts['states']} states and {counts['transitions']} transitions, "
        f"{counts['minimal_states']} states when those that behave alike are merged.",
        err=json_path == "-",
    )
    judged = "proved_states" in counts
    unproved = (
        "Not checked: what its calls do, so whether one loses a write. Name a policy with --policy, or have TLA+ or "
        "SPIN check what diagram writes with --format tla or promela."
    )
    for line in verdict.problems or [verdict.proved if judged else unproved]:
        typer.echo(line, err=json_path == "-")
    mute = sorted(mute_calls(machine, policy))
    if mute:
        typer.echo(f"Not judged, because the policy does not say what they do: {', '.join(mute)}", err=json_path == "-")
    report = {"machine": machine.name, "counts": dict(counts), "problems": verdict.problems, "not_judged": mute}
    write_report(json_path, as_text(report), force=force)
    if verdict.problems:
        raise typer.Exit(1)


@contextmanager
def _followed(progress: Progress, name: str) -> Generator[Callable[[str, int], None]]:
    """A bar for one part of a device, pulsing because nobody knows how many walks there will be."""
    task = progress.add_task(name, total=None, cases="0")

    def show(suite: str, cases: int) -> None:
        progress.update(task, description=f"{name}: {suite}", cases=f"{cases:,}")

    try:
        yield show
    finally:
        progress.remove_task(task)


def _print_verification(console: Console, result: Verification) -> None:
    from syncedmem.verification import LEGEND

    console.print(
        f"Model: {result.model.sizes}; "
        + ("[bold red]is wrong[/bold red]" if result.model.problems else "[green]agrees with Caffe[/green]"),
        soft_wrap=True,
    )
    if not result.model.problems:
        console.print(result.model.proved, highlight=False, soft_wrap=True)
    for problem in result.model.problems:
        console.print(f"  {problem}", style="red", markup=False)
    if result.ran:
        console.print(_requirement_table(result))
        console.print(LEGEND, style="dim")
        if result.unchecked:
            console.print(result.unchecked, style="dim", markup=False, highlight=False, soft_wrap=True)
        console.print(_device_table(result))
    for device in result.devices:
        _print_failure(console, device)
    verdict = result.verdict if result.ran else "nothing could be checked"
    console.print(f"[{'green' if result.passed else 'bold red'}]{verdict}[/]", end=". ")
    if result.ran and result.missing:
        console.print(f"You asked for {', '.join(result.missing)}, and it is not here.", end=" ", highlight=False)
    elif result.ran and result.unavailable:
        console.print(f"Not available, so not checked: {', '.join(result.unavailable)}.", end=" ", highlight=False)


def _device_table(result: Verification) -> Table:
    rows = table("device", "status", "checks", "transitions", "walks", "steps", "seconds")
    for column in rows.columns:
        column.no_wrap = True
    for column in rows.columns[2:]:
        column.justify = "right"
    for device in result.devices:
        rows.add_row(*_row(device))
    return rows


def _row(device: DeviceVerdict) -> list[str]:
    memories = device.memories
    status = f"[{_COLOURS[device.status]}]{device.status}[/]"
    if memories is None:
        return [device.name, status, "", "", "", "", ""]
    covered = memories.coverage
    return [
        device.name,
        status,
        f"{device.checks:,}",
        f"{covered.count}/{covered.count + covered.missing}",
        f"{device.walks:,}",
        f"{device.steps:,}",
        f"{device.seconds:.1f}",
    ]


def _requirement_table(result: Verification) -> Table:
    from syncedmem.spec.requirements import requirements_of
    from syncedmem.verification import KINDS, MARKS

    rows = table("requirement", *(device.name for device in result.ran))
    for column in rows.columns[1:]:
        column.justify = "center"
    for identifier in requirements_of(*KINDS):
        statuses = [device.requirement_status(identifier) for device in result.ran]
        rows.add_row(identifier, *(f"[{_COLOURS[status]}]{MARKS[status]}[/]" for status in statuses))
    return rows


def _print_failure(console: Console, device: DeviceVerdict) -> None:
    if not device.parts:
        console.print(f"{device.name}: {device.reason}", style="dim", markup=False)
        return
    for sentence in filter(None, (device.detail, device.limits)):
        console.print(f"{device.name}: {sentence}", style="dim", markup=False)
    for violation in device.violations[:1]:
        console.print(f"\n{device.name} breaks {violation.sentence}", style="red", markup=False, soft_wrap=True)
        console.print("Shortest reproducer:\n", markup=False)
        console.print(violation.reproducer, markup=False, highlight=False, soft_wrap=True)
    for sentence in device.shortfalls:
        console.print(f"{device.name}: {sentence}", style="red", markup=False)
