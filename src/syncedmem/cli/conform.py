"""The command ``conform``."""

from __future__ import annotations

import json
import shlex
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import TextColumn

from syncedmem.model import EDITIONS, InvalidArgumentError

from .display import progress_bars, table, widen
from .options import FIRST, MEMORY, TIMEOUT, Command, Edition, JsonFile, JunitFile, Memory, Timeout
from .output import check_place, write
from .targets import port_target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rich.progress import Progress

    from syncedmem.spec import Violation
    from syncedmem.spec.engine.supervisor import Limits
    from syncedmem.spec.ports.conformance import PortReport, Wanted
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["conform"]

DEFAULT_OUT = Path("build/conform")
STEPS = 2000
_SHOWN = 4000
"""How many characters of a program are printed; a longer one is only in its file."""


def conform(  # noqa: PLR0913 -- the options of the command
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="The port, in one of the forms above.")] = None,
    *,
    command: Command = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="caffe: what Caffe does. safe: also what we promise beyond Caffe.")
    ] = "caffe",
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Test this level: L0 heads and refusals, L1 and bytes, L2 and actions, L3 and failures, L4 and pushes "
            "in flight, threads and lifetimes. Default: find the highest level that the port reaches.",
        ),
    ] = None,
    edition: Edition = None,
    blobs: Annotated[
        bool, typer.Option("--blobs", metavar="", help="Test the blobs of the port, not its memories.")
    ] = False,
    steps: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Number of generated steps, after the enumerated ones.")
    ] = STEPS,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the generated steps. The same seed gives the same steps.")
    ] = 0,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", "-k", metavar="", help="Go on after a violation, with the other requirements."),
    ] = False,
    excepted: Annotated[
        list[str] | None,
        typer.Option(
            "--except",
            metavar="REQUIREMENT",
            help="Do not count violations of this requirement, for example R09. The verdict lists it. Repeat the "
            "option for more.",
        ),
    ] = None,
    timeout: Timeout = TIMEOUT,
    memory: Memory = MEMORY,
    json_path: JsonFile = None,
    junit: JunitFile = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder for report.json, and for each violation a program and, if one can show it, a test vector, "
            "written as they are found. Missing folders are created.",
        ),
    ] = DEFAULT_OUT,
) -> None:
    """Test a port against the specification.

    TARGET is written in one of these forms:
      MODULE:MAKER            a maker of memories in Python, or a Subject
      FILE.py:MAKER           the same in a Python file
      ./libport.so            a shared library with the C ABI of syncedmem_port.h
      --command COMMAND       a program that speaks the protocol of ports

    The port runs in a process of its own. If it crashes, exits or does not answer, that is a violation. For each
    violation there is the shortest program that shows it. The last line is the verdict.

    Exit status:
      0  the port conforms, at the level that was asked for, or at any
      1  it does not
      2  the command line is wrong, or the target cannot be tested
    """
    from syncedmem.spec.engine.supervisor import Limits

    console = Console(stderr="-" in (json_path, junit), emoji=False)
    wanted = _wanted(profile, level, edition, steps, seed, keep_going, excepted or [], blobs)
    for option, value in (("--timeout", timeout), ("--memory", memory)):
        if not 0 < value < inf:
            raise InvalidArgumentError(option, value, "more than 0")
    found = port_target(target, command)
    if json_path == junit == "-":
        raise InvalidArgumentError("--junit", junit, "another place than that of --json")
    for text in (json_path, junit, str(out / "report.json")):
        if text not in (None, "-"):
            check_place(Path(str(text)))
    limits = Limits(seconds=timeout, first=max(timeout, FIRST), memory=memory << 20)
    with progress_bars(console, TextColumn("{task.fields[cases]} cases")) as progress:
        report = _tested(found, wanted, limits, _follow(progress), lambda it: _keep(it, out))
    _keep(report, out)
    _print(console, report, out, found)
    if json_path is not None:
        write(None if json_path == "-" else Path(json_path), json.dumps(report.as_json(), indent=2) + "\n")
    if junit is not None:
        write(None if junit == "-" else Path(junit), report.as_junit())
    console.print(report.line, style="green" if report.passed else "bold red", highlight=False, soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)


def _wanted(  # noqa: PLR0913, PLR0917 -- options
    profile: str,
    level: str | None,
    edition: str | None,
    steps: int,
    seed: int,
    keep_going: bool,
    excepted: list[str],
    blobs: bool,
) -> Wanted:
    from syncedmem.spec.ports.conformance import Wanted
    from syncedmem.spec.requirements import LEVELS, PROFILES

    _one_of("--profile", profile, PROFILES)
    _one_of("--level", level, (None, *LEVELS))
    _one_of("--edition", edition, (None, *EDITIONS))
    names = tuple(dict.fromkeys(map(_requirement, excepted)))
    found: Any = profile
    return Wanted(found, level or "", edition or "", steps, seed, keep_going, names, blobs)


