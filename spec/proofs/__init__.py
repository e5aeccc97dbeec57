"""Proofs about a machine: its table does what the oracle says, for all bytes and all sequences of calls.

That is compared in `syncedmem.spec.memory.agreement`, which the kit of memories asks too.  ``copies`` compares the
table with the fewest copies that are enough.  ``refinement`` compares two machines.  ``summary`` is the verdict on
Caffe's editions.
"""

from ..memory.agreement import SENTENCES, Agreement, PolicyDifference, compare
from .copies import FEWEST, find_fewer_copies
from .refinement import REFINEMENTS, find_unlike_steps
from .summary import Summary, summarise

__all__ = [
    "FEWEST",
    "REFINEMENTS",
    "SENTENCES",
    "Agreement",
    "PolicyDifference",
    "Summary",
    "compare",
    "find_fewer_copies",
    "find_unlike_steps",
    "summarise",
]
