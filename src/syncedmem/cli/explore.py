"""The command ``explore``."""

from __future__ import annotations

import webbrowser
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from syncedmem.model.exports.declared import MACHINE, machine_named
from syncedmem.model.head import DEFAULT_EDITION, EDITIONS

from .output import file_place, write

__all__ = ["explore"]


def explore(
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRACE",
            help="File with a trace to open: report.json of verify, a replay file of fuzz, a file of test vectors, a "
            "reproducer, or names of calls.",
            show_default=False,
        ),
    ] = None,
    *,
    edition: Annotated[
        str | None,
        typer.Option(
            metavar="EDITION",
            help=f"Edition to begin with: {', '.join(EDITIONS)}. Or {MACHINE} A machine of your own has the page for "
            f"itself. Default: {DEFAULT_EDITION}.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the page to this file, and serve nothing. The page needs no network. Missing folders are "
            "created; - is standard output.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="NUMBER",
            help="Port to serve at. Default: 0, which takes a free port. Not with --out.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, or only print its address.")
    ] = True,
) -> None:
    """Explore the machine in a browser, call by call.

    The page is served until you press Ctrl+C, and only to this machine.

    Exit status:
      0  the page was written, or served until Ctrl+C
      2  the command line is wrong, the file is no trace or no machine, or the
         page cannot be written or served
    """
    if out is not None and port is not None:
        raise typer.BadParameter(
            "--port is where the page is served, but with --out it is not served: leave one of them out"
        )
    from syncedmem.explorer import explorer_page, page_server, read_trace

    path = None if out is None else file_place(out)
    machine = None if edition is None else machine_named(edition)
    text = explorer_page(None if trace is None else read_trace(trace, machine), edition=machine)
    if out is not None:
        write(path, text)
        return
    with page_server(text, port or 0) as server:
        typer.echo(f"The machine is at {server.address} (stop with Ctrl+C)")
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")
