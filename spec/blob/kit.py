"""The conformance kit for blobs: puts a blob to every check, and says which requirement it does not meet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..engine.finding import Violation
from ..engine.report import check_steps, put_to
from ..engine.shrinking import shrink
from ..requirements import applicable
from .coverage import BlobCoverage
from .excerpts import Actions, shortened, watched
from .messages import MESSAGES, offers_messages
from .rules import RULES
from .scenarios import run_story, shorter_story
from .suites import SUITES
from .walks import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engine.report import Conformance, Counter, Runner
    from ..engine.subject import Bench

__all__ = ["BLOB_STEPS", "blob_requirements_for", "blob_suite_names", "check_blobs"]

BLOB_STEPS = 3000


def blob_suite_names(bench: Bench) -> tuple[str, ...]:
    """The suites for a bench of blobs, in the order they run."""
    # Caffe's own capacity goes wrong when memory is shared or adopted, so nothing may be made of that there.
    left_out = set[str]() if bench.profile == "safe" else {"failures", "words", "walks"}
    return tuple(name for name in ("rules", *SUITES, "walks") if name not in left_out)


def blob_requirements_for(bench: Bench) -> list[str]:
    """The requirements of a blob that a bench can be checked for."""
    offered = {"no device" if bench.device is None else "device", f"{bench.profile} profile"}
    return applicable("blob", bench.profile, {*offered, "messages"} if offers_messages(bench) else offered)


def check_blobs(
    bench: Bench,
    *,
    steps: int = BLOB_STEPS,
    seed: int = 0,
    suites: Iterable[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Conformance[BlobCoverage]:
    """Put a blob to every check.

    Parameters
    ----------
    bench : Bench
        One whose maker makes blobs; see `BlobMaker`.
    steps : int
        How many generated steps to take besides the enumerated ones; 0 takes none.
    seed : int
        Of the generated walks.
    suites : iterable of str, optional
        Only these: names from `blob_suite_names`.
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
    check_steps(steps)
    wanted = blob_suite_names(bench) if suites is None else tuple(suites)
    runners = {name: _runner(name, steps, seed) for name in wanted}
    coverage = BlobCoverage(bench.device is not None)
    return put_to(bench, runners, coverage, blob_requirements_for(bench), progress)


def _runner(name: str, steps: int, seed: int) -> Runner:
    if name == "walks":
        return partial(_run_walks, steps=steps, seed=seed)
    return _run_rules if name == "rules" else partial(_run_enumerated, name=name)


def _run_enumerated(bench: Bench, counter: Counter, name: str) -> Violation | None:
    for story in SUITES[name](bench):
        try:
            counter.add(run_story(bench, story))
        except Violation as violation:
            return shrink(bench, story, violation, run_story, shorter_story)
    return None


def _run_rules(bench: Bench, counter: Counter) -> Violation | None:
    for rule in (*RULES, *MESSAGES) if offers_messages(bench) else RULES:
        actions = Actions()
        try:
            with watched(actions):
                for trial in rule(bench):
                    counter.add(trial)
        except Violation as violation:
            return shortened(bench, rule, violation, actions)
        except Exception as error:  # noqa: BLE001 -- whatever a blob makes a check stumble over
            text = (rule.__doc__ or rule.__name__).split("(")[0].strip()
            return Violation("B22-elements", f"{text}: {type(error).__name__}: {error}")
    return None


def _run_walks(bench: Bench, counter: Counter, steps: int, seed: int) -> Violation | None:
    return search(bench, steps, seed, counter.add) if steps else None
