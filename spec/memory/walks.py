"""The generated tests of a memory: short walks of several memories, from every state.

Long walks from a new memory rarely test ownership, because ownership never returns once it is given up.  So there are
walks from each state of the machine, which an access sequence reaches.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences

from ..engine.report import check_subject
from ..engine.reproducer import Reproducer
from ..engine.search import Generated, Taken, Walking, WalkSearch
from ..engine.shrinking import shortest
from .agreement import check_policy
from .driver import MemoryDriver
from .suites import Fail, Move, Stumble, Synchronize, make_move, plainer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from syncedmem.model import Input

    from ..engine.report import SuiteRun
    from ..engine.subject import Subject
    from ..engine.violation import Violation

__all__ = ["Walk", "run_walk", "search", "shortened", "state_machine"]

LONGEST = 14
_MOST = 3
_STARTS = 14
"""How many states some walks start in; then others are next."""
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
    """

    sizes: tuple[int, ...]
    moves: tuple[tuple[int, Move], ...]


class _Neighbours:
    """Memories that live at the same time, in one reproducer, and what was done with them."""

    def __init__(self, subject: Subject) -> None:
        subject.mark()
        self._subject = subject
        self._reproducer = Reproducer(subject)
        self.drivers: dict[int, MemoryDriver] = {}
        self.moves: list[tuple[int, Move]] = []
        self.kinds: Counter[str] = Counter()
        self.start: Hashable = None

    def make(self, number: int, size: int) -> None:
        """Make a memory."""
        fitting = int(min(max(size, self._subject.smallest), self._subject.largest))
        self.drivers[number] = MemoryDriver(self._subject, fitting, reproducer=self._reproducer)

    def move(self, number: int, move: Move) -> str:
        """Make a move of one memory, and check the others; return its kind, empty if it was left out."""
        moved = self.drivers[number]
        self.moves.append((number, move))
        if moved.oracle.released and self._subject.profile != "safe":
            return ""  # Caffe does not define calls on a destroyed object
        kind = make_move(moved, move)
        for driver in self.drivers.values():
            if driver is not moved:
                driver.compare_untouched()
        return kind

    def finish(self) -> None:
        """Release every memory, and check that nothing is left."""
        for driver in self.drivers.values():
            driver.finish()

    @property
    def walk(self) -> Walk:
        """What was done."""
        return Walk(tuple(driver.size for driver in self.drivers.values()), tuple(self.moves))

    def taken(self) -> Taken:
        """The walk that has passed."""
        return Taken(tuple(self._reproducer.lines), tuple(self.drivers.values()), self.kinds, self.start)


def run_walk(subject: Subject, walk: Walk) -> tuple[MemoryDriver, ...]:
    """Take a walk; after every step check the memories that were not used.  A memory without moves is not made.

    Raises
    ------
    Violation
        With a reproducer of all memories, in the order in which things happened.
    """
    memories = _Neighbours(subject)
    for number in sorted({number for number, _ in walk.moves}):
        memories.make(number, walk.sizes[number])
    for number, move in walk.moves:
        memories.move(number, move)
    memories.finish()
    return tuple(memories.drivers.values())


class MemoryWalk(Walking):
    """A walk of up to three memories; `state_machine` adds a rule for each input of a machine."""

    subject: Subject

    def __init__(self) -> None:
        self._memories = _Neighbours(self.subject)
        super().__init__(self._memories)

    def begin(self, size: int, way: tuple[Input, ...]) -> int:
        """Make a memory, and bring it into the state that a sequence reaches."""
        memories = self._memories
        number = len(memories.drivers)
        self.act(partial(memories.make, number, size))
        for entry in way:
            self.act(partial(memories.move, number, entry))
        if number == 0:
            memories.start = way
        return number

    def move(self, number: int, move: Move) -> None:
        """Make a move of one memory."""
        self.act(partial(self._count, number, move))

    def _count(self, number: int, move: Move) -> None:
        if kind := self._memories.move(number, move):
            self._memories.kinds[kind] += 1


