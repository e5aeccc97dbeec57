"""The protocol of ports: the requests that the kit writes, and the answers that a port writes.

A port is a program.  It reads requests from its standard input and writes answers to its standard output.  Each is a
JSON object on a line of its own.  The port answers every request before it reads the next one, and ends when its input
ends.  What it writes to standard error is kept for messages.

The requests about memories are in the words of a machine: its calls, settings, sides, heads, flags and actions have
there the names that they have in it.  Everything about the format is in the tables of this module.  The page, the
schema and the checks of answers are made from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from syncedmem.model import EDITIONS, SyncedHead, SyncedMemoryError, caffe
from syncedmem.model.interface import BLOB_CALLS

from .. import requirements
from ..blob.elements import TYPES
from ..engine.fields import (
    FLAG,
    HEX,
    INTEGER,
    NUMBER,
    TEXT,
    Field,
    Type,
    array_of,
    by_name,
    fault,
    object_of,
    one_of,
    or_null,
)
from .harness import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Call, Machine

__all__ = [
    "BLOB",
    "BLOB_REQUESTS",
    "CAFFE",
    "LARGEST",
    "LEVELS",
    "OFFERS",
    "VERSION",
    "ActionMeaning",
    "Message",
    "PortError",
    "Protocol",
    "protocol_of",
]

_SHOWN = ("heads and refusals", "and bytes", "and actions", "and failures", "and pushes in flight")
LEVELS: Mapping[str, str] = dict(zip(requirements.LEVELS, _SHOWN, strict=True))
"""What a port shows at each level; a level includes those before it."""

LARGEST = 1 << 21
"""The largest size of a memory in bytes, unless the port says another one."""

_LIKE = 0.8
"""How like the name of a field another key is, by the measure of difflib, if it is likely a mistake."""

_REAL: Type = {"type": ["integer", "number", "string"]}
_NAME: Type = {"type": "string", "minLength": 1}
_INTEGERS = array_of(INTEGER)
_LEVEL, _HEAD = one_of(LEVELS), one_of(SyncedHead.__members__)


class PortError(SyncedMemoryError, ValueError):
    """A target that cannot be used as a port; a program, because it does not start or does not say hello.

    The message is always one line, also if it quotes a longer message.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


@dataclass(frozen=True, slots=True)
class Message:
    """A request with its fields, and the answer to it.

    Attributes
    ----------
    text : str
        What the port does.
    fields : tuple of Field
        The fields of the request, besides ``id`` and ``op``.
    answer : str
        The key of the answer in `ANSWERS`.
    level : str
        The lowest level at which the request is made.
    """

    text: str
    fields: tuple[Field, ...]
    answer: str
    level: str = "L0"


def _option(name: str, kind: Type, text: str, level: str = "L0") -> Field:
    return Field(name, kind, text, level, required=False)


def _side(machine: Machine) -> Field:
    return Field("side", one_of(machine.sides), f"the side: {', '.join(machine.sides)}")


_MEMORY = Field("memory", NUMBER, "the number of a memory")
_BUFFER = Field("buffer", _NAME, "the name of a buffer of the caller")
_BYTES = Field("bytes", HEX, "bytes, two lower-case hexadecimal digits each", "L1")
_MODE = Field("mode", one_of(("CPU", "GPU")), "Caffe's mode during the call")
_FAIL = (
    _option(
        "fail",
        {"type": "integer", "minimum": 1},
        "The action of this call with this number fails. Actions that allocate, zero, copy or free are counted, "
        "from 1; others are not. If the call has fewer, none fails.",
        "L3",
    ),
    _option("partial", FLAG, "whether the failing action first does half of its work, if it zeroes or copies", "L3"),
)
_ADOPTED = Field("buffer", or_null(_NAME), "the buffer to adopt; null for a null pointer")
_OFFSET = _option("offset", NUMBER, "where the part begins, in bytes; if left out, at the start of the block", "L1")
_STREAM = Field("stream", NUMBER, "the number of a stream; a new number is a new stream")
_BLOB = Field("blob", NUMBER, "the number of a blob")

