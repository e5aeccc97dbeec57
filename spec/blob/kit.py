"""The conformance kit for blobs: runs every check against a blob, and reports the requirements that it breaks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..engine.report import Tolerance, check_steps, check_subject, chosen_suites, run_suites
from .cells import BlobCoverage
from .claims import blob_requirements_for, blobs_not_judged
from .scenarios import run_scenario, shortened
from .suites import SUITES
from .walks import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engine.report import Conformance, SuiteRun
    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .driver import BlobDriver
    from .scenarios import Scenario

__all__ = ["BLOB_STEPS", "blob_suite_names", "check_blobs"]

BLOB_STEPS = 3000
_FAILURES_FROM = "L3"


def blob_suite_names(subject: Subject) -> tuple[str, ...]:
    """The suites for a subject of blobs, in the order in which they run."""
    # Caffe's capacity is wrong after memory is shared or adopted, so these suites cannot run there.
    left_out = set[str]() if subject.profile == "safe" else {"failures", "sequences", "walks"}
    if subject.level < _FAILURES_FROM:
        left_out.add("failures")
    return tuple(name for name in _every_name() if name not in left_out)


def check_blobs(  # noqa: PLR0913 -- options
    subject: Subject,
    *,
    steps: int = BLOB_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
    tolerance: Tolerance | None = None,
    shorten: bool = True,
) -> Conformance[BlobCoverage]:
    """Run every check against a blob.

    Parameters
    ----------
    subject : Subject
        A subject whose maker makes blobs; see `BlobMaker`.
    steps : int
        At least so many generated moves are taken besides the enumerated calls.  With 0 none are.
    seed : int
        The seed of the generated walks.
    suites : iterable of str, optional
        Run only these: names from `blob_suite_names`.
    progress : callable, optional
        Called with a suite's name and the number of its cases until now.
    tolerance : Tolerance, optional
        Which violations do not end a suite.
    shorten : bool
        Whether to look for the shortest reproducer of a violation, which takes most of the time of a kit that fails.

    Returns
    -------
    Conformance
        Every suite runs, and stops at its first violation.

    Raises
    ------
    InvalidArgumentError
        If `subject` is none, if `steps` is not a number of steps, or if there is no such suite.
    UnfitMakerError
        If the maker of the subject cannot be called as makers of blobs are, or returns something that is no blob.
    """
    check_subject(subject)
    chosen = None if suites is None else chosen_suites(suites, _every_name())
    check_steps(steps)
    tolerance = tolerance or Tolerance()
    subject = replace(subject, excuses=tolerance.excuses)
    wanted = blob_suite_names(subject) if chosen is None else chosen
    walks = partial(_run_walks, steps=steps, seed=seed)
    runners = {name: walks if name == "walks" else partial(_run_enumerated, name=name) for name in wanted}
    coverage = BlobCoverage(subject.device is not None)
    return run_suites(
        subject,
        runners,
        coverage,
        blob_requirements_for(subject),
        progress,
        tolerance,
        left=blobs_not_judged(subject),
        shorten=shorten,
    )


def _every_name() -> tuple[str, ...]:
    """The names of all suites, in the order in which they run."""
    return (*SUITES, "walks")


def _run_enumerated(subject: Subject, suite: SuiteRun, name: str) -> Violation | None:
    def run(scenario: Scenario, drivers: list[BlobDriver]) -> None:
        drivers.append(run_scenario(subject, scenario))

    return suite.run_cases(SUITES[name](subject), run, partial(shortened, subject))


def _run_walks(subject: Subject, suite: SuiteRun, steps: int, seed: int) -> Violation | None:
    return search(subject, suite, steps, seed) if steps else None
