"""The JSON Schema of the document: draft 2020-12."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..declaration import ACTION_MEANINGS, CALL_MEANINGS, FACT_MEANINGS
from .document import CONTENTS, FORMAT, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["machine_schema", "schema_json"]

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_TRUTH: Json = {"type": "boolean"}


def machine_schema() -> Json:
    """The JSON Schema of what `machine_document` returns."""
    document = _object(
        "Machines, each in its own words. A name in a machine is one of those that the machine lists.",
        format={"const": FORMAT},
        version={"type": "string", "pattern": rf"^{VERSION.split('.')[0]}\.\d+$"},
        editions=_list(_machine()),
        digest={
            "type": "string",
            "pattern": "^sha256:[0-9a-f]{64}$",
            "description": "The digest of the document without this key: keys sorted, no blanks, ASCII.",
        },
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT} {VERSION}",
        **document,
        "$defs": {"name": {**_TEXT, "minLength": 1}},
    }


def schema_json() -> str:
    """The schema as text, with a newline at the end."""
    return json.dumps(machine_schema(), indent=2) + "\n"


_NAME: Json = {"$ref": "#/$defs/name"}


def _machine() -> Json:
    return _object(
        "A machine.",
        name=_NAME,
        title={**_TEXT, "description": "What its drawings are called."},
        about=_TEXT,
        cite={**_TEXT, "description": "Where it is described."},
        sides={**_names(), "description": "The places where bytes can be; the host is first."},
        heads=_list(
            _object("A state: the sides with the newest bytes. The first is that of a new memory.",
                    name=_NAME, fresh=_names(), letter=_TEXT)
        ),
        settings=_list(_object("An input that is no call.", name=_NAME, values=_names(), start=_NAME)),
        facts=_list(
            _object(
                "What is true or false besides the head. A memory can be asked for a flag.",
                name=_NAME,
                means=_enum(FACT_MEANINGS),
                side=_or_null(_NAME),
                flag=_TRUTH,
            )
        ),
        calls=_list(_call()),
        actions=_list(_action()),
        refusals=_list(
            _object(
                "The reason of a refusal: the error class here, the head that is needed, or what the error says.",
                name=_NAME,
                error=_NAME,
                needs=_or_null(_NAME),
                text=_TEXT,
            )
        ),
        cycles={**_list(_names()), "description": "Sequences of calls that can be repeated from a new memory."},
        inputs=_list(_input()),
        transitions=_list(_transition()),
        configurations=_list(_configuration()),
        cells=_list(_cell()),
        counts=_object(
            "The number of each; states and transitions include all facts, and changes of settings.",
            **dict.fromkeys(("configurations", "cells", "refusals", "states", "transitions"), _COUNT),
        ),
    )  # fmt: skip


def _call() -> Json:
    return _object(
        "A call.",
        name=_NAME,
        does=_enum(CALL_MEANINGS),
        side=_or_null(_NAME),
        source={**_or_null(_NAME), "description": "Of a push or a pull: where the bytes come from."},
        takes={**_or_null(_NAME), "description": "The condition that it was given its argument."},
    )


def _action() -> Json:
    return _object(
        "A step of a call.",
        name=_NAME,
        code={**_TEXT, "description": "What stands for it in tables with many cells."},
        does=_enum(ACTION_MEANINGS),
        side=_or_null(_NAME),
        source={**_or_null(_NAME), "description": "Of a copy: where the bytes come from."},
        contents={
            **_or_null(_enum(CONTENTS.values())),
            "description": "What is in its side afterwards; null: as before.",
        },
        queued={**_TRUTH, "description": "Whether it may happen after the call has returned."},
        sets=_names(),
        clears=_names(),
        by_setting=_list(
            _object(
                "The fact is true afterwards if the setting has this value, and false if not.",
                fact=_NAME,
                setting=_NAME,
                value=_NAME,
            )
        ),
    )


def _input() -> Json:
    return _object(
        "A call with or without its argument, and with some facts that no action changes.",
        name=_NAME,
        call=_NAME,
        data=_TRUTH,
        given=_names(),
    )


def _transition() -> Json:
    lines = _object("Lines of a source text.", file=_TEXT, first=_COUNT, last=_COUNT)
    return _object(
        "A row in one of its heads. It fires if all conditions are true and none of unless; never two at once.",
        id=_NAME,
        call=_NAME,
        source=_NAME,
        dest={**_or_null(_NAME), "description": "null if refused, or if there is no memory afterwards."},
        conditions=_names(),
        unless=_names(),
        actions=_names(),
        refusal=_or_null(_NAME),
        reason=_or_null(_TEXT),
        cite=_TEXT,
        sources=_list(lines),
    )


def _configuration() -> Json:
    end = _object("The effect of a call that ends the memory.", input=_NAME, transition=_NAME, actions=_names())
    return _object(
        "A reachable head with the facts that matter for the next call.",
        name=_NAME,
        head=_NAME,
        facts=_names(),
        ends=_list(end),
    )


def _cell() -> Json:
    return _object(
        "The effect of an input in a configuration.",
        configuration=_NAME,
        input=_NAME,
        transition=_NAME,
        actions=_names(),
        after=_NAME,
        refusal=_or_null(_NAME),
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


def _names() -> Json:
    return _list(_NAME)


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _enum(values: Iterable[str]) -> Json:
    return {"enum": list(values)}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
