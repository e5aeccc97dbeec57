"""`fuzz`: tests a target with every generator, and shortens their findings."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import FileAccessError
from syncedmem.model.defaults import FUZZ

from .campaign import Stage, stages
from .capabilities import Capabilities
from .corpus import Corpus
from .finding import EngineError, Finding, Step, TargetError, kind_of
from .isolation import Inline, Isolated
from .jobs import finding_of
from .logs import programs_of
from .loops import folded, items_as_json
from .mask import Mask, read_known, reason_of, requirement_named
from .native_driver.building import sanitizer_of
from .native_driver.running import NativeDriver
from .recognition import spelling
from .report import Report
from .shortening import DEATH_TRIES, HANG_TRIES, TRIES, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .isolation import Place
    from .jobs import Answer, Job
    from .shortening import Program

__all__ = ["fuzz"]

_OF_FAST, _OF_OTHERS = 4, 2
"""Each generator may take its share of the time that is left when it begins: so many parts for one with rounds."""
_FOR_SHORTENING, _FOR_THE_LAST = 10.0, 5.0
"""The seconds after the end of the time in which what was found last may be shortened, and then be looked at again."""
_BEAT = 1.0
"""The seconds after which progress is told again."""
_PATIENCE, _PATIENCE_FOR_A_HANG = 24, 6
"""After so many failing jobs in a row with nothing new, a generator ends; a hang counts for several."""
_MOST_OF_ONE = 4
"""Of one requirement so many findings are shortened; further ones are only counted."""
_ENOUGH = 2
"""If so many findings of one requirement in one kind of step were known ones, further ones are not shortened."""
_QUICK_HANG = 0.5
"""The limit of a call in seconds while a hang is shortened."""
_SHORT = 10
"""So many steps and loops are short enough."""
_MOST_KEPT = 10_000
"""A program of more steps and loops is not kept; its seed, its round and its number of steps are."""
_MOST_TRIED = 500_000
"""Of the steps of a longer program, too many for another try would be left: it is only looked at again."""
_LAST = 200
"""The number of steps that are kept of a finding that did not repeat."""
_MOST_THREADS = 256
_NATIVELY, _IN_NATIVE_THREADS, _SANITIZED = 2, 25, 10
"""The operations of the native driver for each of the fast generator: with one thread, and with several; a sanitizer
takes about ten times as long."""
_OF_ROUNDS = ("corpus", "log", "fast")
"""The generators that take rounds."""
_DEATHS = ("A22-no-crash", "A23-no-hang")
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals that come from another process: if they do not come again, they say nothing about the target."""


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
    corpus: str | Path | None = None,
    logs: Sequence[Path] = (),
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
        Stop at the first finding.
    skip : iterable of str
        Requirements that are left unjudged, by name or number.
    known : path or None
        A file with findings that are no failures: on each line the key of one, or a requirement, and a reason after
        ``#``.
    corpus : path or None
        A folder: the run begins with the programs in it, and adds those that reach new behaviour or fail.
    logs : sequence of Path
        Logs of allocations of RMM or CuPy, whose requests are made before all others.
    on_progress : callable
        Called with the name of a generator, the operations done, and their planned number; while a finding is made
        short, with the programs that were tried.  At least once a second, for which there is a thread.
    on_change : callable
        Called with the report at the start, and whenever there is something new in it.

    Raises
    ------
    TargetError
        If the target cannot be found, recognised or called, if the record contradicts itself or the target, if a
        number is out of range, or if a list or a corpus cannot be used.
    FileAccessError
        If a file cannot be read.
    EngineError
        If the fuzzer fails before there is a report; a later failure is in the report.
    """
    _check_numbers(steps=steps, seconds=seconds, threads=threads, hang=hang)
    skipped = tuple(dict.fromkeys(map(requirement_named, skip)))
    reasons = {} if known is None else read_known(Path(known))
    programs = None if corpus is None else Corpus(Path(corpus))
    place = Isolated(target, hang) if isinstance(target, str) else Inline(target)
    with place:
        described = place.perform({"job": "describe", "promises": dict(promises or {}), "threads": threads})
        if "kind" not in described:
            death = finding_of(described, ())
            raise TargetError(f"{target} cannot be opened: {death.message if death else described}")
        name = target if isinstance(target, str) else spelling(target)
        report = Report(
            name or _describe(target),
            described["kind"],
            Capabilities().with_promises(described["capabilities"]),
            dict(promises or {}),
            seed,
            steps,
            threads,
            hang,
            protected=place.protects,
            named=name is not None,
            skipped=skipped,
            known=reasons,
            functions=tuple(it for it in ("calloc", "realloc") if described[it]),
        )
        streams = report.capabilities.stream_ordered
        logged = [program for log in logs for program in programs_of(log, seed, streams=streams)]
        options = _Options(seconds, tuple(described["symbols"]), described["fresh"], first)
        run = _Campaigns(place, report, options, programs, logged)
        run.take(on_progress or _tell_nobody, on_change or _tell_nobody)
        return report


def _tell_nobody(*_: object) -> None:
    """Tell nobody."""


def _check_numbers(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:  # NaN is refused too
            raise TargetError(f"{name} must be more than 0, got {number:g}")
    if numbers["threads"] > _MOST_THREADS:
        raise TargetError(f"threads must be at most {_MOST_THREADS}, got {numbers['threads']}")


@dataclass
class _Tally:
    """What the rounds of a generator have come to: also the failing jobs, and those in a row with nothing new."""

    planned: int
    steps: int = 0
    rounds: int = 0
    seconds: float = 0.0
    failures: int = 0
    wasted: int = 0

    def add(self, rounds: int, steps: int, seconds: float) -> None:
        """Add what a job has done."""
        self.rounds, self.steps, self.seconds = self.rounds + rounds, self.steps + steps, self.seconds + seconds


class _Options(NamedTuple):
    """The time, the symbols for the native driver, whether each target is new, and whether one finding is enough."""

    seconds: float
    symbols: tuple[str, ...]
    fresh: bool
    first: bool


class _Campaigns:
    """One call of `fuzz`: all generators on one target."""

    def __init__(
        self, place: Place, report: Report, options: _Options, corpus: Corpus | None, logged: Sequence[Program]
    ) -> None:
        self._place = place
        self._report = report
        self._seconds, self._symbols, self._fresh, self._first = options
        self._corpus = corpus
        self._logged = logged
        self._mask = Mask.of(report.skipped)
        self._seen: list[str] = []
        self._alike: Counter[tuple[str, str]] = Counter()
        self._tell: Callable[[str, int, int], None] = _tell_nobody
        self._shown: tuple[str, int, int, Callable[[], int]] = ("", 0, 0, int)
        self._since = 0
        self._changed: Callable[[Report], None] = _tell_nobody
        self._until = 0.0

    def take(self, tell: Callable[[str, int, int], None], changed: Callable[[Report], None]) -> None:
        """Test the target with every generator."""
        self._tell, self._changed = tell, changed
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(ended,), daemon=True)
        if tell is not _tell_nobody:  # nobody else needs a thread
            beat.start()
        try:
            self._take_all()
        finally:
            ended.set()
            if tell is not _tell_nobody:
                beat.join()

    def _show(self, what: str, done: int, of: int, live: Callable[[], int] = int) -> None:
        """Tell the progress, now and every second, when there is more of it: what `live` returns."""
        self._shown = what, done, of, live
        self._tell(what, done, of)

    def _beat(self, ended: threading.Event) -> None:
        while not ended.wait(_BEAT):
            what, done, of, live = self._shown
            with suppress(ValueError):  # the journal of the native driver has just been closed
                self._tell(what, min(done + max(live(), 0), of), of)

    def _taken(self) -> int:
        """The steps of the present job."""
        program, steps = self._place.journal.moved()
        return steps if program != self._since else 0

    def _take_all(self) -> None:
        """Test the target with every generator."""
        self._until = time.perf_counter() + self._seconds
        self._changed(self._report)
        generators = list(self._generators())
        for index, (parts, generator) in enumerate(generators):
            left = max(self._until - time.perf_counter(), 0.0)
            try:
                generator(left * parts / sum(it for it, _ in generators[index:]))
            except EngineError as error:
                self._note_failure(error)
            self._changed(self._report)
            if self._is_over():
                break

    def _generators(self) -> Iterable[tuple[int, Callable[[float], object]]]:
        """Each generator, which takes its time in seconds, after its parts of the time."""
        if self._corpus is not None and self._corpus.programs:
            yield _OF_FAST, partial(self._programs, "corpus", [self._corpus.programs])
        if self._logged:
            yield _OF_FAST, partial(self._programs, "log", [[program] for program in self._logged])
        yield _OF_FAST, partial(self._rounds, "fast", stages(self._report.steps))
        if self._symbols or sanitizer_of(self._report.target):
            yield _OF_OTHERS, partial(self._natively, 1)
        if self._report.threads > 1:
            yield _OF_OTHERS, self._threads

    def _is_over(self) -> bool:
        return time.perf_counter() >= self._until or (self._first and bool(self._report.findings))

    def _note_failure(self, error: EngineError) -> None:
        if str(error) not in self._report.errors:
            self._report.errors.append(str(error))

    # --- the generators

    def _programs(self, generator: str, groups: Sequence[Sequence[Program]], seconds: float) -> None:
        """The programs of a corpus, or of logs, each group in a process of its own."""
        plan = [Stage("drawn", 0, sum(map(len, group)), ages=False) for group in groups]
        self._rounds(generator, plan, seconds, groups)

    def _rounds(
        self, generator: str, plan: Sequence[Stage], seconds: float, groups: Sequence[Sequence[Program]] = ()
    ) -> None:
        """Rounds of the fast generator, or of programs, in the stages of a plan."""
        tally = _Tally(sum(stage.steps for stage in plan if stage.kind == "drawn"))
        deadline = time.perf_counter() + seconds
        try:
            for index, stage in enumerate(plan):
                if self._is_over():
                    break
                # Each stage has its share of the time that is left.
                left = max(deadline - time.perf_counter(), 0.0)
                part = left * stage.steps / sum(it.steps for it in plan[index:])
                self._stage(generator, stage, part, tally, groups[index] if groups else ())
                self._show(generator, tally.steps, max(tally.steps, tally.planned))
        finally:
            self._report.ran(generator, tally.rounds, tally.steps, tally.seconds)

    def _stage(self, generator: str, stage: Stage, seconds: float, tally: _Tally, programs: Sequence[Program]) -> None:
        """The rounds of one process; after a failing round, the next ones in a process of their own.

        Once something was found, every second job leaves it out, because it may hide something else.
        """
        left, number, deadline = stage.steps, stage.first_round, time.perf_counter() + seconds
        given = {"programs": [_as_data(program) for program in programs]} if programs else {}
        while (left > 0 or programs) and time.perf_counter() < deadline and tally.wasted < _PATIENCE:
            chosen = stage._replace(first_round=number, steps=left)
            job: Job = {"job": "campaign", **chosen._asdict(), **given, "seconds": deadline - time.perf_counter()}
            if self._corpus is not None:
                job["seen"] = self._seen
            mask = self._mask_of_findings() if tally.failures % 2 else self._mask
            self._show(generator, tally.steps, max(tally.steps, tally.planned), self._taken)
            start = time.perf_counter()
            answer = self._ask(job, mask)
            finding = self._take_answer(answer, generator, tally.steps)
            if "operations" in answer:
                rounds, steps, last, spent = (answer[name] for name in ("rounds", "operations", "last", "seconds"))
            else:
                begun, before, last = self._place.journal.entered()
                self._note_spoilt(begun < 0)
                rounds, steps = max(begun - number, 0) + 1, before + len(self._place.journal.steps()) - last
                spent = time.perf_counter() - start
            left, number = left - steps, number + rounds
            tally.add(rounds, steps, spent)
            self._remember(answer)
            if finding is not None:
                rounds_taken = {"generator": generator, "seed": self._report.seed, **chosen._asdict(), "count": steps}
                self._count(tally, replace(finding, rounds=rounds_taken), last, mask)
            if finding is None or self._is_over():
                break

    def _natively(self, threads: int, seconds: float) -> bool:
        """The native driver, if the target is C functions; return whether it has run."""
        generator, report = "native" if threads == 1 else "threads", self._report
        tally = _Tally(report.steps * (_NATIVELY if threads == 1 else _IN_NATIVE_THREADS))
        if sanitizer_of(report.target):
            tally.planned //= _SANITIZED
        mask = self._mask
        try:
            options = self._place, report.target, report.capabilities, report.hang, self._symbols
            driver = NativeDriver.of(*options) if report.protected else None
            if driver is None:
                return False
            self._show(generator, 0, tally.planned, driver.taken)
            answers = driver.answers(
                seed=report.seed,
                steps=tally.planned,
                seconds=seconds,
                threads=threads,
                unjudged=lambda: mask.unjudged,
            )
            for answer in answers:
                finding = self._take_answer(answer, generator, tally.steps)
                tally.add(answer["rounds"], answer["operations"], answer["seconds"])
                self._note_spoilt(answer["spoilt"])
                if finding is not None:
                    rounds = {"generator": generator, "seed": report.seed, **answer["rounds_of"]}
                    self._count(tally, replace(finding, rounds=rounds), answer["last"], mask)
                    mask = self._mask_of_findings() if tally.failures % 2 and threads == 1 else self._mask
                self._show(generator, min(tally.steps, tally.planned), tally.planned, driver.taken)
                if tally.wasted >= _PATIENCE or self._is_over():
                    break
        except TargetError as error:
            if sanitizer_of(report.target):
                raise
            report.notes.append(f"the native driver has not run: {error}")
            return False
        finally:
            if tally.steps:
                report.ran(generator, tally.rounds, tally.steps, tally.seconds)
        return True

    def _count(self, tally: _Tally, finding: Finding, last: int, mask: Mask) -> None:
        """Keep a finding, and count what it has cost if it is not new; one of several threads is enough."""
        tally.failures += 1
        if finding.requirement == "A20-threads":
            if finding.requirement not in self._report.skipped:
                self._add(finding)
            tally.wasted = _PATIENCE
        elif self._keep(finding, last, mask):
            tally.wasted = 0
        else:
            tally.wasted += _PATIENCE_FOR_A_HANG if finding.requirement == "A23-no-hang" else 1

    def _threads(self, seconds: float) -> None:
        if self._natively(self._report.threads, seconds):
            return
        steps = self._report.steps * 4  # two threads must meet, which is rare
        self._show("threads", 0, steps, self._taken)
        job = {"job": "campaign", "steps": steps, "seconds": seconds, "first_round": 0}
        answer = self._ask({**job, "threads": self._report.threads}, self._mask)
        finding = self._take_answer(answer, "threads", 0)
        if finding is not None and "A20-threads" not in self._report.skipped:
            self._add(Finding("A20-threads", finding.message, (), "threads", finding.operations, repeats=False))
        done = answer.get("operations", 0)
        self._report.ran("threads", answer.get("rounds", 0), done, answer.get("seconds", 0.0))

    def _mask_of_findings(self) -> Mask:
        """The mask that leaves out what was found; in this process nothing, because what follows could end it."""
        return self._mask | Mask.after(self._report.findings) if self._report.protected else self._mask

    # --- answers

    def _ask(self, job: Job, mask: Mask) -> Answer:
        self._since = self._place.journal.moved()[0]
        whole = max(self._end_of_shortening() + _FOR_THE_LAST - time.perf_counter(), 0.0)
        promises, seed = self._report.promises, self._report.seed
        return self._place.perform({**job, "promises": promises, "seed": seed, "mask": mask.as_json(), "whole": whole})

    def _count_programs(self) -> Callable[[], int]:
        """Counts the programs that begin from now on."""
        now = self._place.journal.moved()[0]
        return lambda: self._place.journal.moved()[0] - now

    def _end_of_shortening(self) -> float:
        """When nothing more is shortened."""
        return self._until + _FOR_SHORTENING

    def _take_answer(self, answer: Answer, generator: str, before: int) -> Finding | None:
        """The finding of an answer; its counts go into the report."""
        self._report.checked += Counter(answer.get("checked", {}))
        if answer.get("unread") is not None:
            self._report.unread = answer["unread"]
        steps = self._place.journal.steps() if "operations" not in answer else ()
        finding = finding_of(answer, steps)
        if finding is None:
            return None
        operations = finding.operations
        if "operations" not in answer:
            self._report.lost = True
            _, earlier, start = self._place.journal.entered()
            operations = earlier + len(steps) - start if generator in _OF_ROUNDS else len(steps)
        return replace(finding, generator=generator, operations=before + operations)

    def _note_spoilt(self, spoilt: bool) -> None:
        """Say that counts are too small."""
        note = "the target has overwritten the record of its steps: the operations of that process are not counted"
        if spoilt and note not in self._report.notes:
            self._report.notes.append(note)

    def _remember(self, answer: Answer) -> None:
        """Keep the programs that reached new behaviour."""
        self._seen = answer.get("seen", self._seen)
        for program in answer.get("kept", ()):
            self._store(tuple(map(Step.from_json, program)))

    def _store(self, program: tuple[Step, ...]) -> None:
        """Put a program into the corpus; if the disk is full, go on without."""
        if self._corpus is not None and not self._report.unwritten:
            try:
                self._corpus.add(program)
            except FileAccessError as error:
                self._report.unwritten = str(error)

    # --- findings

    def _keep(self, finding: Finding, last: int, mask: Mask) -> bool:
        """Shorten a finding, and keep it if it is new; return whether it is."""
        if finding.requirement in self._report.skipped:
            return False
        alike = [it for it in self._report.findings if it.requirement == finding.requirement]
        look = finding.requirement, kind_of(finding.program[-1]) if finding.program else ""
        if len(alike) >= _MOST_OF_ONE or self._alike[look] >= _ENOUGH or any(not it.repeats for it in alike):
            self._count_again(alike[0])
            return False
        raw = replace(finding, program=finding.program[-_LAST:], repeats=False)
        self._report.findings.append(raw)  # it must not be lost if the run is interrupted now
        self._changed(self._report)
        try:
            short = self._shrink(finding, last, mask)
        except EngineError as error:
            self._note_failure(error)
            short = raw
        self._report.findings.remove(raw)
        if short is None:
            outside = "its steps, taken again, did not show it, so something outside has ended the process"
            self._note_failure(EngineError(f"{finding.message}; {outside}"))
            return False
        dies = short.requirement in _DEATHS
        if short.generator == "native" and not (short.repeats or short.report or dies):
            self._report.notes.append(
                f"the native driver saw this once, and its steps, taken again, did not show it: "
                f"{short.requirement}: {short.message}"
            )
            return False
        same = next((it for it in self._report.findings if it.key == short.key), None)
        if same is not None:
            self._alike[look] += 1
            self._count_again(same)
            return False
        self._add(short)
        return True

    def _count_again(self, finding: Finding) -> None:
        at = self._report.findings.index(finding)
        self._report.findings[at] = replace(finding, times=finding.times + 1)

    def _add(self, finding: Finding) -> None:
        if len(folded(finding.program)) > _MOST_KEPT:
            finding = replace(finding, program=())
        else:
            finding = replace(finding, rounds=None)
        self._report.findings.append(replace(finding, known=reason_of(self._report.known, finding)))
        self._report.findings.sort(key=lambda it: it.key)
        self._store(finding.program)
        self._changed(self._report)

    def _shrink(self, finding: Finding, last: int, mask: Mask) -> Finding | None:
        """The finding with the shortest program; None if it is not one, because something outside ended the process."""
        self._show(f"shortening {finding.requirement.partition('-')[0]}", 0, TRIES, self._count_programs())
        rounds = finding.rounds
        if rounds is not None and rounds["generator"] == "fast" and len(finding.program) > _MOST_TRIED:
            self._show("looking again", 0, rounds["count"], self._taken)
            answer = self._ask({"job": "campaign", "seconds": self._seconds, **rounds}, mask)
            again = finding_of(answer, ())
            return (
                finding
                if again is not None and again.requirement == finding.requirement
                else self._judge_unseen(finding)
            )
        for program in (finding.program[last:], finding.program) if last else (finding.program,):
            short = self._shorten(finding.requirement, program, mask)
            if short is None:
                continue
            plain = short if mask == self._mask else self._repeat(short.program, finding.requirement, self._mask)
            others = mask.unjudged - self._mask.unjudged - {finding.requirement}
            after = () if plain is not None else tuple(sorted(others))
            return replace(finding, message=(plain or short).message, program=short.program, shrunk=True, after=after)
        return self._judge_unseen(finding)

    def _judge_unseen(self, finding: Finding) -> Finding | None:
        """A finding that was not seen again, unless something outside has ended the process."""
        if time.perf_counter() > self._end_of_shortening():
            return finding  # there was no time to look
        if any(f" {signal} " in f"{finding.message} " for signal in _FROM_OUTSIDE):
            return None
        return replace(finding, program=finding.program[-_LAST:], repeats=False)

    def _shorten(self, requirement: str, program: tuple[Step, ...], mask: Mask) -> Finding | None:
        """The shortest program that breaks a requirement; None if it does not do so again."""
        if self._fresh and requirement not in _DEATHS:
            left = self._end_of_shortening() - time.perf_counter()
            job: Job = {"job": "shorten", "requirement": requirement, "program": _as_data(program), "seconds": left}
            answer = self._ask(job, mask)
            short = finding_of(answer, ())
            # If it shows only after the programs before it, or they hinder, it is made short in processes of their own.
            if short is not None and self._repeat(short.program, requirement, mask) is not None:
                if len(folded(short.program)) <= _SHORT:
                    return short
                program = short.program
        tries = HANG_TRIES if requirement == "A23-no-hang" else DEATH_TRIES
        quick = min(self._report.hang, _QUICK_HANG)
        shortest = shortened(
            program,
            lambda it: self._repeat(it, requirement, mask, quick) is not None,
            tries,
            lambda: len(self._place.journal.steps()),
            self._end_of_shortening(),
        )
        return self._repeat(shortest, requirement, mask)

    def _repeat(
        self, program: tuple[Step, ...], requirement: str, mask: Mask, hang: float | None = None
    ) -> Finding | None:
        """The finding of a program in its own process, if it breaks the same requirement."""
        job: Job = {"job": "program", "program": items_as_json(folded(program))}
        if requirement == "A23-no-hang" and hang is not None:
            job["hang"] = hang
        answer = self._ask(job, mask)
        if "hang" in answer:
            answer["hang"] = self._report.hang
        finding = finding_of(answer, self._place.journal.steps() or program)
        if finding is None or finding.requirement != requirement:
            return None
        return replace(finding, program=program)  # without the frees at its end


def _as_data(program: tuple[Step, ...]) -> list[object]:
    return [step.as_json() for step in program]


def _describe(target: object) -> str:
    return str(getattr(target, "__qualname__", None) or f"an object of type {type(target).__qualname__}")
