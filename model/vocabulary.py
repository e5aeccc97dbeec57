"""The words of the table in other forms: codes and phrases for tables and drawings, the lines that a row cites.

What a head, a call or an action means is stated where it is declared (``head``).
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .head import Action, Call, Host, Role, Transition, Verb

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
    """What an action does."""
    return action.does


def place_of(word: Action | Call) -> Host | None:
    """The side that an action or a call is about; None for ``release``."""
    return word.side


def asynchronous(action: Action) -> bool:
    """Whether an action is only queued when the call returns."""
    return action.queued


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


def role_of(call: Call) -> Role:
    """What a call is for."""
    return call.does


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
