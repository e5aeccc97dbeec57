"""The verdict on a maker of memories in Python, which is tested in a process of its own.

The process keeps a journal: the steps that it did, and the one that it is about to do.  If the process ends, crashes or
hangs, these are the program of the finding.  They are made fewer in further processes, one for each attempt.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model.caffe import DEFAULT

from ..blob import python as blob_python
from ..blob.objects import ObjectBlobs
from ..engine.fork import in_fork
from ..engine.shrinking import SECONDS, shrink
from ..engine.supervisor import Child, Death
from ..engine.violation import UnfitError, Violation
from ..requirements import LEVELS
from ..subjects.objects import ObjectMemories
from ..subjects.python import statements
from .conformance import Claim, PortReport, conform
from .protocol import PortError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.subject import Subject
    from ..engine.supervisor import Limits, Progress, Reporter
    from ..requirements import Level
    from .targets import MakerTarget

    Job = Callable[[MakerTarget, Any, Callable[[list[Any]], None], Reporter], Any]

__all__ = ["Last", "asked_apart", "conform_maker", "died"]


class StepJournal:
    """What a process has done and is about to do, in a file that outlives it."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self._file = path.open("wb", buffering=0)

    def note(self, done: list[Any]) -> None:
        """Keep these steps in place of those before."""
        content = pickle.dumps(done)
        os.pwrite(self._file.fileno(), content, 0)
        os.ftruncate(self._file.fileno(), len(content))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @staticmethod
    def read(path: Path) -> tuple[Any, ...]:
        """The steps that were kept last; none if there are none."""
        try:
            return tuple(pickle.loads(path.read_bytes()))  # noqa: S301 -- this process wrote it, or its fork
        except (OSError, EOFError, pickle.UnpicklingError):
            return ()


def conform_maker(
    target: MakerTarget,
    claim: Claim,
    limits: Limits,
    *,
    progress: Progress | None = None,
    on_change: Callable[[PortReport], None] = lambda _: None,
) -> PortReport:
    """Test a maker of memories in Python, in a process of its own; see `syncedmem.spec.ports.conformance.conform`."""
    last = PortReport(target.name, claim.edition or DEFAULT.name, claim)

    def receive(report: PortReport) -> None:
        nonlocal last
        last = report
        on_change(report)

    answer, done = asked_apart(_judge, (target, claim), limits, progress=progress, on_message=receive)
    if isinstance(answer, PortReport):
        return answer
    stage, _, suite = answer.stage.rpartition(": ")
    level: Any = stage or claim.level or LEVELS[-1]
    subject = partial(target.subject, claim.profile, level, claim.edition)
    violation = died(Last(subject, claim.blobs, answer, limits, done), suite)
    return replace(last, unfinished=(*last.unfinished, violation))


def asked_apart(
    job: Job, argument: tuple[MakerTarget, Any], limits: Limits, **watched: Any
) -> tuple[Any, tuple[Any, ...]]:
    """What a job says of a maker in a process of its own, or the `Death` of that; and the steps that it did last."""
    with TemporaryDirectory(prefix="syncedmem-") as folder:
        journal = Path(folder) / "journal"
        moved = partial(_mark, journal)
        answer = Child(_ask, (job, argument, journal), limits=limits, moved=moved, **watched).wait()
        if isinstance(answer, PortError):
            raise answer
        return answer, StepJournal.read(journal)


def _ask(argument: tuple[Job, tuple[MakerTarget, Any], Path], *, progress: Reporter) -> Any:
    """Do a job in this process, and keep a journal; errors are returned."""
    job, (target, wanted), path = argument
    journal = StepJournal(path)
    try:
        return job(target, wanted, journal.note, progress)
    except (PortError, UnfitError) as error:
        return PortError(str(error))
    finally:
        journal.close()


def _mark(path: Path) -> int:
    """What changes whenever a step is done."""
    return path.stat().st_mtime_ns if path.exists() else 0


class Last(NamedTuple):
    """What a process did last.

    Attributes
    ----------
    subject : callable
        Makes a new subject of the target.
    blobs : bool
        Whether it makes blobs, and not memories.
    death : Death
        How the process ended.
    limits : Limits
    done : tuple of Done or BlobDone
        The steps.
    """

    subject: Callable[[], Subject]
    blobs: bool
    death: Death
    limits: Limits
    done: tuple[Any, ...]


def died(last: Last, suite: str) -> Violation:
    """The violation of a process that has ended, with the shortest program that ends it."""
    how = f"the process {last.death.how}"
    if not last.done:
        return Violation("P01-answers", f"{how}, before anything was called")
    again = Child(shorten, last, nests=True).wait()
    shorter = () if isinstance(again, Death) else again
    write = blob_python.statements if last.blobs else statements
    program = write(shorter or last.done, last.subject())
    alone = "" if shorter else " (these statements alone did not end it again)"
    return Violation("P01-answers", f"{program[-1]}: {how}, in the suite {suite}{alone}", program)


def shorten(last: Last, *, progress: Progress) -> tuple[Any, ...]:
    """The fewest steps that end a process in the same way; none if those that did so do not do it again."""
    attempts, limits = 0, replace(last.limits, first=None)

    def dies(done: Sequence[Any]) -> bool:
        nonlocal attempts
        attempts += 1
        progress("shortening", attempts)
        answer = in_fork(partial(_do_again, last._replace(done=tuple(done)), journal), Path(folder) / "answer", limits)
        if not isinstance(answer, Death) or answer.kind != last.death.kind:
            return False
        return answer.kind == "hang" or answer.detail == last.death.detail

    with TemporaryDirectory(prefix="syncedmem-") as folder:
        journal = Path(folder) / "journal"
        if not dies(last.done):
            return ()
        dies(shrink(last.done, dies, seconds=SECONDS))
        return StepJournal.read(journal)  # what raises now may not have raised behind more steps


def _do_again(last: Last, journal: Path) -> dict[str, Any]:
    """Do steps again; there is an answer if the process is still there."""
    with suppress(BaseException):
        subject = replace(last.subject(), journal=StepJournal(journal).note)
        (ObjectBlobs(subject) if last.blobs else ObjectMemories(subject)).repeat(last.done)
    return {}


def _judge(target: MakerTarget, claim: Claim, note: Callable[[list[Any]], None], progress: Reporter) -> PortReport:
    """The verdict; the report until now is sent."""
    if claim.blobs and claim.level not in ("", LEVELS[-1]):
        raise PortError(f"blobs are tested at {LEVELS[-1]}, not at {claim.level}")

    def subject_at(level: Level) -> Subject:
        return replace(target.subject(claim.profile, level, claim.edition), journal=note)

    return conform(subject_at, target.top(), claim, progress=progress, on_change=progress.send)