Ways: TypeAlias = "Sequence[tuple[Input, ...]]"


def state_machine(subject: Subject, ways: Ways = ()) -> type[MemoryWalk]:
    """A `hypothesis.stateful.RuleBasedStateMachine` over the memories of a subject, with the rules of its machine.

    There is a rule for each input.  A memory starts in a state of the machine that Hypothesis draws.  Every step is
    compared with the oracle.  Allocator calls are made to fail only if the profile and the level of a subject say what
    holds then.  With pytest: ``TestMine = state_machine(subject).TestCase``.

    Parameters
    ----------
    subject : Subject
    ways : sequence of tuple of Input
        The sequences by which the first memory starts; if there are none, one for each state of the machine.

    Returns
    -------
    type of RuleBasedStateMachine
        A new class.  A step that breaks a requirement raises `Violation`, with its reproducer.

    Raises
    ------
    InvalidArgumentError, UnfitPolicyError
        As by `check_conformance`.
    """
    check_subject(subject)
    check_policy(subject)
    every = tuple(access_sequences(subject.machine).values())
    failures = subject.profile == "safe" and subject.level >= "L3"
    small = st.sampled_from(_SIZES)
    # A large memory takes a thousand times as long as a small one, and suites have large ones too.
    size = st.one_of(small, small, small, st.integers(1, 300), st.sampled_from((*_SIZES * 2, *_LARGE)))
    memories: Bundle[int] = Bundle("memories")
    rules: dict[str, object] = {
        "subject": subject,
        "memories": memories,
        "begin_first": initialize(target=memories, size=size, way=st.sampled_from(ways or every))(MemoryWalk.begin),
        "begin_another": rule(target=memories, size=small, way=st.sampled_from(every))(
            precondition(lambda self: len(self._memories.drivers) < _MOST)(MemoryWalk.begin)
        ),
    }
    for entry in stepper(subject.machine).inputs(end=True):
        name = re.sub(r"\W+", "_", f"rule {len(rules)} {entry}")
        moves = st.sampled_from(_moves(entry, failures=failures))
        rules[name] = rule(number=memories, move=moves)(_named(name))
    return type("MemoryWalk", (MemoryWalk,), rules)


def _named(name: str) -> Callable[[MemoryWalk, int, Move], None]:
    """The method that makes a move, under another name: Hypothesis leaves out some rules of a walk, by their names."""

    def move(self: MemoryWalk, number: int, move: Move) -> None:
        self.move(number, move)

    move.__name__ = name
    return move


def _moves(entry: Input, *, failures: bool) -> list[Move]:
    """An input as it is, before a wait, and with failures of allocator calls."""
    plain: list[Move] = [entry, entry, entry, entry, Synchronize()]
    if not (failures and entry.call):
        return plain
    # After a release that failed in the middle, only another release is allowed.
    again = (True,) if entry.ends else (True, False)
    failing = [Fail(entry, k, partial, False, it) for k in (1, 2) for partial in (False, True) for it in again]
    return [*plain, *plain, *failing, Stumble(entry), Stumble(entry), Stumble(entry)]


def search(subject: Subject, suite: SuiteRun, steps: int, seed: int) -> Violation | None:
    """Take walks with at least `steps` moves, from all states; return the violation of the first that fails.

    Parameters
    ----------
    subject : Subject
    suite : SuiteRun
        It gets what is generated.
    steps : int
        The number of moves of all walks, without access sequences.
    seed : int
        The same seed gives the same walks.
    """
    ways = tuple(access_sequences(subject.machine).values())
    generated = suite.generated = Generated(steps, len(ways))

    def walking() -> type[Walking]:
        rarest = sorted(ways, key=lambda way: generated.starts[way])[:_STARTS]
        return state_machine(subject, rarest)

    return WalkSearch(subject, generated, LONGEST, shortened, suite).search(walking, str(seed))


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
