"""Test vectors for ports: programs of calls with the expected result of each call, as lines of JSON.

``programs`` has the calls of memories.  ``expected`` adds the results that the oracle expects of them.
``blobs`` has both for blobs.  ``vector`` joins both under a name that is the hash of the program.  ``keys`` has the
keys of a line, from which the schema and the page are made.  ``files`` writes vectors and compares written ones.
``replay`` tests memories or blobs with a vector, using only the vector.  The format is defined in docs/vectors.md.
"""

from .blobs import BLOB_REFUSALS, BLOB_SUITES
from .expected import REFUSALS
from .files import archive, compare, suite_files, write
from .memory_replay import Difference
from .of_violations import vector_of
from .programs import SUITES, programs
from .replay import replay
from .vector import ALL_SUITES, FORMAT, Vector, model_digest, vectors

__all__ = [
    "ALL_SUITES",
    "BLOB_REFUSALS",
    "BLOB_SUITES",
    "FORMAT",
    "REFUSALS",
    "SUITES",
    "Difference",
    "Vector",
    "archive",
    "compare",
    "model_digest",
    "programs",
    "replay",
    "suite_files",
    "vector_of",
    "vectors",
    "write",
]
