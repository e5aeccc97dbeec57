"""Ports tested with many seeds: one report for each, and one of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engine.cluster import take_seeds
from ..engine.merging import merged as merged_verdicts
from ..requirements import LEVELS
from .conformance import LevelResult, PortReport, conform_program
from .makers import conform_maker
from .process import PortError
from .targets import MakerTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.cluster import Spread
    from ..engine.supervisor import Limits
    from ..engine.violation import Violation
    from .conformance import Wanted
    from .targets import ProgramTarget

__all__ = ["conform_seeds", "merged", "run_seed"]

_RUN = f"{__name__}:run_seed"


def run_seed(options: tuple[Any, Wanted, Limits], seed: int) -> tuple[PortReport, int]:
    """The report of one seed, and the number of its calls."""
    target, wanted, limits = options
    check: Callable[..., PortReport] = conform_maker if isinstance(target, MakerTarget) else conform_program
    report = check(target, replace(wanted, seed=seed), limits)
    return report, sum(result.found.steps for result in report.results)


def conform_seeds(  # noqa: PLR0913 -- options
    target: ProgramTarget | MakerTarget,
    wanted: Wanted,
    limits: Limits,
    *,
    seeds: Sequence[int],
    jobs: int,
    scheduler: str | None = None,
    on_result: Callable[[Spread], object] = lambda _: None,
    on_change: Callable[[PortReport], object] = lambda _: None,
) -> PortReport:
    """Test a port with each of several seeds, in several processes or on several machines.

    Parameters
    ----------
    target : ProgramTarget or MakerTarget
    wanted : Wanted
    limits : Limits
        Of the port, in each process.
    seeds : sequence of int
        They replace the seed of `wanted`.
    jobs, scheduler, on_result
        See `syncedmem.spec.engine.cluster.take_seeds`.
    on_change : callable
        Called with the report until now, now and then and at the end, even if that is an interrupt.

    Raises
    ------
    PortError
        If the port cannot be tested, or no seed has a result.
    InvalidArgumentError, MissingPackageError
        See `take_seeds`.
    """
    result: PortReport | None = None

    def answered(spread: Spread) -> None:
        nonlocal result
        result = merged(spread)
        on_change(result)

    spread = take_seeds(
        _RUN,
        (target, wanted, limits),
        seeds,
        jobs=jobs,
        scheduler=scheduler,
        on_result=on_result,
        on_answers=answered,
    )
    if spread.refused or result is None:
        raise PortError(spread.refused or "; ".join(spread.failures))
    return result


def merged(spread: Spread) -> PortReport:
    """One report of the results that there are: the port reaches a level that it reaches with every seed."""
    reports: list[PortReport] = spread.answers
    first = reports[0]
    levels: dict[str, list[LevelResult]] = {}
    for report in reports:
        for result in report.results:
            levels.setdefault(result.level, []).append(result)
    found: dict[str, Violation] = {}
    for violation in (it for report in reports for it in report.found):
        found.setdefault(violation.requirement, violation)
    results = [_level(levels[level]) for level in reversed(LEVELS) if level in levels]
    return replace(first, results=tuple(results), found=tuple(found.values()), spread=spread.as_json())


def _level(results: Sequence[LevelResult]) -> LevelResult:
    met = sorted({name for it in results for name in it.met})
    return LevelResult(results[0].level, merged_verdicts([it.found for it in results]), tuple(met), results[0].left)
