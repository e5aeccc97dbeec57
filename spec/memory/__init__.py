"""The requirements of a mirrored memory, and the kit that checks memories against them.

The ``oracle`` knows which copies are fresh.  A ``driver`` makes one call after the other.  Its ``inspection``
examines the memory, and ``differences`` say which requirement a difference breaks.  ``suites`` enumerate sequences of
calls from the state space, ``contracts`` check edge cases one by one, and ``walks`` are generated.
``claims`` say what a subject is judged by.  ``reference`` is a small correct memory.
"""

from .claims import requirements_for
from .coverage import Coverage
from .driver import MemoryDriver
from .kit import check_conformance, suite_names
from .oracle import Oracle
from .policy import Policy
from .reference import ReferenceMemory
from .walks import state_machine

__all__ = [
    "Coverage",
    "MemoryDriver",
    "Oracle",
    "Policy",
    "ReferenceMemory",
    "check_conformance",
    "requirements_for",
    "state_machine",
    "suite_names",
]
