"""A list of checks, each of one requirement and one case: for subjects that need no generated steps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from unittest import SkipTest

from .report import Conformance, SuiteResult
from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check = Callable[[], None]
    Progress = Callable[[str, int], None]

__all__ = ["Checklist", "register", "run_checks"]

CaseT = TypeVar("CaseT")


def register(
    checks: dict[str, Callable[[CaseT], None]], requirement: str
) -> Callable[[Callable[[CaseT], None]], Callable[[CaseT], None]]:
    """Put the decorated check of a case into a table, under its requirement."""

    def add(check: Callable[[CaseT], None]) -> Callable[[CaseT], None]:
        checks[requirement] = check
        return check

    return add


@dataclass
class Checklist:
    """How many checks there are, and how many were made.

    Attributes
    ----------
    wanted, taken : int
    """

    unit: ClassVar[str] = "checks"

    wanted: int = 0
    taken: int = 0

    def add(self, check: Any) -> None:
        """Count a check that was made."""
        del check
        self.taken += 1

    @property
    def missing(self) -> int:
        """The number of checks that were not made."""
        return self.wanted - self.taken


def run_checks(
    name: str,
    checks: Mapping[str, Mapping[str, Check]],
    reproducer: Callable[[str, str], tuple[str, ...]],
    progress: Progress | None = None,
) -> Conformance[Checklist]:
    """Make all checks; each requirement is a suite, which stops at its first violation.

    Parameters
    ----------
    name : str
        The name of the subject.
    checks : dict of str to dict of str to callable
        For each requirement the checks by the name of the case.  A check raises a `Violation`, or ``SkipTest`` if the
        case does not have what the check needs.
    reproducer : callable
        Called with a requirement and a case, it returns the statements of a program that makes the check.
    progress : callable, optional
        Called with a requirement and the number of its checks until now.
    """
    start = time.perf_counter()
    coverage = Checklist(sum(map(len, checks.values())))
    suites: list[SuiteResult] = []
    for requirement, cases in checks.items():
        began, done, violation = time.perf_counter(), 0, None
        for case, check in cases.items():
            try:
                check()
            except SkipTest:
                coverage.wanted -= 1
                continue
            except Violation as found:
                violation = Violation(requirement, f"{case}: {found.message}", reproducer(requirement, case))
                break
            finally:
                if progress is not None:
                    progress(requirement, done)
            done += 1
            coverage.add(check)
        suites.append(SuiteResult(requirement, done, 0, time.perf_counter() - began, violation))
    return Conformance(name, tuple(suites), coverage, time.perf_counter() - start, tuple(checks))
