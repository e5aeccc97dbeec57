"""The report of a kit: what each suite did and found, what was covered, and a verdict on each requirement."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, get_args
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from syncedmem.model import InvalidArgumentError

from .subject import Subject
from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence

    from ..requirements import Level
    from .search import Generated

    Progress = Callable[[str, int], None]
    Runner = Callable[[Subject, "SuiteRun"], Violation | None]

__all__ = [
    "CheckOptions",
    "Conformance",
    "Covering",
    "Status",
    "SuiteResult",
    "SuiteRun",
    "Verdict",
    "check_steps",
    "check_subject",
    "chosen_suites",
    "junit",
    "overall",
    "run_suites",
]


Status = Literal["failed", "passed", "not checked", "not applicable"]
"""The verdict on a requirement; of several verdicts on one requirement, the first in this order counts."""

_STATUSES: tuple[Status, ...] = get_args(Status)


class Verdict(NamedTuple):
    """The verdict on one requirement.

    Attributes
    ----------
    requirement : str
    status : {"failed", "passed", "not checked", "not applicable"}
    times : int
        How often it was checked, if that is counted.
    detail : str
        What is wrong, or why it was not checked.
    """

    requirement: str
    status: Status
    times: int = 0
    detail: str = ""


def overall(statuses: Iterable[Status]) -> Status:
    """The verdict on a requirement over several reports; not checked if there is no report."""
    distinct = set(statuses)
    for status in _STATUSES:
        if status in distinct:
            return status
    return "not checked"


class Covering(Protocol):
    """A coverage: counts what was taken of all that can be taken.

    Attributes
    ----------
    unit : str
        What is counted.
    """

    unit: ClassVar[str]

    @property
    def count(self) -> int:
        """The number that was taken."""
        ...

    @property
    def missing(self) -> int:
        """The number that was not taken."""
        ...

    def unreached(self) -> list[str]:
        """What was not taken, each in words, if it has a name."""
        ...

    def add(self, driver: Any, /) -> None:
        """Add what a driver took."""
        ...


CoveringT = TypeVar("CoveringT", bound=Covering)
CaseT = TypeVar("CaseT")


@dataclass(frozen=True)
class SuiteResult:
    """The result of one suite, or of one engine of the fuzzer.

    Attributes
    ----------
    name : str
    cases : int
        The number of sequences, scenarios, walks or contracts; of the fuzzer, of rounds or examples.
    steps : int
        The number of calls.
    seconds : float
    violation : Violation or None
        The first violation, shortened.
    more : tuple of Violation
        Further violations, of other requirements, if the suite went on.
    """

    name: str
    cases: int
    steps: int
    seconds: float
    violation: Violation | None
    more: tuple[Violation, ...] = ()

    @property
    def rate(self) -> float:
        """Calls a second, the oracle's work included."""
        return self.steps / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, repr=False)
