"""The conformance kit of memories: runs every check against a subject, and reports the requirements that it breaks.

It does not need pytest, and it knows no implementation.  Give it a `Subject` with a maker of memories and the
allocators that they must use, or one of a program.  It returns a `Conformance`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model.defaults import DEFAULT_STEPS

from .cases.suites import Suites
from .cases.walks import Kind, search
from .cases.walks import state_machine as machine_of
from .engine.report import Tolerance, check_steps, check_subject, chosen_suites, run_suites
from .engine.shrinking import shortest
from .kit.bench import absent_of, bench_of, world_of
from .kit.trial import plainer, run_case
from .memory.agreement import check_policy
from .memory.claims import not_judged, requirements_for
from .memory.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hypothesis.stateful import RuleBasedStateMachine

    from .engine.report import Conformance, Runner, SuiteRun
    from .engine.subject import Subject
    from .engine.violation import Violation
    from .kit.trial import Bench
    from .record.steps import Case

__all__ = ["check_conformance", "state_machine", "suite_names", "suites_of"]

_WALKS = "walks"


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
    what, cases = bench_of(subject, tolerance), suites_of(subject)
    wanted = suite_names(subject) if suites is None else chosen_suites(suites, suite_names(subject))
    runners: dict[str, Runner] = {
        name: _walking(subject, what, steps, seed) if name == _WALKS else partial(_run, what=what, cases=cases[name])
        for name in wanted
    }
    return run_suites(
        subject,
        runners,
        Coverage(what.world.machine),
        requirements_for(subject),
        progress,
        tolerance,
        left=not_judged(subject),
        shorten=shorten,
    )


def suite_names(subject: Subject) -> tuple[str, ...]:
    """The suites for a subject, in the order in which they run."""
    return (*suites_of(subject), _WALKS)


def suites_of(subject: Subject) -> dict[str, Callable[[], Iterator[Case]]]:
    """The enumerated suites for a subject."""
    world = world_of(subject)
    suites = Suites(
        world.machine,
        safe=world.safe,
        level=subject.level,
        smallest=subject.smallest,
        offers=_offers(subject),
        judged=(name.partition("-")[0] for name in requirements_for(subject)),
        absent=absent_of(world),
        hosts=(side for side in world.machine.sides if subject.is_host(side)),
    )
    return dict(suites.by_name())


def _offers(subject: Subject) -> Iterator[str]:
    """What can be asked of a subject besides calls."""
    if subject.program is not None:
        yield from subject.program.offers
        return
    yield from ("own_buffer", "drop", "objects")
    hosts = [subject.place(side) for side in subject.sides if subject.is_host(side)]
    if all(hasattr(place.empty(1), "reshape") for place in hosts):  # only NumPy's arrays can be in column order
        yield "columns"
    if subject.device is not None:
        yield "page-locked"
        if subject.elsewhere is not None:
            yield "elsewhere"


def _run(subject: Subject, suite: SuiteRun, what: Bench, cases: Callable[[], Iterator[Case]]) -> Violation | None:
    """Run a suite without the cases that are too large."""
    largest = subject.largest
    fitting = (case for case in cases() if all(type(it.size) is not int or it.size <= largest for it in case))

    def shortened(case: Case, violation: Violation) -> Violation:
        return shortest(case, violation, partial(run_case, what), simpler=plainer, program=subject.program)

    return suite.run_cases(fitting, partial(run_case, what), shortened)


def _kind(subject: Subject, what: Bench) -> Kind:
    return Kind(what, subject.level, subject.smallest, subject.largest, subject.program is None)


def _walking(subject: Subject, what: Bench, steps: int, seed: int) -> Runner:
    kind = _kind(subject, what)
    return lambda subject, suite: search(kind, subject, suite, steps, seed) if steps else None


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
    return machine_of(_kind(subject, bench_of(subject)))
