"""The command ``diagram``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from syncedmem.model import EDITIONS, InvalidArgumentError, InvalidExportError
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.labels import labels_of
from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.declared import MACHINE, machine_named
from syncedmem.model.exports.formats import ENDINGS, FORMATS, export, format_of
from syncedmem.model.exports.options import named_calls, named_choice
from syncedmem.model.head import DEFAULT_EDITION

from .output import file_place, named, write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["diagram"]


def _endings(name: str) -> str:
    return " ".join(ending for ending, names in ENDINGS.items() if names[0] == name)


_FORMATS = "\n".join(f"  {name:<11}  {_endings(name):<14}  {found.about}" for name, found in FORMATS.items())


def diagram(  # noqa: PLR0913 -- the options of the command
    *,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="One of the formats above. Default: the one with the ending of the --out file, or else mermaid.",
        ),
    ] = None,
    edition: Annotated[
        str | None,
        typer.Option(
            metavar="EDITION",
            help=f"Edition of the machine: {', '.join(f'{it.name} ({it.about})' for it in EDITIONS.values())}. "
            f"Or {MACHINE} Default: {DEFAULT_EDITION}, and for json all of them.",
        ),
    ] = None,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CALL",
            help="Show only this call. Repeat the option for more, or separate the calls by commas. Default: all.",
        ),
    ] = None,
    detail: Annotated[
        str | None,
        typer.Option(metavar="DETAIL", help=f"What to distinguish: {', '.join(Detail)}. Each format has a default."),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT",
            help="Show this text instead of the name of a head, call, guard, flag, action or refusal. Repeat the "
            "option for more, or separate them by semicolons.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="CALLS",
            help="Draw these calls as a path through the diagram, for example 'cpu_data gpu_data'. With --calls, only "
            "calls that are shown can be in it.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of the memory that --trace is about. The labels of copies show it."),
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(
            metavar="THEME",
            help=f"Colours of a picture: {', '.join(Theme)}. Default: auto, which is light; an SVG is dark "
            "where the page or the reader's system is.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write to this file. Missing folders are created. Default: standard output, which is also named -.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing. Compare the --out file with what would be written to it."
        ),
    ] = False,
) -> None:
    """Draw the head machine, or write it in another format."""
    path = None if out is None else file_place(out)
    if check and path is None:
        raise InvalidExportError("--check needs a file to compare with: -o FILE")
    if size is not None and trace is None:
        raise InvalidExportError("--size needs --trace: it is the size of the memory that the trace is about")
    machine = None if edition is None else machine_named(edition)
    walk = None if trace is None else trace_of(trace, edition=machine or DEFAULT_EDITION, size=_bytes(size))
    found = export(
        format_of("" if path is None else str(path), format_),
        edition=machine,
        calls=named_calls(calls or [], machine or DEFAULT_EDITION),
        detail=None if detail is None else named_choice(Detail, detail),
        trace=walk,
        theme=None if theme is None else named_choice(Theme, theme),
        labels=labels_of(labels or [], machine or DEFAULT_EDITION),
    )
    if path is None or not check:
        write(path, found)
    elif not path.exists() or _read(path) != (found.encode() if isinstance(found, str) else found):
        wrong = "is not up to date" if path.exists() else "does not exist"
        typer.echo(f"{path} {wrong}: run the command without --check to write it", err=True)
        raise typer.Exit(1)


diagram.__doc__ = f"""{diagram.__doc__}

Formats:
{_FORMATS}

Exit status:
  0  it was written, or with --check the file is up to date
  1  with --check, the file is missing or not up to date
  2  the command line is wrong, or a file cannot be read or written
"""


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise InvalidArgumentError("--size", text, "a whole number of bytes") from None


def _read(path: Path) -> bytes:
    with named(str(path)):
        return path.read_bytes()
