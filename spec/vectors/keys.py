"""The keys of a vector and of its steps, in their order: what each means, and what it may be.

The schema of a line, and the tables of docs/vectors.md, are made from these tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS, caffe
from syncedmem.model.files import SIGN

from ..engine.fields import (
    FLAG,
    NULL,
    NUMBER,
    TEXT,
    Field,
    Type,
    array_of,
    by_name,
    mismatch,
    object_of,
    one_of,
    or_null,
)
from ..requirements import PROFILES
from .operations import LOOK, WRITE_BUFFER, refusals
from .vector import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Machine

__all__ = ["LINE", "MEMORY_STEP", "MOST_BYTES", "RECORDED", "line_of", "memory_step", "recorded_line", "recorded_step"]
__all__ += ["schema", "wrong_sizes"]

MOST_BYTES = 64 << 20
"""The most bytes of all memories of a vector or of a recorded run; our largest vector has a million."""
_MOST_MEMORIES, _MOST_STEPS = 1 << 10, 1 << 20

_DIGEST: Type = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_COUNT: Type = {**NUMBER, "minimum": 1}
_SIZES = array_of({**NUMBER, "maximum": MOST_BYTES}, 1, _MOST_MEMORIES)
_CONTENT = NUMBER


def _key(name: str, text: str, kind: Type, role: str = "does", *, required: bool = False) -> Field:
    return Field(name, kind, text, required=required, role=role)


def _parts(required: Mapping[str, Type], options: Mapping[str, Type] | None = None) -> Type:
    """A part of a key: an object."""
    return object_of(
        [*(Field(name, kind, "") for name, kind in required.items())]
        + [Field(name, option, "", required=False) for name, option in (options or {}).items()]
    )


def _reasons(*tables: Mapping[Any, str]) -> Type:
    return {"oneOf": [{"const": name, "description": why} for table in tables for name, why in table.items()]}


_BUFFER = _parts({"buffer": NUMBER}, {"bytes": _CONTENT})
_OWN = _parts({"own": {"const": True}}, {"offset": NUMBER})


def memory_step(machine: Machine | None = None) -> tuple[Field, ...]:
    """The keys of a step of a machine; without one, of Caffe's editions."""
    machine = machine or caffe.EVERYTHING
    settings = [f"set_{name}" for name in machine.settings]
    values = one_of(dict.fromkeys(value for setting in machine.settings.values() for value in setting.values))
    flags: Type = {
        "type": "object",
        "additionalProperties": FLAG,
        "propertyNames": one_of(flag.name for flag in machine.flags),
    }
    return (
        _key(
            "call",
            "A call of a memory; `release` of Caffe's is the destructor. `set_` and the name of a setting changes that "
            "setting for all memories: `set_mode` changes Caffe's mode, which is GPU at first. With `write_buffer` the "
            "caller writes into a buffer of its own. `look` does nothing: the memory must still be as it was.",
            one_of((*machine.calls, *settings, WRITE_BUFFER, LOOK)),
            required=True,
        ),
        _key("memory", "The number of the memory, from 0. Without it, the first.", _COUNT),
        _key(
            "argument",
            'For a call that adopts, as `set_*_data`: `null`; `{"buffer": N, "bytes": CONTENT}`, buffer N of the '
            'caller with this content; without `bytes`, the same buffer again, unchanged; `{"own": true}`, the pointer '
            "that the memory returned last for this side, with `offset` so many bytes behind it. For `write_buffer`: "
            'a buffer with its new content. For a setting: its new value, as `"CPU"` or `"GPU"` for `set_mode`.',
            {"oneOf": [NULL, *([values] if settings else []), _BUFFER, _OWN]},
        ),
        _key("write", "What the caller writes through the returned pointer, after `shows` was compared.", _CONTENT),
        _key(
            "fail",
            "The k-th action of this call fails, counting from 1 and without those that adopt. The call must report "
            "it, and nothing may have changed.",
            _COUNT,
        ),
        _key(
            "refusal",
            "Why the call must be refused, or `null`; see below. A refused call does nothing.",
            _reasons(refusals(machine)),
            "expects",
        ),
        _key(
            "actions",
            "What happens to memory, in this order, and nothing else. Each action is of exactly the memory's size. "
            "`allocate_cpu` makes page-locked memory if `cpu_malloc_use_cuda` is true afterwards, and `free_cpu` frees "
            "it in the way it was allocated.",
            array_of(one_of(machine.actions)),
            "expects",
        ),
        _key("shows", "The content behind the returned pointer, before `write`.", _CONTENT, "expects"),
        _key("head", "The head after the step.", one_of(machine.heads), "expects"),
        _key("flags", "The flags of the edition after the step.", flags, "expects"),
        _key(
            "bytes",
            "What each side holds after the step, and after `write`; `null` if a side is not fresh and nothing is "
            "promised. The bytes of a side that the caller handed in are those of the caller's buffer.",
            _parts({side: {"oneOf": [NULL, _CONTENT]} for side in machine.sides}),
            "expects",
        ),
    )


MEMORY_STEP: tuple[Field, ...] = memory_step()
"""The keys of a step, for all of Caffe's editions."""

