"""The shrinker: makes a failing sequence of steps as short and as simple as possible, for steps of any kind.

First it leaves out groups of steps, from long groups to single steps.  Then it makes each step simpler.  It repeats
both until nothing helps or the time is up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .subject import RemoteProgram

__all__ = ["SECONDS", "shortest", "shrink"]

Step = TypeVar("Step")

SECONDS = 60.0
"""The time in which a finding of a program is shortened: a request that is not answered takes seconds."""


def _no_simpler(_: object) -> tuple[()]:
    """For steps that cannot be made simpler."""
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
        Steps that fail.
    fails : callable
        Whether steps fail for the same reason.
    simpler : callable
        Given a step, simpler steps to try in its place, the simplest first.
    seconds : float
        The time after which the shortest steps found are returned.
    """
    return _Search(fails, simpler, time.perf_counter() + seconds).shortest(steps)


def shortest(
    steps: tuple[Step, ...],
    violation: Violation,
    run: Callable[[tuple[Step, ...]], object],
    *,
    simpler: Callable[[Step], Iterable[Step]] = _no_simpler,
    program: RemoteProgram | None = None,
) -> Violation:
    """The violation of the shortest steps that break the same requirement.

    If the subject is a program, each attempt has a new process.  If the steps alone do not fail there, they are
    repeated, because a program may count its calls; if that does not fail either, the violation has all requests of
    the process in which they failed.

    Parameters
    ----------
    steps : tuple
        The steps that were run.
    violation : Violation
        The violation that they led to.
    run : callable
        Runs steps, and raises their violation.
    simpler : callable
        As for `shrink`.
    program : RemoteProgram or None
    """
    violations = [violation]
    history = () if program is None else program.requests(whole=True)

    def fails(candidate: tuple[Step, ...]) -> bool:
        if program is not None:
            program.renew()
        try:
            run(candidate)
        except Violation as other:
            if other.requirement == violation.requirement:
                violations.append(other)
                return True
        return False

    if program is not None and not fails(steps):
        return _repeated(steps, violation, run, program) or Violation(
            violation.requirement, f"{violation.message} (it takes all these requests, in one process)", history
        )
    shrink(steps, fails, simpler=simpler, seconds=float("inf") if program is None else SECONDS)
    if program is not None:
        program.renew()
    return violations[-1]


_REPEATED = 40
"""How often steps are repeated in one process."""


def _repeated(
    steps: tuple[Step, ...], violation: Violation, run: Callable[[tuple[Step, ...]], object], program: RemoteProgram
) -> Violation | None:
    """The violation with the requests of steps that fail only when they are repeated; None if they do not."""
    program.renew()
    for count in range(_REPEATED):
        try:
            run(steps)
        except Violation as other:
            if other.requirement != violation.requirement:
                break
            requests = program.requests(whole=True)
            program.renew()
            return Violation(
                other.requirement, f"{other.message} (in run {count + 1} of the same steps, in one process)", requests
            )
    program.renew()
    return None


@dataclass(frozen=True, slots=True)
class _Search(Generic[Step]):
    """A search by a question about steps; when the time is up, every answer is no."""

    question: Callable[[tuple[Step, ...]], bool]
    simpler: Callable[[Step], Iterable[Step]]
    deadline: float

    def shortest(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        while True:
            shorter = self._simplify(self._leave_out(steps))
            if shorter == steps:
                return steps
            steps = shorter

    def _fails(self, steps: tuple[Step, ...]) -> bool:
        return time.perf_counter() < self.deadline and self.question(steps)

    def _leave_out(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Delta debugging: groups of steps, from the end to the start, each time half as long."""
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
