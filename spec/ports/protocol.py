"""The protocol of ports: the requests that the kit writes, and the answers that a port writes.

A port is a program.  It reads requests from its standard input and writes answers to its standard output.  Each is a
JSON object on a line of its own.  The port answers every request before it reads the next one, and ends when its input
ends.  What it writes to standard error is kept for messages.

Everything about the format is in the tables of this module.  The page, the schema and the checks of answers are made
from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from syncedmem import model
from syncedmem.model import SyncedHead, caffe
from syncedmem.model.interface import BLOB_CALLS

from .harness import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "ACTION",
    "ACTIONS",
    "ANSWERS",
    "BLACK_BOX",
    "BLOB",
    "BLOB_REQUESTS",
    "BLOB_TYPES",
    "CALLS",
    "EDITIONS",
    "HEADS",
    "LARGEST",
    "LEVELS",
    "OFFERS",
    "REQUESTS",
    "STATE",
    "VERSION",
    "Field",
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

BLACK_BOX = ("L0", "L1")
"""The levels at which a port has its own allocators, and nothing is known of them."""

EDITIONS = tuple(model.EDITIONS)
HEADS = tuple(head.name for head in SyncedHead)
ACTIONS = (*caffe.EVERYTHING.actions, "copy_cpu", "copy_gpu", "wait")
"""The model's actions; copies within a side, which no call needs; and a wait for the pushes of the memory."""

BLOB_TYPES = ("float32", "float64", "int32", "uint32", "float16")
"""The types of the elements of blobs."""

LARGEST = 1 << 21
"""The largest size of a memory in bytes, unless the port says another one."""

Type = dict[str, Any]
"""A type as JSON Schema describes it."""

_INTEGER: Type = {"type": "integer"}
_REAL: Type = {"type": ["integer", "number", "string"]}
_INTEGERS: Type = {"type": "array", "items": _INTEGER}
_NUMBER: Type = {"type": "integer", "minimum": 0}
_FLAG: Type = {"type": "boolean"}
_NAME: Type = {"type": "string", "minLength": 1}
_TEXT: Type = {"type": "string"}
_HEX: Type = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}


def _one_of(*names: str) -> Type:
    return {"type": "string", "enum": [*names]}


