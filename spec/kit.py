"""The conformance kit: puts a memory to every check, and says which requirement it does not meet.

It needs no pytest and knows no implementation.  Give it a `Bench` with a maker of memories and the allocators
they are to use, and read the `Conformance` it returns.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model import InvalidArgumentError

from .contracts import CONTRACTS, DEVICE_CONTRACTS
from .coverage import Coverage
from .requirements import REQUIREMENTS
from .shrinking import shrink
from .subject import Bench, Violation
from .suites import SUITES, run_case, shorter_case
from .walks import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .trial import Trial

__all__ = ["DEFAULT_STEPS", "Conformance", "SuiteResult", "check_conformance", "requirements_for", "suite_names"]

DEFAULT_STEPS = 6000


@dataclass(frozen=True)
class SuiteResult:
    """What one suite did.

    Attributes
    ----------
    name : str
    cases : int
        Words, walks or single checks.
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
class Conformance:
    """The verdict on one bench.

    Attributes
    ----------
    bench : Bench
    suites : tuple of SuiteResult
    coverage : Coverage
    seconds : float
    """

    bench: Bench
    suites: tuple[SuiteResult, ...]
    coverage: Coverage
    seconds: float

    @property
    def violations(self) -> list[Violation]:
        """What was found, the shortest script first; for each requirement the shortest that any suite found."""
        unique: dict[str, Violation] = {}
        for violation in sorted((s.violation for s in self.suites if s.violation), key=lambda found: len(found.script)):
            unique.setdefault(violation.requirement, violation)
        return list(unique.values())

    @property
    def passed(self) -> bool:
        """Whether nothing was found and every transition was taken."""
        return not self.violations and not self.coverage.missing

    @property
    def steps(self) -> int:
        """Calls made, over all suites."""
        return sum(suite.steps for suite in self.suites)

    @property
    def walks(self) -> int:
        """Generated walks taken."""
        return sum(suite.cases for suite in self.suites if suite.name == "walks")

    def status(self, requirement: str) -> str:
        """``"passed"``, ``"failed"`` or ``"not checked"``.

        Not checked is what the bench has no use for, and, as a suite stops at its first violation, everything
        else once there is one.
        """
        if self.violations:
            return "failed" if any(found.requirement == requirement for found in self.violations) else "not checked"
        return "passed" if requirement in requirements_for(self.bench) else "not checked"

    def require(self) -> None:
        """Raise the first violation, if there is one.

        Raises
        ------
        Violation
        """
        for violation in self.violations:
            raise violation
        if self.coverage.missing:
            message = f"{self.coverage.missing} transitions were not taken"
            raise Violation("coverage", message)


def requirements_for(bench: Bench) -> list[str]:
    """The requirements that a bench can be checked for."""
    offered = {"anything", "no device" if bench.device is None else "device"}
    if bench.device is not None and bench.elsewhere is not None:
        offered.update(("another device", "device check") if bench.check_device else ("another device",))
    profiles = ("caffe", "safe") if bench.profile == "safe" else ("caffe",)
    return [name for name, it in REQUIREMENTS.items() if it.profile in profiles and it.needs in offered]


def check_conformance(
    bench: Bench,
    *,
    steps: int = DEFAULT_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Conformance:
    """Put a memory to every check.

    Parameters
    ----------
    bench : Bench
    steps : int
        How many generated steps to take besides the enumerated ones; 0 takes none.
    seed : int
        Of the generated walks.
    suites : iterable of str, optional
        Only these: names from `suite_names`.
    progress : callable, optional
        Called with a suite's name and the number of its cases so far.

    Returns
    -------
    Conformance
        Every suite runs, and stops at its first violation.

    Raises
    ------
    InvalidArgumentError
        If `steps` is no number of steps.
    """
    if type(steps) is not int or steps < 0:
        raise InvalidArgumentError("steps", steps, "an integer, 0 or more")
    wanted = suite_names(bench) if suites is None else tuple(suites)
    coverage = Coverage(bench.edition)
    start = time.perf_counter()
    results: list[SuiteResult] = []
    for name in wanted:
        counter = _Counter(name, coverage, progress)
        run = _runner(name, steps, seed)
        began = time.perf_counter()
        # A subject that leaves another device current is found out, and must not spoil what comes after it.
        with nullcontext() if bench.device is None else bench.device.using():
            violation = run(bench, counter)
        results.append(SuiteResult(name, counter.cases, counter.steps, time.perf_counter() - began, violation))
    return Conformance(bench, tuple(results), coverage, time.perf_counter() - start)


def suite_names(bench: Bench) -> tuple[str, ...]:
    """The suites for a bench, in the order they run."""
    left_out = set[str]() if bench.profile == "safe" else {"failures", "stumbles", "contracts", "flights"}
    if bench.device is None:
        left_out.add("flights")
    return tuple(name for name in (*SUITES, "contracts", "walks") if name not in left_out)


class _Counter:
    """Counts cases and calls while a suite runs, and tells who watches."""

    def __init__(self, name: str, coverage: Coverage, progress: Callable[[str, int], None] | None) -> None:
        self.cases = 0
        self.steps = 0
        self._name = name
        self._coverage = coverage
        self._progress = progress

    def add(self, *trials: Trial) -> None:
        """Count one case with its trials."""
        self.cases += 1
        for trial in trials:
            self.steps += len(trial.visited)
            self._coverage.add(trial)
        if self._progress is not None:
            self._progress(self._name, self.cases)


def _runner(name: str, steps: int, seed: int) -> Callable[[Bench, _Counter], Violation | None]:
    if name == "walks":
        return partial(_run_walks, steps=steps, seed=seed)
    return _run_contracts if name == "contracts" else partial(_run_enumerated, name=name)


def _run_enumerated(bench: Bench, counter: _Counter, name: str) -> Violation | None:
    for case in SUITES[name](bench):
        try:
            counter.add(run_case(bench, case))
        except Violation as violation:
            return shrink(bench, case, violation, run_case, shorter_case)
    return None


def _run_contracts(bench: Bench, counter: _Counter) -> Violation | None:
    for contract in CONTRACTS if bench.device is None else CONTRACTS + DEVICE_CONTRACTS:
        try:
            counter.add(*contract(bench))
        except Violation as violation:
            return violation
        except Exception as error:  # noqa: BLE001 -- whatever a subject makes a check stumble over
            text = (contract.__doc__ or contract.__name__).split("(")[0].strip()
            return Violation("R10-same-bytes", f"{text}: {type(error).__name__}: {error}")
    return None


def _run_walks(bench: Bench, counter: _Counter, steps: int, seed: int) -> Violation | None:
    if not steps:
        return None

    def count(trials: list[Trial]) -> None:
        counter.add(*trials)

    return search(bench, steps, seed, count)
