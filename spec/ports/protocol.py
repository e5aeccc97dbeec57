"""The protocol of ports: the requests that the kit writes, and the answers that a port writes.

A port is a program.  It reads requests from its standard input and writes answers to its standard output.  Each is a
JSON object on a line of its own.  The port answers every request before it reads the next one, and ends when its input
ends.  What it writes to standard error is kept for messages.

Everything about the format is in the tables of this module.  The page, the schema and the checks of answers are made
from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from syncedmem import model
from syncedmem.model import SyncedHead, caffe
from syncedmem.model.interface import BLOB_CALLS

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

__all__ = [
    "ACTION",
    "ANSWERS",
    "BLOB",
    "BLOB_REQUESTS",
    "CALLS",
    "LARGEST",
    "LEVELS",
    "OFFERS",
    "REQUESTS",
    "STATE",
    "VERSION",
    "Message",
    "schema",
    "wrong",
]

LEVELS: Mapping[str, str] = {
    "L0": "heads and refusals",
    "L1": "and bytes",
    "L2": "and actions",
    "L3": "and failures",
    "L4": "and pushes in flight",
}
"""What a port shows at each level; a level includes those before it."""

LARGEST = 1 << 21
"""The largest size of a memory in bytes, unless the port says another one."""

_ACTIONS = (*caffe.EVERYTHING.actions, "copy_cpu", "copy_gpu", "wait")
"""The model's actions; copies within a side, which no call needs; and a wait for the pushes of the memory."""

_REAL: Type = {"type": ["integer", "number", "string"]}
_NAME: Type = {"type": "string", "minLength": 1}
_INTEGERS = array_of(INTEGER)
_EDITION, _LEVEL, _HEAD = one_of(model.EDITIONS), one_of(LEVELS), one_of(SyncedHead.__members__)


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


_MEMORY = Field("memory", NUMBER, "the number of a memory")
_BUFFER = Field("buffer", _NAME, "the name of a buffer of the caller")
_BYTES = Field("bytes", HEX, "bytes, two lower-case hexadecimal digits each", "L1")
_SIDE = Field("side", one_of(("cpu", "gpu")), "the host side or the device side")
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
        (_BLOB, Field("part", one_of(("data", "diff")), "the part"), _SIDE, _BYTES),
        "blob_state",
        "L1",
    ),
    "drop_blob": Message("Drop a blob; memory that no blob has any more is freed.", (_BLOB, _MODE), "blob"),
}
"""The requests about blobs; a port that has none is never sent them."""

OFFERS: Mapping[str, Message] = {
    "own_buffer": Message(
        "Let this name, which is no other buffer's, mean the memory's own block on this side, for the next adoption.",
        (_MEMORY, _SIDE, _BUFFER),
        "done",
        "L1",
    ),
    "drop": Message(
        "Drop a memory, released or not: it is never called again. What it still owns is freed.",
        (_MEMORY,),
        "call",
        "L2",
    ),
}
"""The optional requests about memories; a port that does not offer them is never sent them."""

_CALLS: Mapping[str, tuple[str, tuple[Field, ...]]] = {
    "cpu_data": ("Get the host side for reading.", ()),
    "mutable_cpu_data": ("Get the host side for writing.", ()),
    "gpu_data": ("Get the device side for reading.", ()),
    "mutable_gpu_data": ("Get the device side for writing.", ()),
    "set_cpu_data": ("Adopt a buffer on the host side.", (_ADOPTED,)),
    "set_gpu_data": ("Adopt a buffer on the device side.", (_ADOPTED,)),
    "async_gpu_push": ("Queue a copy to the device side.", (_STREAM,)),
    "release": ("Free the memory: Caffe's destructor.", ()),
}
CALLS = tuple(_CALLS)
"""The requests that are calls of the memory, with Caffe's names."""

REQUESTS: Mapping[str, Message] = {
    "hello": Message(
        "Say what the port is and offers. It is the first request.",
        (
            Field("version", INTEGER, "the version of the protocol"),
            Field("level", _LEVEL, "the highest level that is asked for"),
            _option("edition", _EDITION, "the edition that is asked for, if the user names one"),
        ),
        "hello",
    ),
    "new": Message("Make a memory.", (_MEMORY, Field("size", NUMBER, "its size in bytes")), "call"),
    **{name: Message(text, (_MEMORY, _MODE, *more, *_FAIL), "call") for name, (text, more) in _CALLS.items()},
    "state": Message("Show a memory; change nothing.", (_MEMORY,), "state"),
    "buffer": Message("Make a buffer of the caller with these bytes.", (_BUFFER, _SIDE, _BYTES), "done"),
    "write_buffer": Message("Write bytes to the start of a buffer, as its owner.", (_BUFFER, _BYTES), "done"),
    "read_buffer": Message("Show a buffer.", (_BUFFER,), "bytes", "L1"),
    "write_view": Message(
        "Write bytes to the start of the view that the last successful call for this side of this memory returned.",
        (_MEMORY, _SIDE, _BYTES),
        "state",
        "L1",
    ),
    "synchronize": Message("Wait for every push of every memory.", (), "done"),
    **OFFERS,
    **BLOB_REQUESTS,
}
"""Every request by its ``op``.  Each also has ``id``, a number; the answer has the same ``id``."""

