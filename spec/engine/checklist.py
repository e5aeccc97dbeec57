"""A list of checks, each of one requirement and one case: for subjects that need no generated steps."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self
from unittest import SkipTest

from syncedmem.model import InvalidArgumentError

from .report import Conformance, SuiteResult
from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check = Callable[[], None]
    Errors = type[Exception] | tuple[type[Exception], ...]
    Progress = Callable[[str, int], None]

__all__ = ["Case", "Checklist", "check_case", "run_checks"]


class Case:
    """One check of one subject: what the check requires of it.  Each contract has a class of its own.

    Attributes
    ----------
    requirement : str
    patience : float
        In seconds; a thread that takes longer waits for ever.
    """

    patience: ClassVar[float] = 60
    registered: ClassVar[dict[str, Callable[[Any], None]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.registered = {}

    @classmethod
    def checks(cls, requirement: str) -> Callable[[Callable[[Self], None]], Callable[[Self], None]]:
        """Register the decorated function as the check of a requirement; there is one for each."""
        if requirement in cls.registered:
            raise InvalidArgumentError("requirement", requirement, "a requirement that has no check yet")

        def register(check: Callable[[Self], None]) -> Callable[[Self], None]:
            cls.registered[requirement] = check
            return check

        return register

    def __init__(self, requirement: str) -> None:
        self.requirement = requirement

    def require(self, holds: bool, message: str) -> None:
        """Report a violation if the condition does not hold."""
        if not holds:
            raise Violation(self.requirement, message)

    def refused(self, errors: Errors, what: str, call: Callable[..., object], *arguments: Any, **named: Any) -> None:
        """Report a call that is not refused with one of these errors; another error is reported by `check_case`."""
        try:
            call(*arguments, **named)
        except errors:
            return
        raise Violation(self.requirement, f"{what}: not refused")

    def run_together(self, *calls: Callable[[], object]) -> None:
        """Make calls in threads that start together; report what went wrong first, or a thread that never ends."""
        wrong, start = list[str](), threading.Barrier(len(calls))

        def work(call: Callable[[], object]) -> None:
            try:
                start.wait()
                call()
            except Violation as violation:
                wrong.append(violation.message)
            except Exception as error:  # noqa: BLE001 -- reported below
                wrong.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=work, args=(call,), daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.patience)
        self.require(not any(thread.is_alive() for thread in threads), "threads wait for each other")
        self.require(not wrong, wrong[0] if wrong else "")

    def finish(self) -> None:
        """Give back what the check has left; called if it has found nothing."""


def check_case(case: Case) -> None:
    """Make the check of a case.

    Raises
    ------
    Violation
        If it finds something, or if there is an error that the check does not expect.
    SkipTest
        If the subject does not have what the check needs.
    InvalidArgumentError
        If the contract has no check of its requirement.
    """
    check = case.registered.get(case.requirement)
    if check is None:
        raise InvalidArgumentError("requirement", case.requirement, "a requirement of this contract")
    try:
        check(case)
        case.finish()
    except (Violation, SkipTest):
        raise
    except Exception as error:
        raise Violation(case.requirement, f"{type(error).__name__}: {error}") from error


@dataclass
class Checklist:
    """How many checks there are, and how many were made."""

    unit: ClassVar[str] = "checks"

    wanted: int = 0
    count: int = 0

    def add(self, check: Any) -> None:
        """Count a check that was made."""
        del check
        self.count += 1

    @property
    def missing(self) -> int:
        """The number of checks that were not made."""
        return self.wanted - self.count

    def unreached(self) -> list[str]:
        """Nothing: checks that were not made have no names."""
        return []


def run_checks(
    name: str,
    checklist: Mapping[str, Mapping[str, Check]],
    reproducer: Callable[[str, str], tuple[str, ...]],
    progress: Progress | None = None,
) -> Conformance[Checklist]:
    """Make all checks; each requirement is a suite, which stops at its first violation.

    Parameters
    ----------
    name : str
        The name of the subject.
    checklist : dict of str to dict of str to callable
        For each requirement the checks by the name of the case.  A check raises a `Violation`, or ``SkipTest`` if the
        case does not have what the check needs.
    reproducer : callable
        Called with a requirement and a case, it returns the statements of a program that makes the check.
    progress : callable, optional
        Called with a requirement and the number of its checks until now.
    """
    start = time.perf_counter()
    coverage = Checklist(sum(map(len, checklist.values())))
    suites: list[SuiteResult] = []
    for requirement, cases in checklist.items():
        began, done, violation = time.perf_counter(), 0, None
        for case, check in cases.items():
            try:
                check()
            except SkipTest:
                coverage.wanted -= 1
                continue
            except Violation as finding:
                violation = Violation(requirement, f"{case}: {finding.message}", reproducer(requirement, case))
                break
            finally:
                if progress is not None:
                    progress(requirement, done)
            done += 1
            coverage.add(check)
        suites.append(SuiteResult(requirement, done, 0, time.perf_counter() - began, violation))
    return Conformance(name, tuple(suites), coverage, time.perf_counter() - start, tuple(checklist))
