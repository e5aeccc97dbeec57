"""Test vectors for ports: programs of calls, with all that must be seen of each, as lines of JSON.

``programs`` says what is done, ``expected`` follows it through the model and says what must be seen, ``vector`` joins
both under a name that is the hash of what is done.  ``files`` writes them down and compares what was written.
``replay`` puts a memory to one, judging by the vector alone, and ``kills`` says which seeded bugs each refuses.
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