def _or_null(kind: Type) -> Type:
    return {**kind, "type": [kind["type"], "null"]}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request or of an answer.

    Attributes
    ----------
    name : str
    type : dict
        Its type, as JSON Schema describes it.
    text : str
        What it means.
    level : str
        The level from which on it counts.
    required : bool
        Whether it must be there, from its level on.
    """

    name: str
    type: Type
    text: str
    level: str = "L0"
    required: bool = True


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


_MEMORY = Field("memory", _NUMBER, "the number of a memory")
_BUFFER = Field("buffer", _NAME, "the name of a buffer of the caller")
_BYTES = Field("bytes", _HEX, "bytes, two lower-case hexadecimal digits each", "L1")
_SIDE = Field("side", _one_of("cpu", "gpu"), "the host side or the device side")
_MODE = Field("mode", _one_of("CPU", "GPU"), "Caffe's mode during the call")
_FAIL = (
    Field(
        "fail",
        {"type": "integer", "minimum": 1},
        "The action of this call with this number fails. Actions that allocate, zero, copy or free are counted, "
        "from 1; others are not. If the call has fewer, none fails.",
        "L3",
        required=False,
    ),
    Field(
        "partial",
        _FLAG,
        "whether the failing action first does half of its work, if it zeroes or copies",
        "L3",
        required=False,
    ),
)
_ADOPTED = Field("buffer", _or_null(_NAME), "the buffer to adopt; null for a null pointer")
_BLOB = Field("blob", _NUMBER, "the number of a blob")

BLOB_REQUESTS: Mapping[str, Message] = {
    "new_blob": Message(
        "Make a blob.",
        (
            _BLOB,
            _MODE,
            Field("type", _one_of(*BLOB_TYPES), "the type of its elements"),
            Field("shape", _or_null(_INTEGERS), "its shape; null for a blob without a shape"),
        ),
        "blob",
    ),
    "blob_call": Message(
        "Make a call of a blob.",
        (
            _BLOB,
            _MODE,
            Field("call", _one_of(*BLOB_CALLS), "the name of the call"),
            Field("numbers", _INTEGERS, "extents, indices or axes, for a call that takes them", required=False),
            Field(
                "sequence",
                _FLAG,
                "with extents or indices, whether they are one argument, a sequence, or up to four numbers",
                required=False,
            ),
            Field("other", _NUMBER, "the number of the blob for reshape_like, share_* and copy_from", required=False),
            Field("copy_diff", _FLAG, "for copy_from, whether the diff is copied, not the data", required=False),
            Field("reshape", _FLAG, "for copy_from, whether the blob takes the shape of the other", required=False),
            Field(
                "factor", _REAL, "for scale_*; what JSON has no number for is nan, inf or -inf as text", required=False
            ),
            Field("buffer", _or_null(_NAME), "for set_*, the buffer to adopt; null for a null pointer", required=False),
            *_FAIL,
        ),
        "blob",
    ),
    "blob_state": Message("Show a blob; change nothing.", (_BLOB,), "blob_state"),
    "write_blob": Message(
        "Write bytes to the start of the view that the last successful call for this part and side of this blob "
        "returned.",
        (_BLOB, Field("part", _one_of("data", "diff"), "the part"), _SIDE, _BYTES),
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

REQUESTS: Mapping[str, Message] = {
    "hello": Message(
        "Say what the port is and offers. It is the first request.",
        (
            Field("version", _INTEGER, "the version of the protocol"),
            Field("level", _one_of(*LEVELS), "the highest level that is asked for"),
            Field(
                "edition", _one_of(*EDITIONS), "the edition that is asked for, if the user names one", required=False
            ),
        ),
        "hello",
    ),
    "new": Message("Make a memory.", (_MEMORY, Field("size", _NUMBER, "its size in bytes")), "call"),
    "cpu_data": Message("Get the host side for reading.", (_MEMORY, _MODE, *_FAIL), "call"),
    "mutable_cpu_data": Message("Get the host side for writing.", (_MEMORY, _MODE, *_FAIL), "call"),
    "gpu_data": Message("Get the device side for reading.", (_MEMORY, _MODE, *_FAIL), "call"),
    "mutable_gpu_data": Message("Get the device side for writing.", (_MEMORY, _MODE, *_FAIL), "call"),
    "set_cpu_data": Message("Adopt a buffer on the host side.", (_MEMORY, _MODE, _ADOPTED, *_FAIL), "call"),
    "set_gpu_data": Message("Adopt a buffer on the device side.", (_MEMORY, _MODE, _ADOPTED, *_FAIL), "call"),
    "async_gpu_push": Message(
        "Queue a copy to the device side.",
        (_MEMORY, _MODE, Field("stream", _NUMBER, "the number of a stream; a new number is a new stream"), *_FAIL),
        "call",
    ),
    "release": Message("Free the memory: Caffe's destructor.", (_MEMORY, _MODE, *_FAIL), "call"),
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

CALLS = tuple(name for name, it in REQUESTS.items() if _MEMORY in it.fields and _MODE in it.fields)
"""The requests that are calls of the memory, with Caffe's names."""

_LISTED = {"anyOf": [_one_of(*ACTIONS), {"$ref": "#/$defs/action"}]}

STATE: tuple[Field, ...] = (
    Field(
        "head",
        _one_of(*HEADS),
        "the head, which must be there unless there is no such memory, or it is released",
        required=False,
    ),
    Field("size", _NUMBER, "the size in bytes", required=False),
    Field("own_cpu_data", _FLAG, "the flag of this name", required=False),
    Field("own_gpu_data", _FLAG, "the flag of this name", required=False),
    Field("cpu_malloc_use_cuda", _FLAG, "the flag of this name", required=False),
    Field(
        "cpu",
        _or_null(_HEX),
        "The first bytes of the host side, as many as the memory has, read without a call; null or left out if there "
        "is no host side.",
        "L1",
        required=False,
    ),
    Field("gpu", _or_null(_HEX), "the same for the device side", "L1", required=False),
)
"""What is seen of a memory after a request."""


def _part(part: str) -> tuple[Field, ...]:
    """What is seen of the data or of the diff of a blob."""
    return (
        Field(
            part,
            _or_null(_NUMBER),
            f"a number of the memory of the {part}, the same for all blobs that share it; null if there is none yet",
            required=False,
        ),
        Field(f"{part}_head", _one_of(*HEADS), "the head of this memory", required=False),
        Field(f"{part}_size", _NUMBER, "its size in bytes", required=False),
        Field(
            f"{part}_cpu",
            _or_null(_HEX),
            "all bytes of its host side, read without a call, if this side is fresh",
            "L1",
            required=False,
        ),
        Field(f"{part}_gpu", _or_null(_HEX), "the same for its device side", "L1", required=False),
    )