class Conformance(Generic[CoveringT]):
    """The verdict on one subject.

    It holds only the name of the subject, so it can be sent to another process and stored.

    Attributes
    ----------
    name : str
        The name of the subject.
    suites : tuple of SuiteResult
    coverage : Coverage, BlobCoverage or Checklist
    seconds : float
    checked : tuple of str
        The requirements that the subject was checked for.
    generated : Generated or None
        The generated walks; None if there were to be none.
    level : str
        How much of the subject was observed.
    left : dict of str to str
        The requirements of the profile that were not judged, each with the reason.
    excepted : tuple of str
        The excepted requirements that were violated.
    """

    name: str
    suites: tuple[SuiteResult, ...]
    coverage: CoveringT
    seconds: float
    checked: tuple[str, ...]
    generated: Generated | None = None
    level: Level = "L4"
    left: Mapping[str, str] = field(default_factory=dict[str, str])
    excepted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Conformance of {self.name!r}: {'passed' if self.passed else 'failed'}, {self.steps} steps>"

    @property
    def violations(self) -> list[Violation]:
        """The violations, the shortest reproducer first; for each requirement only the one with the shortest."""
        unique: dict[str, Violation] = {}
        for violation in sorted(
            (finding for suite in self.suites for finding in (suite.violation, *suite.more) if finding),
            key=lambda finding: (finding.repeats, len(finding.statements)),
        ):
            unique.setdefault(violation.requirement, violation)
        return list(unique.values())

    @property
    def passed(self) -> bool:
        """Whether there is no violation, the coverage is complete, and as much was generated as was wanted."""
        return not self.violations and not self.coverage.missing and not self.shortfall

    @property
    def shortfall(self) -> str:
        """What is missing of the generated walks that were wanted; empty if nothing is."""
        return self.generated.shortfall if self.generated else ""

    @property
    def exceptions(self) -> str:
        """The excepted requirements that were violated, as a part of a sentence; empty if none was."""
        return f" except {', '.join(name.partition('-')[0] for name in self.excepted)}" if self.excepted else ""

    @property
    def covered(self) -> str:
        """How much of all that can be taken was taken."""
        return f"{self.coverage.count} of {self.coverage.count + self.coverage.missing} {self.coverage.unit}"

    @property
    def unreached(self) -> list[str]:
        """What nothing could take, if no violation says why."""
        return [] if self.violations else self.coverage.unreached()

    @property
    def counted(self) -> str:
        """How many requirements are kept; if a suite stopped at a violation, how many are violated."""
        statuses = [verdict.status for verdict in self.verdicts]
        broken = len(self.violations)
        return f"{broken} of {len(statuses)} violated" if broken else f"{statuses.count('passed')} of {len(statuses)}"

    @property
    def steps(self) -> int:
        """The number of calls in all suites."""
        return sum(suite.steps for suite in self.suites)

    @property
    def walks(self) -> int:
        """The number of distinct generated walks."""
        return self.generated.walks if self.generated else 0

    def verdict(self, requirement: str) -> Verdict:
        """The verdict on a requirement.

        It is not applicable if the subject lacks something that it needs.  A suite stops at its first violation, so
        after a violation every other requirement is not checked, unless a suite of its name came to its end.
        """
        for violation in self.violations:
            if violation.requirement == requirement:
                return Verdict(requirement, "failed", detail=violation.message)
        if requirement in self.excepted:
            return Verdict(requirement, "not checked", detail="it is excepted")
        if requirement not in self.checked:
            return Verdict(requirement, "not applicable", detail="it does not apply to this subject")
        ended = {suite.name for suite in self.suites if suite.violation is None}
        if self.violations and requirement not in ended:
            return Verdict(requirement, "not checked", detail="a suite stopped at a violation")
        return Verdict(requirement, "passed")

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each requirement that the subject was checked for."""
        return [self.verdict(name) for name in self.checked]

    def as_json(self) -> dict[str, Any]:
        """The report as data."""
        return {
            "level": self.level,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "covered": self.covered,
            "count": self.coverage.count,
            "missing": self.coverage.missing,
            "suites": [
                {"name": suite.name, "cases": suite.cases, "steps": suite.steps, "seconds": round(suite.seconds, 3)}
                for suite in self.suites
            ],
            "generated": self.generated.as_json() if self.generated else None,
            "requirements": [verdict._asdict() for verdict in self.verdicts],
            "not_judged": dict(self.left),
            "violations": [violation.as_json() for violation in self.violations],
            "excepted": [*self.excepted],
            "unreached": self.unreached,
        }

    def require(self) -> None:
        """Raise the first violation, if there is one.

        Raises
        ------
        Violation
        """
        for violation in self.violations:
            raise violation
        if self.coverage.missing:
            message = f"{self.coverage.missing} {self.coverage.unit} were not taken"
            raise Violation("coverage", message)
        if self.shortfall:
            raise Violation("walks", self.shortfall)


def junit(
    title: str, classname: str, verdicts: Sequence[Verdict], violations: Iterable[Violation], seconds: float
) -> str:
    """Verdicts as JUnit XML: a requirement is a test case, and one that was not checked is skipped."""
    reproducers = {violation.requirement: "\n".join(violation.statements) for violation in violations}
    statuses = [verdict.status for verdict in verdicts]
    suite = Element("testsuite", name=title, tests=str(len(verdicts)), failures=str(statuses.count("failed")))
    suite.set("errors", "0")
    suite.set("skipped", str(len(verdicts) - statuses.count("failed") - statuses.count("passed")))
    suite.set("time", f"{seconds:.3f}")
    for verdict in verdicts:
        case = SubElement(suite, "testcase", classname=classname, name=verdict.requirement, time="0")
        if verdict.status == "failed":
            SubElement(case, "failure", message=verdict.detail).text = reproducers[verdict.requirement]
        elif verdict.status != "passed":
            SubElement(case, "skipped", message=verdict.detail)
    indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suite, encoding="unicode")}\n'


class Tolerance:
    """Which violations do not end a suite.

    Parameters
    ----------
    excepted : iterable of str
        Requirements whose violations are not counted.
    keep_going : bool
        Whether a suite goes on after a violation, with the other requirements.
    first : bool
        Whether no suite is run after one that found a violation.
    explained : set of str, optional
        Requirements whose violations need no shortest program, because they have one; those that get one are added.
        By default every violation gets one.
    on_found : callable, optional
        Called with all violations that were found, whenever one is.

    Attributes
    ----------
    met : set of str
        The excepted requirements that were violated.
    found : list of Violation
        The violations that were not tolerated.
    """

    def __init__(
        self,
        excepted: Iterable[str] = (),
        *,
        keep_going: bool = False,
        first: bool = False,
        explained: set[str] | None = None,
        on_found: Callable[..., object] | None = None,
    ) -> None:
        self.met: set[str] = set()
        self.found: list[Violation] = []
        self.keep_going: bool = keep_going
        self._first = first
        self._explained = explained
        self._on_found = on_found
        self._excepted = frozenset(excepted)
        self._known = set(self._excepted)

    def is_over(self, subject: Subject) -> bool:
        """Whether nothing more is run: enough was found, or a program has hung, and would again and again."""
        return (self._first and bool(self.found)) or (subject.program is not None and subject.program.hung)

    def is_explained(self, violation: Violation) -> bool:
        """Whether another violation of its requirement has a shortest program."""
        return self._explained is not None and violation.requirement in self._explained

    def tolerates(self, violation: Violation) -> bool:
        """Whether its requirement is excepted, or was reported already."""
        if violation.requirement in self._excepted:
            self.met.add(violation.requirement)
        return violation.requirement in self._known

    def excuses(self, requirement: str) -> bool:
        """Whether a requirement that was found violated is excepted."""
        if requirement in self._excepted:
            self.met.add(requirement)
        return requirement in self._excepted

    def ends(self, violation: Violation) -> bool:
        """Keep a violation that is not tolerated; return whether a suite ends with it.  If not, others like it pass."""
        self.found.append(violation)
        if self._explained is not None:
            self._explained.add(violation.requirement)
        if self._on_found is not None:
            self._on_found(*self.found)
        if self.keep_going:
            self._known.add(violation.requirement)
        return not self.keep_going


class SuiteRun:
    """A suite while it runs: its cases and calls are counted, and its progress is told.

    Attributes
    ----------
    name : str
    cases, steps : int
    tolerance : Tolerance
    generated : Generated or None
        The walks that the suite generated, if it generates walks.
    """

    def __init__(
        self,
        name: str,
        coverage: Covering,
        progress: Progress | None = None,
        tolerance: Tolerance | None = None,
        *,
        shorten: bool = True,
    ) -> None:
        self.tolerance: Tolerance = tolerance or Tolerance()
        self._shorten = shorten
        self.cases: int = 0
        self.steps: int = 0
        self.generated: Generated | None = None
        self.name: str = name
        self._coverage = coverage
        self._progress = progress

    def add(self, *drivers: Any) -> None:
        """Count one case with its drivers."""
        self.cases += 1
        for driver in drivers:
            self.steps += driver.steps
            self._coverage.add(driver)
        if self._progress is not None:
            self._progress(self.name, self.cases)

    def shortens(self, violation: Violation) -> bool:
        """Whether the shortest program of a violation is looked for; it is not for one that repeats another."""
        violation.repeats = self.tolerance.is_explained(violation)
        return self._shorten and not violation.repeats

    def run_cases(
        self,
        cases: Iterable[CaseT],
        run: Callable[[CaseT, list[Any]], object],
        shortened: Callable[[CaseT, Violation], Violation],
    ) -> Violation | None:
        """Run cases until a violation is not tolerated, and return it.

        Parameters
        ----------
        cases : iterable
        run : callable
            Called with a case, and with a list that gets its drivers.
        shortened : callable
            Given a case and its violation, that of the shortest one that breaks the same requirement.
        """
        for case in cases:
            drivers: list[Any] = []
            try:
                run(case, drivers)
            except Violation as finding:
                if self.tolerance.tolerates(finding):
                    for driver in drivers:  # what it took until then was taken; what comes after may be out of reach
                        self._coverage.add(driver)
                    continue
                violation = shortened(case, finding) if self.shortens(finding) else finding
                if self.tolerance.ends(violation):
                    return violation
            else:
                self.add(*drivers)
        return None


class CheckOptions(TypedDict, total=False):
    """What can be chosen for a run of a kit; `syncedmem.spec.check_conformance` says what each means."""

    steps: int
    seed: int
    suites: Iterable[str] | None
    progress: Progress | None
    tolerance: Tolerance | None
    shorten: bool


def check_subject(subject: object) -> None:
    """Refuse what is no subject."""
    if not isinstance(subject, Subject):
        raise InvalidArgumentError("subject", subject, "a Subject")


def chosen_suites(suites: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The suites that were asked for; refuse what is not known."""
    wanted = (suites,) if isinstance(suites, str) else tuple(suites)
    if isinstance(suites, str) or any(name not in known for name in wanted):
        odd = next((name for name in wanted if name not in known), suites)
        raise InvalidArgumentError("suites", odd, f"a list of some of {', '.join(known)}")
    return wanted


