"""The command line's ``explore``: the machine as a page, served on this machine alone or written to a file."""

from __future__ import annotations

import sys
import threading
import webbrowser
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated, Any, ClassVar

import typer

from .output import file_place, write

__all__ = ["explore", "page_server", "register"]

HOST = "127.0.0.1"
IDLE = 10.0
"""Seconds that a client may take to say something, or to take what it is given."""
MOST_CLIENTS = 32
"""At a time, each of which has a thread."""
_DEFAULT_PORT = 80
"""Which browsers do not say."""
_NAMES = ("localhost", HOST, "[::1]")


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
    from .explorer import explorer_page, read_trace  # noqa: PLC0415 -- the spec brings Hypothesis; --help needs none

    path = None if out is None else file_place(out)
    text = explorer_page(None if trace is None else read_trace(trace))
    if out is not None:
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
    """A server, not yet serving, that answers requests for its root with one page, on loopback, by its own names.

    Whoever asks for another host is refused: a page of somebody else's, whose name was made to lead here, could
    otherwise read the trace.  A client that is silent for `IDLE` seconds is dropped, and so is one more than
    `MOST_CLIENTS`.

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
        return _Server((HOST, port), partial(Page, text.encode()))
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{HOST}:{port}") from error


def names_of(port: int) -> tuple[str, ...]:
    """What clients may call a server on this machine."""
    return tuple(f"{name}:{port}" for name in _NAMES) + (_NAMES if port == _DEFAULT_PORT else ())


class _Server(ThreadingHTTPServer):
    """Has a thread for each of a few clients."""

    request_queue_size = 128  # who waits longer than an instant for being accepted, tries again after a second

    def __init__(self, *args: Any) -> None:  # noqa: ANN401 -- as the base class takes them
        self._places = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as above
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as above
        """Clients that go, or do not take what they asked for, are nothing to tell of."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Page(BaseHTTPRequestHandler):
    """Has one page, and nothing else."""

    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] -- it is served by no other
    timeout: ClassVar[float | None] = IDLE

    def __init__(self, body: bytes, *args: object) -> None:
        self._body = body
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        port = self.server.server_port
        hosts = [it.lower() for it in self.headers.get_all("Host", [])]
        if len(hosts) != 1 or hosts[0] not in names_of(port):
            self._answer(421, "text/plain", f"This is http://{HOST}:{port}/ and answers to no other name.\n".encode())
        elif self.path != "/":
            self.send_error(404)
        else:
            self._answer(200, "text/html; charset=utf-8", self._body)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name that http.server calls
        """Requests are nothing to tell of."""
