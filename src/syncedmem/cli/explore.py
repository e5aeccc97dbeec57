"""The command ``explore``."""

from __future__ import annotations

import webbrowser
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from syncedmem.model import EDITIONS
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.exports.declared import MACHINE, machine_named

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
            "--machine",
            "--edition",
            metavar="MACHINE",
            help=f"The machine: {', '.join(f'{it.name} ({it.about})' for it in EDITIONS.values())}. "
            f"Or {MACHINE} Default: the one that the trace is about, or {DEFAULT.name}.",
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
    """Explore a machine in a browser, call by call.

    The page is served until you press Ctrl+C, and only to this machine.

    Exit status:
      0  the page was written, or served until Ctrl+C
      2  the command line is wrong, the machine is unsound, the file is no
         trace of it, or the page cannot be written or served
    """
    if out is not None and port is not None:
        raise typer.BadParameter(
            "--port is where the page is served, but with --out it is not served: leave one of them out"
        )
    from syncedmem.explorer import explorer_page, page_server, read_trace

    path = None if out is None else file_place(out)
    machine = None if edition is None else machine_named(edition)
    text = explorer_page(None if trace is None else read_trace(trace), edition=machine)
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
