"""The command ``explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from syncedmem.model import EDITIONS, InvalidExportError
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.exports.declared import MACHINE, machine_named

from .options import Force  # noqa: TC001 -- typer reads it
from .output import check_place, file_place, signed, write, write_over

__all__ = ["explore"]


def explore(
    *,
    edition: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "--edition",
            metavar="MACHINE",
            help=f"The machine: {', '.join(f'{edition.name} ({edition.about})' for edition in EDITIONS.values())}. "
            f"Or {MACHINE} Default: {DEFAULT.name}.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the page to this file; it is needed. Missing folders are created; - is standard output.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a machine as a page to play with, call by call.

    The page is one HTML file for any browser. It needs no network.

    Exit status:
      0  the page was written
      2  the command line is wrong, the machine is unsound, or the page
         cannot be written
    """
    if out is None:
        raise InvalidExportError("explore writes a page to play with, and needs a file for it: -o PAGE.html")
    from syncedmem.explorer import explorer_page

    path = file_place(out)
    if path is not None:
        check_place(path, force=force)
    page = explorer_page(DEFAULT if edition is None else machine_named(edition))
    if path is None:
        write(None, page)
    else:
        write_over({path: signed(page, "html")}, force=force)
