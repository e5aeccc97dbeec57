"""The command ``learn``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import TextColumn

from syncedmem.model import EDITIONS, FileAccessError

from .display import progress_bars, sayer
from .folder import RunFolder
from .machines import named_port
from .options import (
    MEMORY,
    Command,
    Edition,
    Force,
    JsonFile,
    Memory,
    OwnMachine,
    ReportFolder,
    Target,
    Timeout,
    limits_of,
    one_of,
)
from .output import as_text, check_place, check_report, signed, write_over, write_report

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["learn"]

DEFAULT_OUT = Path("build/learn")
STEPS = 2000
_LEVELS = ("L0", "L1", "L2")
_SHOWN = 8
"""How many findings are printed; all are in the folder."""


def learn(  # noqa: PLR0913 -- the options of the command
    target: Target = None,
    *,
    command: Command = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Look at this level: L0 heads and refusals, L1 and bytes, L2 and actions. Default: the highest that "
            "the port names, L2 at most.",
        ),
    ] = None,
    edition: Edition = None,
    machine: OwnMachine = None,
    extra: Annotated[
        int,
        typer.Option(
            min=0,
            max=3,
            metavar="NUMBER",
            help="Test until the machine is right if the port has at most so many states more than were learned. Each "
            "takes up to 12 times as many tests.",
        ),
    ] = 0,
    steps: Annotated[
        int,
        typer.Option(
            min=0, metavar="NUMBER", help="Number of random calls after these tests, for states that are hidden deeper."
        ),
    ] = STEPS,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the random calls. The same seed gives the same calls.")
    ] = 0,
    timeout: Timeout = None,
    memory: Memory = MEMORY,
    json_path: JsonFile = None,
    out: ReportFolder = DEFAULT_OUT,
    force: Force = False,
) -> None:
    """Learn the machine of a port, and where it differs.

    TARGET is written in one of these forms:
      MODULE:MAKER            a maker of memories in Python, or a Subject
      FILE.py:MAKER           the same in a Python file
      ./libport.so            a shared library with the C ABI of syncedmem_port.h
      --command COMMAND       a program that speaks the protocol of ports

    The port runs in a process of its own. It gets calls, also with NULL, changes of mode and releases. A machine is
    built from its answers. Then tests look for calls that the port answers otherwise than the machine. The output says
    up to how many states of the port these tests are complete.

    Each answer is judged as by conform. A cell is a call in a configuration. For each cell in which the port breaks a
    requirement, the output has the shortest program to it. The folder also has the machine that was learned, as
    machine.svg. The last line is the result.

    Exit status:
      0    the machine was learned, and is the declared one
      1    it is not, or the port gives different answers to the same calls, or does not live long enough
      2    the command line is wrong, the target cannot be asked, or AALpy is not installed
      129, 130, 143  it was interrupted by SIGHUP, Ctrl-C or SIGTERM
    """
    from syncedmem.spec.learning import LearnWanted
    from syncedmem.spec.learning import learn as learned

    console = Console(stderr=json_path == "-", emoji=False)
    say = sayer(console)
    level = level and level.upper()
    one_of("--level", level, _LEVELS)
    one_of("--edition", edition, EDITIONS)
    limits = limits_of(timeout, memory)
    port = named_port(target, command, machine)
    check_report("--json", json_path, force=force)
    folder = RunFolder(out, "learn", port.as_written, force=force)
    for name in ("report.json", "machine.svg"):
        check_place(out / name, force=force, within=out)
    wanted = LearnWanted(level or "", edition or "", extra, steps, seed)
    with progress_bars(console, TextColumn("{task.fields[calls]} calls")) as progress:
        report = learned(port, wanted, limits, progress=_Bar(progress).show)

    files = {
        folder.path(f"{number}-{_file(cell)}{port.ending}"): (cell, finding)
        for number, (cell, finding) in enumerate(report.findings.items(), 1)
    }
    unwritten: FileAccessError | None = None
    try:
        folder.keep({path: "\n".join((*file.statements, "")) for path, (_, file) in files.items()}, report.as_json())
        if report.picture:
            write_over({out / "machine.svg": signed(report.picture, "svg")}, force=force, within=out)
    except FileAccessError as error:
        unwritten = error  # what was learned is printed all the same
    if not report.stopped:
        say(f"Learned: {report.states} states of {report.name} at {report.level}, by {report.calls:,} calls.")
    for path, (cell, finding) in [*files.items()][:_SHOWN]:
        say(cell, style="bold")
        say(f"  {finding.requirement}: {finding.message}\n  {port.running(path)}")
    if len(files) > _SHOWN:
        say(f"{len(files) - _SHOWN} more are in {out / 'report.json'}.")
    if unwritten is not None:
        raise unwritten
    write_report(json_path, as_text(report.as_json()), force=force)
    say(report.line, style="green" if report.passed else "bold red")
    if not report.passed:
        raise typer.Exit(1)


class _Bar:
    """One bar, which says how many states are known."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("1 state", total=None, calls="0")

    def show(self, now: str, calls: int) -> None:
        """Show the number of states, and of calls."""
        self._progress.update(self._task, description=now, calls=f"{calls:,}")


def _file(cell: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", cell).strip("-")
