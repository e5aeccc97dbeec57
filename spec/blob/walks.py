"""The generated tests of blobs: walks in which several blobs share, reshape, adopt, copy and update."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from syncedmem.model import Mode

from ..engine.search import Generated, Taken, Walking, WalkSearch
from .oracle import ACCESSORS, ADOPTIONS, NORMS, SCALES
from .steps import GIVEN, BlobStep, Other, in_mode, new
from .trial import BlobTrial, shortened

if TYPE_CHECKING:
    from ..engine.report import SuiteRun
    from ..engine.violation import Violation
    from .steps import BlobCase, Lent
    from .trial import BlobBench

__all__ = ["search", "state_machine"]

LONGEST = 25
_MOST = 4
# Many shapes have equal counts, so that sharing is often possible; others are larger or smaller.
_SHAPES = ((2, 3), (3, 2), (6,), (1, 6), (3,), (), (0,), (2, 0), (2, 2, 2), (4, 3), (1, 1, 1, 5), (65,))
_FLAGS: tuple[tuple[tuple[str, bool], ...], ...] = (
    (),
    (("copy_diff", True),),
    (("reshape", True),),
    (("copy_diff", True), ("reshape", True)),
)
_BLOBS: Bundle[int] = Bundle("blobs")


class _Blobs(BlobTrial):
    """Blobs that live at the same time, and what was done with them."""

    shapes: tuple[Any, ...] = ()

    @property
    def walk(self) -> BlobCase:
        """What was done until now."""
        return tuple(self.done)

    def taken(self) -> Taken:
        """The walk that has passed; its kinds of moves are the calls, and it starts with its blobs."""
        moves = Counter(step.call for step in self.done if step.call not in ("new", "drop"))
        return Taken(self.walk, (self,), moves, self.shapes)


class BlobWalk(Walking):
    """A walk of two to four blobs; `state_machine` says of what subject."""

    bench: BlobBench

    blobs = _BLOBS

    def __init__(self) -> None:
        self._held = _Blobs(self.bench)
        super().__init__(self._held)

    @classmethod
    def let_go(cls) -> None:
        super().let_go()
        del cls.bench

    def make(self, shape: Any) -> int:
        """Make a blob."""
        number = len(self._held.shapes)
        self._held.shapes += (shape,)
        self.act(partial(self._held.take, new(number, shape)))
        return number

    def take(self, *parts: Any) -> None:
        """Make a call, given its blob, its name, its arguments and its options."""
        self.act(partial(self._held.take, BlobStep(*parts)))

    @rule(blob=_BLOBS, call=st.sampled_from([call for call, (part, _, _) in ACCESSORS.items() if part == "data"]))
    def access_data(self, blob: int, call: str) -> None:
        """Read or write one side of the data."""
        self.take(blob, call)

    @rule(blob=_BLOBS, call=st.sampled_from([call for call, (part, _, _) in ACCESSORS.items() if part == "diff"]))
    def access_diff(self, blob: int, call: str) -> None:
        """Read or write one side of the diff."""
        self.take(blob, call)

    @rule(blob=_BLOBS, shape=st.sampled_from(_SHAPES))
    def reshape(self, blob: int, shape: tuple[int, ...]) -> None:
        """Give a blob another shape."""
        self.take(blob, "reshape", (shape,))

    @rule(blob=_BLOBS, other=_BLOBS, call=st.sampled_from(("reshape_like", "share_data", "share_diff")))
    def share(self, blob: int, other: int, call: str) -> None:
        """Take a shape or a memory of another blob."""
        self.take(blob, call, (Other(other),))

    @rule(blob=_BLOBS, other=_BLOBS, flags=st.sampled_from(_FLAGS))
    def copy(self, blob: int, other: int, flags: Any) -> None:
        """Copy from another blob."""
        self.take(blob, "copy_from", (Other(other),), flags)

    @rule(blob=_BLOBS, call=st.sampled_from(tuple(SCALES)), factor=st.sampled_from((0.5, -2.0, 0.0, 1.0)))
    def scale(self, blob: int, call: str, factor: float) -> None:
        """Scale a part."""
        self.take(blob, call, (factor,))

    @rule(blob=_BLOBS, call=st.sampled_from(("data_at", "diff_at")), at=st.sampled_from(((0, 0), (1, 2), (5,), ())))
    def look_at(self, blob: int, call: str, at: tuple[int, ...]) -> None:
        """Read an element."""
        self.take(blob, call, (at,))

    @rule(mode=st.sampled_from(Mode))
    def change_mode(self, mode: Mode) -> None:
        """Change Caffe's mode."""
        self.take(*in_mode(mode))

    @rule(target=_BLOBS, shape=st.sampled_from(_SHAPES))
    @precondition(lambda self: len(self._held.shapes) < _MOST)
    def begin_another(self, shape: tuple[int, ...]) -> int:
        """Make one more blob."""
        return self.make(shape)


def state_machine(bench: BlobBench) -> type[BlobWalk]:
    """A `hypothesis.stateful.RuleBasedStateMachine` over blobs; see that of memories."""
    safe = bench.subject.profile == "safe"
    adoptions = [call for call in ADOPTIONS if safe or call.endswith("data")]
    shape = st.one_of(st.sampled_from(_SHAPES), st.none()) if safe else st.sampled_from(_SHAPES)

    class OfSubject(BlobWalk):
        @initialize(target=_BLOBS, shape=shape)
        def begin_first(self, shape: Any) -> int:
            return self.make(shape)

        @initialize(target=_BLOBS, shape=shape)
        def begin_second(self, shape: Any) -> int:
            return self.make(shape)

        @rule(blob=_BLOBS, call=st.sampled_from(adoptions), given=st.sampled_from((GIVEN, GIVEN, GIVEN, None)))
        def adopt(self, blob: int, call: str, given: Lent | None) -> None:
            self.take(blob, call, (given,))

        @rule(blob=_BLOBS, call=st.sampled_from(("update", *NORMS, *(("shrink_to_fit",) if safe else ()))))
        def compute(self, blob: int, call: str) -> None:
            self.take(blob, call)

    OfSubject.bench = bench
    return OfSubject


def search(bench: BlobBench, suite: SuiteRun, steps: int, seed: int) -> Violation | None:
    """Take walks with at least `steps` calls; return the violation of the first that fails; see that of memories."""
    suite.generated = Generated(steps, 1)
    walk_search = WalkSearch(suite.generated, LONGEST, partial(shortened, bench), suite)
    return walk_search.search(partial(state_machine, bench), str(seed))
