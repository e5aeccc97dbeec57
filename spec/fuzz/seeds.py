"""The fuzzer with many seeds: one run for each, and one report of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.cluster import take_seeds
from ..engine.merging import merged_suites
from .finding import EngineError, Finding, TargetError
from .kit import fuzz
from .loops import folded
from .storage import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..engine.cluster import Spread
    from .report import Report

__all__ = ["fuzz_seeds", "merged", "run_seed"]

_RUN = f"{__name__}:run_seed"


def run_seed(options: dict[str, Any], seed: int) -> tuple[Report, int]:
    """The report of one seed, and the number of its operations; ``options`` are those of `fuzz`."""
    try:
        report = fuzz(**options, seed=seed)
    except EngineError as error:
        raise RuntimeError(str(error)) from error  # it is no fault of the user
    return report, report.operations


def fuzz_seeds(  # noqa: PLR0913 -- as `fuzz`
    target: str,
    seeds: Sequence[int],
    *,
    jobs: int,
    scheduler: str | None = None,
    corpus: str | None = None,
    known: str | None = None,
    on_result: Callable[[Spread], object] = lambda _: None,
    on_change: Callable[[Report], object] = lambda _: None,
    **options: Any,
) -> Report:
    """Search for bugs in an allocator, with each of several seeds, in several processes or on several machines.

    Parameters
    ----------
    target : str
        A target that other processes can look up: it has the same name on every machine.
    seeds : sequence of int
    jobs, scheduler
        See `syncedmem.spec.engine.cluster.take_seeds`.
    corpus : str or None
        As for `fuzz`; all seeds share it.
    known : str or None
        As for `fuzz`.
    on_result : callable
        Called after each seed with what has become of the seeds.
    on_change : callable
        Called with the report until now, now and then and at the end, even if that is an interrupt.
    **options
        Those of `fuzz`.

    Raises
    ------
    TargetError
        If the target or an option cannot be used.  `on_change` has been told what there is.
    EngineError
        If no seed has a result.
    InvalidArgumentError, MissingPackageError
        See `take_seeds`.
    """
    # Workers may be in other folders.
    places = {"corpus": corpus and _everywhere(corpus), "known": known and _everywhere(known)}
    logs = [Path(log).absolute() for log in options.pop("logs", ())]
    result: Report | None = None

    def answered(spread: Spread) -> None:
        nonlocal result
        result = merged(spread)
        on_change(result)

    given = {"target": target, **options, **places, "logs": logs}
    spread = take_seeds(_RUN, given, seeds, jobs=jobs, scheduler=scheduler, on_result=on_result, on_answers=answered)
    if spread.refused:
        raise TargetError(spread.refused)
    if result is None:
        raise EngineError("; ".join(spread.failures))
    return result


def _everywhere(path: str) -> str:
    return path if is_url(path) else str(Path(path).absolute())


def merged(spread: Spread) -> Report:
    """One report of the results that there are.  It does not depend on the order in which they came.

    Findings with the same key are one, with the shortest program.
    """
    reports: list[Report] = spread.answers
    first = reports[0]
    whole = replace(
        first,
        suites=list(merged_suites([suite for it in reports for suite in it.suites])),
        checked=sum((it.checked for it in reports), Counter[str]()),
        unread=min((it.unread for it in reports), key=bool),
        lost=any(it.lost for it in reports),
        errors=_once(error for it in reports for error in it.errors) + spread.failures,
        notes=_once(note for it in reports for note in it.notes),
        unwritten=next((it.unwritten for it in reports if it.unwritten), ""),
        findings=[],
        seeds={},
        spread=spread.as_json(),
    )
    found: dict[str, list[tuple[Finding, int]]] = {}
    for report in reports:
        for finding in report.findings:
            found.setdefault(finding.key, []).append((finding, report.seed))
    for key in sorted(found):
        finding, seed = min(found[key], key=_length)
        whole.findings.append(replace(finding, times=sum(it.times for it, _ in found[key])))
        whole.seeds[key] = seed
    return whole


def _length(found: tuple[Finding, int]) -> tuple[bool, int, int, int]:
    """How far a finding is from a short program that shows it; of equal ones the first seed counts."""
    finding, seed = found
    return not finding.repeats, len(folded(finding.program)), len(finding.program), seed


def _once(texts: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(texts)]
