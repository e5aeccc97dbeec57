"""The generated tests of a memory: short walks of several memories, from every state, shrunk by Hypothesis.

Long walks from a new memory rarely test ownership, because ownership never returns once it is given up.  So there are
walks from each of the 62 states, which an access sequence reaches, of 10 to 20 moves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences

from ..engine.report import Tolerance
from ..engine.reproducer import Reproducer
from ..engine.search import Generated, Hunt, Taken
from ..engine.shrinking import shortest
from ..engine.violation import noting
from .driver import MemoryDriver
from .suites import Fail, Move, Stumble, Synchronize, make_move, plainer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.model import Input, Machine

    from ..engine.subject import Subject
    from ..engine.violation import Violation

__all__ = ["Walk", "run_walk", "search", "shortened", "walks"]

SHORTEST, LONGEST = 10, 20
# Hypothesis tries the first size first, and shrinks to it, so it must not be zero.
_SIZES = (3, 1, 64, 0, 255, 4096, 4097)
_LARGE = (1 << 20, (2 << 20) + 1, 5 << 20)


@dataclass(frozen=True)
class Walk:
    """Moves of one or more memories that live at the same time.

    Attributes
    ----------
    sizes : tuple of int
        The size of each memory in bytes.
    moves : tuple of (int, Move)
        The number of a memory, and its move.
    begun : int
        The number of moves at the beginning that only reach the states in which the memories start.
    """

    sizes: tuple[int, ...]
    moves: tuple[tuple[int, Move], ...]
    begun: int = 0


def walks(machine: Machine, first: tuple[Input, ...], *, failures: bool = True) -> st.SearchStrategy[Walk]:
    """The walks of a machine whose first memory starts with this sequence; with injected failures or without."""
    calls = stepper(machine).inputs(end=True)
    failing = [
        Fail(entry, k, partial, interrupt=False, again=again)
        for entry in calls
        for k in (1, 2)
        for partial in (False, True)
        # After a release that failed in the middle, only another release is allowed.
        for again in ((True,) if entry.ends else (True, False))
        if entry.call
    ]
    stumbling = [Stumble(entry) for entry in calls if entry.call]
    call: st.SearchStrategy[Move] = st.sampled_from(calls)
    wait: st.SearchStrategy[Move] = st.just(Synchronize())
    others = (st.sampled_from(failing), st.sampled_from(stumbling)) if failures else (call, call)
    move = st.one_of(call, call, wait, *others)
    start = st.sampled_from(tuple(access_sequences(machine).values()))
    small = st.sampled_from(_SIZES)
    # A large memory takes a thousand times as long as a small one, and suites have large ones too.
    large = st.sampled_from(_LARGE)
    size = st.integers(0, 19).flatmap(lambda k: small if k < 12 else st.integers(1, 300) if k < 19 else large)  # noqa: PLR2004

    def joined(sizes: tuple[int, ...], others: list[tuple[Input, ...]], moves: list[tuple[int, Move]]) -> Walk:
        starts = (first, *others)
        begun = tuple((number, entry) for number, sequence in enumerate(starts) for entry in sequence)
        return Walk(sizes[: len(starts)], (*begun, *((k % len(starts), move) for k, move in moves)), len(begun))

    return st.builds(
        joined,
        st.tuples(size, small, small),
        st.lists(start, max_size=2),
        st.lists(st.tuples(st.integers(0, 2), move), min_size=SHORTEST, max_size=LONGEST),
    )


def run_walk(subject: Subject, walk: Walk) -> Taken:
    """Take a walk, and note it in a violation; see `_taken`.

    Raises
    ------
    Violation
    """
    sizes = tuple(int(min(max(size, subject.smallest), subject.largest)) for size in walk.sizes)
    with noting(sizes, walk.moves):
        return _taken(subject, Walk(sizes, walk.moves, walk.begun))


def _taken(subject: Subject, walk: Walk) -> Taken:
    """Take a walk; after every step check the memories that were not used.

    A memory without moves is not made.

    Raises
    ------
    Violation
        With a reproducer of all memories, in the order in which things happened.
    """
    subject.mark()
    reproducer, kinds = Reproducer(subject), Counter[str]()
    drivers = {
        number: MemoryDriver(subject, walk.sizes[number], reproducer=reproducer)
        for number in sorted({number for number, _ in walk.moves})
    }
    first, start = drivers.get(0), None
    for at, (number, move) in enumerate(walk.moves):
        if at == walk.begun and first is not None:
            start = first.state
        # Caffe does not define calls on a destroyed object.
        if not drivers[number].oracle.released or subject.profile == "safe":
            kind = _step([*drivers.values()], drivers[number], move)
            kinds.update((kind,) if at >= walk.begun else ())
    for driver in drivers.values():
        driver.finish()
    return Taken((*drivers.values(),), kinds, start)


def _step(drivers: list[MemoryDriver], moved: MemoryDriver, move: Move) -> str:
    """Make a move of one memory, and check the others; return the kind of the move."""
    kind = make_move(moved, move)
    for driver in drivers:
        if driver is not moved:
            driver.compare_untouched()
    return kind


def search(  # noqa: PLR0913 -- options
    subject: Subject,
    steps: int,
    start: int,
    on_walk: Callable[[tuple[MemoryDriver, ...]], None],
    *,
    shorten: bool = True,
    tolerance: Tolerance | None = None,
) -> tuple[Violation | None, Generated]:
    """Take walks with at least `steps` moves, from all states; return the violation of the first that fails.

    Parameters
    ----------
    subject : Subject
    steps : int
        The number of moves of all walks, without access sequences.
    start : int
        The seed; the same seed gives the same walks.
    on_walk : callable
        Called with the drivers of every walk that passed.
    shorten : bool
        Whether the walk that fails is shortened.
    tolerance : Tolerance, optional
        Which violations do not end the search.

    Returns
    -------
    (Violation or None, Generated)
        What was found, and what was generated.
    """
    tolerance = tolerance or Tolerance()
    sequences = tuple(access_sequences(subject.machine).values())
    generated, share = Generated(steps, len(sequences)), -(-steps // len(sequences))
    for number, sequence in enumerate(sequences):
        strategy = walks(subject.machine, sequence, failures=subject.profile == "safe" and subject.level >= "L3")
        hunt = Hunt(subject, strategy, run_walk, shortened, on_walk, shorten, tolerance.tolerates)
        violation = hunt.search(share, f"{start}.{number}", generated)
        if violation and tolerance.ends(violation):
            return violation, generated
    return None, generated


class _Size(NamedTuple):
    """The size of one memory of a walk; a memory without one has `_SMALLEST`."""

    number: int
    size: int


_SMALLEST = 1


def shortened(subject: Subject, walk: Walk, violation: Violation) -> Violation:
    """The violation of the shortest walk that breaks the same requirement, with the smallest memories."""
    count = len(walk.sizes)
    used = sorted({number for number, _ in walk.moves})
    steps: tuple[_Size | tuple[int, Move], ...] = (*(_Size(k, walk.sizes[k]) for k in used), *walk.moves)

    def run(steps: tuple[_Size | tuple[int, Move], ...]) -> None:
        told = dict(it for it in steps if isinstance(it, _Size))
        moves = tuple(it for it in steps if not isinstance(it, _Size))
        run_walk(subject, Walk(tuple(told.get(k, _SMALLEST) for k in range(count)), moves))

    def simpler(step: _Size | tuple[int, Move]) -> Sequence[_Size | tuple[int, Move]]:
        if isinstance(step, _Size):
            return [_Size(step.number, size) for size in _smaller(step.size)]
        return [(step[0], other) for other in plainer(step[1])]

    return shortest(steps, violation, run, simpler=simpler, program=subject.program)


def _smaller(size: int) -> list[int]:
    """Sizes to try in place of one, the smallest first: powers of two, and steps down that become shorter."""
    below = {1 << k for k in range(1, size.bit_length())} | {size - (size >> k) for k in range(1, size.bit_length())}
    return sorted(below - {size})
