"""`fuzz`: tests a target with both generators, and shortens their findings."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .capabilities import Capabilities
from .defaults import HANG, SECONDS, SEED, STEPS, THREADS
from .finding import Finding, Step, TargetError
from .isolation import Inline, Isolated
from .logs import programs_of
from .recognition import spelling
from .replay import MOST_STEPS, died
from .report import Report
from .shortening import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .isolation import Place
    from .jobs import Answer, Job

__all__ = ["fuzz"]

_ROUNDS = 32
"""The rounds of one job, after which progress is reported.  It is not a time, because a library keeps its state during
a job, and the same seed must find the same state."""
_EXAMPLES = 60
_SHRINKING, _SHRINKING_HANG, _LONGER = 2.0, 3.0, 4.0
"""Seconds to shorten a finding, a hang, and, in addition, a finding that is still too long to be shown."""
_MOST_FAILURES = 6
"""The number of failing jobs after which a run ends; two with the same requirement are enough."""
_QUICK_HANG = 0.5
"""The limit of a call in seconds while a hang is shortened."""
_LAST = 200
"""The number of steps that are kept of a finding that did not repeat."""
_MOST_THREADS = 256


def fuzz(  # noqa: PLR0913 -- all options are given by keyword
    target: object,
    *,
    seed: int = SEED,
    steps: int = STEPS,
    seconds: float = SECONDS,
    threads: int = THREADS,
    promises: Mapping[str, str] | None = None,
    hang: float = HANG,
    first: bool = False,
    logs: Sequence[Path] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
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
        The most time for each generator.
    threads : int
        If more than 1, the fast generator also runs in so many threads.
    promises : mapping of str to str or None
        Entries that replace those of the capability record: ``{"double_free": "detect"}``.
    hang : float
        The seconds after which a call that has not returned counts as a hang.
    first : bool
        Stop at the first finding.
    logs : sequence of Path
        Logs of allocations of RMM or CuPy, whose requests are made before all others.
    on_progress : callable
        Called with the name of a generator, the operations done, and their planned number.

    Raises
    ------
    TargetError
        If the target cannot be found, recognised or called, if the record contradicts itself or the target, or if a
        number is out of range.
    """
    _check_numbers(steps=steps, seconds=seconds, threads=threads, hang=hang)
    place = Isolated(target, hang) if isinstance(target, str) else Inline(target)
    with place:
        return _Run(
            place, target, dict(promises or {}), seed, steps, seconds, threads, hang, first, on_progress or _to_nobody
        ).report(logs)


def _to_nobody(generator: str, done: int, of: int) -> None:
    """Ignore the progress."""


