"""The meaning of the names of the table: the role of a call, the verb of an action, the lines that a row cites.

All of it is computed from the declaration.  A call that makes the other side stale, although it replaces nothing,
returns memory to write.  In the name of an action, the word before ``_cpu`` or ``_gpu`` says what it does there.
"""

from __future__ import annotations

import enum
import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from .head import TRANSITIONS, Action, Call, Fact, SyncedHead, Transition
from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .head import Vocabulary

__all__ = [
    "Cited",
    "Host",
    "Role",
    "Verb",
    "asynchronous",
    "cited",
    "code_of",
    "contents_after",
    "done_of",
    "has_verb",
    "phrase_of",
    "place_of",
    "role_of",
    "side_of",
    "sides_of",
    "title_of",
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
_DONE: Mapping[Verb, str] = MappingProxyType(
    {
        Verb.ALLOCATE: "allocated on",
        Verb.ZERO: "zeroed on",
        Verb.COPY: "copied to",
        Verb.ADOPT: "adopted on",
        Verb.FREE: "freed on",
    }
)
_TITLES: Mapping[Host, str] = MappingProxyType({Host.CPU: "host", Host.GPU: "device"})


def verb_of(action: Action) -> Verb:
    """The verb of an action: the first word of its name."""
    return Verb(action.value.split("_")[0])


def has_verb(action: Action, verb: Verb) -> bool:
    """Whether an action of any machine has this verb; the first word of somebody's own action may be no verb."""
    return action.value.split("_")[0] == verb.value


def place_of(name: Action | Call) -> Host | None:
    """The place that an action or a call of any machine is named after, as in ``copy_to_gpu`` or ``copy_to_device``.

    None for ``release``.
    """
    words = name.value.split("_")
    return next((place for place in Host if place.value in words or _TITLES[place] in words), None)


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


def side_of(action: Action) -> str | None:
    """The word for the place of an action: device for ``copy_to_device``, and GPU for ``copy_to_gpu``."""
    place = place_of(action)
    return place and (title_of(place) if title_of(place) in action.value.split("_") else place.name)


def sides_of(names: Vocabulary) -> Mapping[Host, str]:
    """The words for the two places in the names of a machine; CPU and GPU, if its copies name no others."""
    copies = [action for action in names.actions if has_verb(action, Verb.COPY)]
    said = {place_of(action): side_of(action) for action in reversed(copies)}
    return {place: said.get(place) or place.name for place in Host}


def phrase_of(action: Action, label: Callable[[str], str] = str) -> str:
    """A few words for drawings.  Only a copy names its side; other actions are on the side that their call names.

    An action without a verb of Caffe's, of somebody's own machine, is said by its whole name.

    Parameters
    ----------
    action : Action
    label : callable
        Takes the word for a side, and returns what is shown instead.
    """
    if not any(has_verb(action, verb) for verb in Verb):
        return action.value.replace("_", " ")
    verb, side = verb_of(action), side_of(action)
    if verb is Verb.COPY and side is not None:
        return f"{'async ' if asynchronous(action) else ''}copy to {label(side)}"
    return _SHORT.get(verb, verb.value)


def title_of(place: Host) -> str:
    """The word for a place in a sentence: host or device."""
    return _TITLES[place]


def done_of(action: Action) -> str:
    """What a sentence says of an action of Caffe's that was done: ``copied to the host``."""
    return f"{_DONE[verb_of(action)]} the {title_of(cast('Host', place_of(action)))}"


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
    """The lines of Caffe that a row follows, in the order of the citation; other texts are left out."""
    return tuple(
        Cited(_FILES[text], int(lines[1]), int(lines[2] or lines[1]))
        for text, places in _PLACE.findall(row.cite)
        if text in _FILES
        for lines in _LINES.finditer(places)
    )
