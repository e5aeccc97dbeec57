"""Test vectors for ports: programs of calls with the expected result of each call, as lines of JSON.

``programs`` has the calls.  ``expected`` adds the results that the oracle expects of them.  ``vector`` joins both under
a name that is the hash of the program.  ``keys`` has the keys of a line, from which the schema and the page are made.
``files`` writes vectors and compares written ones.  ``replay`` tests memories with a vector, using only the vector.
The format is defined in docs/vectors.md.
"""

from .expected import REFUSALS
from .files import compare, suite_files, write
from .memory_replay import Difference
from .programs import SUITES, programs
from .replay import replay
from .vector import FORMAT, Vector, model_digest, vectors

__all__ = [
    "FORMAT",
    "REFUSALS",
    "SUITES",
    "Difference",
    "Vector",
    "compare",
    "model_digest",
    "programs",
    "replay",
    "suite_files",
    "vectors",
    "write",
]