LINE: tuple[Field, ...] = (
    _key(
        "$comment",
        "Only in the first line of a file: that a command wrote it, and may replace it. Readers leave it out.",
        TEXT,
    ),
    _key(
        "format",
        f"{FORMAT}. It changes when a vector that was valid no longer is. New keys and new vectors do not change it.",
        {"const": FORMAT},
        required=True,
    ),
    _key(
        "id",
        "The first 16 digits of the SHA-256 of the input: edition, what is made, and operations. It never depends on "
        "what is expected.",
        _DIGEST,
        required=True,
    ),
    _key("suite", "The suite that the vector belongs to.", TEXT, required=True),
    _key(
        "edition",
        "The edition that the vector belongs to, or the name of another machine.",
        one_of(EDITIONS),
        required=True,
    ),
    _key(
        "profile",
        "`caffe`: Caffe, or the other machine, does this. `safe`: this project promises it beyond Caffe, which ends "
        "the process or leaves it open.",
        one_of(PROFILES),
        required=True,
    ),
    _key(
        "model",
        "A digest of all that the edition can do. Vectors with the same digest agree.",
        _DIGEST,
        required=True,
    ),
    _key(
        "sizes",
        f"The size of each memory that is made at the start, in bytes; at most {MOST_BYTES:,} in all.",
        _SIZES,
        required=True,
    ),
    _key(
        "steps",
        "The steps, in order. The last ones are `release`, if memories have an end.",
        array_of({}, 1, _MOST_STEPS),
        required=True,
    ),
)
"""The keys of a line."""


def wrong_sizes(sizes: Any) -> str:
    """Why memories cannot be made of these sizes, as the rest of a sentence about them; empty if they can."""
    if sentence := mismatch(_SIZES, sizes):
        return sentence
    return f"is {sum(sizes):,} bytes in all, and at most {MOST_BYTES:,} are taken" if sum(sizes) > MOST_BYTES else ""


def line_of(machine: Machine | None) -> tuple[Field, ...]:
    """The keys of a line of a machine; without one, of Caffe's editions."""
    if machine is None:
        return LINE
    return tuple(replace(key, type=one_of((machine.name,))) if key.name == "edition" else key for key in LINE)


_RECORDED: Type = {"oneOf": [NULL, _CONTENT, {"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"}]}
_OR_DIGITS = ", or as a string of hexadecimal digits"

RECORDED: tuple[Field, ...] = (
    _key("edition", "In a line without a call: the edition, or the name of the machine.", or_null(TEXT)),
    _key(
        "size",
        "In a line without a call: the size of the memory, in bytes. Without it no number is compared as a content.",
        or_null(NUMBER),
    ),
    _key("write", f"As above{_OR_DIGITS}.", _RECORDED),
    _key("shows", f"As above{_OR_DIGITS}.", _RECORDED),
    _key(
        "bytes",
        f"As above{_OR_DIGITS}. After a queued copy, a side is compared again from the next call for it on, or a wait.",
        {"type": ["object", "null"], "additionalProperties": _RECORDED},
    ),
    _key("refused", "`true`, or a text, if the call was refused, for whatever reason.", {"oneOf": [NULL, FLAG, TEXT]}),
    _key("failed", "`true` if an action of the call failed. Then nothing may have changed.", or_null(FLAG)),
    _key("time", "Anything; it is not looked at.", {}),
    _key("thread", "Anything; it is not looked at.", {}),
)
"""The keys that a recorded run has besides those of a vector, or in another form."""


def recorded_line(machine: Machine) -> dict[str, Field]:
    """The keys of a line of a recorded run that has no call; those of a vector are among them."""
    settings = (_key(name, "The setting at the start.", or_null(TEXT)) for name in machine.settings)
    besides = (key for key in RECORDED if key.name in ("edition", "size", "time", "thread"))
    return by_name(*(replace(key, required=False) for key in LINE), *besides, *settings)


def recorded_step(machine: Machine) -> dict[str, Field]:
    """The keys of a call of a recorded run, whose words are looked up elsewhere: one may be misspelt."""
    buffer = object_of([Field("buffer", {"oneOf": [NUMBER, TEXT]}, ""), Field("bytes", _RECORDED, "", required=False)])
    other = {
        "call": or_null(TEXT),
        "memory": or_null(NUMBER),
        "argument": {"oneOf": [NULL, TEXT, buffer, _OWN]},
        "fail": or_null(NUMBER),
        "refusal": or_null(TEXT),
        "actions": {"type": ["array", "null"], "items": TEXT},
        "head": or_null(TEXT),
        "flags": {"type": ["object", "null"], "additionalProperties": FLAG},
    }
    as_vectors = (replace(key, type=other.get(key.name, {}), required=False) for key in MEMORY_STEP)
    besides = (key for key in RECORDED if key.name not in ("edition", "size"))
    settings = (_key(name, "The setting during the call.", or_null(TEXT)) for name in machine.settings)
    return by_name(*as_vectors, *besides, *settings)


def schema(machine: Machine | None = None) -> Type:
    """The JSON Schema of a line; without a machine, for all of Caffe's editions."""
    *line, steps = line_of(machine)
    return {
        "$comment": SIGN,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A test vector of syncedmem, format {FORMAT}: one line of a .jsonl file",
        **object_of([*line, replace(steps, type={**steps.type, "items": object_of(memory_step(machine))})]),
    }
