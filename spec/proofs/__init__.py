"""Formal checks of the model: properties of every sequence of calls, each shown in two ways.

``states`` says what a row of the table does to pointers, ownership, contents and allocations, over plain values or
over symbols.  ``invariants`` are sentences about states and steps.  ``exploration`` visits every reachable state, with
contents counted modulo K.  ``induction`` lets z3 prove the same sentences for all contents and without a bound.
``schedules`` compares the copies with the fewest that are enough, ``refinement`` compares the editions with each other.
``mutants`` are wrong models, one for each sentence, to show that the sentence can be false.
"""

from .exploration import Explored, explore_contents
from .induction import Proof, available, prove
from .invariants import INVARIANTS
from .mutants import MUTANTS, Mutant
from .refinement import REFINEMENTS, refinement_breaches
from .schedules import explore_schedules
from .states import System
from .summary import Summary, summarise

__all__ = [
    "INVARIANTS",
    "MUTANTS",
    "REFINEMENTS",
    "Explored",
    "Mutant",
    "Proof",
    "Summary",
    "System",
    "available",
    "explore_contents",
    "explore_schedules",
    "prove",
    "refinement_breaches",
    "summarise",
]
