"""Runs walks that Hypothesis generates, until enough moves are taken or one fails; it shortens that one.

Hypothesis begins with the minimal example, which is the same for every seed, and may generate an example again.  A walk
counts only if it is neither: so ``steps`` are steps, and `Generated` says how many there were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings

from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

    from .subject import Subject

__all__ = ["Generated", "Hunt", "Taken"]

Walk = TypeVar("Walk", bound=Hashable)

_USUAL = 12
"""About how many moves of a walk are taken."""


@dataclass
class Generated:
    """The generated walks of one run of a kit, without minimal and repeated ones.

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
    starts : set
        Where they started.
    """

    asked: int
    wanted_starts: int
    walks: int = 0
    moves: Counter[str] = field(default_factory=Counter[str])
    starts: set[Hashable] = field(default_factory=set[Hashable])

    @property
    def shortfall(self) -> str:
        """What is missing of what was wanted; empty if nothing is."""
        taken, started = self.moves.total(), len(self.starts)
        if taken < self.asked:
            return f"only {taken} of {self.asked} generated moves were taken, in {self.walks} distinct walks"
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
    """A walk that passed: the drivers that took it, the kinds of its generated moves, and the state before these."""

    drivers: tuple[Any, ...]
    moves: Counter[str]
    start: Hashable


@dataclass(frozen=True)
class Hunt(Generic[Walk]):
    """A search for a walk that fails.

    Attributes
    ----------
    subject : Subject
    strategy : SearchStrategy
        Generates walks, which must be hashable.
    run : callable
        Takes a walk, and raises its violation.
    shortened : callable
        Given a walk and its violation, the violation of the shortest one that breaks the same requirement.
    on_passed : callable
        Called with the drivers of each walk that passed and counts.
    shorten : bool
        Whether a walk that fails is shortened.
    tolerates : callable
        Whether the search goes on after a violation as if there were none.
    """

    subject: Subject
    strategy: st.SearchStrategy[Walk]
    run: Callable[[Subject, Walk], Taken]
    shortened: Callable[[Subject, Walk, Violation], Violation]
    on_passed: Callable[[tuple[Any, ...]], None]
    shorten: bool
    tolerates: Callable[[Violation], bool]

    def search(self, steps: int, name: str, generated: Generated) -> Violation | None:
        """Take walks with at least `steps` moves; return the violation of the first that fails, shrunk, or None.

        If the strategy generates nothing new, the search ends with fewer moves, and `generated` says so.

        Parameters
        ----------
        steps : int
        name : str
            The seed.
        generated : Generated
            It gets what is counted.
        """
        left, known, batch = steps, set[Walk](), 0
        while left > 0:
            before = len(known)
            # One more than needed, because the minimal walk does not count.
            violation, left = self._batch(left, 2 + left // _USUAL, f"{name}.{batch}", known, generated)
            if violation or len(known) == before:
                return violation
            batch += 1
        return None

    def _batch(
        self, left: int, examples: int, name: str, known: set[Walk], generated: Generated
    ) -> tuple[Violation | None, int]:
        """Take some walks; return what is found, and how many moves are still to be taken."""
        found: list[tuple[Violation, Walk]] = []
        minimal: list[Walk] = []

        @seed(name)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            # A program is shortened in new processes, which Hypothesis does not know.
            phases=(Phase.generate, Phase.shrink) if self.shorten and not self.subject.program else (Phase.generate,),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
            print_blob=False,
        )
        @given(self.strategy)
        def take(walk: Walk) -> None:
            nonlocal left
            if not minimal:
                minimal.append(walk)
            if not found and (left <= 0 or walk == minimal[0] or walk in known):
                return
            try:
                taken = self.run(self.subject, walk)
            except Violation as violation:
                if self.tolerates(violation):
                    known.add(walk)
                    left -= 1
                    return
                found.append((violation, walk))
                raise
            if not found:
                self.on_passed(taken.drivers)
                known.add(walk)
                left -= taken.moves.total()
                generated.walks += 1
                generated.moves.update(taken.moves)
                generated.starts.add(taken.start)

        try:
            take()
        except Violation:
            violation, walk = found[-1]  # Hypothesis runs its shortest example last
            return self.shortened(self.subject, walk, violation) if self.shorten else violation, left
        except Exception:
            # Hypothesis raises this if a failure did not repeat.  It was a failure all the same.
            if not found:
                raise
            return min((violation for violation, _ in found), key=lambda violation: len(violation.statements)), left
        return None, left
