"""`fuzz`: tests a target with every generator, and shortens their findings."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from syncedmem.model import FileAccessError
from syncedmem.model.defaults import FUZZ

from .campaign import Stage, stages
from .capabilities import Capabilities
from .examiner import Examiner, unrepeated
from .finding import EngineError, Finding, TargetError, kind_of
from .jobs import Inline, Isolated
from .loops import folded
from .mask import NO_MASK, Mask, read_known, reason_of, requirement_named
from .native_driver.running import NativeDriver
from .outcome import FROM_OUTSIDE
from .recognition import TargetSource, spelling
from .replay import FuzzWanted
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .jobs import Job, JobPlace
    from .outcome import Outcome

__all__ = ["fuzz"]

BEAT = 1.0
"""The seconds after which progress is told again."""
_LATE_SHARE = 1 / 4
"""The share of the late rounds in the time, where the others have 1 each."""
_PATIENCE, _PATIENCE_FOR_A_HANG = 24, 6
"""After so many failing jobs in a row with nothing new, a generator ends; a hang counts for several."""
_MOST_OF_ONE = 4
"""Of one requirement so many findings are shortened; further ones are only counted."""
_ENOUGH = 2
"""If so many findings of one requirement in one kind of step were known ones, further ones are not shortened."""
_SLOWEST = 1_000
"""The operations in a second of a slow target: a run that does less than half of them has a smaller plan."""
_QUICKEST, _FAST_SHARE, _LOOK_SECONDS = 1e-9, 1 / 4, 2.0
"""The least time of a call, the part of the time in which the fast generator is sure to be, and the time of a look."""
MOST_KEPT = 10_000
"""A program of more steps and loops is not kept: the seed of the run takes its steps again."""
_MOST_THREADS = 256
_NATIVELY, _IN_NATIVE_THREADS = 2, 25
"""The operations of the native driver for each of the fast generator: with one thread, and with several."""
_FAILURES = (EngineError, TargetError, FileAccessError)
"""What ends a generator or a look at a finding, and not the run: the fuzzer, its target or its disk fails."""


def fuzz(  # noqa: PLR0913 -- all options are given by keyword
    target: object,
    *,
    seed: int = FUZZ.seed,
    steps: int = FUZZ.steps,
    seconds: float = FUZZ.seconds,
    threads: int = FUZZ.threads,
    promises: Mapping[str, str] | None = None,
    hang: float = FUZZ.hang,
    first: bool = False,
    skip: Iterable[str] = (),
    known: str | Path | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
    on_change: Callable[[Report], None] | None = None,
) -> Report:
    """Search for bugs in an allocator.

    Parameters
    ----------
    target : object or str
        An allocator, a class or factory, a pair of callables, or a string that names one of these or a shared
        library.  A named target runs in its own process, where a crash or a hang is a finding.  An object runs
        in this process.
    seed : int
        The same seed takes the same steps.
    steps : int
        The operations of the fast generator; with several threads, four times as many more.
    seconds : float
        The most time for all generators together.  What was found last may take 15 seconds more.
    threads : int
        If more than 1, the fast generator also runs in so many threads.
    promises : mapping of str to str or None
        Entries that replace those of the capability record: ``{"double_free": "detect"}``.
    hang : float
        The seconds after which a call that has not returned counts as a hang.
    first : bool
        Stop at the first finding that is not known.
    skip : iterable of str
        Requirements that are left unjudged, by name or number.
    known : path or None
        A file with findings that are no failures: on each line the key of one, or a requirement, and a reason after
        ``#``.
    on_progress : callable
        Called with the name of a generator, the operations done, and their planned number; while a finding is made
        short, with the programs that were tried.  At least once a second, for which there is a thread.
    on_change : callable
        Called with the report at the start, and whenever there is something new in it.

    Raises
    ------
    TargetError
        If the target cannot be found, recognised or called, if the record contradicts itself or the target, if a
        number is out of range, or if a list cannot be used.
    FileAccessError
        If a file cannot be read, or if there is no room for a temporary one.
    EngineError
        If the fuzzer fails.  What fails after something was tested is in the report, of each kind.
    """
    _check_numbers(steps=steps, seconds=seconds, threads=threads, hang=hang)
    skipped = tuple(dict.fromkeys(map(requirement_named, skip)))
    reasons = {} if known is None else read_known(Path(known))
    place = Isolated(target, hang) if isinstance(target, str) else Inline(target)
    with place:
        opened = place.perform({"job": "describe", "promises": dict(promises or {}), "threads": threads})
        described = opened.described
        if described is None:
            raise TargetError(f"{target} cannot be opened: {opened.finding and opened.finding.message}")
        name = target if isinstance(target, str) else spelling(target)
        shown = name or TargetSource(target).name
        report = Report(
            FuzzWanted(
                shown, dict(promises or {}), seed, steps, threads, hang, seconds, named=name is not None, skip=skipped
            ),
            described["kind"],
            Capabilities().with_promises(described["capabilities"]),
            protected=isinstance(place, Isolated),
            known=reasons,
            functions=tuple(described["functions"]),
            parts=described["parts"],
            handles_forks=described["handles_forks"],
            preload=described["preload"],
            planned=min(steps, int(seconds * _SLOWEST)),
        )
        pace = _pace(place, report)
        with _Progress(on_progress) as progress:
            examiner = Examiner(place, report, seconds, progress.show, fresh=described["fresh"])
            campaigns = _Campaigns(place, report, examiner, progress, on_change or id, first=first)
            campaigns.shrink(pace)
            campaigns.run()
        return report


def _pace(place: JobPlace, report: Report) -> float:
    """The seconds of a call of a named target, by a first look in a process of its own; 0 if that is not known."""
    if not isinstance(place, Isolated):
        return 0.0
    look: Job = {"job": "look", "promises": report.wanted.promises, "whole": _LOOK_SECONDS}
    try:
        described = place.perform(look).described
    except EngineError:
        return 0.0
    return described["pace"] if described else 0.0


def _check_numbers(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:  # NaN is refused too
            raise TargetError(f"{name} must be more than 0, got {number:g}")
    if numbers["threads"] > _MOST_THREADS:
        raise TargetError(f"threads must be at most {_MOST_THREADS}, got {numbers['threads']}")


@dataclass
class _Tally:
    """What is expected of a generator, and its jobs that failed; `wasted` are those in a row with nothing new."""

    planned: int
    failures: int = 0
    wasted: int = 0
    mask: Mask = NO_MASK  # of the present job


class _Progress:
    """Tells the progress when it changes and every second, for which there is a thread."""

    def __init__(self, tell: Callable[[str, int, int], None] | None) -> None:
        self._tell = tell
        self._shown: tuple[str, int, int, Callable[[], int]] = ("", 0, 0, int)
        self._ended = threading.Event()
        self._beat = threading.Thread(target=self._tell_often, daemon=True)

    def __enter__(self) -> Self:
        if self._tell is not None:
            self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._tell is not None:
            self._beat.join()

    def show(self, what: str, done: int, of: int, live: Callable[[], int] = int) -> None:
        """Tell the progress; what `live` returns comes to it as long as this is shown."""
        self._shown = what, done, of, live
        if self._tell is not None:
            self._tell(what, min(done, of), of)

    def _tell_often(self) -> None:
        while self._tell is not None and not self._ended.wait(BEAT):
            what, done, of, live = self._shown
            with suppress(ValueError):  # the journal of the native driver has just been closed
                self._tell(what, min(done + max(live(), 0), of), of)


class _Campaigns:
    """One call of `fuzz`: all generators on one target."""

    def __init__(  # noqa: PLR0913 -- what a run is made of
        self,
        place: JobPlace,
        report: Report,
        examiner: Examiner,
        progress: _Progress,
        changed: Callable[[Report], object],
        *,
        first: bool,
    ) -> None:
        self._place, self._report, self._examiner = place, report, examiner
        self._progress, self._changed, self._first = progress, changed, first
        self._alike: Counter[tuple[str, str]] = Counter()
        self._tallies: dict[str, _Tally] = {}
        self._steps = report.wanted.steps
        self._position: int | None = None  # in the plan of the stages, of the last outcome; the native driver has none

    def shrink(self, pace: float) -> None:
        """Plan no more operations than there is time for, if a call takes so many seconds."""
        report, affordable = self._report, int(self._report.wanted.seconds / max(pace, _QUICKEST))
        if affordable < self._steps:
            self._steps = max(affordable, 1)
            planned = min(report.planned, max(int(affordable * _FAST_SHARE), 1))
            if planned < report.planned:
                report.planned = planned
                self._note_smaller(f"{planned:,} operations, because each takes {1000 * pace:.1f} ms")

    def _note_smaller(self, what: str) -> None:
        self._report.smaller = what
        self._examiner.note(f"a smaller plan: {what}")

    def run(self) -> None:
        """Test the target with every generator, each for its share of the time that is left."""
        self._changed(self._report)
        generators = list(self._generators())
        for index, (share, generator) in enumerate(generators):
            left = max(self._examiner.until - time.perf_counter(), 0.0)
            try:
                generator(left * share / sum(later for later, _ in generators[index:]))
            except _FAILURES as error:
                if isinstance(error, TargetError) and not self._report.tested:
                    raise
                self._examiner.note_failure(error)
            self._changed(self._report)
            if self._is_over():
                break
        if self._report.slow:
            self._note_smaller(self._report.slow)

    def _generators(self) -> Iterable[tuple[float, Callable[[float], object]]]:
        """The share of each generator, and the generator, which takes its time in seconds."""
        fixed, *drawn, late = stages(self._steps)
        self._tallies["fast"] = _Tally(sum(stage.steps for stage in drawn))
        yield 1, partial(self._take_stages, "fast", [fixed])
        # A race is looked for early.  What one thread shows alone is known by then in most cases.
        if self._report.wanted.threads > 1:
            yield 1, self._take_threads
        yield 1, partial(self._take_stages, "fast", drawn)
        if self._report.parts:
            yield 1, partial(self._take_natively, 1)
        yield _LATE_SHARE, partial(self._take_stages, "fast", [late])

    def _is_over(self) -> bool:
        return time.perf_counter() >= self._examiner.until or (self._first and bool(self._report.failures))

    # --- the generators

    def _take_stages(self, generator: str, plan: Sequence[Stage], seconds: float) -> None:
        """The stages of a plan, which the fast generator takes."""
        self._take(generator, self._outcomes_of_stages(generator, plan, seconds))

    def _outcomes_of_stages(self, generator: str, plan: Sequence[Stage], seconds: float) -> Iterator[Outcome]:
        """An outcome for each process; after a failing round, the next ones are in a process of their own."""
        tally, deadline = self._tallies[generator], time.perf_counter() + seconds
        before = self._report.done(generator).steps
        for index, stage in enumerate(plan):
            # Each stage has its share of the time that is left.
            part = max(deadline - time.perf_counter(), 0.0) * stage.steps / sum(later.steps for later in plan[index:])
            end = time.perf_counter() + part
            steps, number, failed = stage.steps, stage.first_round, True
            while failed and steps > 0 and time.perf_counter() < end:
                chosen = stage._replace(first_round=number, steps=steps)
                job: Job = {"job": "campaign", **chosen._asdict(), "seconds": end - time.perf_counter()}
                self._show(generator, self._examiner.count_steps)
                self._examiner.rounds = job, self._next_mask(tally)
                outcome = self._examiner.ask(*self._examiner.rounds)
                self._report.lost |= outcome.death is not None
                # By the plan: whether there was time for all of an earlier stage is no matter.
                self._position = before + stage.steps - steps + outcome.operations
                steps, number, failed = steps - outcome.operations, number + outcome.rounds, outcome.failed
                yield outcome
            before += stage.steps

    def _take_threads(self, seconds: float) -> None:
        """Several threads, in C if that is possible."""
        if self._take_natively(self._report.wanted.threads, seconds):
            return
        plan = [Stage(self._steps * 4, ages=True, threads=self._report.wanted.threads)]  # two must meet
        self._tallies["threads"] = _Tally(plan[0].steps)
        self._take_stages("threads", plan, seconds)

    def _take_natively(self, threads: int, seconds: float) -> bool:
        """The native driver, if the target is C functions; return whether it has run."""
        generator, report = "native" if threads == 1 else "threads", self._report
        tally = _Tally(self._steps * (_NATIVELY if threads == 1 else _IN_NATIVE_THREADS))
        self._tallies[generator] = tally
        self._position = None
        try:
            options = report.capabilities, report.parts
            driver = NativeDriver.of(self._place, *options) if isinstance(self._place, Isolated) else None
            if driver is None:
                return False
            self._show(generator, driver.taken)
            outcomes = driver.outcomes(
                seed=report.wanted.seed,
                steps=tally.planned,
                seconds=seconds,
                threads=threads,
                unjudged=lambda: self._next_mask(tally).unjudged,
            )
            self._take(generator, outcomes, driver.taken)
        except TargetError as error:
            report.notes.append(f"the native driver has not run: {error}")
            return False
        return True

    def _take(self, generator: str, outcomes: Iterable[Outcome], live: Callable[[], int] = int) -> None:
        """Take the outcomes of a generator, until too many in a row have nothing new."""
        tally = self._tallies[generator]
        for outcome in outcomes:
            if outcome.rounds:
                self._report.ran(generator, outcome.rounds, outcome.operations, outcome.seconds)
            finding = self._finding_in(outcome, generator)
            if finding is not None:
                self._count(tally, finding, outcome)
            self._show(generator, live)
            if tally.wasted >= _PATIENCE or self._is_over():
                break

    def _show(self, generator: str, live: Callable[[], int]) -> None:
        """Show how far a generator is."""
        steps = self._report.done(generator).steps
        self._progress.show(generator, steps, max(steps, self._tallies[generator].planned), live)

    def _count(self, tally: _Tally, finding: Finding, outcome: Outcome) -> None:
        """Keep a finding, and count what it has cost if it is not new; one of several threads is enough."""
        tally.failures += 1
        if finding.requirement == "A20-threads" and outcome.death and outcome.death.detail in FROM_OUTSIDE:
            self._examiner.note_failure(EngineError(f"{finding.message}; something outside has ended the process"))
            tally.wasted += 1
        elif finding.requirement == "A20-threads":
            if finding.requirement not in self._report.wanted.skip:
                self._report.violating.append(self._as_kept(finding))
                self._changed(self._report)
            tally.wasted = _PATIENCE
        elif self._keep(finding, outcome, tally.mask):
            tally.wasted = 0
        else:
            tally.wasted += _PATIENCE_FOR_A_HANG if finding.requirement == "A23-no-hang" else 1

    def _next_mask(self, tally: _Tally) -> Mask:
        """The mask of the next job: without what is known as a whole, or in turn without all that was found.

        In this process nothing is left out but what was skipped, because what follows could end it.
        """
        findings = self._report.violating if self._report.protected else []
        if tally.failures % 2 == 0:
            findings = [finding for finding in findings if finding.requirement in self._report.known]
        tally.mask = self._examiner.skipped | Mask.after(findings)
        return tally.mask

    # --- outcomes

    def _finding_in(self, outcome: Outcome, generator: str) -> Finding | None:
        """The finding of an outcome; what it says of the target goes into the report."""
        self._report.checked += outcome.checked
        if outcome.unread is not None:
            self._report.unread = outcome.unread
        if outcome.spoilt:
            self._examiner.note(
                "the target has overwritten the record of its steps: those of that process are not counted"
            )
        for note in outcome.notes:
            self._examiner.note(note)
        finding = outcome.finding
        if finding is None:
            return None
        if generator == "threads":
            # If only several threads find a bug, it is one of threads, whatever requirement it breaks.
            message = f"{finding.requirement}: {finding.message}"
            finding = replace(finding, requirement="A20-threads", message=message, program=(), repeats=False)
        operations = self._report.done(generator).steps if self._position is None else self._position
        return replace(finding, generator=generator, operations=operations)

    # --- findings

    def _keep(self, finding: Finding, outcome: Outcome, mask: Mask) -> bool:
        """Shorten a finding, and keep it if it is new; return whether it is."""
        report = self._report
        if finding.requirement in report.wanted.skip:
            return False
        if self._examiner.is_of_loading(finding, mask):
            return True  # from now on the library is loaded in another way
        alike = [other for other in report.violating if other.requirement == finding.requirement]
        look = finding.requirement, kind_of(finding.program[-1]) if finding.program else ""
        if len(alike) >= _MOST_OF_ONE or self._alike[look] >= _ENOUGH or any(not other.repeats for other in alike):
            self._count_again(alike[0])
            return False
        raw = replace(unrepeated(finding), examined=False)
        report.violating.append(raw)  # it must not be lost if the run is interrupted now
        self._changed(report)
        try:
            short = self._examiner.examined(finding, outcome, mask)
        except _FAILURES as error:
            self._examiner.note_failure(error)
            short = raw
        same = next(
            (item for item in report.violating if short is not None and item is not raw and item.key == short.key), None
        )
        at = report.violating.index(raw)  # it goes only when what it has become is there
        if same is not None:
            self._alike[look] += 1
            self._count_again(same)
        if same is not None or short is None:
            del report.violating[at]
        else:
            report.violating[at] = self._as_kept(short)
            self._changed(report)
        return short is not None and same is None

    def _count_again(self, finding: Finding) -> None:
        at = self._report.violating.index(finding)
        self._report.violating[at] = replace(finding, times=finding.times + 1)

    def _as_kept(self, finding: Finding) -> Finding:
        """A finding as it is in the report: without a program that is too long, and with the reason if it is known."""
        if len(folded(finding.program)) > MOST_KEPT:
            finding = replace(finding, program=())
        return replace(finding, known=reason_of(self._report.known, finding))
