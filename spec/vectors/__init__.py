"""Test vectors for ports: programs of calls with the expected result of each call, as lines of JSON.

``programs`` has the calls.  ``expected`` follows them through the model and adds the expected results.  ``vector``
joins both under a name that is the hash of the program.  ``files`` writes vectors and compares written ones.
``replay`` tests a memory with a vector, using only the vector, and ``kills`` has the seeded bugs that each one refuses.
The format is defined in docs/vectors.md.
"""

from .expected import REFUSALS
from .files import compare, suite_files, write
from .kills import Kills
from .programs import SUITES, programs
from .replay import Difference, Replay, replay
from .vector import FORMAT, Vector, model_digest, vectors

__all__ = [
    "FORMAT",
    "REFUSALS",
    "SUITES",
    "Difference",
    "Kills",
    "Replay",
    "Vector",
    "compare",
    "model_digest",
    "programs",
    "replay",
    "suite_files",
    "vectors",
    "write",
]