def _one_of(option: str, value: str | None, known: Collection[str | None]) -> None:
    if value not in known:
        raise InvalidArgumentError(option, value, f"one of {', '.join(filter(None, known))}")


def _requirement(text: str) -> str:
    """The requirement of this name, or of this number."""
    from syncedmem.spec.requirements import requirements_of

    for name in requirements_of("memory", "blob", "port"):
        if text in (name, name.partition("-")[0]):
            return name
    raise InvalidArgumentError("--except", text, "a requirement, such as R09")


def _tested(
    found: ProgramTarget | MakerTarget,
    wanted: Wanted,
    limits: Limits,
    progress: Callable[[str, int], None],
    on_change: Callable[[PortReport], None],
) -> PortReport:
    from syncedmem.spec.ports.conformance import conform_program
    from syncedmem.spec.ports.makers import conform_maker
    from syncedmem.spec.ports.targets import MakerTarget

    if isinstance(found, MakerTarget):
        return conform_maker(found, wanted, limits, progress=progress, on_change=on_change)
    return conform_program(found, wanted, limits, progress=progress, on_change=on_change)


def _follow(progress: Progress) -> Callable[[str, int], None]:
    """One bar, which says the level and the suite."""
    task = progress.add_task("the port", total=None, cases="0")

    def show(suite: str, cases: int) -> None:
        progress.update(task, description=suite, cases=f"{cases:,}")

    return show


def _keep(report: PortReport, out: Path) -> None:
    """Write what is known until now: the report, and the program and the vector of each violation."""
    write(out / "report.json", json.dumps(report.as_json(), indent=2) + "\n")
    for violation in report.violations:
        if violation.statements:
            write(_file(violation, out), "\n".join(violation.statements) + "\n")
        if violation.vector:
            write(_vector(violation, out), f"{violation.vector}\n")


def _vector(violation: Violation, out: Path) -> Path:
    return out / f"{violation.requirement}.vector.jsonl"


def _file(violation: Violation, out: Path) -> Path:
    return out / f"{violation.requirement}.{'jsonl' if _is_requests(violation) else 'py'}"


def _is_requests(violation: Violation) -> bool:
    """Whether its program is requests, and not Python."""
    return violation.statements[0].startswith('{"id"')


def _print(console: Console, report: PortReport, out: Path, found: ProgramTarget | MakerTarget) -> None:
    from syncedmem.spec.ports.targets import ProgramTarget

    widen(console)
    rows = table("level", "", "requirements", "covered", "walks", "steps", "seconds")
    for column in rows.columns[2:]:
        column.justify = "right"
    for result in report.results:
        kept, judged = result.requirements
        rows.add_row(
            f"{report.wanted.profile}/{result.level}",
            "[green]✓ conforms[/]" if result.passed else "[bold red]✗ does not[/]",
            f"{kept} of {judged}",
            result.covered,
            f"{result.found.walks:,}",
            f"{result.found.steps:,}",
            f"{result.found.seconds:.1f}",
        )
    console.print(rows)
    for violation in report.violations:
        console.print(violation.sentence, style="red", markup=False, highlight=False, soft_wrap=True)
        if not violation.statements:  # a maker in Python that cannot even be imported
            continue
        text, path = "\n".join(violation.statements), _file(violation, out)
        if len(text) <= _SHOWN:
            console.print(
                f"Shortest program, seed {report.wanted.seed}:\n\n{text}\n",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        if isinstance(found, ProgramTarget):
            again = f"{shlex.join(found.arguments)} < {shlex.quote(str(path))}"
            console.print(f"Run it: {again}\n", markup=False, highlight=False, soft_wrap=True)
        else:
            console.print(f"It is in {path}.\n", markup=False, highlight=False, soft_wrap=True)
        if violation.vector:
            again = f"syncedmem replay {shlex.quote(str(_vector(violation, out)))} {_named(found)}"
            console.print(f"Or as a test vector: {again}\n", markup=False, highlight=False, soft_wrap=True)


def _named(found: ProgramTarget | MakerTarget) -> str:
    """The target, as a command line has it."""
    from syncedmem.spec.ports.targets import ProgramTarget

    of_command = isinstance(found, ProgramTarget) and tuple(shlex.split(found.name)) == found.arguments
    return f"{'--command ' if of_command else ''}{shlex.quote(found.name)}"
