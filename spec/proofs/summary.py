"""All proofs about Caffe's editions in one verdict, fast enough for every run of ``syncedmem verify``."""

from __future__ import annotations

from dataclasses import dataclass

from syncedmem.model.caffe import EDITIONS

from ..memory.agreement import SENTENCES, compare
from ..memory.policy import POLICIES
from .copies import FEWEST, find_fewer_copies
from .refinement import REFINEMENTS, find_unlike_steps

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True)
class Summary:
    """What is proved about the editions.

    Attributes
    ----------
    sentences : int
        The number of sentences that are proved of each edition.
    states : dict of str to int
        The number of states of each edition in which its table and the oracle were compared.
    problems : list of str
        What does not hold.
    """

    sentences: int
    states: dict[str, int]
    problems: list[str]


def summarise() -> Summary:
    """Compare every edition with the oracle, count its copies, and compare the editions with each other."""
    states: dict[str, int] = {}
    problems: list[str] = []
    for name, machine in EDITIONS.items():
        agreement = compare(machine, POLICIES[name])
        states[name] = agreement.states
        problems += [f"{name}: {difference}" for difference in agreement.differences]
        if fewer := find_fewer_copies(machine, POLICIES[name]):
            problems.append(f"{name}: fewer copies are enough for {' '.join(fewer)}: {FEWEST}")
    for finer, coarser in REFINEMENTS:
        problems += find_unlike_steps(finer, coarser)
    return Summary(len(SENTENCES) + 1, states, problems)