BLOB: tuple[Field, ...] = (
    Field(
        "shape",
        _INTEGERS,
        "the extents, which must be there, with count, unless there is no such blob, or it is dropped",
        required=False,
    ),
    Field("count", _INTEGER, "the number of elements", required=False),
    Field("capacity", _INTEGER, "how many elements fit; needed in the profile safe", required=False),
    *_part("data"),
    *_part("diff"),
)
"""What is seen of a blob after a request."""

ACTION: tuple[Field, ...] = (
    Field("action", _one_of(*ACTIONS), "the name of the action", "L2"),
    Field(
        "size",
        _NUMBER,
        "how many bytes; if left out, the size of the memory; of an action of a blob it must be there",
        "L2",
        required=False,
    ),
    Field(
        "pinned",
        _FLAG,
        "for allocate_cpu and free_cpu, whether it is page-locked memory; if left out, what cpu_malloc_use_cuda says "
        "of an allocation, and for a free what its allocation was",
        "L2",
        required=False,
    ),
    Field(
        "block",
        _or_null(_NUMBER),
        "for an allocation and a free, a number of the block, which no other block ever has; null for a free of "
        "something that is not allocated. If left out, the last block of this side; of an action of a blob it must be "
        "there.",
        "L2",
        required=False,
    ),
    Field("buffer", _NAME, "for a free, the name of the buffer of the caller that was freed", "L2", required=False),
    Field("failed", _FLAG, "whether it failed; if left out, it did not", "L3", required=False),
    Field(
        "stream",
        _NUMBER,
        "for copy_to_gpu_async and wait, the number of the stream; 0 is the default one. Left out by a port that does "
        "not say `streams` in its first answer.",
        "L4",
        required=False,
    ),
)
"""An action that a call took, if its name alone does not say everything."""

_REFUSED = Field(
    "refused", _or_null(_TEXT), "why the request was refused or failed; null or left out if it was done", required=False
)
_VIEW = Field(
    "view",
    _or_null(_HEX),
    "after a call that returns a side, the first bytes of the view that it returned, as many as the memory has",
    "L1",
    required=False,
)
_ACTIONS = Field(
    "actions",
    {"type": "array", "items": _LISTED},
    "The actions that the call took, in order, also if it failed: those that were done, the one that failed, and what "
    "was done to undo them.",
    "L2",
)

ANSWERS: Mapping[str, tuple[Field, ...]] = {
    "hello": (
        Field("version", _INTEGER, "the version of the protocol that the port speaks"),
        Field("name", _NAME, "the name of the port"),
        Field("level", _one_of(*LEVELS), "the highest level that the port can show"),
        Field("edition", _one_of(*EDITIONS), "the edition that the port is; if left out, caffe", required=False),
        Field("blobs", _FLAG, "whether it has blobs; if left out, it has none", required=False),
        Field(
            "offers",
            {"type": "array", "items": _one_of(*OFFERS)},
            "the optional requests that it answers; if left out, none",
            required=False,
        ),
        Field(
            "defers",
            _FLAG,
            "whether a queued push happens only when somebody waits for it; if left out, it happens at once",
            "L4",
            required=False,
        ),
        Field(
            "streams",
            _FLAG,
            "whether its pushes and waits say on which stream they are; if left out, R58 is not judged",
            "L4",
            required=False,
        ),
        Field(
            "largest",
            _NUMBER,
            f"the largest size that a memory may have, in bytes; if left out, {LARGEST}",
            required=False,
        ),
        _REFUSED,
    ),
    # A port may have one form of answer for both: what there was of a call before is not looked at.
    "state": (_VIEW, replace(_ACTIONS, required=False), *STATE, _REFUSED),
    "call": (_VIEW, _ACTIONS, *STATE, _REFUSED),
    "blob_state": (*BLOB, _REFUSED),
    "blob": (
        Field(
            "value",
            _REAL,
            "the result, of a call that has one: a number, or nan, inf or -inf as text; of shape_string a text",
            required=False,
        ),
        Field(
            "view",
            _or_null(_HEX),
            "after a call that returns a view, the bytes of the elements; after gpu_shape, those of the extents",
            "L1",
            required=False,
        ),
        Field("actions", {"type": "array", "items": _LISTED}, "the actions that the call took, in order", "L2"),
        *BLOB,
        _REFUSED,
    ),
    "bytes": (Field("bytes", _HEX, "all bytes of the buffer", "L1"), _REFUSED),
    "done": (_REFUSED,),
}
"""The fields of each kind of answer, besides ``id``."""

