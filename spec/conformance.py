"""The conformance kit of memories: runs every check against a subject, and reports the requirements that it breaks.

It does not need pytest, and it knows no implementation.  Give it a `Subject` with a maker of memories and the
allocators that they must use, or one of a program.  It returns a `Conformance`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model.defaults import DEFAULT_STEPS

from .cases import walks
from .cases.suites import Suites
from .cases.walks import search
from .engine.report import Tolerance, check_steps, check_subject, chosen_suites, run_suites
from .kit.trial import bench_of, run_case, shortened
from .memory.agreement import check_policy
from .memory.claims import not_judged
from .memory.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hypothesis.stateful import RuleBasedStateMachine

    from .engine.report import Conformance, Runner, SuiteRun
    from .engine.subject import Subject
    from .engine.violation import Violation
    from .kit.shared import Shared
    from .kit.trial import Bench, Trial
    from .record.steps import Case

__all__ = ["check_conformance", "state_machine", "suite_names", "suites_of"]

_WALKS = "walks"
_SHARE = 4
"""Only one walk of so many is taken without the waits of Caffe's callers, if they were all taken with them."""


def check_conformance(  # noqa: PLR0913 -- options
    subject: Subject,
    *,
    steps: int = DEFAULT_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
    tolerance: Tolerance | None = None,
    shorten: bool = True,
    shared: Shared | None = None,
) -> Conformance[Coverage]:
    """Run every check against a memory.

    Parameters
    ----------
    subject : Subject
        Of memories in Python, or of a program; see `syncedmem.spec.ports.targets.subject_of`.
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
    shared : Shared, optional
        In the profile caffe it gets what is also found out about the profile safe; in safe, which is tested next at the
        same level, what it has is not tested again.

    Returns
    -------
    Conformance
        Every suite runs, and stops at its first violation that is not tolerated.

    Raises
    ------
    InvalidArgumentError
        If `subject` is none; if `steps` is no number of steps; or if the subject has no such suite.
    UnfitMakerError
        If the maker of the subject cannot be called as makers are, or returns something that has none of the calls.
    UnfitPolicyError
        If the policy of the subject says something else than the table of its machine.
    """
    check_subject(subject)
    check_steps(steps)
    check_policy(subject)
    tolerance = tolerance or Tolerance()
    bench, cases, known = bench_of(subject, tolerance, shared), suites_of(subject), suite_names(subject)
    coverage = Coverage(bench.world.machine)
    kept = shared if bench.world.safe else None
    if kept is not None:
        coverage.taken |= kept.taken

    def walk(_: Subject, suite: SuiteRun) -> Violation | None:
        return search(bench, suite, steps, seed, share=1 if kept is None else _SHARE) if steps else None

    runners: dict[str, Runner] = {
        name: walk if name == _WALKS else partial(_run, bench=bench, cases=cases[name], kept=kept)
        for name in (known if suites is None else chosen_suites(suites, known))
    }
    if kept is not None:
        runners = {"shared": partial(_told, found=kept.found.values()), **runners}
    conformance = run_suites(
        subject,
        runners,
        coverage,
        bench.judged,
        progress,
        tolerance,
        left=not_judged(subject),
        shorten=shorten,
    )
    if bench.shared is not None:
        bench.shared.taken |= coverage.taken
    return conformance


def suite_names(subject: Subject) -> tuple[str, ...]:
    """The suites for a subject, in the order in which they run."""
    return (*suites_of(subject), _WALKS)


def suites_of(subject: Subject) -> dict[str, Callable[[], Iterator[Case]]]:
    """The enumerated suites for a subject."""
    return dict(Suites(bench_of(subject)).by_name())


def _run(
    subject: Subject,
    suite: SuiteRun,
    bench: Bench,
    cases: Callable[[], Iterator[Case]],
    kept: Shared | None,
) -> Violation | None:
    """Run a suite without the cases that are too large, and those that need not be run again."""
    largest = subject.largest
    fitting = (case for case in cases() if all(type(step.size) is not int or step.size <= largest for step in case))
    new = (case for case in fitting if kept is None or not kept.has(case, suite.name))

    def run(case: Case, made: list[Trial]) -> None:
        run_case(bench, case, made)
        if bench.shared is not None:
            bench.shared.add(case)

    return suite.run_cases(new, run, partial(shortened, bench))


def _told(_: Subject, suite: SuiteRun, found: Iterable[Violation]) -> Violation | None:
    """What the cases that are not run again have shown; the first that ends the test."""
    counted = (violation for violation in found if not suite.tolerance.tolerates(violation))
    return next((violation for violation in counted if suite.tolerance.ends(violation)), None)


def state_machine(subject: Subject) -> type[RuleBasedStateMachine]:
    """A state machine of Hypothesis over memories of a subject, with a rule for each input of their machine.

    A memory starts in a state of the machine that Hypothesis draws.  Every step is compared.  Actions are made to fail
    only if the profile and the level say what holds then.

    Raises
    ------
    InvalidArgumentError
        If `subject` is none.
    UnfitPolicyError
        If the policy of the subject says something else than the table of its machine.
    """
    check_subject(subject)
    check_policy(subject)
    return walks.state_machine(bench_of(subject))
