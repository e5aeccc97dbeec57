"""What a run in the profile caffe also says of the profile safe, so that its cases need not be run again."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncedmem.model import Input, State

    from ..engine.violation import Violation
    from ..record.steps import Case

__all__ = ["Shared"]

_REPEATING = frozenset({"sizes", "hsi", "counters"})
"""The suites that do with other sizes, and more often, what others do too."""


@dataclass
class Shared:
    """What was found out in the profile caffe.

    Attributes
    ----------
    found : dict of str to Violation
        The first violation of each requirement that only the profile safe has.
    taken : set of (State, Input)
        The transitions of the cases.
    """

    found: dict[str, Violation] = field(default_factory=dict[str, "Violation"])
    taken: set[tuple[State, Input]] = field(default_factory=set[tuple["State", "Input"]])
    _cases: set[bytes] = field(default_factory=set[bytes])
    _without_waits: set[bytes] = field(default_factory=set[bytes])

    def add(self, case: Case) -> None:
        """Note a case that was run to its end."""
        self._cases.add(_digest(case))
        self._without_waits.add(_digest(_unwaited(case)))

    def has(self, case: Case, suite: str) -> bool:
        """Whether a case need not be run again.

        In safe a memory waits itself for its pushes, so a case in which the caller waited is another one; but not for a
        suite that repeats others.
        """
        if suite in _REPEATING:
            return _digest(_unwaited(case)) in self._without_waits
        return _digest(case) in self._cases


def _unwaited(case: Case) -> Case:
    return tuple(step for step in case if step.does != "wait")


def _digest(case: Case) -> bytes:
    return blake2b(repr(case).encode(), digest_size=16).digest()
