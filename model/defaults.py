"""The defaults of runs.

The module is in the model because the command line and the spec need it, and may not import each other: ``--help``
shows the defaults, and must not import Hypothesis, as the spec does.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_STEPS", "FUZZ", "FuzzDefaults"]

DEFAULT_STEPS: int = 2000
"""The generated moves of the kit of memories, and of ``verify``."""


class FuzzDefaults(NamedTuple):
    """The defaults of a run of the fuzzer; `syncedmem.spec.fuzz.fuzz` says what they mean."""

    seed: int = 0
    steps: int = 2_000_000
    seconds: float = 45.0
    threads: int = 1
    hang: float = 5.0


FUZZ: FuzzDefaults = FuzzDefaults()
