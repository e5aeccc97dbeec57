"""A machine with names of its own as a JSON document: what `declare` takes, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..declare import Rule, declare
from ..errors import DeclarationError, FileFormatError

if TYPE_CHECKING:
    from ..head import Effect, Transition
    from ..machine import Declaration

__all__ = ["FORMAT", "VERSION", "declared_document", "declared_json", "declared_of"]

FORMAT = "syncedmem-declared"
VERSION = "1.0"
"""The version of the document's form: its first number changes when a part is removed or changes its meaning."""

Json = dict[str, Any]

_TEXTS = ("name", "about", "cite", "heads", "calls", "ends", "facts")


def declared_document(machine: Declaration) -> Json:
    """A machine that `declare` made as plain data: its arguments, with several names in a text separated by blanks.

    Parameters
    ----------
    machine : Declaration
    """
    edition, names = machine.edition, machine.edition.names
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": edition.name,
        "about": edition.about,
        "cite": edition.cite,
        "heads": " ".join(head.name for head in names.heads),
        "calls": " ".join(call.value for call in names.calls),
        "ends": " ".join(call.value for call in names.calls if call.ends),
        "facts": " ".join(fact.name.lower() for fact in names.facts if fact.name),
        "actions": {action.value: _changes(names.effects[action]) for action in names.actions},
        "rows": [{part: text for part, text in _rule(row)._asdict().items() if text} for row in machine.rows],
    }


def declared_json(machine: Declaration) -> str:
    """The document as text: a line per row, a newline at the end, and the same bytes for the same machine."""
    document = declared_document(machine)
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in document.pop("rows"))
    first = json.dumps(document, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{first},\n "rows": [\n  {rows}\n ]\n}}\n'


def declared_of(document: Json, source: str) -> Declaration:
    """The machine in a document that `declared_document` made.

    Parameters
    ----------
    document : dict
    source : str
        The name of the document in errors.

    Raises
    ------
    FileFormatError
        If a part is missing, is not known, or is no text; or if the document is of another version.
    DeclarationError
        See `declare`; the error names the row.
    """
    if str(document["version"]).partition(".")[0] != VERSION.partition(".")[0]:
        raise FileFormatError(source, f"its version is {document['version']}, and this needs {VERSION}")
    texts = {part: _text(source, part, document[part]) for part in _TEXTS}
    actions = {name: _text(source, f"action {name}", changes) for name, changes in document["actions"].items()}
    rows = [_row(source, number, row) for number, row in enumerate(document["rows"], 1)]
    try:
        return declare(texts.pop("name"), texts.pop("about"), actions=actions, rows=rows, **texts)
    except DeclarationError as error:
        raise DeclarationError(f"{source}: {error}") from error


def _changes(effect: Effect) -> str:
    signs = (("+", effect.sets), ("-", effect.clears))
    return " ".join(f"{sign}{fact.name.lower()}" for sign, facts in signs for fact in facts if fact.name)


def _rule(row: Transition) -> Rule:
    guards = [guard.value for guard in row.conditions] + [f"!{guard.value}" for guard in row.unless]
    return Rule(
        row.call.value,
        " ".join(head.name for head in row.source),
        row.dest.name if row.dest else "",
        " ".join(action.value for action in row.actions),
        " ".join(guards),
        row.refusal.value if row.refusal else "",
        row.cite,
    )


def _row(source: str, number: int, row: Json) -> Rule:
    if unknown := [part for part in row if part not in Rule._fields]:
        raise FileFormatError(source, f"row {number} has {unknown[0]!r}, which is none of {', '.join(Rule._fields)}")
    return Rule(**{part: _text(source, f"row {number}, {part}", text) for part, text in row.items()})


def _text(source: str, part: str, value: object) -> str:
    if not isinstance(value, str):
        raise FileFormatError(source, f"{part} is a text, not {value!r}")
    return value
