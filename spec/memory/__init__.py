"""What a mirrored memory must do.

The ``oracle`` knows which copies are fresh, by a ``policy``; ``by_table`` is one that follows a machine's own table.
``claims`` say what a subject is judged by.  ``reference`` is a small correct memory.
"""

from .claims import requirements_for
from .coverage import Coverage
from .oracle import Oracle
from .policy import Policy
from .reference import ReferenceMemory

__all__ = [
    "Coverage",
    "Oracle",
    "Policy",
    "ReferenceMemory",
    "requirements_for",
]