BLOB_REQUESTS: Mapping[str, Message] = {
    "new_blob": Message(
        "Make a blob.",
        (
            _BLOB,
            _MODE,
            Field("type", one_of(TYPES), "the type of its elements"),
            Field("shape", or_null(_INTEGERS), "its shape; null for a blob without a shape"),
        ),
        "blob",
    ),
    "blob_call": Message(
        "Make a call of a blob.",
        (
            _BLOB,
            _MODE,
            Field("call", one_of(BLOB_CALLS), "the name of the call"),
            _option("numbers", _INTEGERS, "extents, indices or axes, for a call that takes them"),
            _option(
                "sequence",
                FLAG,
                "with extents or indices, whether they are one argument, a sequence, or up to four numbers",
            ),
            _option("other", NUMBER, "the number of the blob for reshape_like, share_* and copy_from"),
            _option("copy_diff", FLAG, "for copy_from, whether the diff is copied, not the data"),
            _option("reshape", FLAG, "for copy_from, whether the blob takes the shape of the other"),
            _option("factor", _REAL, "for scale_*; what JSON has no number for is nan, inf or -inf as text"),
            _option("buffer", or_null(_NAME), "for set_*, the buffer to adopt; null for a null pointer"),
            *_FAIL,
        ),
        "blob",
    ),
    "blob_state": Message("Show a blob; change nothing.", (_BLOB,), "blob_state"),
    "write_blob": Message(
        "Write bytes to the start of the view that the last successful call for this part and side of this blob "
        "returned.",
        (_BLOB, Field("part", one_of(("data", "diff")), "the part"), _side(caffe.CAFFE), _BYTES),
        "blob_state",
        "L1",
    ),
    "drop_blob": Message("Drop a blob; memory that no blob has any more is freed.", (_BLOB, _MODE), "blob"),
}
"""The requests about blobs; a port that has none is never sent them."""


def _part(part: str) -> tuple[Field, ...]:
    """What is seen of the data or of the diff of a blob."""
    shared = f"a number of the memory of the {part}, the same for all blobs that share it; null if there is none yet"
    fresh = "all bytes of its host side, read without a call, if this side is fresh"
    return (
        _option(part, or_null(NUMBER), shared),
        _option(f"{part}_head", _HEAD, "the head of this memory"),
        _option(f"{part}_size", NUMBER, "its size in bytes"),
        _option(f"{part}_cpu", or_null(HEX), fresh, "L1"),
        _option(f"{part}_gpu", or_null(HEX), "the same for its device side", "L1"),
    )


BLOB: tuple[Field, ...] = (
    _option(
        "shape",
        _INTEGERS,
        "the extents, which must be there, with count, unless there is no such blob, or it is dropped",
    ),
    _option("count", INTEGER, "the number of elements"),
    _option("capacity", INTEGER, "how many elements fit; needed in the profile safe"),
    *_part("data"),
    *_part("diff"),
)
"""What is seen of a blob after a request."""

OFFERS = ("own_buffer", "drop")
"""The optional requests about memories; a port that does not offer them is never sent them."""

_SENTENCES: Mapping[str, str] = {
    "read": "Get the {side} side for reading.",
    "write": "Get the {side} side for writing.",
    "overwrite": "Get the {side} side, of which every byte is going to be written.",
    "adopt": "Adopt a buffer on the {side} side.",
    "push": "Queue a copy to the {side} side.",
    "pull": "Queue a copy to the {side} side.",
    "evict": "Forget the {side} side.",
    "release": "Free the memory.",
}
"""What a port does for a call, by what the call does."""

_ID = Field("id", NUMBER, "the number of the request")
_REFUSED = _option("refused", or_null(TEXT), "why the request was refused or failed; null or left out if it was done")
_VIEW = _option(
    "view",
    or_null(HEX),
    "after a call that returns a side, the first bytes of the view that it returned, as many as the memory has",
    "L1",
)


class ActionMeaning(NamedTuple):
    """What an action of a port does; see `syncedmem.model.Action`.

    Attributes
    ----------
    does : str
        One of `syncedmem.model.declaration.ACTION_MEANINGS`.
    side, source : str
        The same ones for a copy within a side.
    queued : bool
    """

    does: str
    side: str = ""
    source: str = ""
    queued: bool = False