def _check_numbers(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:  # NaN is refused too
            raise TargetError(f"{name} must be more than 0, got {number:g}")
    if numbers["threads"] > _MOST_THREADS:
        raise TargetError(f"threads must be at most {_MOST_THREADS}, got {numbers['threads']}")


class _Run:
    """One call of `fuzz`."""

    def __init__(  # noqa: PLR0913 -- the arguments of fuzz
        self,
        place: Place,
        target: object,
        promises: dict[str, str],
        seed: int,
        steps: int,
        seconds: float,
        threads: int,
        hang: float,
        first: bool,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._first = first
        self._place = place
        self._steps = steps
        self._seconds = seconds
        self._tell = on_progress
        described = place.perform({"job": "describe", "promises": promises, "threads": threads})
        if "kind" not in described:
            died_how = died(described, ())
            raise TargetError(f"{target} cannot be opened: {died_how.message if died_how else described}")
        record = Capabilities().with_promises(described["capabilities"])
        name = target if isinstance(target, str) else spelling(target)
        self._fresh: bool = described["fresh"]
        self._report = Report(
            name or _called(target),
            described["kind"],
            record,
            promises,
            seed,
            steps,
            threads,
            hang,
            protected=place.protects,
            named=name is not None,
        )

    def report(self, logs: Sequence[Path]) -> Report:
        """Test the target with the logs, and then with every generator."""
        report = self._report
        ordered = report.capabilities.stream_ordered
        programs = [it for log in logs for it in programs_of(log, report.seed, streams=ordered)]
        if programs:
            self._logs(programs)
        if self._goes_on():
            self._fast()
        if self._goes_on():
            self._hypothesis()
        if report.threads > 1 and self._goes_on():
            self._threads()
        if report.protected:
            report.checked["A22-no-crash"] = report.checked["A23-no-hang"] = report.operations
        report.findings.sort(key=lambda finding: finding.requirement)
        return report

    def _goes_on(self) -> bool:
        return not (self._first and self._report.findings)

    def _logs(self, programs: Sequence[tuple[Step, ...]]) -> None:
        """Take the programs of logs, each in its own process."""
        done, number, start = 0, 0, time.perf_counter()
        self._tell("log", 0, len(programs))
        for number, program in enumerate(programs, 1):
            finding = self._found(self._ask({"job": "program", "program": _data(program)}), "log", done)
            done += len(program)
            if finding is not None:
                self._keep(replace(finding, generator="log"), 0)
            self._tell("log", number, len(programs))
            if not self._goes_on():
                break
        self._report.ran("log", number, done, time.perf_counter() - start)

    def _fast(self) -> None:
        done, number, failures, spent = 0, 0, 0, 0.0
        deadline = time.perf_counter() + self._seconds
        while done < self._steps and time.perf_counter() < deadline and failures < _MOST_FAILURES and self._goes_on():
            job = {"job": "campaign", "steps": self._steps - done, "first_round": number, "rounds": _ROUNDS}
            job["seconds"] = max(deadline - time.perf_counter(), 0.0)
            start = time.perf_counter()
            answer = self._ask(job)
            finding = self._found(answer, "fast", done)
            if "operations" in answer:
                done += answer["operations"]
                number += answer["rounds"]
                spent += answer["seconds"]
            else:  # it is not known which round ended the process; continue after all of them
                done += len(self._place.steps())
                number += _ROUNDS
                spent += time.perf_counter() - start
            if finding is not None:
                failures += _MOST_FAILURES // 2 if self._knows(finding) else 1
                self._keep(finding, answer.get("last", 0))
            self._tell("fast", done, self._steps)
        self._report.ran("fast", number, done, spent)

    def _hypothesis(self) -> None:
        self._tell("hypothesis", 0, _EXAMPLES)
        answer = self._ask({"job": "machine", "examples": _EXAMPLES, "seconds": self._seconds})
        finding = self._found(answer, "hypothesis", 0)
        if finding is not None:
            self._keep(finding, 0)
        done = answer.get("operations", len(self._place.steps()))
        self._report.ran("hypothesis", answer.get("rounds", 0), done, answer.get("seconds", 0.0))

    def _threads(self) -> None:
        steps = self._steps * 4  # two threads must meet, which is rare
        self._tell("threads", 0, steps)
        job = {"job": "campaign", "steps": steps, "seconds": self._seconds, "first_round": 0}
        answer = self._ask({**job, "threads": self._report.threads})
        finding = self._found(answer, "threads", 0)
        if finding is not None:
            self._report.findings.append(
                Finding("A20-threads", finding.message, (), "threads", finding.operations, repeats=False)
            )
        done = answer.get("operations", 0)
        self._report.ran("threads", answer.get("rounds", 0), done, answer.get("seconds", 0.0))

    def _ask(self, job: Job) -> Answer:
        return self._place.perform({**job, "promises": self._report.promises, "seed": self._report.seed})

    def _found(self, answer: Answer, generator: str, before: int) -> Finding | None:
        """The finding of an answer; its counts go into the report."""
        self._report.checked += Counter(answer.get("checked", {}))
        if answer.get("unread") is not None:
            self._report.unread = answer["unread"]
        finding = died(answer, self._place.steps())
        if finding is not None:
            self._report.lost = True
            return Finding(
                finding.requirement, finding.message, finding.program, generator, before + len(finding.program)
            )
        if answer["finding"] is None:
            return None
        found = Finding.from_json(answer["finding"])
        return replace(found, operations=before + found.operations)

    def _keep(self, finding: Finding, last: int) -> None:
        """Keep the first finding of each requirement, shortened."""
        if not self._knows(finding):
            self._report.findings.append(finding if finding.shrunk else self._shrunk(finding, last))

    def _knows(self, finding: Finding) -> bool:
        return any(known.requirement == finding.requirement for known in self._report.findings)

    def _shrunk(self, finding: Finding, last: int) -> Finding:
        hangs = finding.requirement == "A23-no-hang"
        seconds = _SHRINKING_HANG if hangs else _SHRINKING
        if self._fresh and finding.requirement not in ("A22-no-crash", "A23-no-hang"):
            job = {"job": "shorten", "requirement": finding.requirement, "program": _data(finding.program[last:])}
            answer = self._ask({**job, "seconds": seconds})
            if answer.get("finding") is not None:
                return self._like(finding, Finding.from_json(answer["finding"]))
        for program in (finding.program[last:], finding.program) if last else (finding.program,):
            fails = partial(self._fails, finding.requirement)
            shortest = shortened(program, fails, seconds)
            if len(shortest) > MOST_STEPS and not hangs:
                shortest = shortened(shortest, fails, _LONGER)
            again = self._again(shortest, finding.requirement)
            if again is not None:
                return self._like(finding, again)
        return replace(finding, program=finding.program[-_LAST:], repeats=False)

    def _fails(self, requirement: str, program: tuple[Step, ...]) -> bool:
        return self._again(program, requirement) is not None

    def _again(self, program: tuple[Step, ...], requirement: str) -> Finding | None:
        """The finding of a program in its own process, if it breaks the same requirement."""
        job: Job = {"job": "program", "program": _data(program)}
        if requirement == "A23-no-hang":
            job["hang"] = min(self._report.hang, _QUICK_HANG)
        answer = self._ask(job)
        if "hang" in answer:
            answer["hang"] = self._report.hang
        found = died(answer, self._place.steps() or program)
        if found is not None:
            found = replace(found, program=program)  # without the frees at its end
        elif answer["finding"] is not None:
            found = Finding.from_json(answer["finding"])
        return found if found is not None and found.requirement == requirement else None

    @staticmethod
    def _like(finding: Finding, shorter: Finding) -> Finding:
        return Finding(
            finding.requirement, shorter.message, shorter.program, finding.generator, finding.operations, shrunk=True
        )


def _data(program: tuple[Step, ...]) -> list[object]:
    return [step.as_json() for step in program]


def _called(target: object) -> str:
    return str(getattr(target, "__qualname__", None) or f"an object of type {type(target).__qualname__}")
