"""The command line's ``explore``: the machine as a page, served on this machine alone or written to a file."""

from __future__ import annotations

import webbrowser
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from .output import place, write

__all__ = ["explore", "page_server", "register"]

HOST = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Make the command part of an application."""
    app.command()(explore)


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
            help="Write the page to this file, which needs no network, and stop. Folders that are missing are made.",
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
    from .explorer import explorer_page, read_trace  # noqa: PLC0415 -- the spec brings Hypothesis; --help needs none

    path = None if out is None else place("--out", out, "file")
    text = explorer_page(None if trace is None else read_trace(trace))
    if path is not None:
        write(path, text)
        return
    with page_server(text, port or 0) as server:
        address = f"http://{HOST}:{server.server_port}/"
        typer.echo(f"The machine is at {address} (stop with Ctrl+C)")
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")


def page_server(text: str, port: int = 0) -> ThreadingHTTPServer:
    """A server, not yet serving, that answers every request for its root with one page, on loopback only.

    Parameters
    ----------
    text : str
        The page.
    port : int
        0 takes a free one.

    Raises
    ------
    OSError
        If the port cannot be had; its file name is the address.
    """
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Page, text.encode()))
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{HOST}:{port}") from error


class _Page(BaseHTTPRequestHandler):
    """Has one page, and nothing else."""

    def __init__(self, body: bytes, *args: object) -> None:
        self._body = body
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if self.path != "/":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self._body)))
        self.end_headers()
        self.wfile.write(self._body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name that http.server calls
        """Requests are nothing to tell of."""
