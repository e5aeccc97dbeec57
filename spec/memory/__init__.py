"""What a mirrored memory must do, and the kit that finds out whether one does.

The ``oracle`` thinks about which copies are fresh.  A ``driver`` makes one call after the other; its ``inspection``
looks at the memory, and ``differences`` say which requirement a difference breaks.  Sequences of calls are enumerated
from the state space (``suites``), edges are checked one by one (``contracts``), and ``walks`` are generated.
``reference`` is a small memory that does all of it right.
"""

from .coverage import Coverage
from .driver import MemoryDriver
from .kit import check_conformance, requirements_for, suite_names
from .oracle import Oracle
from .reference import ReferenceMemory

__all__ = [
    "Coverage",
    "MemoryDriver",
    "Oracle",
    "ReferenceMemory",
    "check_conformance",
    "requirements_for",
    "suite_names",
]
