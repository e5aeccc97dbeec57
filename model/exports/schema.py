"""The JSON Schemas of the documents: draft 2020-12; that of Caffe's machine has every name enumerated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..declare import Rule
from ..exploration import Side
from ..head import Action, Call, Fact, Guard, Refusal, SyncedHead
from ..mode import Mode
from ..vocabulary import Host, Role, Verb
from . import own_document
from .document import FORMAT, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["declared_schema", "machine_schema", "schema_json"]

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_TRUTH: Json = {"type": "boolean"}


def machine_schema() -> Json:
    """The JSON Schema of what `machine_document` returns."""
    items = {
        "heads": _object("A head: which copy is fresh.", name=_ref("head"), value=_COUNT),
        "modes": _object("A value of Caffe's mode.", name=_ref("mode"), value=_COUNT),
        "facts": _object(
            "A pointer or a flag, with its bit in a packed state.", name=_ref("fact"), bit={**_COUNT, "minimum": 1}
        ),
        "guards": _object(
            "A condition: the fact is true; without a fact: the call has data.",
            name=_ref("guard"),
            fact=_or_null(_ref("fact")),
        ),
        "actions": _action(),
        "calls": _object(
            "A call on a memory.",
            name=_ref("call"),
            role=_enum(role.value for role in Role),
            side=_or_null(_ref("side")),
            takes_data=_TRUTH,
        ),
        "refusals": _object("The reason of a refusal, and the error class here.", name=_ref("refusal"), error=_TEXT),
        "editions": _edition(),
    }
    document = _object(
        "The head machine of SyncedMemory.",
        format={"const": FORMAT},
        version=_version(VERSION),
        **{key: _list(item) for key, item in items.items()},
        digest={
            "type": "string",
            "pattern": "^sha256:[0-9a-f]{64}$",
            "description": "The digest of the document without this key: keys sorted, no blanks, ASCII.",
        },
    )
    return {**_head(FORMAT, VERSION), **document, "$defs": _definitions()}


def declared_schema() -> Json:
    """The JSON Schema of what `declared_document` returns: a machine with names of its own."""
    words = "; several names are separated by blanks"
    row = _object(f"One row{words}.", **dict.fromkeys(Rule._fields, _TEXT))
    document = _object(
        f"A machine with names of its own: the arguments of declare{words}.",
        format={"const": own_document.FORMAT},
        version=_version(own_document.VERSION),
        name={**_TEXT, "pattern": "^[a-z][a-z0-9_]*$"},
        about=_TEXT,
        cite={**_TEXT, "description": "Where the machine is described."},
        heads={**_TEXT, "pattern": _words("[A-Z][A-Z0-9_]*"), "description": "A new object is in the first."},
        calls={**_TEXT, "pattern": _words("[a-z][a-z0-9_]*")},
        ends={**_TEXT, "description": "The calls after which there is no object."},
        facts={**_TEXT, "description": "What is true or false besides; at first all are false."},
        actions={
            "type": "object",
            "description": "The effect of each action: +fact makes a fact true, -fact makes it false.",
            "additionalProperties": {**_TEXT, "pattern": r"^$|" + _words("[+-][a-z][a-z0-9_]*")},
        },
        rows={**_list({**row, "required": ["call", "source"]}), "minItems": 1},
    )
    return {**_head(own_document.FORMAT, own_document.VERSION), **document}


def schema_json(schema: Json | None = None) -> str:
    """A schema as text, with a newline at the end; that of Caffe's machine, if none is given."""
    return json.dumps(schema or machine_schema(), indent=2) + "\n"


def _head(name: str, version: str) -> Json:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{name} {version}"}


def _version(version: str) -> Json:
    return {"type": "string", "pattern": rf"^{version.split('.', maxsplit=1)[0]}\.\d+$"}


def _words(name: str) -> str:
    return f"^{name}( +{name})*$"


def _definitions() -> Json:
    return {
        "head": _enum(head.name for head in SyncedHead),
        "mode": _enum(mode.name for mode in Mode),
        "fact": _enum(fact.name or "" for fact in Fact),
        "guard": _enum(guard.value for guard in Guard),
        "action": _enum(action.value for action in Action),
        "call": _enum(call.value for call in Call),
        "refusal": _enum(refusal.value for refusal in Refusal),
        "side": _enum(place.value for place in Host),
        "pointer": _enum(side.name.lower() for side in Side),
    }


def _action() -> Json:
    return _object(
        "A step of a call that changes memory or pointers.",
        name=_ref("action"),
        verb=_enum(verb.value for verb in Verb),
        side=_ref("side"),
        contents=_enum(("undefined", "zero", "other side", "argument", "none")),
        asynchronous=_TRUTH,
        sets=_list(_ref("fact")),
        clears=_list(_ref("fact")),
        by_mode={**_list(_ref("fact")), "description": "Set in GPU mode, cleared in CPU mode."},
    )


def _edition() -> Json:
    asked = _object("A call, with data or with NULL.", name=_TEXT, call=_ref("call"), data=_TRUTH)
    return _object(
        "A machine: a build or a version of Caffe, or somebody's own.",
        name={**_TEXT, "pattern": "^[a-z][a-z0-9_]*$"},
        about=_TEXT,
        cite=_TEXT,
        heads=_list(_ref("head")),
        facts={**_list(_ref("fact")), "description": "The facts of this edition; effects on other facts are dropped."},
        flags=_list(_ref("fact")),
        implied={**_list(_ref("fact")), "description": "Flags that always equal another fact."},
        never={**_list(_ref("guard")), "description": "Guards that cannot hold."},
        cycles={**_list(_list(_ref("call"))), "description": "Sequences that can be repeated from a new memory."},
        calls=_list(_ref("call")),
        inputs=_list(asked),
        transitions=_list(_transition()),
        configurations=_list(_configuration()),
        cells=_list(_cell()),
        counts=_object(
            "The number of each; states and transitions include the pinned flag and changes of mode.",
            **dict.fromkeys(("configurations", "cells", "refusals", "states", "transitions"), _COUNT),
        ),
    )


def _transition() -> Json:
    lines = _object("Lines of a source text.", file=_TEXT, first=_COUNT, last=_COUNT)
    return _object(
        "A row in one of its heads. For each call, head and facts, the guards of exactly one row hold.",
        id=_TEXT,
        call=_ref("call"),
        source=_ref("head"),
        dest={**_or_null(_ref("head")), "description": "null if refused or released."},
        conditions=_list(_ref("guard")),
        unless=_list(_ref("guard")),
        actions=_list(_ref("action")),
        refusal=_or_null(_ref("refusal")),
        reason=_or_null(_TEXT),
        cite=_TEXT,
        sources=_list(lines),
    )


def _configuration() -> Json:
    return _object(
        "A reachable head with its two sides.",
        name=_TEXT,
        head=_ref("head"),
        cpu=_ref("pointer"),
        gpu=_ref("pointer"),
        facts=_list(_ref("fact")),
        packed={**_COUNT, "description": "An integer: the head's value in the bits above those of the facts."},
        release=_object("The effect of the destructor here.", transition=_TEXT, actions=_list(_ref("action"))),
    )


def _cell() -> Json:
    return _object(
        "The effect of an input in a configuration.",
        configuration=_TEXT,
        input=_TEXT,
        transition=_TEXT,
        actions=_list(_ref("action")),
        after=_TEXT,
        refusal=_or_null(_ref("refusal")),
        reason=_or_null(_TEXT),
    )


def _object(description: str, **properties: Json) -> Json:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _enum(values: Iterable[str]) -> Json:
    return {"enum": list(values)}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
