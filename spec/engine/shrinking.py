"""The shrinker: makes a sequence of steps that fails as short and as simple as it gets, whatever the steps are.

Runs of steps are left out, the longest first and single steps last; then each step is made simpler; again and again,
until nothing helps or time is up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["shortest", "shrink"]

Step = TypeVar("Step")


def _no_simpler(_: object) -> tuple[()]:
    """For steps that are as simple as they get."""
    return ()


def shrink(
    steps: tuple[Step, ...],
    fails: Callable[[tuple[Step, ...]], bool],
    *,
    simpler: Callable[[Step], Iterable[Step]] = _no_simpler,
    seconds: float = float("inf"),
) -> tuple[Step, ...]:
    """The shortest steps found that still fail.

    Parameters
    ----------
    steps : tuple
        They are known to fail.
    fails : callable
        Whether steps fail for the same reason.
    simpler : callable
        Given a step, simpler ones to try in its place, the simplest first.
    seconds : float
        After which the shortest so far is returned.
    """
    return _Search(fails, simpler, time.perf_counter() + seconds).shortest(steps)


def shortest(
    steps: tuple[Step, ...],
    violation: Violation,
    run: Callable[[tuple[Step, ...]], object],
    *,
    simpler: Callable[[Step], Iterable[Step]] = _no_simpler,
) -> Violation:
    """The violation of the shortest steps that break the same requirement.

    Parameters
    ----------
    steps : tuple
        What was run.
    violation : Violation
        What came of it.
    run : callable
        Runs steps, and raises what they violate.
    simpler : callable
        As for `shrink`.
    """
    found = [violation]

    def fails(candidate: tuple[Step, ...]) -> bool:
        try:
            run(candidate)
        except Violation as other:
            if other.requirement == violation.requirement:
                found.append(other)
                return True
        return False

    shrink(steps, fails, simpler=simpler)
    return found[-1]


@dataclass(frozen=True, slots=True)
class _Search(Generic[Step]):
    """A question that is asked until time is up; after that every answer is no."""

    question: Callable[[tuple[Step, ...]], bool]
    simpler: Callable[[Step], Iterable[Step]]
    deadline: float

    def shortest(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        while True:
            found = self._simplify(self._leave_out(steps))
            if found == steps:
                return steps
            steps = found

    def _fails(self, steps: tuple[Step, ...]) -> bool:
        return time.perf_counter() < self.deadline and self.question(steps)

    def _leave_out(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Delta debugging: runs of steps, from the end on, each half as long as the last ones."""
        size = len(steps)
        while size:
            start = len(steps)
            while start > 0:
                start = max(start - size, 0)
                candidate = steps[:start] + steps[start + size :]
                if candidate != steps and self._fails(candidate):
                    steps = candidate
            size //= 2
        return steps

    def _simplify(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        for at in range(len(steps)):
            for candidate in self.simpler(steps[at]):
                changed = (*steps[:at], candidate, *steps[at + 1 :])
                if self._fails(changed):
                    steps = changed
                    break
        return steps
