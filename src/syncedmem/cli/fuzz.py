"""The command ``fuzz``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn
from rich.table import Table

from syncedmem.interrupts import BY_SIGNAL
from syncedmem.model import FileAccessError, InvalidArgumentError
from syncedmem.model.defaults import FUZZ

from .display import progress_bars, sayer
from .folder import RunFolder
from .options import Force, JsonFile, JunitFile  # noqa: TC001 -- typer reads them
from .output import check_places, place, signed, write_over, write_reports
from .replay import replaying
from .signals import interruptible

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Generator, Iterator

    from rich.progress import Progress, TaskID

    from syncedmem.spec.fuzz import Finding, Report

__all__ = ["fuzz"]

DEFAULT_OUT = Path("build/fuzz")
_FAILED = 3
"""The exit status if the fuzzer itself failed."""
_SIGNS = 1.8, 1.0
"""The seconds before the first line that says that the run goes on, and between two of them."""
_HURT = (
    "What ended the process may have been hurt long before. A library built with -fsanitize=address, run with "
    "LD_PRELOAD=libasan.so, says where."
)
_HEADERS = {"cpp": "fuzz_target.hpp", "rust": "fuzz_target.rs"}
"""The headers of languages whose allocators are objects."""
_MOST_CALLS = 12
"""So many calls of a program in C are shown."""
_MARKS = {
    "passed": "[green]✓ passed[/]",
    "failed": "[bold red]✗ failed[/]",
    "not checked": "[dim]– not checked[/]",
    "known": "[yellow]– known[/]",
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
    ] = FUZZ.seed,
    steps: Annotated[
        int, typer.Option(metavar="NUMBER", help="Number of operations of the fast generator.")
    ] = FUZZ.steps,
    seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Time after which the generators stop. What was found last may take 15 seconds more.",
        ),
    ] = FUZZ.seconds,
    threads: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Number of threads that use the allocator. More than 1 needs --promise thread_safe=yes.",
        ),
    ] = FUZZ.threads,
    hang: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Time after which a call that has not returned hangs. An import has 12 times as much.",
        ),
    ] = FUZZ.hang,
    first: Annotated[
        bool, typer.Option("--first", "-x", metavar="", help="Stop at the first finding that is not known.")
    ] = False,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REQUIREMENT",
            help="Leave this requirement unjudged, for example A17. The report lists it. Repeat the option for more.",
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with findings that are no failures: one on each line, as the report prints it, and after # the "
            "reason.",
        ),
    ] = None,
    json_path: JsonFile = None,
    junit: JunitFile = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder for report.json and a replay file of each finding, written as they are found. Missing folders "
            "are created.",
        ),
    ] = DEFAULT_OUT,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Number of runs with seeds that follow each other, each in a process of its own, or on the workers of "
            "--scheduler. It needs the package distributed.",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of a scheduler of Dask, for example tcp://host:8786, whose workers make the runs.",
            show_default=False,
        ),
    ] = None,
    write_target: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE",
            help="Write the header that exports an allocator in cpp or rust to the file TARGET, and test nothing.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", metavar="", help="Print the verdict on each requirement as a table too.")
    ] = False,
    force: Force = False,
) -> None:
    """Search an allocator for bugs.

    TARGET is written in one of these forms:
      MODULE:NAME             an object of a Python module
      FILE.py:NAME            an object of a Python file
      MODULE:ALLOC,FREE       two functions of a module
      FILE.so:ALLOC,FREE      two functions of a shared library; ,CALLOC,REALLOC
                              may follow, and ?abi= with malloc, torch, cupy,
                              nep49 or resource; ?build=COMMAND makes the
                              library first
      FILE.so:PREFIX_*        all functions of a shared library that have this
                              prefix: PREFIX_malloc, PREFIX_free...
      FILE.c:ALLOC,FREE       the same of a source in C or C++, which is compiled

    The interface of an object is recognised by its methods. A finding does not end the run. Ctrl-C ends it, with a
    report of what there is.

    Exit status:
      0  no bug was found, or only known ones
      1  a bug was found, whatever else happened; or none, but the run did less
         than half of what it should do, and the target was not too slow for it
      2  the command line is wrong, the target or a promise cannot be used, or a
         file cannot be written
      3  the fuzzer itself failed, or could not go on with the target or for lack
         of room, which says nothing about the target
      129, 130, 143  it was interrupted by SIGHUP, Ctrl-C or SIGTERM
    """
    if write_target is not None:
        _write_header(write_target, target, force=force)
        return
    console = Console(stderr="-" in (json_path, junit), emoji=False)
    check_places(json_path, junit, out, force=force)
    found = _FindingFiles(RunFolder(out, "fuzz", target, force=force), console)
    with progress_bars(console, MofNCompleteColumn()) as progress, _signs_of_life(console, progress) as follow:
        from syncedmem.spec.fuzz import EngineError, TargetError
        from syncedmem.spec.fuzz import fuzz as run_here
        from syncedmem.spec.fuzz.cluster import fuzz_on_cluster

        run_fuzz: Callable[..., object] = run_here
        if jobs is not None or scheduler is not None:
            run_fuzz = partial(fuzz_on_cluster, jobs=jobs or 0, scheduler=scheduler)
        with interruptible() as signals:
            try:
                run_fuzz(
                    target,
                    seed=seed,
                    steps=steps,
                    seconds=seconds,
                    threads=threads,
                    promises=_promises(promise or []),
                    hang=hang,
                    first=first,
                    skip=skip or (),
                    known=known,
                    on_progress=follow,
                    on_change=found.keep,
                )
            except KeyboardInterrupt:
                if found.report is not None:
                    found.report.interrupted = signals[0].name
            except (EngineError, TargetError) as error:  # if it is one of several runs, what the others found stays
                if isinstance(error, TargetError) and not (found.report and found.report.tested):
                    raise
                if found.report is None:
                    typer.echo(f"syncedmem: {error}", err=True)
                    raise typer.Exit(_FAILED) from None
                found.report.errors.append(str(error))
    _finish(console, found, json_path, junit, signals, force=force, table=table)


def _write_header(language: str, target: str, *, force: bool) -> None:
    """Write the header by which allocators of a language are exported."""
    if language not in _HEADERS:
        raise InvalidArgumentError("--write-target", language, f"one of {', '.join(_HEADERS)}")
    path = place("TARGET", target, "header")
    name = _HEADERS[language]
    text = files("syncedmem.spec.fuzz.shims").joinpath(name).read_text(encoding="utf-8")
    write_over({path: signed(text, name.partition(".")[2])}, force=force)
    typer.echo(f"{path}: its first lines say how to use it")


def _finish(  # noqa: PLR0913 -- the options of the command
    console: Console,
    found: _FindingFiles,
    json_path: str | None,
    junit: str | None,
    signals: list[signal.Signals],
    *,
    force: bool,
    table: bool,
) -> None:
    """Print the report, write what is still to be written, and exit."""
    report = found.report
    if report is None:
        console.print(f"interrupted by {signals[0].name} before anything was tested.", style="bold red")
        raise typer.Exit(BY_SIGNAL + signals[0])
    found.keep(report)
    unwritten = [*filter(None, [found.error]), *write_reports(report, json_path, junit, force=force)]
    paths = iter(found.paths(report))
    for finding in report.findings:
        _print_finding(console, report, finding, *next(paths))
        _print_consequences(console, report, finding, paths)
    if table:
        _print_table(console, report)
    _print_verdict(console, report)
    for error in [*report.errors, *unwritten]:
        typer.echo(f"syncedmem: {error}", err=True)
    raise typer.Exit(_status(report, bool(unwritten), signals))


def _status(report: Report, unwritten: bool, signals: list[signal.Signals]) -> int:
    if signals:
        return BY_SIGNAL + signals[0]
    if report.failures:
        return 1  # whatever else has happened
    if unwritten:
        return 2
    if report.errors:
        return _FAILED
    return int(not report.passed)


class _FindingFiles:
    """What is written to ``--out`` as it comes: the report, and a replay of each finding.

    Parameters
    ----------
    folder : RunFolder
    console : Console
        Where a finding is told at once.

    Attributes
    ----------
    report : Report or None
        The report until now.
    error : str
        Why something could not be written; empty if everything was.
    """

    def __init__(self, folder: RunFolder, console: Console) -> None:
        self.report: Report | None = None
        self.error = ""
        self._folder, self._say, self._told = folder, sayer(console), set[tuple[str, str, int]]()

    def paths(self, report: Report) -> list[tuple[Path, Path]]:
        """The files for the replay and the program in C of each finding, and after it of its consequences."""
        times = Counter[str]()
        names: list[str] = []
        for finding in report.with_consequences:
            times[finding.requirement] += 1
            number = f"-{times[finding.requirement]}" * (times[finding.requirement] > 1)
            names.append(f"{finding.requirement}{number}")
        return [(self._folder.path(f"{name}.json"), self._folder.path(f"{name}.c")) for name in names]

    def keep(self, report: Report) -> None:
        """Tell and write what has changed; if that fails, the run goes on, and the error is told at the end."""
        self.report = report
        for finding in report.violating:
            what = finding.requirement, finding.generator, finding.operations
            if what not in self._told:
                self._told.add(what)
                self._say(f"found by {finding.generator}: {finding.requirement}: {finding.message}")
        self.error = ""
        texts: dict[Path, str] = {}
        try:
            for (path, c_path), finding in zip(self.paths(report), report.with_consequences, strict=True):
                texts[path] = report.replay(finding).text()
                in_c = report.c_program(finding, str(c_path))
                texts |= {} if in_c is None else {c_path: in_c.text}
            self._folder.keep(texts, report.as_json())
        except FileAccessError as error:
            self.error = str(error)


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


@contextmanager
def _signs_of_life(console: Console, progress: Progress) -> Generator[Callable[[str, int, int], None]]:
    """A bar for each generator; where there is no terminal, a line on standard error now and then.

    The function that is given takes the progress of the run.
    """
    begun, ended, said = time.monotonic(), threading.Event(), ["the start"]
    tasks: dict[str, TaskID] = {said[0]: progress.add_task(said[0], total=1)}

    def show(generator: str, done: int, of: int) -> None:
        progress.update(tasks["the start"], completed=1)
        if generator not in tasks:
            tasks[generator] = progress.add_task(generator, total=of)
        progress.update(tasks[generator], completed=min(done, of), total=of)
        said[0] = f"{generator}, {done:,} of {of:,}"

    def say() -> None:
        first, later = _SIGNS
        while not ended.wait(first if begun + first > time.monotonic() else later):
            typer.echo(f"{time.monotonic() - begun:.0f} s: {said[0]}", err=True)

    speaker = threading.Thread(target=say, daemon=True)
    if not console.is_interactive:
        speaker.start()
    try:
        yield show
    finally:
        ended.set()


def _print_table(console: Console, report: Report) -> None:
    """The verdict on each requirement, and how fast the generators were."""
    table = Table("requirement", "verdict", "checked", "", box=SIMPLE, pad_edge=False)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    table.columns[2].justify = "right"
    for verdict in report.verdicts():
        times = f"{verdict.times:,}" if verdict.times else ""
        status = "known" if verdict.detail.startswith("known") else verdict.status
        table.add_row(verdict.requirement, _MARKS[status], times, escape(verdict.detail))
    console.print(table)
    for run in report.suites:
        console.print(
            f"{run.name}: {run.steps:,} operations in {run.seconds:.1f} s, {run.rate:,.0f} a second",
            style="dim",
            highlight=False,
        )


def _print_finding(console: Console, report: Report, finding: Finding, path: Path, c_path: Path) -> None:
    """A finding as Python and in C, and as a file to replay."""
    replay = report.replay(finding)
    say = sayer(console)
    if finding.known is not None:
        say(f"\nknown: {finding.key}: {finding.message}", style="yellow")
        return
    say(f"\n{finding.requirement}: {finding.message}", style="red")
    times = f", and {finding.times - 1:,} times more" if finding.times > 1 else ""
    console.print(
        f"{finding.text} Found by {finding.generator}, operation {finding.operations:,}{times}.", highlight=False
    )
    if finding.after:
        console.print(f"Its program breaks {' and '.join(finding.after)} before, which is left unjudged here.")
    console.print()
    for line in _of_its_steps(finding, shown=replay.shows_steps):
        say(line)
    say(replay.python())
    in_c = report.c_program(finding, str(c_path))
    if in_c is not None:
        say(f"The same in C; {c_path} is the whole program, and says how to compile it:\n")
        shown = in_c.calls if len(in_c.calls) <= _MOST_CALLS else (*in_c.calls[:_MOST_CALLS], "...")
        say("".join(f"    {line}\n" for line in shown))
    if report.parts and finding.requirement == "A22-no-crash" and len(finding.program) == 1:
        say("If the library has to be initialised first, name a function that does so: ,reset=INIT is called first.")
    if not finding.elsewhere:
        say("In a new process with another heap it did not show this.")
    say(f"Replay it: {replaying(path, report.wanted.target)}")
    say(f"If it is known, a line for --known: {finding.key}  # why")


def _of_its_steps(finding: Finding, *, shown: bool) -> Iterator[str]:
    """What is to be said of the steps of a finding, each in a line."""
    if not finding.examined:
        yield (
            "Its examination was interrupted, so nobody knows whether its steps, or fewer of them, show it again; "
            f"the last {len(finding.program)} are in the file.\n"
        )
    elif not finding.repeats and finding.program:
        last = f"the last {len(finding.program)} steps are in the file"
        hurt = _HURT if finding.requirement in {"A22-no-crash", "A23-no-hang"} else ""
        yield f"Its steps, taken again from the start, did not show it; {last}. {hurt}\n"
    elif finding.repeats and not finding.program:
        yield "It takes so many steps that they are not kept; the seed takes them again."
    elif not shown and finding.program:
        yield f"It takes {len(finding.program):,} steps, which are in the file."
    if finding.repeats and finding.program and not finding.shrunk:
        yield "They are as they were found: a fifth of --seconds was too little to make them fewer."
    if not shown:
        yield "These lines make the whole run again:\n"


def _print_consequences(console: Console, report: Report, finding: Finding, paths: Iterator[tuple[Path, Path]]) -> None:
    """What may follow from a finding: each in a line, and how to replay it."""
    say = sayer(console)
    if finding.consequences:
        say(f"\nThis may follow from the same bug. Mend {finding.requirement} first, and run again:")
    for consequence in finding.consequences:
        times = f" ({consequence.times:,} times)" if consequence.times > 1 else ""
        say(f"  {consequence.key}: {consequence.message}{times}")
        say(f"    {replaying(next(paths)[0], report.wanted.target)}", style="dim")


def _print_checked(say: Callable[..., None], report: Report) -> None:
    """The requirements by their numbers: what was checked, what was not kept, and what was not checked, and why."""
    verdicts = report.verdicts()
    checked = [verdict.requirement[:3] for verdict in verdicts if verdict.status != "not checked"]
    say(f"checked: {', '.join(checked) or 'nothing'}")
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.status == "not checked":
            reasons.setdefault(verdict.detail, []).append(verdict.requirement[:3])
    texts = [f"{', '.join(names)} ({why})" for why, names in reasons.items()]
    failed = [verdict.requirement[:3] for verdict in verdicts if verdict.status == "failed"]
    if failed:
        say(f"not kept: {', '.join(failed)}")
    say(f"not checked: {'; '.join(texts) or 'nothing'}")


def _print_verdict(console: Console, report: Report) -> None:
    """What was done and checked, what is not as usual, each in a line, and the verdict."""
    say = sayer(console)
    if report.findings:
        say()
    else:
        say(
            f"{'passed' if report.passed else 'nothing was found'}: {report.wanted.target}",
            style="green" * report.passed,
        )
    say(f"{report.operations:,} operations in {report.seconds:.1f} s on {report.kind}")
    _print_checked(say, report)
    for note in report.notes:
        say(note, style="yellow")
    for key in report.unseen:
        say(f"Known, and not found this time: {key}", style="yellow")
    if report.interrupted:
        say(f"Interrupted by {report.interrupted}: this is a report of what was done until then.", style="yellow")
    if report.interrupted and not report.failures:
        say(f"There is no verdict. Seed {report.wanted.seed}.", style="bold red")
    elif report.errors and not report.failures:
        say(f"The run did not come to its end, so this says nothing. Seed {report.wanted.seed}.", style="bold red")
    elif report.incomplete:
        say(f"incomplete: {report.incomplete}, so this says little. Seed {report.wanted.seed}.", style="bold red")
        say("Give it more --seconds, or say with --steps how many operations are enough.")
    else:
        console.print("[green]passed[/green]" if report.passed else "[bold red]failed[/bold red]", end=". ")
        console.print(f"Seed {report.wanted.seed}.", highlight=False)
