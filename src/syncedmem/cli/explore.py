"""The command ``explore``."""

from __future__ import annotations

import webbrowser
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from .output import file_place, write

__all__ = ["explore"]


def explore(
    trace: Annotated[
        Path | None,
        typer.Argument(
            help="A trace to open with: the report.json of verify, a replay of fuzz, a file of vectors, or calls by "
            "name, one a line."
        ),
    ] = None,
    *,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the page to this file, which needs no network, and stop. Folders that are missing are made; - "
            "is standard output.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="NUMBER",
            help="The port to serve at; 0, and none said, take one that is free. Not with --out, which serves nothing.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Play with the machine in a browser.

    Serves a page on this machine alone, until it is interrupted.

    Exit status 2: the command line is wrong, the trace is none, the page cannot be written or the port not be had.
    """
    if out is not None and port is not None:
        raise typer.BadParameter("--port says where to serve the page, but with --out it is written and not served")
    from syncedmem.explorer import explorer_page, page_server, read_trace

    path = None if out is None else file_place(out)
    text = explorer_page(None if trace is None else read_trace(trace))
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
