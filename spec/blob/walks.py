"""What is generated for blobs: stories of several that share, reshape, adopt, copy and update, found by Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from syncedmem.model import Mode

from ..engine.search import hunt
from .scenarios import Story, in_mode, run_story, shorter_story
from .steps import ACCESSORS, ADOPTIONS, NORMS, SCALES, Other, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.finding import Violation
    from ..engine.subject import Bench
    from .driver import BlobTrial

__all__ = ["search", "stories"]

SHORTEST, LONGEST = 10, 25
_MOST = 4
# Counts that meet, so that sharing is often possible; and room to grow into and to leave.
_SHAPES = ((2, 3), (3, 2), (6,), (1, 6), (3,), (), (0,), (2, 0), (2, 2, 2), (4, 3), (1, 1, 1, 5), (65,))
_FACTORS = (0.5, -2.0, 0.0, 1.0)
_FLAGS: tuple[tuple[tuple[str, bool], ...], ...] = (
    (),
    (("copy_diff", True),),
    (("reshape", True),),
    (("copy_diff", True), ("reshape", True)),
)


def stories(bench: Bench) -> st.SearchStrategy[Story]:
    """Two to four blobs, and what they are made to do."""
    safe = bench.profile == "safe"
    shape = st.sampled_from(_SHAPES)
    adoptions = [call for call in ADOPTIONS if safe or call.endswith("data")]
    blob, other = st.integers(0, _MOST - 1), st.builds(Other, st.integers(0, _MOST - 1))

    def calls(names: Any, *arguments: st.SearchStrategy[Any], options: Any = ()) -> st.SearchStrategy[Step]:
        return st.builds(
            Step, blob, st.sampled_from(tuple(names)), st.tuples(*arguments), st.sampled_from([*options, ()])
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

    def told(shapes: list[Any], steps: list[Step]) -> Story:
        return Story(tuple(shapes), tuple(_among(step, len(shapes)) for step in steps))

    made = st.lists(st.one_of(shape, st.none()) if safe else shape, min_size=2, max_size=_MOST)
    return st.builds(told, made, st.lists(step, min_size=SHORTEST, max_size=LONGEST))


def _among(step: Step, blobs: int) -> Step:
    """The step with blobs that exist."""
    arguments = tuple(Other(it.blob % blobs) if isinstance(it, Other) else it for it in step.arguments)
    return step._replace(blob=step.blob % blobs, arguments=arguments)


def search(bench: Bench, steps: int, start: int, on_story: Callable[[BlobTrial], None]) -> Violation | None:
    """Take about `steps` steps of stories; the first that fails, shrunk, or None.

    Parameters
    ----------
    bench : Bench
    steps : int
    start : int
        The seed; the same seed tells the same stories.
    on_story : callable
        Told of the trial of every story that passed.
    """
    examples = -(-2 * steps // (SHORTEST + LONGEST))
    return hunt(bench, stories(bench), run_story, shorter_story, examples, start, on_story)
