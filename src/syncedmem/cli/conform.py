"""The command ``conform``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import TextColumn

from syncedmem import interrupts
from syncedmem.model import EDITIONS, InvalidArgumentError

from .display import progress_bars, sayer, table, widen
from .folder import RunFolder
from .machines import POLICY, named_port
from .options import (
    MEMORY,
    Command,
    Edition,
    Force,
    JsonFile,
    JunitFile,
    OwnMachine,
    ReportFolder,
    Target,
    Timeout,
    limits_of,
    one_of,
)
from .output import check_places, write_reports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

    from syncedmem.spec import Violation
    from syncedmem.spec.engine.supervisor import Limits
    from syncedmem.spec.ports.conformance import Claim, PortReport
    from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

__all__ = ["conform"]

DEFAULT_OUT = Path("build/conform")
STEPS = 2000
_LISTED = 10
"""How many transitions that were not taken are printed."""
_SHOWN = 4000
"""How many characters of a program are printed; a longer one is only in its file."""


def conform(  # noqa: PLR0913 -- the options of the command
    target: Target = None,
    *,
    command: Command = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="caffe: what Caffe does. safe: also what we promise beyond it. Default: caffe; a port that conforms "
            "to it is also tested for safe, and the last line says what is missing, if anything.",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Test only this level: L0 heads and refusals, L1 and bytes, L2 and actions, L3 and failures, L4 and "
            "pushes in flight, threads and lifetimes. Default: the highest that the port names; with --keep-going also "
            "lower ones, until it conforms.",
        ),
    ] = None,
    edition: Edition = None,
    machine: OwnMachine = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help=f"{POLICY} Default: its memories are judged by its table alone.",
        ),
    ] = None,
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
        typer.Option(
            "--keep-going",
            "-k",
            metavar="",
            help="Go on after a violation, with the other requirements and with lower levels. Default: stop there.",
        ),
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
    timeout: Timeout = None,
    json_path: JsonFile = None,
    junit: JunitFile = None,
    out: ReportFolder = DEFAULT_OUT,
    force: Force = False,
) -> None:
    """Test a port against the specification.

    TARGET is written in one of these forms:
      MODULE:MAKER            a maker of memories in Python, or a Subject
      FILE.py:MAKER           the same in a Python file
      ./libport.so            a shared library with the C ABI of syncedmem_port.h
      --command COMMAND       a program that speaks the protocol of ports

    The port runs in a process of its own. If it crashes, exits or does not answer, that is a violation. The first
    violation ends the test, and the folder has the shortest program that shows it. The last line is the verdict. If
    no profile is named, a port that conforms to caffe has a further line: what it lacks of the profile safe. With
    --keep-going the other requirements are tested too, each violation has its program, and if the port does not conform
    at the level that it names, lower levels follow; the last line has the one that it reaches.

    Exit status:
      0  the port conforms, at the level that was asked for, or at the one that it names
      1  it does not
      2  the command line is wrong, or the target cannot be tested
      129, 130, 143  it was interrupted by SIGHUP, Ctrl-C or SIGTERM; then there is no verdict
    """
    from syncedmem.spec.kit.shared import Shared
    from syncedmem.spec.ports.conformance import claim_of_safe

    console = Console(stderr="-" in (json_path, junit), emoji=False)
    say = sayer(console)
    wanted = _wanted(profile or "caffe", level, edition, steps, seed, keep_going, excepted or [], blobs)
    if profile is None and not blobs:
        wanted = replace(wanted, shared=Shared())
    limits = limits_of(timeout, MEMORY)
    port = named_port(target, command, machine, policy)
    check_places(json_path, junit, out, force=force)
    folder = RunFolder(out, "conform", port.as_written, force=force)
    known: set[str] = set()

    def receive(report: PortReport) -> None:
        folder.keep(_programs(folder, report, port.ending), report.as_json())
        for violation in report.violations:
            if violation.requirement not in known:
                known.add(violation.requirement)
                _print_violation(say, violation, seed, folder.path(f"{violation.requirement}{port.ending}"), port)

    with progress_bars(console, TextColumn("{task.fields[cases]} cases")) as progress:
        report = _tested(port, wanted, limits, _follow(progress), receive)
        further = claim_of_safe(wanted, report) if profile is None else None
        if further is not None:
            report = replace(report, safe=_tested(port, further, limits, _follow(progress, "safe")).safe_line)
    receive(report)
    _print(console, report)
    if folder.stale:
        say(f"{out} also has files of an earlier run on {folder.before}: {', '.join(folder.stale)}")
    for error in write_reports(report, json_path, junit, force=force):
        raise error
    say(report.line, style="green" if report.passed else "bold red")
    if report.safe:
        say(report.safe)
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
) -> Claim:
    from syncedmem.spec.ports.conformance import Claim
    from syncedmem.spec.requirements import LEVELS, PROFILES

    one_of("--profile", profile, PROFILES)
    level = level and level.upper()
    one_of("--level", level, LEVELS)
    one_of("--edition", edition, EDITIONS)
    names = tuple(dict.fromkeys(map(_requirement, excepted)))
    name: Any = profile
    return Claim(name, level or "", edition or "", steps, seed, keep_going, not keep_going, names, blobs)


def _requirement(text: str) -> str:
    """The requirement of this name, or of this number."""
    from syncedmem.spec.requirements import requirements_of

    for name in requirements_of("memory", "blob", "port"):
        if text in (name, name.partition("-")[0]):
            return name
    raise InvalidArgumentError("--except", text, "a requirement, such as R09")


def _tested(
    port: ProgramTarget | MakerTarget,
    wanted: Claim,
    limits: Limits,
    progress: Callable[[str, int], None],
    on_change: Callable[[PortReport], None] = lambda _: None,
) -> PortReport:
    from syncedmem.spec.ports.conformance import conform_program
    from syncedmem.spec.ports.makers import conform_maker
    from syncedmem.spec.ports.targets import MakerTarget

    if isinstance(port, MakerTarget):
        return conform_maker(port, wanted, limits, progress=progress, on_change=on_change)
    return conform_program(port, wanted, limits, progress=progress, on_change=on_change)


def _follow(progress: Progress, profile: str = "") -> Callable[[str, int], None]:
    """One bar, which says the level and the suite."""
    task = progress.add_task("the port", total=None, cases="0")

    def show(suite: str, cases: int) -> None:
        interrupts.check()
        progress.update(task, description=f"{profile} {suite}".strip(), cases=f"{cases:,}")

    return show


def _programs(folder: RunFolder, report: PortReport, ending: str) -> dict[Path, str]:
    """The file of each violation that has a program."""
    texts: dict[Path, str] = {}
    for violation in report.violations:
        if violation.statements:
            text = violation.reproducer if ending == ".py" else "\n".join(violation.statements)
            texts[folder.path(f"{violation.requirement}{ending}")] = f"{text}\n"
    return texts


def _print_violation(
    say: Callable[..., None], violation: Violation, seed: int, path: Path, port: ProgramTarget | MakerTarget
) -> None:
    """Print what was found, with the shortest program that shows it, as soon as it is found."""
    say(violation.sentence, style="red")
    for line in _shown(violation, seed, path, port):
        say(f"{line}\n")


def _print(console: Console, report: PortReport) -> None:
    widen(console)
    profile = report.claim.profile
    unit = report.results[-1].coverage.unit if report.results else "covered"
    rows = table("level", "", "requirements", unit, "walks", "steps", "seconds")
    for column in rows.columns[2:]:
        column.justify = "right"
    for result in report.results:
        rows.add_row(
            f"{profile}/{result.level}",
            "[green]✓ conforms[/]" if result.passed else "[bold red]✗ does not[/]",
            result.counted,
            result.covered.removesuffix(f" {unit}"),
            f"{result.walks:,}",
            f"{result.steps:,}",
            f"{result.seconds:.1f}",
        )
    console.print(rows)
    say = sayer(console)
    for why, names in _left(report).items():
        say(f"Not judged at {report.judged and report.judged.level} ({why}): {', '.join(sorted(names))}")
    if (others := _beyond(report)) and not report.safe:
        say(f"Only the profile safe looks at: {', '.join(others)}")
    for line in _unreached(report):
        say(line)
    for level, violations in report.reasons.items():
        if level and not report.claim.level:
            say(f"What keeps it from {profile}/{level}: {', '.join(violation.requirement for violation in violations)}")


def _unreached(report: PortReport) -> Iterator[str]:
    """The transitions that nothing could take, of the level that was wanted; the first few of them."""
    result = report.results[0] if report.results else None
    missing = result.unreached if result else []
    if result and missing:
        yield f"Not taken at {report.claim.profile}/{result.level}, the {result.coverage.unit}:"
        yield from (f"  {line}" for line in missing[:_LISTED])
        if len(missing) > _LISTED:
            yield f"  and {len(missing) - _LISTED} more, which report.json has"


def _left(report: PortReport) -> dict[str, list[str]]:
    """The numbers of the requirements that the verdict is not about, by the reason."""
    numbers: dict[str, list[str]] = {}
    for name, why in report.judged.left.items() if report.judged else ():
        numbers.setdefault(why, []).append(name.partition("-")[0])
    return numbers


def _beyond(report: PortReport) -> list[str]:
    """The numbers of the requirements that Caffe does not keep, if the verdict is about what Caffe does."""
    from syncedmem.spec.requirements import requirements_of

    rules = requirements_of("blob" if report.claim.blobs else "memory")
    safe = sorted(name.partition("-")[0] for name, rule in rules.items() if rule.profile == "safe")
    return safe if report.claim.profile == "caffe" else []


def _shown(violation: Violation, seed: int, path: Path, port: ProgramTarget | MakerTarget) -> Iterator[str]:
    """The program of a violation, and how to run it."""
    if not violation.statements:  # a maker in Python that cannot even be imported
        return
    text = "\n".join(violation.statements)
    if len(text) <= _SHOWN:
        yield f"Shortest program, seed {seed}:\n\n{text}"
    yield f"It is in {path}." if path.suffix == ".py" else f"Run it: {port.running(path)}"