_MOST_STEPS = 1_000_000_000
"""Nobody waits for more steps."""


def check_steps(steps: object) -> None:
    """Refuse a value that is not a number of steps."""
    if type(steps) is not int or not 0 <= steps <= _MOST_STEPS:
        raise InvalidArgumentError("steps", steps, f"an integer from 0 to {_MOST_STEPS:,}")


@contextmanager
def _only_new_garbage() -> Generator[None]:
    """Let the garbage collector leave alone what is there already: kits collect often, and a process may be large."""
    if gc.get_freeze_count():  # the process does so itself
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def run_suites(  # noqa: PLR0913 -- options
    subject: Subject,
    runners: Mapping[str, Runner],
    coverage: CoveringT,
    checked: Sequence[str],
    progress: Progress | None = None,
    tolerance: Tolerance | None = None,
    *,
    left: Mapping[str, str],
    shorten: bool = True,
) -> Conformance[CoveringT]:
    """Run suites one after the other; each stops at its first violation that is not tolerated.

    Parameters
    ----------
    subject : Subject
    runners : dict of str to callable
        The suites by name: called with a subject and their run, they return the violation that they find.
    coverage : Coverage or BlobCoverage
    checked : sequence of str
        The requirements that all suites together check.
    progress : callable, optional
        Called with a suite's name and the number of its cases until now.
    tolerance : Tolerance, optional
        Which violations do not end a suite; by default, each does.
    left : dict of str to str
        The requirements of the profile that the subject is not checked for, each with the reason.
    shorten : bool
        Whether to look for the shortest reproducer of a violation.
    """
    start = time.perf_counter()
    tolerance = tolerance or Tolerance()
    results: list[SuiteResult] = []
    generated: Generated | None = None
    for name, run in runners.items():
        if tolerance.is_over(subject):
            break
        suite, known = SuiteRun(name, coverage, progress, tolerance, shorten=shorten), len(tolerance.found)
        began = time.perf_counter()
        if progress is not None:
            progress(name, 0)
        # If a subject leaves another device current, that is a violation, and must not affect what runs next.
        there = nullcontext() if subject.device is None or subject.program is not None else subject.device.using()
        with there, _only_new_garbage():
            violation = run(subject, suite)
        generated = suite.generated or generated
        violations = tolerance.found[known:]
        if violation and violation not in violations:
            violations.append(violation)
        seconds = time.perf_counter() - began
        first = violations[0] if violations else None
        results.append(SuiteResult(name, suite.cases, suite.steps, seconds, first, tuple(violations[1:])))
    seconds = time.perf_counter() - start
    return Conformance(
        subject.name,
        tuple(results),
        coverage,
        seconds,
        tuple(checked),
        generated,
        level=subject.level,
        left=left,
        excepted=tuple(sorted(tolerance.met)),
    )
