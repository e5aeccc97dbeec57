"""The options of an export, from the names that a person writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..compiled import head_machine
from ..diagrams.drawing import Detail
from ..diagrams.labels import labels_of
from ..diagrams.palette import Theme
from ..diagrams.trace import trace_of
from ..errors import InvalidExportError
from ..head import DEFAULT_EDITION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..head import Call
    from ..machine import AnyEdition

__all__ = ["OPTIONS", "block_options", "export_options", "named_calls", "named_choice"]

Choice = TypeVar("Choice", Detail, Theme)

OPTIONS = ("calls", "detail", "theme", "labels", "trace", "size")
"""The options of a diagram in a page."""


def named_calls(texts: Sequence[str], edition: AnyEdition = DEFAULT_EDITION) -> tuple[Call, ...]:
    """The calls of a machine with these names; each text may have several, separated by commas or blanks.

    Raises
    ------
    InvalidExportError
        If there is no such call, or a text has no name.
    """
    names = [name for text in texts for name in text.replace(",", " ").split() or [text]]
    known = {call.value: call for call in head_machine(edition).names.calls}
    for name in names:
        if name not in known:
            raise InvalidExportError.unknown("call", name, known)
    return tuple(known[name] for name in names)


def named_choice(kind: type[Choice], name: str) -> Choice:
    """The detail or the theme with this name.

    Raises
    ------
    InvalidExportError
        If there is none.
    """
    if name not in list(kind):
        raise InvalidExportError.unknown(kind.__name__.lower(), name, list(kind))
    return kind(name)


def block_options(text: str, *more: str) -> dict[str, str]:
    """The options of a block in a page, ``name: value`` in each line.

    Parameters
    ----------
    text : str
    *more : str
        Names besides ``OPTIONS``.

    Raises
    ------
    InvalidExportError
        If a line is none.
    """
    found: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.strip().lstrip(":").partition(":")
        if not colon or name not in (*OPTIONS, *more):
            raise InvalidExportError(f"{line.strip()!r} is no option of a block: {', '.join((*OPTIONS, *more))}")
        found[name] = value.strip()
    return found


def export_options(edition: AnyEdition, given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `export` for a diagram or a table in a page.

    Parameters
    ----------
    edition : str or Declaration
    given : mapping of str to str
        Some of the ``OPTIONS``, as text.

    Raises
    ------
    InvalidExportError
        If there is no such call, detail, theme or label; or a size that is no number of bytes, or has no trace.
    DeclarationError, TraceError
        If there is no such edition, or if it does not take the trace.
    """
    found: dict[str, Any] = {"edition": edition}
    if "calls" in given:
        found["calls"] = named_calls([given["calls"]], edition)
    if "detail" in given:
        found["detail"] = named_choice(Detail, given["detail"])
    if "theme" in given:
        found["theme"] = named_choice(Theme, given["theme"])
    if "labels" in given:
        found["labels"] = labels_of([given["labels"]], edition)
    size = given.get("size")
    if size is not None and not size.isdecimal():
        raise InvalidExportError(f"size is a number of bytes, not {size!r}")
    if "trace" in given:
        found["trace"] = trace_of(given["trace"], edition=edition, size=None if size is None else int(size))
    elif size is not None:
        raise InvalidExportError("size needs trace: it is the size of the memory that the trace is about")
    return found