STATE: tuple[Field, ...] = (
    _option("head", _HEAD, "the head, which must be there unless there is no such memory, or it is released"),
    _option("size", NUMBER, "the size in bytes"),
    *(_option(flag.name, FLAG, "the flag of this name") for flag in caffe.CAFFE.flags),
    _option(
        "cpu",
        or_null(HEX),
        "The first bytes of the host side, as many as the memory has, read without a call; null or left out if there "
        "is no host side.",
        "L1",
    ),
    _option("gpu", or_null(HEX), "the same for the device side", "L1"),
)
"""What is seen of a memory after a request."""


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

ACTION: tuple[Field, ...] = (
    Field("action", one_of(_ACTIONS), "the name of the action", "L2"),
    _option(
        "size",
        NUMBER,
        "how many bytes; if left out, the size of the memory; of an action of a blob it must be there",
        "L2",
    ),
    _option(
        "pinned",
        FLAG,
        "for allocate_cpu and free_cpu, whether it is page-locked memory; if left out, what cpu_malloc_use_cuda says "
        "of an allocation, and for a free what its allocation was",
        "L2",
    ),
    _option(
        "block",
        or_null(NUMBER),
        "for an allocation and a free, a number of the block, which no other block ever has; null for a free of "
        "something that is not allocated. If left out, the last block of this side; of an action of a blob it must be "
        "there.",
        "L2",
    ),
    _option("buffer", _NAME, "for a free, the name of the buffer of the caller that was freed", "L2"),
    _option("failed", FLAG, "whether it failed; if left out, it did not", "L3"),
    _option(
        "stream",
        NUMBER,
        "for copy_to_gpu_async and wait, the number of the stream; 0 is the default one. Left out by a port that does "
        "not say `streams` in its first answer.",
        "L4",
    ),
)
"""An action that a call took, if its name alone does not say everything."""

_ID = Field("id", NUMBER, "the number of the request")
_REFUSED = _option("refused", or_null(TEXT), "why the request was refused or failed; null or left out if it was done")
_VIEW = _option(
    "view",
    or_null(HEX),
    "after a call that returns a side, the first bytes of the view that it returned, as many as the memory has",
    "L1",
)
_LISTED = array_of({"anyOf": [one_of(_ACTIONS), object_of(ACTION)]})
_DONE = Field(
    "actions",
    _LISTED,
    "The actions that the call took, in order, also if it failed: those that were done, the one that failed, and what "
    "was done to undo them.",
    "L2",
)

ANSWERS: Mapping[str, tuple[Field, ...]] = {
    "hello": (
        Field("version", INTEGER, "the version of the protocol that the port speaks"),
        Field("name", _NAME, "the name of the port"),
        Field("level", _LEVEL, "the highest level that the port can show"),
        _option("edition", _EDITION, "the edition that the port is; if left out, caffe"),
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
    "state": (_VIEW, replace(_DONE, required=False), *STATE, _REFUSED),
    "call": (_VIEW, _DONE, *STATE, _REFUSED),
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
        Field("actions", _LISTED, "the actions that the call took, in order", "L2"),
        *BLOB,
        _REFUSED,
    ),
    "bytes": (Field("bytes", HEX, "all bytes of the buffer", "L1"), _REFUSED),
    "done": (_REFUSED,),
}
"""The fields of each kind of answer, besides ``id``."""

_CHECKED = {kind: by_name(_ID, *fields) for kind, fields in ANSWERS.items()}


def wrong(kind: str, answer: Any, level: str) -> str:
    """What is wrong with an answer of this kind at this level, in one sentence; empty if nothing is."""
    refused = type(answer) is dict and answer.get("refused") is not None and "id" in answer  # pyright: ignore[reportUnknownMemberType]
    sentence = fault(answer, _CHECKED[kind], level, excused=refused and kind not in ("call", "blob"))
    return f"it {sentence}" if sentence else ""


def schema() -> dict[str, Any]:
    """The JSON Schema of a line: a request, or an answer of one kind, which ``$defs`` has by its name."""
    requests = {f"request_{name}": _request(name, message) for name, message in REQUESTS.items()}
    # What an answer has at every level, whether the request was refused or not.
    answers = {f"answer_{name}": object_of(fields.values(), ["id"]) for name, fields in _CHECKED.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The protocol of ports, version {VERSION}: one line",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*requests, *answers)],
        "$defs": {**requests, **answers},
    }


def _request(name: str, message: Message) -> Type:
    op = Field("op", {"const": name}, message.text)
    return {"description": message.text, **object_of((_ID, op, *message.fields))}