@dataclass(frozen=True, eq=False)
class Protocol:
    """The protocol in the words of a machine; `protocol_of` makes one.

    Attributes
    ----------
    machine : Machine
    requests : mapping of str to Message
        Every request by its ``op``.  Each also has ``id``, a number; the answer has the same ``id``.
    actions : mapping of str to ActionMeaning
        By their names.
    state : tuple of Field
        What is seen of a memory after a request.
    action : tuple of Field
        An action that a call took, if its name alone does not say everything.
    answers : mapping of str to tuple of Field
        The fields of each kind of answer, besides ``id``.
    """

    machine: Machine
    requests: Mapping[str, Message]
    actions: Mapping[str, ActionMeaning]
    state: tuple[Field, ...]
    action: tuple[Field, ...]
    answers: Mapping[str, tuple[Field, ...]]

    def wrong(self, kind: str, answer: Any, level: str) -> str:
        """What is wrong with an answer of this kind at this level, in one sentence; empty if nothing is.

        Keys of a port's own are not looked at, unless one is likely a field that is not there, misspelt.
        """
        fields, told = self._fields[kind], cast("dict[str, Any]", answer if type(answer) is dict else {})
        if own := sorted(told.keys() - fields.keys()):
            absent = sorted(fields.keys() - told.keys())
            for name in own:
                if near := get_close_matches(name, absent, 1, _LIKE):
                    return f"it has {name!r}, which is none of its fields; did you mean {near[0]!r}?"
            answer = {name: told[name] for name in told if name in fields}
        excused = told.get("refused") is not None and "id" in told and kind not in ("call", "blob")
        sentence = fault(answer, fields, level, excused=excused)
        return f"it {sentence}" if sentence else ""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a line: a request, or an answer of one kind, which ``$defs`` has by its name."""
        requests = {f"request_{name}": _request(name, message) for name, message in self.requests.items()}
        # What an answer has at every level, whether the request was refused or not.
        answers = {
            f"answer_{name}": object_of(fields.values(), ["id"]) | {"additionalProperties": True}
            for name, fields in self._fields.items()
        }
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"The protocol of ports, version {VERSION}: one line",
            "anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*requests, *answers)],
            "$defs": {**requests, **answers},
        }

    @cached_property
    def attributes(self) -> frozenset[str]:
        """What a memory has besides its head and its sides."""
        return frozenset(field.name for field in self.state) - {"head", *self.machine.sides}

    @cached_property
    def _fields(self) -> dict[str, dict[str, Field]]:
        """The fields of each kind of answer, by their names."""
        return {kind: by_name(_ID, *fields) for kind, fields in self.answers.items()}


def _request(name: str, message: Message) -> Type:
    op = Field("op", {"const": name}, message.text)
    return {"description": message.text, **object_of((_ID, op, *message.fields))}


@lru_cache(maxsize=8)
def protocol_of(machine: Machine) -> Protocol:
    """The protocol in the words of a machine; the editions of Caffe's have one together, and only that has blobs."""
    is_caffe = machine in (caffe.EVERYTHING, *EDITIONS.values())
    machine, editions = (caffe.EVERYTHING, (*EDITIONS,)) if is_caffe else (machine, (machine.name,))
    requests, state, actions = _requests(machine, editions), _state(machine), _actions(machine)
    action = _action(machine, actions)
    answers = _answers(editions, state, array_of({"anyOf": [one_of(actions), object_of(action)]}))
    if not is_caffe:
        _check_words(machine)
        requests = {op: request for op, request in requests.items() if op not in BLOB_REQUESTS}
        answers = {kind: fields for kind, fields in answers.items() if not kind.startswith("blob")}
    return Protocol(machine, requests, actions, state, action, answers)


