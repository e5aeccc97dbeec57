"""The generated tests of blobs: scenarios in which several blobs share, reshape, adopt, copy and update."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from syncedmem.model import Mode

from ..engine.report import Tolerance
from ..engine.search import Generated, Hunt, Taken
from .scenarios import Scenario, in_mode, run_scenario, shortened
from .steps import ACCESSORS, ADOPTIONS, NORMS, SCALES, BlobCall, Other

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .driver import BlobDriver

__all__ = ["scenarios", "search"]

SHORTEST, LONGEST = 10, 25
_MOST = 4
# Many shapes have equal counts, so that sharing is often possible; others are larger or smaller.
_SHAPES = ((2, 3), (3, 2), (6,), (1, 6), (3,), (), (0,), (2, 0), (2, 2, 2), (4, 3), (1, 1, 1, 5), (65,))
_FACTORS = (0.5, -2.0, 0.0, 1.0)
_FLAGS: tuple[tuple[tuple[str, bool], ...], ...] = (
    (),
    (("copy_diff", True),),
    (("reshape", True),),
    (("copy_diff", True), ("reshape", True)),
)


def scenarios(subject: Subject) -> st.SearchStrategy[Scenario]:
    """Two to four blobs, and the calls on them."""
    safe = subject.profile == "safe"
    shape = st.sampled_from(_SHAPES)
    adoptions = [call for call in ADOPTIONS if safe or call.endswith("data")]
    blob, other = st.integers(0, _MOST - 1), st.builds(Other, st.integers(0, _MOST - 1))

    def calls(names: Any, *arguments: st.SearchStrategy[Any], options: Any = ()) -> st.SearchStrategy[BlobCall]:
        chosen = st.sampled_from([*options, ()])
        return st.tuples(blob, st.sampled_from(tuple(names)), st.tuples(*arguments), chosen).map(
            lambda it: BlobCall(*it)
        )

    step = st.one_of(
        calls(ACCESSORS),
        calls(ACCESSORS),
        calls(("reshape",), shape),
        calls(("reshape_like", "share_data", "share_diff"), other),
        calls(("copy_from",), other, options=_FLAGS),
        calls(("update", *NORMS, *(("shrink_to_fit",) if safe else ()))),
        calls(SCALES, st.sampled_from(_FACTORS)),
        calls(adoptions, st.sampled_from((True, True, True, False))),
        calls(("data_at", "diff_at"), st.sampled_from(((0, 0), (1, 2), (5,), ()))),
        st.sampled_from([in_mode(mode) for mode in Mode]),
    )

    def told(shapes: list[Any], steps: list[BlobCall]) -> Scenario:
        return Scenario(tuple(shapes), tuple(_among(step, len(shapes)) for step in steps))

    made = st.lists(st.one_of(shape, st.none()) if safe else shape, min_size=2, max_size=_MOST)
    return st.builds(told, made, st.lists(step, min_size=SHORTEST, max_size=LONGEST))


def _among(step: BlobCall, blobs: int) -> BlobCall:
    """The step with numbers of blobs that exist."""
    arguments = tuple(Other(it.blob % blobs) if isinstance(it, Other) else it for it in step.arguments)
    return step._replace(blob=step.blob % blobs, arguments=arguments)


def search(  # noqa: PLR0913 -- options
    subject: Subject,
    steps: int,
    start: int,
    on_scenario: Callable[[tuple[BlobDriver, ...]], None],
    *,
    shorten: bool = True,
    tolerance: Tolerance | None = None,
) -> tuple[Violation | None, Generated]:
    """Run scenarios with at least `steps` steps; return the violation of the first that fails, or None.

    Parameters
    ----------
    subject : Subject
    steps : int
    start : int
        The seed; the same seed gives the same scenarios.
    on_scenario : callable
        Called with the driver of every scenario that passed.
    shorten : bool
        Whether the scenario that fails is shortened.
    tolerance : Tolerance, optional
        Which violations do not end the search.

    Returns
    -------
    (Violation or None, Generated)
        What was found, and what was generated.
    """
    generated = Generated(steps, 1)
    tolerates = (tolerance or Tolerance()).tolerates
    hunt = Hunt(subject, scenarios(subject), _take, shortened, on_scenario, shorten, tolerates)
    return hunt.search(steps, str(start), generated), generated


def _take(subject: Subject, scenario: Scenario) -> Taken:
    """Run a scenario; its kinds of moves are the calls, and it starts with its blobs."""
    calls = (step.call for step in scenario.steps if isinstance(step, BlobCall))
    return Taken((run_scenario(subject, scenario),), Counter(calls), scenario.shapes)
