"""The command ``learn``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import TextColumn

from syncedmem.model import EDITIONS, InvalidArgumentError

from .display import progress_bars, sayer, widen
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
from .output import as_text, check_place, check_report, write_each, write_over, write_report
from .targets import port_target, program_file, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress

    from syncedmem.model import FileAccessError
    from syncedmem.spec.learning.report import LearnFinding, LearnReport, LearnWanted
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["learn"]

DEFAULT_OUT = Path("build/learn")
STEPS = 2000
_DRAWINGS = {"machine.svg": "svg", "machine.mmd": "mermaid", "machine.dot": "dot"}
_LEVELS = ("L0", "L1", "L2")
_INTERRUPTED = 130
"""As a shell has it of a program that an interrupt has ended."""
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
    states: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Test until the machine is right if the port has at most so many states. One state more takes up to "
            "12 times as many tests. Default: as many as were learned.",
        ),
    ] = None,
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

    A cell is a call in a configuration. For each cell in which the machine is not the declared one, the output has both
    answers, the shortest way there, and a program. The folder also has the machine, drawn: machine.svg, machine.dot and
    machine.mmd. The last line is the result. After an interrupt (Ctrl-C) what was asked until then is compared.

    Exit status:
      0    the machine was learned, and is the declared one
      1    it is not, or the port gives different answers to the same calls, or does not live long enough
      2    the command line is wrong, the target cannot be asked, or AALpy is not installed
      130  it was interrupted
    """
    from syncedmem.spec import Violation
    from syncedmem.spec.learning.report import learn as learned

    console = Console(stderr=json_path == "-", emoji=False)
    say = sayer(console)
    wanted = _wanted(level, edition, states, steps, seed)
    limits = limits_of(timeout, memory)
    found = port_target(target, command, machine)
    check_report("--json", json_path, "learn", force=force)
    for name, kind in {"report.json": "learn", **_DRAWINGS}.items():
        check_place(out / name, kind, force=force, within=out)
    try:
        with progress_bars(console, TextColumn("{task.fields[calls]} calls")) as progress:
            report = learned(found, wanted, limits, progress=_follow(progress))
    except Violation as violation:
        program = {out / _file("new", violation.statements): "\n".join(violation.statements).encode() + b"\n"}
        write_over(program, force=force, within=out)
        say(violation.sentence, style="red")
        say("not learned: no memory can be made", style="bold red")
        raise typer.Exit(1) from violation
    drawn, unwritten = _keep(report, out, force=force)
    _print(console, report, out, found, drawn)
    for error in unwritten:
        raise error
    write_report(json_path, as_text(report.as_json()), force=force)
    say(report.line, style="green" if report.passed else "bold red")
    if not report.passed:
        raise typer.Exit(_INTERRUPTED if report.learned.interrupted else 1)


def _wanted(level: str | None, edition: str | None, states: int | None, steps: int, seed: int) -> LearnWanted:
    from syncedmem.spec.learning.report import LearnWanted

    level = level and level.upper()
    one_of("--level", level, _LEVELS)
    one_of("--edition", edition, EDITIONS)
    if states is not None and states < 1:
        raise InvalidArgumentError("--states", states, "1 or more")
    return LearnWanted(level or "", edition or "", states, steps, seed)


def _follow(progress: Progress) -> Callable[[str, int], None]:
    """One bar, which says how many states are known."""
    task = progress.add_task("1 state", total=None, calls="0")

    def show(now: str, calls: int) -> None:
        progress.update(task, description=now or None, calls=f"{calls:,}")

    return show


def _file(name: str, statements: tuple[str, ...]) -> str:
    return program_file(re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-"), statements)


def _files(report: LearnReport) -> list[tuple[LearnFinding, str]]:
    """The findings with the name of the file of each."""
    return [(it, _file(f"{number}-{it.name}", it.statements)) for number, it in enumerate(report.findings, 1)]


def _keep(report: LearnReport, out: Path, *, force: bool) -> tuple[list[str], list[FileAccessError]]:
    """Write the report, the program of each finding, and the drawings.

    Return the names of the drawings, and why a file was not written.
    """
    from syncedmem.spec.learning.drawing import drawings

    texts = {"report.json": as_text(report.as_json())}
    for finding, name in _files(report):
        comment = [f"# {line}" for line in (finding.name, *finding.lines)] if name.endswith(".py") else []
        texts[name] = "\n".join((*comment, *finding.statements)) + "\n"
    drawn = {f"machine.{ending}": text for ending, text in drawings(report).items()}
    files = {out / name: text.encode() for name, text in (texts | drawn).items()}
    return [*drawn], write_each(files, force=force, within=out)


def _print(
    console: Console, report: LearnReport, out: Path, found: ProgramTarget | MakerTarget, drawn: list[str]
) -> None:
    widen(console)
    say = sayer(console)
    say(f"Seen of {report.name}: {report.sight}.")
    if not report.learned.stopped:
        say(f"Learned: {report.size} states. Declared: {report.declared} states.")
    say(f"Asked: {report.learned.calls:,} calls on {report.learned.memories:,} memories.\n{report.bound}\n")
    _print_findings(say, report, out, found)
    compared = report.comparison
    if left := compared.cells - compared.reached:
        say(f"Not compared: {left} of {compared.cells} cells. The calls did not reach them.")
    if drawn:
        say(f"Drawn: {out / drawn[0]}{''.join(f', {name}' for name in drawn[1:])}")


def _print_findings(
    say: Callable[..., None], report: LearnReport, out: Path, found: ProgramTarget | MakerTarget
) -> None:
    """Say the findings; cells of one call with the same two answers are one."""
    groups: dict[tuple[str, ...], list[tuple[LearnFinding, str]]] = {}
    for finding, name in _files(report):
        groups.setdefault((finding.name.partition(" ")[0], *finding.lines), []).append((finding, name))
    if groups:
        say(f"{_legend(report)}\n")
    for (finding, name), *others in [*groups.values()][:_SHOWN]:
        say(finding.name, style="bold")
        for line in (*finding.lines, f"after:    {finding.after}", f"program:  {running(found, out / name)}"):
            say(f"  {line}")
        if others:
            say(f"  the same: {', '.join(other.name.rpartition(' ')[2] for other, _ in others)}")
        say()
    if len(groups) > _SHOWN:
        say(f"{len(groups) - _SHOWN} more are in {out / 'report.json'}.\n")


def _legend(report: LearnReport) -> str:
    """What the names of configurations say, by that of the first difference."""
    machine, example = report.machine, next((it.configuration for it in report.comparison.differences), "")
    letters = ", ".join(f"{it.letter} {it.name}" for it in machine.heads.values() if it.letter)
    sides = f", then the memory of {', '.join(machine.sides)}" if ":" in str(example) else ""
    kinds = " (- none, o owned, e external, p there)" if sides else ""
    return f"{example} is a configuration: the head{f' ({letters})' if letters else ''}{sides}{kinds}."
