"""Serves the page on this machine alone."""

from __future__ import annotations

import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

__all__ = ["MOST_CLIENTS", "page_server"]

HOST = "127.0.0.1"
IDLE = 10.0
"""Seconds that a client may take to say something, or to take what it is given."""
MOST_CLIENTS = 32
"""At a time, each of which has a thread."""
_DEFAULT_PORT = 80
"""Which browsers do not say."""
_NAMES = ("localhost", HOST, "[::1]")


def page_server(text: str, port: int = 0) -> PageServer:
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
        return PageServer((HOST, port), partial(Page, text.encode()))
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{HOST}:{port}") from error


def names_of(port: int) -> tuple[str, ...]:
    """What clients may call a server on this machine."""
    return tuple(f"{name}:{port}" for name in _NAMES) + (_NAMES if port == _DEFAULT_PORT else ())


class PageServer(ThreadingHTTPServer):
    """Has a thread for each of a few clients."""

    request_queue_size = 128  # who waits longer than an instant for being accepted, tries again after a second

    def __init__(self, *args: Any) -> None:  # noqa: ANN401 -- as the base class takes them
        self._places = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__(*args)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"

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

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride] -- it is served by no other
    timeout: ClassVar[float | None] = IDLE

    def __init__(self, body: bytes, *args: object) -> None:
        self._body = body
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        hosts = [it.lower() for it in self.headers.get_all("Host", [])]
        if len(hosts) != 1 or hosts[0] not in names_of(self.server.server_port):
            self._answer(421, "text/plain", f"This is {self.server.address} and answers to no other name.\n".encode())
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
