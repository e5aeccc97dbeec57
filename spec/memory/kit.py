"""The conformance kit: runs every check against a memory, and reports the requirements that it breaks.

It does not need pytest, and it knows no implementation.  Give it a `Subject` with a maker of memories and the
allocators that they must use.  It returns a `Conformance`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model import InvalidArgumentError
from syncedmem.model.defaults import DEFAULT_STEPS

from ..engine.report import Tolerance, check_steps, check_subject, chosen_suites, run_suites
from ..engine.violation import UnfitError, Violation
from .agreement import check_policy
from .claims import not_judged, requirements_for
from .contracts import contracts_for
from .coverage import Coverage
from .policy import without_mute
from .suites import SUITES, run_case, shortened
from .walks import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engine.report import Conformance, Runner, SuiteRun
    from ..engine.subject import Subject
    from .checks import Contract
    from .driver import MemoryDriver

__all__ = ["check_conformance", "suite_names"]


def check_conformance(  # noqa: PLR0913 -- options
    subject: Subject,
    *,
    steps: int = DEFAULT_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
    tolerance: Tolerance | None = None,
    shorten: bool = True,
) -> Conformance[Coverage]:
    """Run every check against a memory.

    Parameters
    ----------
    subject : Subject
    steps : int
        At least so many generated moves are taken besides the enumerated calls, from every state.  With 0 none are.
    seed : int
        The seed of the generated walks.
    suites : iterable of str, optional
        Run only these: names from `suite_names`.
    progress : callable, optional
        Called with a suite's name and the number of its cases until now.
    tolerance : Tolerance, optional
        Which violations do not end a suite.
    shorten : bool
        Whether to look for the shortest reproducer of a violation, which takes most of the time of a kit that fails.

    Returns
    -------
    Conformance
        Every suite runs, and stops at its first violation that is not tolerated.

    Raises
    ------
    InvalidArgumentError
        If `subject` is none, or has the memories of a program; if `steps` is no number of steps; or if there is no such
        suite.
    UnfitMakerError
        If the maker of the subject cannot be called as makers are, or returns something that has none of the calls.
    UnfitPolicyError
        If the policy of the subject says something else than the table of its machine.
    """
    check_subject(subject)
    if subject.program is not None:
        raise InvalidArgumentError("subject", subject, "one of memories in Python: a program is tested by check_port")
    chosen = None if suites is None else chosen_suites(suites, _every_name())
    check_steps(steps)
    check_policy(subject)
    tolerance = tolerance or Tolerance()
    subject = replace(subject, excuses=tolerance.excuses)
    wanted = suite_names(subject) if chosen is None else chosen
    runners = {name: _runner(name, steps, seed) for name in wanted}
    return run_suites(
        subject,
        runners,
        Coverage(without_mute(subject.machine, subject.policy)),
        requirements_for(subject),
        progress,
        tolerance,
        left=not_judged(subject),
        shorten=shorten,
    )


def suite_names(subject: Subject) -> tuple[str, ...]:
    """The suites for a subject, in the order in which they run."""
    left_out = set[str]() if subject.profile == "safe" else {"failures", "stumbles", "flights"}
    if subject.level < "L3":
        left_out.update(("failures", "stumbles"))
    if subject.level < "L4":
        left_out.add("flights")
    if not any(call.queues for call in subject.machine.calls.values()):
        left_out.add("flights")
    if not contracts_for(subject):
        left_out.add("contracts")
    return tuple(name for name in _every_name() if name not in left_out)


def _every_name() -> tuple[str, ...]:
    """The names of all suites, in the order in which they run."""
    return (*SUITES, "contracts", "walks")


def _runner(name: str, steps: int, seed: int) -> Runner:
    if name == "walks":
        return partial(_run_walks, steps=steps, seed=seed)
    return _run_contracts if name == "contracts" else partial(_run_enumerated, name=name)


def _run_enumerated(subject: Subject, suite: SuiteRun, name: str) -> Violation | None:
    cases = (case for case in SUITES[name](subject) if case.size <= subject.largest)
    return suite.run_cases(cases, partial(run_case, subject), partial(shortened, subject))


def _run_contracts(subject: Subject, suite: SuiteRun) -> Violation | None:
    def run(contract: Contract, drivers: list[MemoryDriver]) -> None:
        subject.mark()
        try:
            drivers.extend(contract(subject))
        except (Violation, UnfitError):
            raise
        except Exception as error:
            text = (contract.__doc__ or contract.__name__).split("(")[0].strip()
            raise Violation("R10-same-bytes", f"{text}: {type(error).__name__}: {error}") from error

    return suite.run_cases(contracts_for(subject), run, lambda _, violation: violation)


def _run_walks(subject: Subject, suite: SuiteRun, steps: int, seed: int) -> Violation | None:
    return search(subject, suite, steps, seed) if steps else None
