"""The plan of a run of the fast generator: which rounds are taken in which process.

Some bugs show only in the first calls of a process, others only in an old one.  So a run begins many processes, and one
of them grows old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .rounds import Kind

__all__ = ["Stage", "stages"]

_YOUNG_PROCESSES = 16
_SHORTEST_LIFE = 1 << 11
"""The fewest steps of a process; a short run begins fewer processes."""
_ROUNDS_OF_A_STAGE = 1 << 16


class Stage(NamedTuple):
    """The rounds that one process takes."""

    kind: Kind
    first_round: int
    steps: int
    ages: bool


def stages(steps: int) -> list[Stage]:
    """The stages of a run: the fixed rounds, sixteen young processes, and an old one with half of the steps.

    A process is young in its own process only if the target has a name; an object stays in this process.
    """
    young = max(1, min(_YOUNG_PROCESSES, steps // 2 // _SHORTEST_LIFE))
    each = -(-steps // 2 // young)
    return [
        Stage("fixed", 0, steps, ages=False),
        *(Stage("drawn", (1 + index) * _ROUNDS_OF_A_STAGE, each, ages=False) for index in range(young)),
        Stage("drawn", 0, -(-steps // 2), ages=True),
    ]
