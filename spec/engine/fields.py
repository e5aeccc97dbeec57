"""The fields of JSON objects: how they are declared, and what is wrong with an object that has others.

A type is a small part of JSON Schema, so that a schema for others is made of the same declarations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["FLAG", "HEX", "INTEGER", "MOST_CHARACTERS", "MOST_NUMBER", "NULL", "NUMBER", "TEXT", "Field", "Type"]
__all__ += ["array_of", "by_name", "fault", "mismatch", "object_of", "one_of", "or_null", "short"]

Type = dict[str, Any]
"""A type as JSON Schema describes it."""

MOST_NUMBER = (1 << 64) - 1
"""The largest number of a field, which C has a type for."""
MOST_CHARACTERS = 1 << 20
"""The most characters of a text of a field; hexadecimal digits, which are bytes of memories, may be more."""

INTEGER: Type = {"type": "integer"}
NUMBER: Type = {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER}
FLAG: Type = {"type": "boolean"}
TEXT: Type = {"type": "string", "maxLength": MOST_CHARACTERS}
NULL: Type = {"type": "null"}
HEX: Type = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}


def one_of(names: Iterable[str]) -> Type:
    """One of these texts."""
    return {"type": "string", "enum": [*names]}


def or_null(kind: Type) -> Type:
    """A value of a type, or null."""
    return {**kind, "type": [kind["type"], "null"]}


def array_of(items: Type, at_least: int = 0, at_most: int | None = None) -> Type:
    """A list of values of a type."""
    most = {} if at_most is None else {"maxItems": at_most}
    return {"type": "array", "items": items, **({"minItems": at_least} if at_least else {}), **most}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a JSON object.

    Attributes
    ----------
    name : str
    type : dict
        Its type, as JSON Schema describes it.
    text : str
        What it means, in Markdown.
    level : str
        The level from which on it counts.
    required : bool
        Whether it must be there, from its level on.
    role : {"does", "expects"}
        Of a vector, whether it says what is done, or what must be seen.
    """

    name: str
    type: Type
    text: str
    level: str = "L0"
    required: bool = True
    role: str = "does"


def object_of(fields: Iterable[Field], required: Iterable[str] | None = None) -> Type:
    """An object with these fields, and no others; of them those that are required must be there."""
    listed = tuple(fields)
    return {
        "type": "object",
        "properties": {
            field.name: {**({"description": field.text} if field.text else {}), **field.type} for field in listed
        },
        "required": [field.name for field in listed if field.required] if required is None else [*required],
        "additionalProperties": False,
    }


def by_name(*fields: Field) -> dict[str, Field]:
    """Fields by their names."""
    return {field.name: field for field in fields}


def fault(data: Any, fields: Mapping[str, Field], level: str = "L4", *, excused: bool = False) -> str:
    """What is wrong with an object of these fields, as the rest of a sentence about it; empty if nothing is.

    If it is excused, nothing need be there.
    """
    if type(data) is not dict:
        return "is not a JSON object"
    data = cast("dict[str, Any]", data)
    if unknown := sorted(map(repr, data.keys() - fields.keys())):
        return f"has {unknown[0]}, which is none of its fields"
    for name, field in fields.items():
        if name in data:
            if sentence := mismatch(field.type, data[name]):
                return f"has a wrong {name!r}: {short(data[name])} {sentence}"
        elif field.required and field.level <= level and not excused:
            return f"has no {name!r}"
    return ""


_PYTHON: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_PLAIN = ({"type": "number"}, INTEGER)
_HEX_DIGITS = b"0123456789abcdef"


def mismatch(kind: Type, value: Any) -> str:
    """Why a value is not of a type, as the rest of a sentence that begins with the value; empty if it is."""
    if choices := kind.get("anyOf", kind.get("oneOf")):
        return _matches_none(choices, value)
    types: list[str] = [kind["type"]] if isinstance(kind.get("type"), str) else kind.get("type", [])
    if types and not any(type(value) in _PYTHON[name] for name in types):
        return f"is not of type {' or '.join(types)}"
    check = next((check for type_, check in _CHECKS.items() if isinstance(value, type_)), _unfit)
    return check(kind, value)


def _matches_none(choices: list[Type], value: Any) -> str:
    reasons = [mismatch(choice, value) for choice in choices]
    if "" in reasons:
        return ""
    telling = [reason for reason in reasons if not reason.startswith("is not of type")] or reasons
    return " and ".join(dict.fromkeys(telling))


def _unfit(kind: Type, value: Any) -> str:
    """Why a value is none of those that are listed, or too small or too large."""
    allowed = [kind["const"]] if "const" in kind else kind.get("enum", [value])
    if value not in allowed:
        return f"is not one of {', '.join(map(str, allowed))}"
    minimum, maximum = kind.get("minimum"), kind.get("maximum")
    if value is not None and minimum is not None and value < minimum:
        return f"is less than {minimum}"
    return f"is more than {maximum:,}" if value is not None and maximum is not None and value > maximum else ""


def _unlike(kind: Type, value: str) -> str:
    if reason := _unfit(kind, value):
        return reason
    pattern = kind.get("pattern")
    if pattern == HEX["pattern"]:
        # A view may have megabytes, and translate looks at a gigabyte in a second.
        good = len(value) % 2 == 0 and value.isascii() and not value.encode().translate(None, _HEX_DIGITS)
        return "" if good else "is not pairs of lower-case hexadecimal digits"
    if pattern and not re.search(pattern, value):
        return f"is not like {pattern}"
    if len(value) > kind.get("maxLength", len(value)):
        return f"has {len(value):,} characters, and at most {kind['maxLength']:,} are read"
    return "is an empty string" if len(value) < kind.get("minLength", 0) else ""


def _wrong_items(kind: Type, values: list[Any]) -> str:
    if len(values) < kind.get("minItems", 0):
        return "is too short"
    if len(values) > kind.get("maxItems", len(values)):
        return f"has {len(values):,} items, and at most {kind['maxItems']:,} are read"
    items: Type = kind.get("items", {})
    if items in _PLAIN and all(type(value) in _PYTHON[items["type"]] for value in values):  # views have many numbers
        return ""
    return next((f"where {short(value)} {reason}" for value in values if (reason := mismatch(items, value))), "")


def _wrong_properties(kind: Type, value: dict[str, Any]) -> str:
    names, others = kind.get("properties", {}), kind.get("additionalProperties", {})
    if others is False and (unknown := sorted(map(repr, value.keys() - names.keys()))):
        return f"has {unknown[0]}, which is none of its fields"
    if missing := [name for name in kind.get("required", ()) if name not in value]:
        return f"has no {missing[0]!r}"
    reasons = (
        f"has a wrong {name!r}: {short(part)} {reason}"
        for name, part in value.items()
        if (reason := mismatch(kind.get("propertyNames", {}), name) or mismatch(names.get(name, others), part))
    )
    return next(reasons, "")


_CHECKS: dict[type, Callable[[Type, Any], str]] = {str: _unlike, list: _wrong_items, dict: _wrong_properties}
_SHOWN = 60


def short(value: object) -> str:
    """A value in a message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
