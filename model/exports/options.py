"""The options of an export, from the names that a person writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail
from ..diagrams.palette import Theme
from ..diagrams.trace import trace_of
from ..errors import InvalidExportError
from ..opening import machine_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..opening import AnyMachine

__all__ = ["OPTIONS", "export_options", "named_calls", "named_choice"]

Choice = TypeVar("Choice", Detail, Theme)

OPTIONS = ("calls", "detail", "theme", "trace", "size")
"""The options of a diagram in a page."""


def named_calls(texts: Sequence[str], edition: AnyMachine = DEFAULT) -> tuple[str, ...]:
    """The calls in these texts; each may have several, separated by commas or blanks.

    Raises
    ------
    InvalidExportError
        If the machine has no such call, or a text has no name.
    """
    names = [name for text in texts for name in text.replace(",", " ").split() or [text]]
    known = machine_of(edition).numbered_as.calls  # of a call that an edition lacks, `export` says so
    for name in names:
        if name not in known:
            raise InvalidExportError.unknown("call", name, known)
    return tuple(names)


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


def export_options(edition: AnyMachine, given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `export` for a diagram or a table in a page.

    Parameters
    ----------
    edition : str or Machine
    given : mapping of str to str
        Some of the ``OPTIONS``, as text.

    Raises
    ------
    InvalidExportError
        If there is no such call, detail or theme; a size that is no number of bytes, or has no trace; or a trace that
        the edition does not take.
    DeclarationError
        If there is no such edition.
    """
    found: dict[str, Any] = {"edition": edition}
    if "calls" in given:
        found["calls"] = named_calls([given["calls"]], edition)
    if "detail" in given:
        found["detail"] = named_choice(Detail, given["detail"])
    if "theme" in given:
        found["theme"] = named_choice(Theme, given["theme"])
    size = given.get("size")
    if size is not None and not size.isdecimal():
        raise InvalidExportError(f"size is a number of bytes, not {size!r}")
    if "trace" in given:
        found["trace"] = trace_of(given["trace"], edition=edition, size=None if size is None else int(size))
    elif size is not None:
        raise InvalidExportError("size needs trace: it is the size of the memory that the trace is about")
    return found
