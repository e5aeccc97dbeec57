"""The options of an export, from the names that a person writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail, Direction
from ..diagrams.palette import Theme
from ..diagrams.trace import trace_of
from ..errors import InvalidArgumentError, InvalidExportError
from ..opening import machine_of
from ..spelling import names_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..opening import AnyMachine

__all__ = ["OPTIONS", "export_options", "named_calls", "named_choice"]

Choice = TypeVar("Choice", Detail, Direction, Theme)

OPTIONS = ("calls", "detail", "theme", "direction", "trace", "size")
"""The options of a diagram in a page."""


def named_calls(texts: Sequence[str], edition: AnyMachine = DEFAULT) -> tuple[str, ...]:
    """The calls in these texts; each may have several, see `names_in`."""
    known = machine_of(edition).numbered_as.calls  # of a call that an edition lacks, `export` says so
    names = [name for text in texts for name in names_in(text, known) or [text]]
    for name in names:
        if name not in known:
            raise InvalidExportError.unknown("call", name, known)
    return tuple(names)


def named_choice(kind: type[Choice], name: str) -> Choice:
    """The detail, the theme or the direction with this name."""
    if name not in list(kind):
        raise InvalidExportError.unknown(kind.__name__.lower(), name, list(kind))
    return kind(name)


def export_options(
    edition: AnyMachine | None, given: Mapping[str, str | Sequence[str]], mark: str = ""
) -> dict[str, Any]:
    """The arguments of `export` for what a person asks for: in a page, on a command line.

    Parameters
    ----------
    edition : str or Machine, optional
        If None, the default of the format.
    given : mapping of str to str
        Some of the ``OPTIONS``, as text; there may be several texts with calls.
    mark : str
        What is before the names of options, for errors.

    Raises
    ------
    InvalidExportError
        If there is no such call, detail, theme or direction; a size that has no trace; or a trace that the edition
        does not take.
    InvalidArgumentError
        If the size is no number.
    DeclarationError
        If there is no such edition.
    """
    arguments: dict[str, Any] = {"edition": edition}
    machine = DEFAULT if edition is None else edition
    if calls := given.get("calls"):
        arguments["calls"] = named_calls([calls] if isinstance(calls, str) else calls, machine)
    kinds: dict[str, Any] = {"detail": Detail, "theme": Theme, "direction": Direction}
    arguments |= {name: named_choice(kind, str(given[name])) for name, kind in kinds.items() if name in given}
    size = None
    if "size" in given:
        try:
            size = int(str(given["size"]))
        except ValueError:
            raise InvalidArgumentError(f"{mark}size", given["size"], "a whole number of bytes") from None
    if "trace" in given:
        arguments["trace"] = trace_of(str(given["trace"]), edition=machine, size=size)
    elif size is not None:
        raise InvalidExportError(f"{mark}size needs {mark}trace: it is the size of the memory that the trace is about")
    return arguments
