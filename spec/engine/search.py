"""Runs walks that Hypothesis generates, until enough moves are taken or one fails, which is shortened.

A walk is a `RuleBasedStateMachine`: its rules are what can be done, and Hypothesis draws which and how.  Hypothesis may
generate a walk again, and begins with one that does next to nothing.  A walk counts only if it is new and does
something: so ``steps`` are steps, and `Generated` says how many there were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from .report import SuiteRun

__all__ = ["SEARCH", "Generated", "Taken", "WalkSearch", "Walked", "Walking"]

_FEWEST = 3
"""The fewest walks that are generated at once; the first does next to nothing."""
_MOST = 8
"""The most walks at once; Hypothesis varies what it has generated, so many short searches vary more."""
_PATIENCE = 10
"""After how many times without a new walk the search gives up."""
_HEALTHY = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
]
# Hypothesis takes 16 times as long as the kit to shorten a walk, and what it finds is no shorter.
SEARCH = settings(
    deadline=None, database=None, phases=(Phase.generate,), report_multiple_bugs=False, print_blob=False,
    suppress_health_check=_HEALTHY, verbosity=Verbosity.quiet,
)  # fmt: skip


@dataclass
class Generated:
    """The generated walks of one run of a kit, without empty and repeated ones.

    Attributes
    ----------
    asked : int
        The number of moves that the caller wants.
    wanted_starts : int
        The number of states in which walks have to start.
    walks : int
        The number of distinct walks.
    moves : Counter of str
        Their moves that were taken, by kind; the calls that reach the starting state are not among them.
    starts : Counter
        Where they started, and how often.
    """

    asked: int
    wanted_starts: int
    walks: int = 0
    moves: Counter[str] = field(default_factory=Counter[str])
    starts: Counter[Hashable] = field(default_factory=Counter[Hashable])

    @property
    def shortfall(self) -> str:
        """What is missing of what was wanted; empty if nothing is."""
        moves, started = self.moves.total(), len(self.starts)
        if moves < self.asked:
            return f"only {moves} of {self.asked} generated moves were taken, in {self.walks} distinct walks"
        if started < self.wanted_starts:
            return f"generated walks started in only {started} of {self.wanted_starts} states"
        return ""

    def as_json(self) -> dict[str, Any]:
        """The numbers as data."""
        return {
            "asked": self.asked,
            "walks": self.walks,
            "moves": dict(sorted(self.moves.items())),
            "starts": len(self.starts),
        }


class Taken(NamedTuple):
    """A walk that passed.

    Attributes
    ----------
    walk : Hashable
        What was run, in order; equal walks count once.
    drivers : tuple
        The drivers that took it.
    moves : Counter of str
        The kinds of its generated moves.
    start : Hashable
        Where it started.
    """

    walk: Hashable
    drivers: tuple[Any, ...]
    moves: Counter[str]
    start: Hashable


class Walked(Protocol):
    """What a walk is taken with, and what was done."""

    @property
    def walk(self) -> Hashable:
        """What was done until now."""
        ...

    def finish(self) -> None:
        """End the walk, and check that nothing is left."""
        ...

    def taken(self) -> Taken:
        """The walk that has passed."""
        ...


class Walking(RuleBasedStateMachine):
    """A walk that Hypothesis generates; subclasses have the rules, which do everything by `act`.

    Attributes
    ----------
    walk_search : WalkSearch or None
        The search that this walk belongs to; without one, a violation ends a test of pytest as usual.
    """

    walk_search: ClassVar[WalkSearch | None] = None

    def __init__(self, walked: Walked) -> None:
        super().__init__()
        self._walked = walked
        self.over: bool = self.walk_search is not None and not (
            self.walk_search.left or self.walk_search.unstarted or self.walk_search.found
        )

    @classmethod
    def let_go(cls) -> None:
        """Drop what the walks were taken with: Hypothesis keeps each class of walks as long as the process lives."""
        cls.walk_search = None

    def act(self, do: Callable[[], object]) -> None:
        """Do something, unless the walk is over; it is over after a violation."""
        if self.over:
            return
        try:
            do()
        except Violation as violation:
            self.over = True
            if self.walk_search is None or not self.walk_search.tolerated(violation, self._walked.walk):
                raise

    def teardown(self) -> None:
        """End the walk, and count it."""
        self.act(self._walked.finish)
        if not self.over and self.walk_search is not None:
            self.walk_search.count(self._walked.taken())


@dataclass
class WalkSearch:
    """A search for a walk that fails.

    Attributes
    ----------
    generated : Generated
        What is wanted; it gets what is counted.
    length : int
        The number of moves of a long walk.
    shortened : callable
        Given a walk and its violation, the violation of the shortest one that breaks the same requirement.
    suite : SuiteRun
        It gets the walks that passed, and says which violations do not end the search.
    """

    generated: Generated
    length: int
    shortened: Callable[[Any, Violation], Violation]
    suite: SuiteRun
    known: set[Hashable] = field(default_factory=set[Hashable], init=False)
    found: list[tuple[Violation, Hashable]] = field(default_factory=list[tuple[Violation, Hashable]], init=False)
    _tolerated: int = field(default=0, init=False)
    _first: bool = field(default=True, init=False)

    @property
    def left(self) -> int:
        """How many more moves are wanted."""
        return max(self.generated.asked - self.generated.moves.total() - self._tolerated, 0)

    @property
    def unstarted(self) -> int:
        """In how many more states walks have to start."""
        return self.generated.wanted_starts - len(self.generated.starts)

    def search(self, walking: Callable[[], type[Walking]], name: str) -> Violation | None:
        """Take walks until there are enough; return the violation of the first that fails, shortened, or None.

        If Hypothesis generates nothing new, the search ends with fewer moves, and `generated` says so.

        Parameters
        ----------
        walking : callable
            Makes the class of the next walks, for example of those that start where few have started.
        name : str
            The seed.
        """
        batch = fruitless = 0
        while (self.left or self.unstarted > 0) and fruitless < _PATIENCE:
            before = self.generated.walks, self.left
            examples = _FEWEST + min(max(self.left // self.length, self.unstarted), _MOST)
            violation = self._batch(walking(), examples, f"{name}.{batch}")
            if violation and self.suite.tolerance.ends(violation):
                return violation
            self.found.clear()
            fruitless = fruitless + 1 if before == (self.generated.walks, self.left) else 0
            batch += 1
        return None

    def _batch(self, walking: Any, examples: int, name: str) -> Violation | None:
        """Generate some walks; return what is found."""
        chosen = settings(SEARCH, max_examples=examples, stateful_step_count=self.length)
        walking.walk_search, self._first = self, True  # the first walk is the same for every seed
        try:
            run_state_machine_as_test(seed(name)(walking), settings=chosen)
        except Violation:
            violation, walk = self.found[-1]
            return self.shortened(walk, violation) if self.suite.shortens(violation) else violation
        except Exception:
            # Hypothesis raises this if a failure did not repeat.  It was a failure all the same.
            if not self.found:
                raise
            return min((violation for violation, _ in self.found), key=lambda violation: len(violation.statements))
        finally:
            walking.let_go()
        return None

    def tolerated(self, violation: Violation, walk: Hashable) -> bool:
        """Whether the search goes on after a violation."""
        if not self.suite.tolerance.tolerates(violation):
            self.found.append((violation, walk))
            return False
        self._tolerated += 1
        return True

    def count(self, taken: Taken) -> None:
        """Count a walk that passed, if it is new and did something."""
        first, self._first = self._first, False
        if first or self.found or taken.walk in self.known or not taken.moves:
            return
        self.suite.add(*taken.drivers)  # if this raises, it has to raise again when Hypothesis repeats the walk
        self.known.add(taken.walk)
        self.generated.walks += 1
        self.generated.moves.update(taken.moves)
        self.generated.starts[taken.start] += 1
