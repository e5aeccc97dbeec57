"""The meaning of the names of the table: the role of a call, the verb of an action, the lines that a row cites.

All of it is computed from the declaration.  A call that makes the other side stale, although it replaces nothing,
returns memory to write.  In the name of an action, the word before ``_cpu`` or ``_gpu`` says what it does there.
"""

from __future__ import annotations

import enum
import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .head import TRANSITIONS, Action, Call, Fact, SyncedHead, Transition
from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Cited",
    "Host",
    "Role",
    "Verb",
    "asynchronous",
    "cited",
    "code_of",
    "contents_after",
    "phrase_of",
    "place_of",
    "role_of",
    "verb_of",
]


class Host(Spelled, enum.Enum):
    """A side: one of the two places where memory can be."""

    CPU = "cpu"
    GPU = "gpu"

    @property
    def other(self) -> Host:
        """The other place."""
        return Host.GPU if self is Host.CPU else Host.CPU

    @property
    def pointer(self) -> Fact:
        """The fact that this place has a pointer."""
        return Fact[f"{self.name}_POINTER"]

    @property
    def owned(self) -> Fact:
        """The fact that we own the memory of this place."""
        return Fact[f"OWN_{self.name}_DATA"]

    @property
    def head(self) -> SyncedHead:
        """The head that says that only this place is fresh."""
        return SyncedHead[f"HEAD_AT_{self.name}"]

    def is_fresh(self, head: SyncedHead) -> bool:
        """Whether a head says that this place is fresh, alone or with the other."""
        return head in (self.head, SyncedHead.SYNCED)


class Role(Spelled, enum.Enum):
    """The purpose of a call."""

    READ = "read"
    WRITE = "write"
    ADOPT = "adopt"
    PUSH = "push"
    RELEASE = "release"


class Verb(Spelled, enum.Enum):
    """The effect of an action on the memory of its place."""

    ALLOCATE = "allocate"
    ZERO = "zero"
    COPY = "copy"
    ADOPT = "adopt"
    FREE = "free"


_CONTENTS: Mapping[Verb, str] = MappingProxyType(
    {
        Verb.ALLOCATE: "undefined",
        Verb.ZERO: "zero",
        Verb.COPY: "other side",
        Verb.ADOPT: "argument",
        Verb.FREE: "none",
    }
)


_LETTERS: Mapping[Verb, str] = MappingProxyType({Verb.ALLOCATE: "A", Verb.ZERO: "Z", Verb.ADOPT: "E", Verb.FREE: "F"})
_SHORT: Mapping[Verb, str] = MappingProxyType({Verb.ALLOCATE: "alloc"})


def verb_of(action: Action) -> Verb:
    """The verb of an action: the first word of its name."""
    return Verb(action.value.split("_")[0])


def place_of(name: Action | Call) -> Host | None:
    """The place that an action or a call is named after; None for ``release``."""
    return next((place for place in Host if place.value in name.value.split("_")), None)


def asynchronous(action: Action) -> bool:
    """Whether an action is only queued when the call returns."""
    return action.value.endswith("_async")


def code_of(action: Action) -> str:
    """The short form for tables: H for host or D for device, and a letter for the verb; for a copy its direction.

    E, as in a configuration, is for an external pointer, which no allocator ever gets.
    """
    verb, on_device = verb_of(action), place_of(action) is Host.GPU
    if verb is Verb.COPY:
        return ("h2d" if on_device else "d2h") + ("*" if asynchronous(action) else "")
    return ("D" if on_device else "H") + _LETTERS[verb]


def phrase_of(action: Action) -> str:
    """A few words for drawings.  Only a copy names its side; other actions are on the side that their call names."""
    verb, place = verb_of(action), place_of(action)
    if verb is Verb.COPY and place is not None:
        return f"{'async ' if asynchronous(action) else ''}copy to {place.name}"
    return _SHORT.get(verb, verb.value)


def contents_after(action: Action) -> str:
    """The contents of an action's place afterwards: zeros, a copy, the argument's bytes, or undefined."""
    return _CONTENTS[verb_of(action)]


@cache
def role_of(call: Call) -> Role:
    """The role of a call, computed from its rows; its first row from `SYNCED` is one of an edition with this call."""
    if call.takes_data:
        return Role.ADOPT
    rows = [row for row in TRANSITIONS if row.call is call]
    if all(row.dest is None and row.refusal is None for row in rows):
        return Role.RELEASE
    from_synced = next(row for row in rows if SyncedHead.SYNCED in row.source)
    if from_synced.refusal is not None:
        return Role.PUSH
    return Role.READ if from_synced.dest is SyncedHead.SYNCED else Role.WRITE


class Cited(NamedTuple):
    """Lines of a source text.

    Attributes
    ----------
    file : str
    first, last : int
        Counted from one; both are included.
    """

    file: str
    first: int
    last: int


_FILES: Mapping[str, str] = MappingProxyType(
    {
        "syncedmem.cpp": "src/caffe/syncedmem.cpp",
        "syncedmem.hpp": "include/caffe/syncedmem.hpp",
    }
)
_PLACE = re.compile(r"(\w+\.\w+):(\d[\d, -]*)")
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def cited(row: Transition) -> tuple[Cited, ...]:
    """The lines of Caffe that a row follows, in the order of the citation."""
    return tuple(
        Cited(_FILES[text], int(lines[1]), int(lines[2] or lines[1]))
        for text, places in _PLACE.findall(row.cite)
        for lines in _LINES.finditer(places)
    )
