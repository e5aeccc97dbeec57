"""All proofs in one verdict, fast enough for every run of ``syncedmem verify``."""

from __future__ import annotations

from dataclasses import dataclass

from syncedmem.model import EDITIONS

from .exploration import explore_contents
from .induction import available, prove
from .invariants import INVARIANTS
from .refinement import REFINEMENTS, refinement_breaches
from .schedules import explore_schedules
from .states import System

__all__ = ["CONTENTS", "Summary", "summarise"]

CONTENTS = 4
"""The number of contents that `summarise` distinguishes."""


@dataclass(frozen=True)
class Summary:
    """What is proved about the model.

    Attributes
    ----------
    invariants : int
        The number of sentences.
    states : dict of str to int
        The number of reached states of each edition.
    questions : int or None
        The number of questions to z3; None if it is not installed.
    problems : list of str
        The sentences that do not hold.
    """

    invariants: int
    states: dict[str, int]
    questions: int | None
    problems: list[str]

    @property
    def induction(self) -> str:
        """The result of the proofs by induction."""
        if self.questions is None:
            return "not checked, z3-solver is not installed"
        return f"{self.questions} questions answered by z3"


def summarise() -> Summary:
    """Explore every edition, prove it by induction if z3 is installed, and compare the editions."""
    states: dict[str, int] = {}
    problems: list[str] = []
    questions = 0 if available() else None
    for edition in EDITIONS:
        system = System.of(edition)
        explored = explore_contents(system, CONTENTS)
        states[edition] = len(explored.states)
        breaches = (*explored.breaches, *filter(None, (explore_schedules(system),)))
        problems += [f"{edition}: {it.invariant} is broken by {' '.join(it.sequence)}" for it in breaches]
        if questions is not None:
            proof = prove(system)
            questions += proof.questions
            problems += [f"{edition}: {it.invariant} is not inductive at {it.where}" for it in proof.refuted]
    for pair in REFINEMENTS:
        problems += refinement_breaches(*pair)
    return Summary(len(INVARIANTS), states, questions, problems)
