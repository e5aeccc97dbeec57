"""The keys of a vector and of its steps, in their order: what each means, and what it may be.

The schema of a line, and the tables of docs/vectors.md, are made from these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import EDITIONS, Mode, SyncedHead, caffe

from ..blob.elements import TYPES
from ..blob.oracle import ACCESSORS, ADOPTIONS, NORMS, SCALES
from ..requirements import PROFILES
from .blobs import BLOB_REFUSALS, RELEASE
from .expected import REFUSALS
from .programs import LOOK, SET_MODE, WRITE_BUFFER
from .vector import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["BLOB_STEP", "LINE", "MEMORY_STEP", "Key", "schema"]

Schema = dict[str, Any]


class Key(NamedTuple):
    """A key of a vector or of a step.

    Attributes
    ----------
    name : str
    text : str
        What it means, in Markdown.
    schema : dict
        What it may be, as JSON Schema.
    role : {"does", "expects"}
        Whether it says what is done, or what must be seen.
    required : bool
    """

    name: str
    text: str
    schema: Schema
    role: str = "does"
    required: bool = False


_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_INDEX: Schema = {"type": "integer", "minimum": 0}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_FLAG: Schema = {"type": "boolean"}
_TEXT: Schema = {"type": "string"}
_NULL: Schema = {"type": "null"}
_NUMBERS: Schema = {"type": "array", "items": {"type": "number"}}
_INTEGERS: Schema = {"type": "array", "items": {"type": "integer"}}


def _enum(names: Iterable[str]) -> Schema:
    return {"enum": [*names]}


def _list(items: Schema, at_least: int = 0) -> Schema:
    return {"type": "array", "items": items, **({"minItems": at_least} if at_least else {})}


def _object(required: Mapping[str, Schema], others: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": {**required, **(others or {})},
    }


def _reasons(*tables: Mapping[Any, str]) -> Schema:
    return {"oneOf": [{"const": name, "description": why} for table in tables for name, why in table.items()]}


_CONTENT = _INDEX
_SIDES = ("cpu", "gpu")
_HEAD = _enum(head.name for head in SyncedHead)
_MODE = _enum(mode.name for mode in Mode)
_ACTIONS = _list(_enum(caffe.EVERYTHING.actions))
_BUFFER = _object({"buffer": _INDEX}, {"bytes": _CONTENT})
_OWN = _object({"own": {"const": True}})
_FLAGS: Schema = {
    "type": "object",
    "additionalProperties": _FLAG,
    "propertyNames": _enum(flag.name for flag in caffe.CAFFE.flags),
}
_PART = _object({"head": _HEAD, **{side: {"oneOf": [_NULL, _NUMBERS]} for side in _SIDES}})
_BLOB = _object({"shape": _INTEGERS, "data": _PART, "diff": _PART})
_OTHER = _object({"blob": _INDEX}, {"copy_diff": _FLAG, "reshape": _FLAG})
_BLOB_CALLS = (
    *ACCESSORS, *ADOPTIONS, *NORMS, *SCALES, "update", "copy_from", "share_data", "share_diff", "data_at", "diff_at",
    "reshape", RELEASE, SET_MODE,
)  # fmt: skip

MEMORY_STEP: tuple[Key, ...] = (
    Key(
        "call",
        "A call of a memory; `release` is the destructor. `set_mode` changes the mode of all memories, which is GPU at "
        "first. With `write_buffer` the caller writes into a buffer of its own. `look` does nothing: the memory must "
        "still be as it was.",
        _enum((*caffe.EVERYTHING.calls, SET_MODE, WRITE_BUFFER, LOOK)),
        required=True,
    ),
    Key("memory", "The number of the memory, from 0. Without it, the first.", _COUNT),
    Key(
        "argument",
        'For `set_*_data`: `null`; `{"buffer": N, "bytes": CONTENT}`, buffer N of the caller with this content; '
        'without `bytes`, the same buffer again, unchanged; `{"own": true}`, the pointer that the memory returned last '
        'for this side. For `write_buffer`: a buffer with its new content. For `set_mode`: `"CPU"` or `"GPU"`.',
        {"oneOf": [_NULL, _MODE, _BUFFER, _OWN]},
    ),
    Key("write", "What the caller writes through the returned pointer, after `shows` was compared.", _CONTENT),
    Key(
        "fail",
        "The k-th action of this call fails, counting from 1 and without `adopt_*`. The call must report it, and "
        "nothing may have changed.",
        _COUNT,
    ),
    Key(
        "refusal",
        "Why the call must be refused, or `null`; see below. A refused call does nothing.",
        _reasons(REFUSALS),
        "expects",
    ),
    Key(
        "actions",
        "What happens to memory, in this order, and nothing else. Each action is of exactly the memory's size. "
        "`allocate_cpu` makes page-locked memory if `cpu_malloc_use_cuda` is true afterwards, and `free_cpu` frees it "
        "in the way it was allocated.",
        _ACTIONS,
        "expects",
    ),
    Key("shows", "The content behind the returned pointer, before `write`.", _CONTENT, "expects"),
    Key("head", "The head after the step.", _HEAD, "expects"),
    Key("flags", "The flags of the edition after the step.", _FLAGS, "expects"),
    Key(
        "bytes",
        "What each side holds after the step, and after `write`; `null` if a side is not fresh and nothing is promised."
        " The bytes of a side that the caller handed in are those of the caller's buffer.",
        _object({side: {"oneOf": [_NULL, _CONTENT]} for side in _SIDES}),
        "expects",
    ),
)
"""The keys of a step of memories."""

BLOB_STEP: tuple[Key, ...] = (
    Key(
        "call",
        "A call of a blob, `release` for its destructor, or `set_mode`.",
        _enum(_BLOB_CALLS),
        required=True,
    ),
    Key("blob", "The number of the blob, from 0. Without it, the first.", _COUNT),
    Key(
        "argument",
        'Another blob, `{"blob": N}`, with the options of `copy_from` that are true; the number for `scale_*`; the '
        "indices for `*_at`; the shape for `reshape`; `null` for `set_*`; the mode for `set_mode`.",
        {"oneOf": [_NULL, {"type": "number"}, _MODE, _INTEGERS, _OTHER]},
    ),
    Key("write", "The numbers that the caller writes through the returned pointer.", _NUMBERS),
    Key(
        "refusal",
        "Why the call must be refused, or `null`. A refused call does nothing.",
        _reasons({None: REFUSALS[None]}, BLOB_REFUSALS),
        "expects",
    ),
    Key(
        "actions",
        "What happens to the memories of the call, a list for each. The lists may come in any order, as in C++. "
        "A copy within one side is not listed.",
        _list(_ACTIONS),
        "expects",
    ),
    Key("value", "The number that the call returns.", {"type": "number"}, "expects"),
    Key("shows", "The numbers behind the returned pointer, before `write`.", _NUMBERS, "expects"),
    Key(
        "blobs",
        "Every blob after the step, and after `write`: its shape, and of `data` and `diff` the head and the numbers of "
        "each side, `null` if the side is not fresh.",
        _list(_BLOB),
        "expects",
    ),
)
"""The keys of a step of blobs."""


def _step(keys: Iterable[Key]) -> Schema:
    found = tuple(keys)
    return _object(
        {it.name: it.schema for it in found if it.required}, {it.name: it.schema for it in found if not it.required}
    )


LINE: tuple[Key, ...] = (
    Key(
        "format",
        f"{FORMAT}. It changes when a vector that was valid no longer is. New keys and new vectors do not change it.",
        {"const": FORMAT},
        required=True,
    ),
    Key(
        "id",
        "The first 16 digits of the SHA-256 of the input: edition, what is made, and operations. It never depends on "
        "what is expected.",
        _DIGEST,
        required=True,
    ),
    Key("suite", "The suite that the vector belongs to.", _TEXT, required=True),
    Key("edition", "The edition that the vector belongs to.", _enum(EDITIONS), required=True),
    Key(
        "profile",
        "`caffe`: Caffe does this. `safe`: this project promises it beyond Caffe, which ends the process or leaves it "
        "open.",
        _enum(PROFILES),
        required=True,
    ),
    Key(
        "model",
        "A digest of all that the edition can do. Vectors with the same digest agree.",
        _DIGEST,
        required=True,
    ),
    Key("sizes", "Of memories: the size of each memory that is made at the start, in bytes.", _list(_INDEX, 1)),
    Key("type", "Of blobs: the type of the elements.", _enum(TYPES)),
    Key("shapes", "Of blobs: the shape of each blob that is made at the start.", _list(_INTEGERS, 1)),
    Key("steps", "The steps, in order. The last ones are `release`.", _list({}, 1), required=True),
)
"""The keys of a line."""


def schema() -> Schema:
    """The JSON Schema of a line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A test vector of syncedmem, format {FORMAT}: one line of a .jsonl file",
        **_step(LINE),
        "if": {"required": ["shapes"]},
        "then": {"required": ["type"], "properties": {"steps": _list(_step(BLOB_STEP))}},
        "else": {"required": ["sizes"], "properties": {"steps": _list(_step(MEMORY_STEP))}},
    }
