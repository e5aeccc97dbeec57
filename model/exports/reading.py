"""A declaration from the JSON document: the opposite of `machine_document`, and of `declared_document`.

Only the edition and its rows are read.  Everything else in the document is computed from them, so it is not believed
but computed again.  The vocabulary and the effects of actions must be those of this version.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DeclarationError, FileFormatError
from ..files import parsed_json, read_text
from ..head import Action, Call, Edition, Fact, Guard, Refusal, SyncedHead, Transition
from ..machine import Declaration
from .document import FORMAT, VERSION, vocabulary
from .own_document import FORMAT as DECLARED
from .own_document import declared_of

if TYPE_CHECKING:
    import enum
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["declaration_of", "read_declaration"]

Json = dict[str, Any]
Name = TypeVar("Name", bound="enum.Enum")


def read_declaration(path: str | Path, name: str | None = None) -> Declaration:
    """The declaration in a file of the format ``json``.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        The edition to read; it is needed only if the file has several.

    Raises
    ------
    FileAccessError
        If the file cannot be read.
    FileFormatError
        See `declaration_of`.
    """
    return declaration_of(parsed_json(str(path), read_text(path, "a machine in JSON")), name, source=str(path))


def declaration_of(document: object, name: str | None = None, *, source: str = "the document") -> Declaration:
    """The declaration in a document that `machine_document` or `declared_document` made.

    Parameters
    ----------
    document : dict
    name : str, optional
        The edition to read; it is needed only if the document has several.
    source : str
        The name of the document in errors.

    Raises
    ------
    FileFormatError
        If it is no such document, if it is of another version, if its vocabulary is not the one of this version, or if
        it does not have the edition.
    DeclarationError
        If a machine with names of its own is not sound; the error names the row.
    """
    try:
        found: Any = document
        if found["format"] == DECLARED:
            return _checked_name(source, declared_of(found, source), name)
        if found["format"] != FORMAT:
            raise FileFormatError(source, f"its format is {found['format']!r}, not {FORMAT!r}")
        _check_version(source, str(found["version"]))
        for part, expected in vocabulary().items():
            if found[part] != expected:
                raise FileFormatError(source, f"its {part} are not those of this version of syncedmem")
        return _declaration(_chosen(source, found["editions"], name))
    except KeyError as error:
        raise FileFormatError(source, f"this is no machine in JSON: {error.args[0]!r} is missing or unknown") from error
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, (FileFormatError, DeclarationError)):
            raise
        raise FileFormatError(source, f"this is no machine in JSON: {error}") from error


def _checked_name(source: str, found: Declaration, name: str | None) -> Declaration:
    if name not in (None, found.edition.name):
        raise FileFormatError(source, f"it has no edition {name}; it has {found.edition.name}")
    return found


def _check_version(source: str, version: str) -> None:
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise FileFormatError(source, f"its version is {version}, and this needs {VERSION}: export it again")


def _chosen(source: str, editions: list[Json], name: str | None) -> Json:
    names = ", ".join(str(edition["name"]) for edition in editions)
    found = [edition for edition in editions if name in (None, edition["name"])]
    if not editions:
        raise FileFormatError(source, "it has no editions")
    if not found:
        raise FileFormatError(source, f"it has no edition {name}; it has {names}")
    if len(found) > 1:
        raise FileFormatError(source, f"it has several editions: name one, {names}")
    return found[0]


def _declaration(found: Json) -> Declaration:
    edition = Edition(
        name=str(found["name"]),
        about=str(found["about"]),
        heads=tuple(SyncedHead[name] for name in found["heads"]),
        flags=_facts(found["flags"]),
        implied=_facts(found["implied"]),
        never=frozenset(_named(Guard, found["never"])),
        cite=str(found["cite"]),
        cycles=tuple(_named(Call, sequence) for sequence in found["cycles"]),
    )
    return Declaration(edition, _rows([_row(row) for row in found["transitions"]]))


def _rows(apart: list[Transition]) -> tuple[Transition, ...]:
    """The rows, with neighbours that differ only in their heads as one row, as a table has them."""
    merged = groupby(apart, lambda row: replace(row, source=()))
    return tuple(replace(row, source=tuple(head for it in group for head in it.source)) for row, group in merged)


def _row(row: Json) -> Transition:
    return Transition(
        Call(row["call"]),
        (SyncedHead[row["source"]],),
        None if row["dest"] is None else SyncedHead[row["dest"]],
        _named(Action, row["actions"]),
        conditions=_named(Guard, row["conditions"]),
        unless=_named(Guard, row["unless"]),
        refusal=None if row["refusal"] is None else Refusal(row["refusal"]),
        cite=str(row["cite"]),
    )


def _named(kind: type[Name], names: Iterable[object]) -> tuple[Name, ...]:
    return tuple(kind(name) for name in names)


def _facts(names: Iterable[str]) -> Fact:
    found = Fact(0)
    for name in names:
        found |= Fact[name]
    return found
