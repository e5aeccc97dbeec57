"""The kit for the memories of a port: runs every suite, and reports the requirements that it breaks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model.defaults import DEFAULT_STEPS

from ..cases.suites import Suites
from ..cases.walks import Kind, search
from ..engine.report import Tolerance, check_steps, chosen_suites, run_suites
from ..engine.shrinking import shortest
from ..kit.bench import absent_of, bench_of, world_of
from ..kit.trial import plainer, run_case
from ..memory.agreement import check_policy
from ..memory.claims import not_judged, requirements_for
from ..memory.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..engine.report import Conformance, Runner, SuiteRun
    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from ..kit.trial import Bench
    from ..record.steps import Case

__all__ = ["check_port", "suite_names", "suites_of"]


def check_port(  # noqa: PLR0913 -- options
    subject: Subject,
    *,
    steps: int = DEFAULT_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
    tolerance: Tolerance | None = None,
    shorten: bool = True,
) -> Conformance[Coverage]:
    """Run every check against the memories of a port; see `syncedmem.spec.check_conformance`.

    Parameters
    ----------
    subject : Subject
        Of a program; see `syncedmem.spec.ports.targets.subject_of`.
    """
    check_steps(steps)
    check_policy(subject)
    tolerance = tolerance or Tolerance()
    what = bench_of(subject, tolerance)
    cases = suites_of(subject)
    wanted = suite_names(subject) if suites is None else chosen_suites(suites, suite_names(subject))
    runners: dict[str, Runner] = {
        name: _walking(subject, what, steps, seed) if name == _WALKS else partial(_run, what=what, cases=cases[name])
        for name in wanted
        if name == _WALKS or name in cases
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


_WALKS = "walks"


def suite_names(subject: Subject) -> tuple[str, ...]:
    """The suites for the memories of a port, in the order in which they run."""
    return (*suites_of(subject), _WALKS)


def suites_of(subject: Subject) -> dict[str, Callable[[], Iterator[Case]]]:
    """The enumerated suites for the memories of a port."""
    program, world = subject.program, world_of(subject)
    suites = Suites(
        world.machine,
        safe=subject.profile == "safe",
        level=subject.level,
        smallest=subject.smallest,
        offers=() if program is None else program.offers,
        judged=(name.partition("-")[0] for name in requirements_for(subject)),
        absent=absent_of(world),
    )
    return dict(suites.by_name())


def _run(subject: Subject, suite: SuiteRun, what: Bench, cases: Callable[[], Iterator[Case]]) -> Violation | None:
    """Run a suite without the cases that are too large."""
    fitting = (case for case in cases() if all(step.size <= subject.largest for step in case))

    def shortened(case: Case, violation: Violation) -> Violation:
        return shortest(case, violation, partial(run_case, what), simpler=plainer, program=subject.program)

    return suite.run_cases(fitting, partial(run_case, what), shortened)


def _walking(subject: Subject, what: Bench, steps: int, seed: int) -> Runner:
    kind = Kind(what, subject.level, subject.smallest, subject.largest)
    return lambda subject, suite: search(kind, subject, suite, steps, seed) if steps else None
