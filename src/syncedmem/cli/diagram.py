"""The command ``diagram``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from syncedmem.model import EDITIONS, InvalidExportError
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.diagrams.drawing import Detail, Direction
from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.exports.blocks import END, MARK, fill_blocks
from syncedmem.model.exports.declared import MACHINE, machine_named
from syncedmem.model.exports.formats import ENDINGS, FORMATS, export, format_of, tla_config
from syncedmem.model.exports.options import export_options
from syncedmem.model.files import read_text

from .options import Force  # noqa: TC001 -- typer reads it
from .output import file_place, is_other, place, read_bytes, signed, write, write_over

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["diagram"]


def _endings(name: str) -> str:
    return " ".join(ending for ending, names in ENDINGS.items() if names[0] == name)


_FORMATS = "\n".join(f"  {name:<10}  {_endings(name):<14}  {found.about}" for name, found in FORMATS.items())


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
            "--machine",
            "--edition",
            metavar="MACHINE",
            help=f"The machine: {', '.join(f'{edition.name} ({edition.about})' for edition in EDITIONS.values())}. "
            f"Or {MACHINE} Default: {DEFAULT.name}, and for json all editions.",
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
    direction: Annotated[
        str | None,
        typer.Option(metavar="DIRECTION", help=f"Where a drawing leads: {', '.join(Direction)}. Default: down."),
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
    insert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Write the blocks of this page of Markdown again, which are between marks, see below. Repeat the "
            "option for more pages.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing. Compare the file with what --out or --insert would write."
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Draw the head machine, or write it in another format."""
    given = {"calls": calls, "detail": detail, "trace": trace, "size": size, "theme": theme, "direction": direction}
    if insert:
        options = {"format": format_, "machine": edition, **given, "out": out, "force": force}
        _insert(insert, options, check=check)
        return
    path = None if out is None else file_place(out)
    if check and path is None:
        raise InvalidExportError("--check needs a file to compare with: -o FILE")
    machine = None if edition is None else machine_named(edition)
    asked = export_options(machine, {name: value for name, value in given.items() if value is not None}, "--")
    name = format_of("" if path is None else str(path), format_)
    if check and name == "pdf":
        raise InvalidExportError(
            "a PDF has the date at which it was made, so --check cannot compare it; use svg or png"
        )
    text = export(name, **asked)
    if path is None:
        write(None, text)
        return
    files = {path: signed(text, FORMATS[name].extension) if isinstance(text, str) else text}
    if name == "tla" and path.suffix == ".tla":
        files[path.with_suffix(".cfg")] = signed(tla_config(machine or DEFAULT), "cfg")
    if check:
        _compare(files)
    else:
        write_over(files, force=force)


def _compare(files: Mapping[Path, bytes]) -> None:
    """Name the files that are not up to date, and exit with 1 if there are any."""
    stale = [path for path, data in files.items() if not path.exists() or read_bytes(path) != data]
    for path in stale:
        if not path.exists() and not path.is_symlink():
            typer.echo(f"{path} does not exist: write it without --check", err=True)
            continue
        again = _AGAIN
        if path.is_symlink() or is_other(path):
            again = f"it is {'a link' if path.is_symlink() else 'another kind of file'}, which only --force replaces"
        typer.echo(f"{path} is not up to date: {again}", err=True)
    if stale:
        raise typer.Exit(1)


def _beside(page: Path) -> Callable[[str], str]:
    """Where a file is that a page names: in the folder of the page, as for a link, or else in this folder."""
    return lambda name: str(page.parent / name) if (page.parent / name).exists() else name


def _insert(pages: Sequence[str], others: Mapping[str, object], *, check: bool) -> None:
    """Write the blocks of pages again: all of them, or none if one is wrong."""
    if given := [option for option, value in others.items() if value]:
        raise InvalidExportError(f"with --insert the marks have the options, so --{given[0]} cannot be given")
    paths = [place("--insert", page, "page of Markdown") for page in pages]
    texts = {path: read_text(path, "a page of Markdown") for path in paths}
    results = {path: fill_blocks(text, str(path), _beside(path)) for path, text in texts.items()}
    stale = [path for path in texts if texts[path] != results[path]]
    for path in stale:
        if check:
            typer.echo(f"{path} is not up to date: {_AGAIN}", err=True)
        else:
            write(path, results[path])
    if check and stale:
        raise typer.Exit(1)


_AGAIN = "write it again without --check"

diagram.__doc__ = f"""{diagram.__doc__}

Formats:
{_FORMATS}

With --insert, what is between two marks in a page of Markdown is written again, by the options of the first mark:
  {MARK}
  {END}

Exit status:
  0  it was written, or with --check the file is up to date
  1  with --check, a file is missing or not up to date
  2  the command line is wrong, or a file cannot be read or written
"""
