"""The command line's ``diagram``."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import Annotated, TypeVar

import typer

from .model import EDITIONS, Call, InvalidExportError
from .model.drawing import Detail
from .model.exports.formats import FORMATS, export
from .model.exports.trace import trace_of
from .model.palette import Theme

__all__ = ["diagram", "register"]

Choice = TypeVar("Choice", Detail, Theme)


def register(app: typer.Typer) -> None:
    """Make the command part of an application."""
    app.command()(diagram)


_ABOUT = "\n\n".join(f"{name}: {found.about}." for name, found in FORMATS.items())


def diagram(  # noqa: PLR0913 -- the options of the command
    *,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}; see above.")
    ] = "mermaid",
    edition: Annotated[
        str | None,
        typer.Option(
            metavar="EDITION",
            help=f"Whose machine, one of {', '.join(EDITIONS)}: Caffe's as it is now, as it was at first, or as it is "
            "in a build without a device. By itself the first, and for json all of them.",
        ),
    ] = None,
    calls: Annotated[
        list[str] | None, typer.Option(metavar="CALL", help="Show this call; repeat it for more. By itself, all.")
    ] = None,
    detail: Annotated[
        str | None,
        typer.Option(metavar="DETAIL", help=f"What to tell apart: {', '.join(Detail)}. A format has one by itself."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(metavar="CALLS", help="Calls to draw as a way through the diagram: 'cpu_data gpu_data'."),
    ] = None,
    size: Annotated[
        int | None, typer.Option(metavar="BYTES", help="The size of the memory that --trace is about, if it matters.")
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
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing; exit with 1 if the file of -o is not what would be written."
        ),
    ] = False,
) -> None:
    """Draw the head machine, tabulate it or translate it, from its one declaration."""
    if check and out is None:
        raise typer.BadParameter("--check needs a file to compare with: -o FILE")
    walk = None if trace is None else trace_of(trace, edition=edition or "caffe", size=size)
    found = export(
        format_,
        edition=edition,
        calls=_calls(calls or []),
        detail=_named(Detail, detail),
        trace=walk,
        theme=_named(Theme, theme),
    )
    data = found.encode() if isinstance(found, str) else found
    if out is None:
        sys.stdout.buffer.write(data)
    elif not check:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(data)
    elif not out.is_file() or out.read_bytes() != data:
        typer.echo(f"{out} is not up to date: write it again without --check", err=True)
        raise typer.Exit(1)


diagram.__doc__ = f"{diagram.__doc__}\n\n{_ABOUT}"


def _calls(names: list[str]) -> tuple[Call, ...]:
    known = {call.value: call for call in Call}
    for name in names:
        if name not in known:
            raise InvalidExportError(f"unknown call {name!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in names)


def _named(kind: type[Choice], name: str | None) -> Choice | None:
    if name is not None and name not in list(kind):
        raise InvalidExportError(f"unknown {kind.__name__.lower()} {name!r}; there are {', '.join(kind)}")
    return None if name is None else kind(name)
