"""The verdict on a maker of memories in Python, which is tested in a process of its own.

The process keeps a journal: the statements that it is about to run.  If the process ends, crashes or hangs, these are
the program of the finding.  It is made shorter in further processes, one for each attempt.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model.caffe import DEFAULT

from ..engine.fork import in_fork
from ..engine.reproducer import program_of
from ..engine.shrinking import SECONDS, shrink
from ..engine.supervisor import Child, Death
from ..engine.violation import UnfitError, Violation
from ..requirements import LEVELS
from .conformance import Claim, PortReport, conform
from .protocol import PortError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.reproducer import Imports
    from ..engine.subject import Subject
    from ..engine.supervisor import Limits, Progress, Reporter
    from ..requirements import Level
    from .targets import MakerTarget

__all__ = ["Last", "StatementJournal", "conform_maker", "judge_maker", "run_again", "shorten"]


class StatementJournal:
    """What a process is about to run, in a file that outlives it.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self._file = path.open("wb", buffering=0)

    def note(self, more: Imports, lines: list[str]) -> None:
        """Keep these statements in place of those before."""
        content = json.dumps([more, lines]).encode()
        os.pwrite(self._file.fileno(), content, 0)
        os.ftruncate(self._file.fileno(), len(content))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @staticmethod
    def read(path: Path) -> tuple[Imports, tuple[str, ...]]:
        """The imports and the statements that were kept last; none if there are none."""
        try:
            more, lines = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return (), ()
        return tuple((module, tuple(names)) for module, names in more), tuple(lines)


def conform_maker(
    target: MakerTarget,
    claim: Claim,
    limits: Limits,
    *,
    progress: Progress | None = None,
    on_change: Callable[[PortReport], None] = lambda _: None,
) -> PortReport:
    """Test a maker of memories in Python, in a process of its own; see `syncedmem.spec.ports.conformance.conform`.

    Raises
    ------
    PortError
        If it cannot be tested.
    """
    last = PortReport(target.name, claim.edition or DEFAULT.name, claim)

    def receive(report: PortReport) -> None:
        nonlocal last
        last = report
        on_change(report)

    with TemporaryDirectory(prefix="syncedmem-") as folder:
        journal = Path(folder) / "journal"
        moved = partial(_mark, journal)
        child = Child(
            judge_maker, (target, claim, journal), limits=limits, moved=moved, progress=progress, on_message=receive
        )
        answer = child.wait()
        if isinstance(answer, PortError):
            raise answer
        if isinstance(answer, Death):
            stage, _, suite = answer.stage.rpartition(": ")
            level: Any = stage or claim.level or LEVELS[-1]
            subject = partial(target.subject, claim.profile, level, claim.edition)
            violation = _died(Last(subject, answer, limits, *StatementJournal.read(journal)), suite)
            return replace(last, unfinished=(*last.unfinished, violation))
        return answer


def _mark(path: Path) -> int:
    """What changes whenever a statement is run."""
    return path.stat().st_mtime_ns if path.exists() else 0


class Last(NamedTuple):
    """What a process ran last.

    Attributes
    ----------
    subject : callable
        Makes a new subject of the target.
    death : Death
        How the process ended.
    limits : Limits
    more : tuple of (str, tuple of str)
        Modules and names that the statements use besides the usual ones.
    lines : tuple of str
        The statements.
    """

    subject: Callable[[], Subject]
    death: Death
    limits: Limits
    more: Imports
    lines: tuple[str, ...]


def _died(last: Last, suite: str) -> Violation:
    """The violation of a process that has ended, with the shortest program that ends it."""
    how = f"the process {last.death.how}"
    if not last.lines:
        return Violation("P01-answers", f"{how}, before anything was called")
    again = Child(shorten, last, nests=True).wait()
    shorter = () if isinstance(again, Death) else again
    lines = shorter or last.lines
    alone = "" if shorter else " (these statements alone did not end it again)"
    program = program_of(lines, last.subject(), last.more)
    return Violation("P01-answers", f"{lines[-1]}: {how}, in the suite {suite}{alone}", program)


def shorten(last: Last, *, progress: Progress) -> tuple[str, ...]:
    """The shortest statements that end a process in the same way; none if those that did so do not do it again."""
    attempts, limits = 0, replace(last.limits, first=None)

    def dies(lines: Sequence[str]) -> bool:
        nonlocal attempts
        attempts += 1
        progress("shortening", attempts)
        answer = in_fork(partial(run_again, last._replace(lines=tuple(lines))), Path(folder) / "answer", limits)
        if not isinstance(answer, Death) or answer.kind != last.death.kind:
            return False
        return answer.kind == "hang" or answer.detail == last.death.detail

    with TemporaryDirectory(prefix="syncedmem-") as folder:
        return shrink(last.lines, dies, seconds=SECONDS) if dies(last.lines) else ()


def run_again(last: Last) -> dict[str, Any]:
    """Run statements, until one raises; there is an answer if the process is still there."""
    with suppress(BaseException):
        subject = last.subject()
        exec("\n".join(program_of(last.lines, subject, last.more)), {"subject": subject})  # noqa: S102 -- they were run before
    return {}


def judge_maker(argument: tuple[MakerTarget, Claim, Path], *, progress: Reporter) -> PortReport | PortError:
    """What `conform_maker` does in the other process; it sends the report until now."""
    target, claim, path = argument
    if claim.blobs and claim.level not in ("", LEVELS[-1]):
        return PortError(f"blobs are tested at {LEVELS[-1]}, not at {claim.level}")
    journal = StatementJournal(path)

    def bench(level: Level) -> Subject:
        return replace(target.subject(claim.profile, level, claim.edition), journal=journal.note)

    try:
        return conform(bench, target.top(), claim, progress=progress, on_change=progress.send)
    except (PortError, UnfitError) as error:
        return PortError(str(error))
    finally:
        journal.close()