def _check_words(machine: Machine) -> None:
    """Refuse a machine whose words would mean two things in a request or in an answer."""
    fields = {"id", "op", "memory", "buffer", "stream", "fail", "partial"}
    shown = {"id", "head", "size", "view", "actions", "refused"}
    calls = set(_requests(caffe.EVERYTHING, ())) - set(caffe.EVERYTHING.calls)
    for kind, words, others in (
        ("call", machine.calls, calls),
        ("setting", machine.settings, fields),
        ("side", machine.sides, shown),
        ("fact", machine.facts, shown | set(machine.sides)),
    ):
        if word := next((word for word in words if word in others), None):
            raise PortError(f"{machine.name} has a {kind} {word}, and the protocol of ports has this word too")


def _requests(machine: Machine, editions: tuple[str, ...]) -> dict[str, Message]:
    side = _side(machine)
    settings = tuple(
        _MODE if setting.name == _MODE.name else Field(setting.name, one_of(setting.values), "the setting of this name")
        for setting in machine.settings.values()
    )
    return {
        "hello": Message(
            "Say what the port is and offers. It is the first request.",
            (
                Field("version", INTEGER, "the version of the protocol"),
                Field("level", _LEVEL, "the highest level that is asked for"),
                _option(
                    "edition",
                    one_of(editions),
                    "the edition that is asked for, if the user names one, or the name of the machine",
                ),
            ),
            "hello",
        ),
        "new": Message("Make a memory.", (_MEMORY, Field("size", NUMBER, "its size in bytes")), "call"),
        **{call.name: _call(call, settings) for call in machine.calls.values()},
        "state": Message("Show a memory; change nothing.", (_MEMORY,), "state"),
        "buffer": Message("Make a buffer of the caller with these bytes.", (_BUFFER, side, _BYTES), "done"),
        "write_buffer": Message("Write bytes to the start of a buffer, as its owner.", (_BUFFER, _BYTES), "done"),
        "read_buffer": Message("Show a buffer.", (_BUFFER,), "bytes", "L1"),
        "write_view": Message(
            "Write bytes to the start of the view that the last successful call for this side of this memory returned.",
            (_MEMORY, side, _BYTES),
            "state",
            "L1",
        ),
        "synchronize": Message("Wait for every push of every memory.", (), "done"),
        "own_buffer": Message(
            "Let this name, which is no other buffer's, mean the memory's own block on this side, or a part of it, for "
            "the next adoption.",
            (_MEMORY, side, _BUFFER, _OFFSET),
            "done",
            "L1",
        ),
        "drop": Message(
            "Drop a memory, released or not: it is never called again. What it still owns is freed.",
            (_MEMORY,),
            "call",
            "L2",
        ),
        **BLOB_REQUESTS,
    }


def _call(call: Call, settings: tuple[Field, ...]) -> Message:
    text = _SENTENCES.get(call.does, "Make this call of the machine.").format(side=call.side)
    arguments = {"adopt": (_ADOPTED,), "push": (_STREAM,), "pull": (_STREAM,)}.get(call.does, ())
    return Message(text, (_MEMORY, *settings, *arguments, *_FAIL), "call")


def _state(machine: Machine) -> tuple[Field, ...]:
    flags = (fact for fact in machine.facts.values() if fact.flag or fact.means in ("owned", "pinned"))
    first = f"The first bytes of the {machine.sides[0]} side" if machine.sides else ""
    shown = ", as many as the memory has, read without a call; null or left out if there is no such side."
    return (
        _option(
            "head",
            one_of(machine.heads),
            "the head, which must be there unless there is no such memory, or it is released, also by a release that "
            "freed one side and then failed",
        ),
        _option("size", NUMBER, "the size in bytes"),
        *(_option(flag.name, FLAG, "the flag of this name") for flag in flags),
        *(
            _option(side, or_null(HEX), "the same for this side" if k else f"{first}{shown}", "L1")
            for k, side in enumerate(machine.sides)
        ),
    )


def _actions(machine: Machine) -> dict[str, ActionMeaning]:
    """The machine's actions, and names for what it has no action for, but a wrong port may do."""
    own = {
        action.name: ActionMeaning(action.does, action.side, action.source, action.queued)
        for action in machine.actions.values()
    }
    usual = {
        f"{does}_{side}": ActionMeaning(does, side) for side in machine.sides for does in ("allocate", "zero", "free")
    }
    across = {
        f"copy_{permutation}_to_{side}": ActionMeaning("copy", side, permutation)
        for permutation, side in permutations(machine.sides, 2)
    }
    within = {f"copy_{side}": ActionMeaning("copy", side, side) for side in machine.sides}
    missing = {name: meaning for name, meaning in (usual | across | within).items() if meaning not in own.values()}
    return {
        **own,
        **{name: meaning for name, meaning in ({**missing, "wait": ActionMeaning("wait")}).items() if name not in own},
    }


