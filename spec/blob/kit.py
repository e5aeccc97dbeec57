"""The conformance kit for blobs: runs every check against a blob, and reports the requirements that it breaks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..engine.report import CheckOptions, Tolerance, check_steps, check_subject, chosen_suites, run_suites
from .cells import BlobCoverage
from .claims import blob_requirements_for, blobs_not_judged
from .suites import SUITES
from .trial import blob_bench, run_case, shortened
from .walks import search

if TYPE_CHECKING:
    from typing import Unpack

    from ..engine.report import Conformance, Runner, SuiteRun
    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .trial import BlobBench

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


def check_blobs(subject: Subject, **options: Unpack[CheckOptions]) -> Conformance[BlobCoverage]:
    """Run every check against a blob; see `BlobMaker`.

    Parameters
    ----------
    subject : Subject
        A subject whose maker makes blobs, or a program that has some.
    **options
        Those of `check_conformance`; the suites are those of `blob_suite_names`, and there are 3000 generated steps.

    Raises
    ------
    InvalidArgumentError, UnfitMakerError
        As by `check_conformance`.
    """
    check_subject(subject)
    steps, chosen = options.get("steps", BLOB_STEPS), options.get("suites")
    wanted = blob_suite_names(subject) if chosen is None else chosen_suites(chosen, _every_name())
    check_steps(steps)
    tolerance = options.get("tolerance") or Tolerance()
    bench = blob_bench(subject, tolerance.excuses)
    seed = options.get("seed", 0)
    runners: dict[str, Runner] = {name: partial(_run_enumerated, bench=bench, name=name) for name in wanted}
    if "walks" in runners:
        runners["walks"] = lambda _, suite: search(bench, suite, steps, seed) if steps else None
    return run_suites(
        subject,
        runners,
        BlobCoverage(subject.device is not None),
        blob_requirements_for(subject),
        options.get("progress"),
        tolerance,
        left=blobs_not_judged(subject),
        shorten=options.get("shorten", True),
    )


def _every_name() -> tuple[str, ...]:
    """The names of all suites, in the order in which they run."""
    return (*SUITES, "walks")


def _run_enumerated(subject: Subject, suite: SuiteRun, bench: BlobBench, name: str) -> Violation | None:
    return suite.run_cases(SUITES[name](subject), partial(run_case, bench), partial(shortened, bench))
