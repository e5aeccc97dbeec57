"""One verdict from the verdicts of several seeds on the same subject."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .checklist import Checklist
from .report import Conformance, SuiteResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .search import Generated
    from .violation import Violation

__all__ = ["complete", "merged", "merged_suites"]


def complete(spread: Mapping[str, Any]) -> bool:
    """Whether all seeds have a result; `spread` is what `Spread.as_json` returns, and empty if there was one seed."""
    return not spread or spread["done"] == len(spread["seeds"])


def merged(verdicts: Sequence[Conformance[Any]]) -> Conformance[Any]:
    """The verdict of all seeds together.

    Calls, cases and times are added.  What one seed covered is covered.  Of the violations of one requirement the one
    with the shortest program stays, and of several programs of the same length that of the earliest seed.

    Parameters
    ----------
    verdicts : sequence of Conformance
        In the order of the seeds; at least one.
    """
    first = verdicts[0]
    return replace(
        first,
        suites=merged_suites([suite for it in verdicts for suite in it.suites]),
        coverage=_covered([it.coverage for it in verdicts]),
        seconds=sum(it.seconds for it in verdicts),
        checked=tuple(dict.fromkeys(name for it in verdicts for name in it.checked)),
        generated=_generated([it.generated for it in verdicts if it.generated is not None]),
    )


def merged_suites(suites: Sequence[SuiteResult]) -> tuple[SuiteResult, ...]:
    """One result for all suites of the same name, in the order in which the names come first."""
    named: dict[str, list[SuiteResult]] = {}
    for suite in suites:
        named.setdefault(suite.name, []).append(suite)
    return tuple(_suite(name, alike) for name, alike in named.items())


def _suite(name: str, alike: Sequence[SuiteResult]) -> SuiteResult:
    found: dict[str, Violation] = {}
    violations = [it for suite in alike for it in (suite.violation, *suite.more) if it is not None]
    for violation in sorted(violations, key=lambda it: len(it.statements)):
        found.setdefault(violation.requirement, violation)
    kept = [*found.values()]
    cases, steps, seconds = (sum(getattr(it, what) for it in alike) for what in ("cases", "steps", "seconds"))
    return SuiteResult(name, cases, steps, seconds, kept[0] if kept else None, tuple(kept[1:]))


def _covered(coverages: Sequence[Any]) -> Any:
    """What was covered in any seed; of checks, which are the same in each seed, the seed that made most."""
    if isinstance(coverages[0], Checklist):
        return max(coverages, key=lambda it: it.taken)
    whole = deepcopy(coverages[0])
    for coverage in coverages[1:]:
        whole.taken |= coverage.taken
    return whole


def _generated(alike: Sequence[Generated]) -> Generated | None:
    """All generated walks; those of two seeds count as different ones."""
    if not alike:
        return None
    moves = sum((it.moves for it in alike), Counter[str]())
    starts = {start for it in alike for start in it.starts}
    return replace(
        alike[0],
        asked=sum(it.asked for it in alike),
        wanted_starts=max(it.wanted_starts for it in alike),
        walks=sum(it.walks for it in alike),
        moves=moves,
        starts=starts,
    )