_ID = Field("id", _NUMBER, "the number of the request")
_JSON = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
    "null": type(None),
}
_HEX_DIGITS = b"0123456789abcdef"


def wrong(kind: str, answer: Any, level: str) -> str:
    """What is wrong with an answer of this kind at this level, in one sentence; empty if nothing is."""
    if type(answer) is not dict:
        return "it is not a JSON object"
    answer = cast("dict[str, Any]", answer)
    fields = {field.name: field for field in (_ID, *ANSWERS[kind])}
    if unknown := sorted(map(repr, answer.keys() - fields.keys())):
        return f"it has {unknown[0]}, which no answer to this request has"
    for name, field in fields.items():
        if name not in answer:
            excused = answer.get("refused") is not None and name != "id" and kind not in ("call", "blob")
            if field.required and field.level <= level and not excused:
                return f"it lacks {name!r}"
        elif sentence := _mismatch(field.type, answer[name]):
            return f"{name!r} is {_short(answer[name])}, {sentence}"
    return ""


def _mismatch(kind: Type, value: Any) -> str:
    """Why a value is not of a type, as the rest of a sentence; empty if it is."""
    if "anyOf" in kind:
        return _wrong_text(kind["anyOf"][0], value) if isinstance(value, str) else _wrong_action(value)
    types: list[str] = [kind["type"]] if isinstance(kind["type"], str) else kind["type"]
    if not any(type(value) is _JSON[name] for name in types):
        return f"not of type {' or '.join(types)}"
    if isinstance(value, str):
        return _wrong_text(kind, value)
    if "array" in types:
        items = kind["items"]
        return next((f"where {found}" for it in value if (found := _wrong_item(items, it))), "")
    minimum = kind.get("minimum")
    return "" if minimum is None or value is None or value >= minimum else f"less than {minimum}"


def _wrong_text(kind: Type, value: str) -> str:
    if value not in kind.get("enum", [value]):
        return f"not one of {', '.join(kind['enum'])}"
    if "pattern" in kind and not _is_hex(value):
        return "not pairs of lower-case hexadecimal digits"
    return "an empty string" if len(value) < kind.get("minLength", 0) else ""


def _is_hex(text: str) -> bool:
    # A view may have megabytes, and translate looks at a gigabyte in a second.
    return len(text) % 2 == 0 and text.isascii() and not text.encode().translate(None, _HEX_DIGITS)


def _wrong_item(kind: Type, value: object) -> str:
    sentence = _mismatch(kind, value)
    return f"{_short(value)} is {sentence}" if sentence else ""


def _wrong_action(value: Any) -> str:
    if type(value) is not dict:
        return "neither the name of an action nor an object"
    value = cast("dict[str, Any]", value)
    fields = {field.name: field for field in ACTION}
    if unknown := sorted(map(repr, value.keys() - fields.keys())):
        return f"an action with {unknown[0]}"
    if "action" not in value:
        return "an action without a name"
    return next((sentence for name in value if (sentence := _mismatch(fields[name].type, value[name]))), "")


_SHOWN = 60


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def schema() -> dict[str, Any]:
    """The JSON Schema of a line: a request, or an answer of one kind, which ``$defs`` has by its name."""
    requests = {f"request_{name}": _request(name, message) for name, message in REQUESTS.items()}
    answers = {f"answer_{name}": _object((_ID, *fields)) for name, fields in ANSWERS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The protocol of ports, version {VERSION}: one line",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*requests, *answers)],
        "$defs": {"action": _object(ACTION), **requests, **answers},
    }


def _request(name: str, message: Message) -> Type:
    found = _object((_ID, Field("op", {"const": name}, message.text), *message.fields))
    return {"description": message.text, **found}


def _object(fields: tuple[Field, ...]) -> Type:
    return {
        "type": "object",
        "properties": {field.name: {"description": field.text, **field.type} for field in fields},
        "required": [*_required(fields)],
        "additionalProperties": False,
    }


def _required(fields: tuple[Field, ...]) -> Iterator[str]:
    """What a line has at every level, whether it was refused or not."""
    refusable = _REFUSED in fields
    return (field.name for field in fields if field.required and (field is _ID or not refusable))
