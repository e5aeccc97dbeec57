"""The report of a kit: what each suite did and found, what was covered, and a verdict on each requirement."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

from syncedmem.model import InvalidArgumentError

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .subject import Subject

    Progress = Callable[[str, int], None]
    Runner = Callable[[Subject, "Counter"], Violation | None]

__all__ = [
    "Conformance",
    "Counter",
    "Covering",
    "Status",
    "SuiteResult",
    "Verdict",
    "check_steps",
    "overall",
    "run_suites",
]


Status = Literal["failed", "passed", "not checked", "not applicable"]
"""What is known of a requirement; where several say something of one, the first of these counts."""

_STATUSES: tuple[Status, ...] = get_args(Status)


class Verdict(NamedTuple):
    """What is known of one requirement.

    Attributes
    ----------
    requirement : str
    status : {"failed", "passed", "not checked", "not applicable"}
    times : int
        How often it was checked, where that is counted.
    detail : str
        What is wrong, or why it was not checked.
    """

    requirement: str
    status: Status
    times: int = 0
    detail: str = ""


def overall(statuses: Iterable[Status]) -> Status:
    """The status of a requirement over several reports; not checked if there is none."""
    found = set(statuses)
    for status in _STATUSES:
        if status in found:
            return status
    return "not checked"


class Covering(Protocol):
    """What counts how much was taken of what there is to take.

    Attributes
    ----------
    unit : str
        What is counted.
    """

    unit: ClassVar[str]

    @property
    def missing(self) -> int:
        """How much was not taken."""
        ...

    def add(self, driver: Any, /) -> None:
        """Count what a driver did."""
        ...


CoveringT = TypeVar("CoveringT", bound=Covering)


@dataclass(frozen=True)
class SuiteResult:
    """What one suite did.

    Attributes
    ----------
    name : str
    cases : int
        Sequences, scenarios, walks or contracts.
    steps : int
        Calls made.
    seconds : float
    violation : Violation or None
        The first one, shortened.
    """

    name: str
    cases: int
    steps: int
    seconds: float
    violation: Violation | None


@dataclass(frozen=True)
class Conformance(Generic[CoveringT]):
    """The verdict on one subject.

    It has nothing of the subject but its name, so that it can be sent to another process and be kept.

    Attributes
    ----------
    name : str
        The subject's.
    suites : tuple of SuiteResult
    coverage : Coverage or BlobCoverage
    seconds : float
    checked : tuple of str
        The requirements that the subject was checked for.
    """

    name: str
    suites: tuple[SuiteResult, ...]
    coverage: CoveringT
    seconds: float
    checked: tuple[str, ...]

    @property
    def violations(self) -> list[Violation]:
        """What was found, the shortest reproducer first; for each requirement the shortest that any suite found."""
        unique: dict[str, Violation] = {}
        for violation in sorted(
            (s.violation for s in self.suites if s.violation), key=lambda found: len(found.statements)
        ):
            unique.setdefault(violation.requirement, violation)
        return list(unique.values())

    @property
    def passed(self) -> bool:
        """Whether nothing was found and everything that is covered was taken."""
        return not self.violations and not self.coverage.missing

    @property
    def steps(self) -> int:
        """Calls made, over all suites."""
        return sum(suite.steps for suite in self.suites)

    @property
    def walks(self) -> int:
        """Generated walks taken."""
        return sum(suite.cases for suite in self.suites if suite.name == "walks")

    def verdict(self, requirement: str) -> Verdict:
        """What is known of a requirement.

        Not applicable is what the subject has no use for.  As a suite stops at its first violation, all else is not
        checked once there is one.
        """
        for found in self.violations:
            if found.requirement == requirement:
                return Verdict(requirement, "failed", detail=found.message)
        if requirement not in self.checked:
            return Verdict(requirement, "not applicable", detail="the subject has no use for it")
        if self.violations:
            return Verdict(requirement, "not checked", detail="a suite stopped at a violation")
        return Verdict(requirement, "passed")

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


class Counter:
    """Counts cases and calls while a suite runs, and tells who watches."""

    def __init__(self, name: str, coverage: Covering, progress: Progress | None) -> None:
        self.cases: int = 0
        self.steps: int = 0
        self._name = name
        self._coverage = coverage
        self._progress = progress

    def add(self, *drivers: Any) -> None:
        """Count one case with its drivers."""
        self.cases += 1
        for driver in drivers:
            self.steps += driver.steps
            self._coverage.add(driver)
        if self._progress is not None:
            self._progress(self._name, self.cases)


def check_steps(steps: object) -> None:
    """Refuse what is no number of steps.

    Raises
    ------
    InvalidArgumentError
    """
    if type(steps) is not int or steps < 0:
        raise InvalidArgumentError("steps", steps, "an integer, 0 or more")


def run_suites(
    subject: Subject,
    runners: Mapping[str, Runner],
    coverage: CoveringT,
    checked: Sequence[str],
    progress: Progress | None = None,
) -> Conformance[CoveringT]:
    """Run suites one after the other; each stops at its first violation.

    Parameters
    ----------
    subject : Subject
    runners : dict of str to callable
        The suites by name: given a subject and a counter, the violation that they find.
    coverage : Coverage or BlobCoverage
    checked : sequence of str
        The requirements that all suites together check.
    progress : callable, optional
        Called with a suite's name and the number of its cases so far.
    """
    start = time.perf_counter()
    results: list[SuiteResult] = []
    for name, run in runners.items():
        counter = Counter(name, coverage, progress)
        began = time.perf_counter()
        # A subject that leaves another device current is found out, and must not spoil what comes after it.
        with nullcontext() if subject.device is None else subject.device.using():
            violation = run(subject, counter)
        results.append(SuiteResult(name, counter.cases, counter.steps, time.perf_counter() - began, violation))
    return Conformance(subject.name, tuple(results), coverage, time.perf_counter() - start, tuple(checked))
