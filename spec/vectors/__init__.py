"""Test vectors for ports: programs of calls with the expected result of each call, as lines of JSON.

``suites`` has the steps.  ``operations`` is a step as data, with what the oracle says must be seen.  ``vector`` joins
both under a name that is the hash of the steps.  ``keys`` has the keys of a line, from which the schema and the page
are made.  ``files`` writes vectors and compares written ones.  ``replay`` tests memories with a vector, using only the
vector.  ``traces`` follows recorded runs.
The format is defined in docs/vectors.md.
"""

from .files import compare, suite_files, write
from .operations import REFUSALS
from .replay import Difference, replay
from .suites import SUITES, programs
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
