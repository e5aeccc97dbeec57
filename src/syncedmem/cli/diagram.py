"""The command ``diagram``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from syncedmem.model import EDITIONS, Call, InvalidArgumentError, InvalidExportError
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.formats import ENDINGS, FORMATS, export, format_of

from .output import file_place, named, write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["diagram"]

Choice = TypeVar("Choice", Detail, Theme)


_ENDINGS = ", ".join(f"{ending} {names[0]}" for ending, names in ENDINGS.items())
_ABOUT = "\n\n".join(f"{name}: {found.about}." for name, found in FORMATS.items())


def diagram(  # noqa: PLR0913 -- the options of the command
    *,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"One of {', '.join(FORMATS)}; see above. Without this option the ending of the file of -o decides: "
            f"{_ENDINGS}. Without both it is mermaid.",
        ),
    ] = None,
    edition: Annotated[
        str | None,
        typer.Option(
            metavar="EDITION",
            help=f"Whose machine: {', '.join(f'{it.name} ({it.about})' for it in EDITIONS.values())}. "
            "Without this option: the first, and for json all of them.",
        ),
    ] = None,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CALL",
            help="Show this call; repeat it for more, or separate them by commas. By itself, all.",
        ),
    ] = None,
    detail: Annotated[
        str | None,
        typer.Option(metavar="DETAIL", help=f"What to tell apart: {', '.join(Detail)}. Each format has a default."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="CALLS",
            help="Calls to draw as a way through the diagram: 'cpu_data gpu_data'. With --calls, those must be among "
            "the calls that are shown.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="The size of the memory that --trace is about, if it matters."),
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(
            metavar="THEME",
            help=f"The colours of a picture: {', '.join(Theme)}. By itself the first: light, and in SVG dark where the "
            "reader's system is. A document for print takes light.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write to this file instead of standard output. Folders that are missing are made; - is standard "
            "output.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing; exit with 1 if the file of -o is not what would be written."
        ),
    ] = False,
) -> None:
    """Draw the head machine, tabulate it or translate it, from its one declaration."""
    path = None if out is None else file_place(out)
    if check and path is None:
        raise InvalidExportError("--check needs a file to compare with: -o FILE")
    if size is not None and trace is None:
        raise InvalidExportError("--size is of the memory that a trace is about, and there is no --trace")
    walk = None if trace is None else trace_of(trace, edition=edition or "caffe", size=_bytes(size))
    found = export(
        format_of("" if path is None else str(path), format_),
        edition=edition,
        calls=_calls(calls or []),
        detail=_named(Detail, detail),
        trace=walk,
        theme=_named(Theme, theme),
    )
    if path is None or not check:
        write(path, found)
    elif not path.exists() or _read(path) != (found.encode() if isinstance(found, str) else found):
        typer.echo(f"{path} is not up to date: write it again without --check", err=True)
        raise typer.Exit(1)


diagram.__doc__ = f"{diagram.__doc__}\n\n{_ABOUT}"


def _calls(given: Sequence[str]) -> tuple[Call, ...]:
    names = [name for text in given for name in text.replace(",", " ").split() or [text]]
    known = {call.value: call for call in Call}
    for name in names:
        if name not in known:
            raise InvalidExportError.unknown("call", name, known)
    return tuple(known[name] for name in names)


def _named(kind: type[Choice], name: str | None) -> Choice | None:
    if name is not None and name not in list(kind):
        raise InvalidExportError.unknown(kind.__name__.lower(), name, list(kind))
    return None if name is None else kind(name)


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise InvalidArgumentError("--size", text, "a whole number of bytes") from None


def _read(path: Path) -> bytes:
    with named(str(path)):
        return path.read_bytes()
