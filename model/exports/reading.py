"""A machine from the JSON document: the opposite of `machine_document`.

Only words and rows are read.  Everything else in the document is computed from them, so it is not believed but
computed again.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from ..declaration import Action, Call, Fact, Head, Machine, Refusal, Row, Setting
from ..errors import DeclarationError, FileFormatError, listed, shown
from ..files import parsed_json, read_text
from .document import FORMAT, VERSION

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MOST_CHARACTERS", "machine_of_document", "read_machine"]

Json = dict[str, Any]

MOST_CHARACTERS = 10_000
"""The most characters of a word or of a text of a machine."""


def read_machine(path: str | Path, name: str | None = None) -> Machine:
    """The machine in a file of the format ``json``.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        The machine to read; it is needed only if the file has several.

    Raises
    ------
    FileAccessError
        If the file cannot be read.
    FileFormatError
        See `machine_of_document`.
    """
    return machine_of_document(parsed_json(str(path), read_text(path, "a machine in JSON")), name, source=str(path))


def machine_of_document(document: object, name: str | None = None, *, source: str = "the document") -> Machine:
    """The machine in a document that `machine_document` made.

    Parameters
    ----------
    document : dict
    name : str, optional
        The machine to read; it is needed only if the document has several.
    source : str
        The name of the document in errors.

    Raises
    ------
    FileFormatError
        If it is no such document, if it is of another version, if its words contradict each other, or if it does not
        have the machine.
    """
    data: Any = document
    if not isinstance(data, dict):
        raise FileFormatError(source, f"this is no machine in JSON: it is of type {type(document).__name__}")
    data = cast("Json", data)
    try:
        if data["format"] != FORMAT:
            raise FileFormatError(source, f"its format is {shown(data['format'])}, not {FORMAT!r}")
        if str(data["version"]).partition(".")[0] != VERSION.partition(".")[0]:
            theirs = repr(str(data["version"]))[1:-1][:80]
            raise FileFormatError(source, f"its version is {theirs}, and this reads {VERSION}: export it again")
        return _machine(_chosen(source, data["editions"], name))
    except DeclarationError as error:
        raise FileFormatError(source, str(error)) from error
    except KeyError as error:
        raise FileFormatError(source, f"this is no machine in JSON: {error.args[0]!r} is missing or unknown") from error
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(source, f"this is no machine in JSON: {error}") from error


def _chosen(source: str, editions: list[Json], name: str | None) -> Json:
    names = listed(edition["name"] for edition in editions)
    chosen = [edition for edition in editions if name in (None, edition["name"])]
    if not editions:
        raise FileFormatError(source, "it has no machine")
    if not chosen:
        raise FileFormatError(source, f"it has no machine {name!r}; it has {names}")
    if len(chosen) > 1:
        raise FileFormatError(source, f"it has several machines: name one, {names}")
    return chosen[0]


def _machine(data: Json) -> Machine:
    return Machine(
        _text(data["name"]),
        _rows(data["transitions"]),
        title=_text(data["title"]),
        about=_text(data["about"]),
        cite=_text(data["cite"]),
        sides=_names(data["sides"]),
        heads=[Head(_text(head["name"]), _names(head["fresh"]), _text(head["letter"])) for head in data["heads"]],
        settings=[
            Setting(_text(setting["name"]), _names(setting["values"]), _text(setting["start"]))
            for setting in data["settings"]
        ],
        facts=[
            Fact(_text(fact["name"]), fact["means"], _text(fact["side"]), flag=bool(fact["flag"]))
            for fact in data["facts"]
        ],
        calls=[
            Call(_text(call["name"]), call["does"], _text(call["side"]), _text(call["source"]), _text(call["takes"]))
            for call in data["calls"]
        ],
        actions=[_action(action) for action in data["actions"]],
        refusals=[
            Refusal(_text(refusal["name"]), _text(refusal["error"]), _text(refusal["needs"]), _text(refusal["text"]))
            for refusal in data["refusals"]
        ],
        cycles=[_names(cycle) for cycle in data["cycles"]],
    )


def _action(data: Json) -> Action:
    return Action(
        _text(data["name"]),
        data["does"],
        _text(data["side"]),
        _text(data["source"]),
        queued=bool(data["queued"]),
        sets=_names(data["sets"]),
        clears=_names(data["clears"]),
        by_setting=tuple((_text(by["fact"]), _text(by["setting"]), _text(by["value"])) for by in data["by_setting"]),
        code=_text(data["code"]),
    )


_ALIKE = ("call", "dest", "conditions", "unless", "actions", "refusal", "cite")


def _rows(apart: list[Json]) -> list[Row]:
    """The rows, with neighbours that differ only in their heads as one row, as a table has them."""
    groups = (list(group) for _, group in groupby(apart, lambda row: [row[key] for key in _ALIKE]))
    return [
        Row(
            _text(group[0]["call"]),
            _names([row["source"] for row in group]),
            None if group[0]["dest"] is None else _text(group[0]["dest"]),
            do=_names(group[0]["actions"]),
            when=_names(group[0]["conditions"]),
            unless=_names(group[0]["unless"]),
            refused=_text(group[0]["refusal"]),
            cite=_text(group[0]["cite"]),
        )
        for group in groups
    ]


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"{shown(value)} has {len(value):,} characters, and at most {MOST_CHARACTERS:,} are read")
    return value


def _names(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{shown(values)} is no list")
    return tuple(map(_text, cast("list[object]", values)))