def _action(machine: Machine, actions: Mapping[str, ActionMeaning]) -> tuple[Field, ...]:
    pinned = [fact.name for fact in machine.facts.values() if fact.means == "pinned"]
    otherwise = f"what {' or '.join(pinned)} says" if pinned else "false"
    return (
        Field("action", one_of(actions), "the name of the action", "L2"),
        _option(
            "size",
            NUMBER,
            "how many bytes; if left out, the size of the memory; of an action of a blob it must be there",
            "L2",
        ),
        _option(
            "pinned",
            FLAG,
            f"for an allocation and a free, whether it is page-locked memory; if left out, {otherwise} of an "
            "allocation, and for a free what its allocation was",
            "L2",
        ),
        _option(
            "block",
            or_null(NUMBER),
            "for an allocation and a free, a number of the block, which no other block ever has; null for a free of "
            "something that is not allocated. If left out, the last block of this side; of an action of a blob it "
            "must be there.",
            "L2",
        ),
        _option("buffer", _NAME, "for a free, the name of the buffer of the caller that was freed", "L2"),
        _option("failed", FLAG, "whether it failed; if left out, it did not", "L3"),
        _option(
            "stream",
            NUMBER,
            "for a queued copy and wait, the number of the stream; 0 is the default one. Left out by a port that does "
            "not say `streams` in its first answer.",
            "L4",
        ),
    )


def _answers(editions: tuple[str, ...], state: tuple[Field, ...], actions: Type) -> dict[str, tuple[Field, ...]]:
    done = Field(
        "actions",
        actions,
        "The actions that the call took, in order, also if it failed: those that were done, the one that failed, and "
        "what was done to undo them.",
        "L2",
    )
    return {
        "hello": (
            Field("version", INTEGER, "the version of the protocol that the port speaks"),
            Field("name", _NAME, "the name of the port"),
            Field("level", _LEVEL, "the highest level that the port can show"),
            _option(
                "edition",
                one_of(dict.fromkeys((*EDITIONS, *editions))),
                "the edition that the port is, or the name of its machine; if left out, caffe",
            ),
            _option("blobs", FLAG, "whether it has blobs; if left out, it has none"),
            _option("offers", array_of(one_of(OFFERS)), "the optional requests that it answers; if left out, none"),
            _option(
                "defers",
                FLAG,
                "whether a queued push happens only when somebody waits for it; if left out, it happens at once",
                "L4",
            ),
            _option(
                "streams",
                FLAG,
                "whether its pushes and waits say on which stream they are; if left out, R58 is not judged",
                "L4",
            ),
            _option("largest", NUMBER, f"the largest size that a memory may have, in bytes; if left out, {LARGEST}"),
            _REFUSED,
        ),
        # A port may have one form of answer for both: what there was of a call before is not looked at.
        "state": (_VIEW, replace(done, required=False), *state, _REFUSED),
        "call": (_VIEW, done, *state, _REFUSED),
        "blob_state": (*BLOB, _REFUSED),
        "blob": (
            _option(
                "value",
                _REAL,
                "the result, of a call that has one: a number, or nan, inf or -inf as text; of shape_string a text",
            ),
            _option(
                "view",
                or_null(HEX),
                "after a call that returns a view, the bytes of the elements; after gpu_shape, those of the extents",
                "L1",
            ),
            replace(done, text="the actions that the call took, in order"),
            *BLOB,
            _REFUSED,
        ),
        "bytes": (Field("bytes", HEX, "all bytes of the buffer", "L1"), _REFUSED),
        "done": (_REFUSED,),
    }


CAFFE = protocol_of(caffe.EVERYTHING)
"""The protocol in Caffe's words."""
