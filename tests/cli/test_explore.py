"""The command that serves the page or writes it to a file, and the contents of the page."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import socket
import struct
import threading
import webbrowser
import zlib
from collections.abc import Callable
from http.client import HTTPConnection
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.explorer import explorer_material, explorer_page, page_server, read_trace
from syncedmem.explorer.material import SIZES, calls_of, explorer_vectors
from syncedmem.explorer.server import MOST_CLIENTS, Page, names_of
from syncedmem.explorer.trace import MOST_STEPS
from syncedmem.model import EDITIONS, caffe
from syncedmem.model.files import MOST_TEXT
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS
from syncedmem.spec.vectors import SUITES, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import ThreadingHTTPServer
    from pathlib import Path

DECLARED = re.compile(r"^(?:export )?(?:const|let|function|class) (\w+)", re.MULTILINE)
SCRIPTS = {
    it.name: it.read_text(encoding="utf-8") for it in files("syncedmem.explorer").iterdir() if it.name.endswith(".js")
}


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with page_server("<p>hello</p>") as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def told(page: str, what: str = "material") -> Any:
    """Return the data that a page contains, unpacked."""
    (packed,) = re.findall(rf'<script type="text/plain" id="{what}">([\w+/=]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def answer(server: ThreadingHTTPServer, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request("GET", path)
    response = connection.getresponse()
    found = (response.status, response.read().decode())
    connection.close()
    return found


def test_the_server_has_one_page(server: ThreadingHTTPServer) -> None:
    assert answer(server, "/") == (200, "<p>hello</p>")
    assert answer(server, "/other")[0] == 404


def test_the_server_listens_to_this_machine_alone(server: ThreadingHTTPServer) -> None:
    assert ipaddress.ip_address(str(server.server_address[0])).is_loopback


def test_a_written_page_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "machine.html"
    result = CliRunner().invoke(app, ["explore", "--out", str(path)])
    text = path.read_text(encoding="utf-8")

    assert result.exit_code == 0, result.output
    assert text == explorer_page()
    assert len(text.encode()) < 300_000
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import|import\s*[("{]', text) == []
    assert "default-src 'none'" in text
    assert "{{" not in text.split('id="material"')[0]


@pytest.mark.parametrize("browser", [True, False])
def test_explore_serves_until_it_is_interrupted(browser: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    result = CliRunner().invoke(app, ["explore", *([] if browser else ["--no-browser"])])

    assert result.exit_code == 0, result.output
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", result.output)
    assert opened == ([address] if browser else [])


def answered(server: ThreadingHTTPServer, *hosts: str) -> str:
    """Send a request with these headers, and return the answer."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client:
        client.sendall("\r\n".join(["GET / HTTP/1.1", *(f"Host: {it}" for it in hosts), "", ""]).encode())
        return b"".join(iter(lambda: client.recv(4096), b"")).decode()


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}", "[::1]:{}"])
def test_the_server_answers_to_its_own_names(host: str, server: ThreadingHTTPServer) -> None:
    said = answered(server, host.format(server.server_port))

    assert said.startswith("HTTP/1.0 200 ")
    assert said.endswith("<p>hello</p>")


@pytest.mark.parametrize(
    "hosts",
    [
        ("evil.example:{}",),
        ("127.0.0.1",),
        ("127.0.0.1:1",),
        ("127.0.0.1:{}.evil.example",),
        ("evil.example:{}", "127.0.0.1:{}"),
        ("127.0.0.1:{}", "127.0.0.1:{}"),
        (),
    ],
)
def test_the_server_answers_to_no_other_name(hosts: tuple[str, ...], server: ThreadingHTTPServer) -> None:
    """Another site, whose name was made to lead to this server, must not read the trace."""
    port = server.server_port
    said = answered(server, *(host.format(port) for host in hosts))

    assert said.startswith("HTTP/1.0 421 ")
    assert said.endswith(f"\r\n\r\nThis is http://127.0.0.1:{port}/ and answers to no other name.\n")


def test_the_port_that_browsers_do_not_say_may_be_left_out() -> None:
    assert "localhost" in names_of(80)
    assert "localhost" not in names_of(8080)


def test_a_client_that_says_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch, server: ThreadingHTTPServer) -> None:
    monkeypatch.setattr(Page, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as silent:
        assert b"" == silent.recv(1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as slow:
        slow.sendall(b"GET / HT")
        assert b"" == slow.recv(1)


def test_a_client_that_takes_nothing_is_dropped_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Page, "timeout", 0.05)
    before = threading.active_count()
    with page_server("x" * 50_000_000) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        with socket.create_connection(("127.0.0.1", serving.server_port), timeout=30) as client:
            client.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{serving.server_port}\r\n\r\n".encode())
            client.recv(1)
            client_threads = set(threading.enumerate()) - {thread, threading.main_thread()}
            for it in client_threads:
                it.join(30)
        serving.shutdown()
        thread.join()

    assert ("", before) == (capsys.readouterr().err, threading.active_count())


def test_a_client_that_breaks_off_is_nothing_to_tell_of(
    capsys: pytest.CaptureFixture[str], server: ThreadingHTTPServer
) -> None:
    """The client resets the connection in the middle of its request."""
    with socket.socket() as gone:
        try:
            gone.getpeername()  # this socket is not connected
        except OSError:
            server.handle_error(gone, ("127.0.0.1", 1))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as client:
        client.sendall(b"GET / HT")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert answered(server, f"localhost:{server.server_port}").endswith("<p>hello</p>")
    assert "" == capsys.readouterr().err


def test_an_error_of_ours_in_the_server_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: ThreadingHTTPServer
) -> None:
    """The server drops only the client whose request failed."""

    def broken(_: int) -> tuple[str, ...]:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("syncedmem.explorer.server.names_of", broken)
        said = answered(server, "localhost")

    assert ("", True) == (said, "ZeroDivisionError" in capsys.readouterr().err)
    assert answered(server, f"localhost:{server.server_port}").endswith("<p>hello</p>")


def test_idle_clients_hold_a_bounded_number_of_threads(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More clients are dropped. When the idle ones have closed, the server accepts clients again."""
    monkeypatch.setattr(Page, "timeout", 600)
    before = set(threading.enumerate())
    address = ("127.0.0.1", server.server_port)
    clients = [socket.create_connection(address, timeout=30) for _ in range(MOST_CLIENTS + 50)]
    dropped = [_is_dropped(client) for client in clients[MOST_CLIENTS:]]
    threads = set(threading.enumerate()) - before
    for client in clients:
        client.close()
    for thread in threads:
        thread.join(30)

    assert all(dropped)
    assert MOST_CLIENTS == len(threads)
    assert answered(server, f"localhost:{server.server_port}").endswith("<p>hello</p>")


def _is_dropped(client: socket.socket) -> bool:
    try:
        return not client.recv(1)
    except ConnectionResetError:
        return True


def test_where_no_thread_can_be_started_the_place_stays_free(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: ThreadingHTTPServer
) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    for _ in range(MOST_CLIENTS + 1):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", full)
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as client:
                assert _is_dropped(client)

    assert "can't start new thread" in capsys.readouterr().err
    assert answered(server, f"localhost:{server.server_port}").endswith("<p>hello</p>")


def test_a_trace_is_opened_with_the_page_and_cannot_break_it(tmp_path: Path) -> None:
    """A report may contain any text, also the closing tag of a script."""
    trace, path = tmp_path / "trace.txt", tmp_path / "machine.html"
    program = "memory = subject.make(4)  # </script><p>"
    trace.write_text(program, encoding="utf-8")
    CliRunner().invoke(app, ["explore", str(trace), "--out", str(path)])

    assert told(path.read_text(encoding="utf-8"))["opened"] == program


Refuse = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Return a function that runs the command with wrong arguments and returns its one-line error."""

    def served(*_: object) -> None:
        pytest.fail("it is served")

    def refuse(*arguments: object) -> str:
        from syncedmem import cli

        monkeypatch.setattr("sys.argv", ["syncedmem", "explore", *map(str, arguments)])
        # If the command refuses nothing, it serves the page until it is stopped.  This test must not start that.
        monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", served)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        said = capsys.readouterr()
        assert (stopped.value.code, said.out) == (2, "")
        return said.err

    return refuse


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cpu_data \xff", ", byte 9: it is not text; expected a report of verify,"),
        (b"", ": the file is empty; expected"),
        (b" \n\t", ": the file is empty; expected"),
        (b'{"steps": [', ": this is broken JSON: line 1, column 12: Expecting value"),
        (b'{"steps": []}\n{"steps": \n', ": this is broken JSON: line 2, column 1: Extra data"),
        (b'{"a": 1}', ": it is JSON, but not a trace; expected"),
        (b"[]", ": it is JSON, but not a trace; expected"),
        (b'["cpu_data"]', ": it is JSON, but not a trace; expected"),
        (b"cpu_data\nfly", ": there is no call 'fly'; expected"),
        (b"[" * 100_000, ": this is broken JSON: it is nested too deeply"),
        (b'{"steps": [NaN]}', ": this is broken JSON: NaN is not a number"),
        (b'{"steps": [], "steps": []}', ": this is broken JSON: the name 'steps' occurs twice in an object"),
        (b'{"steps": [' + b"1" * 5000 + b"]}", ": this is broken JSON: Exceeds the limit"),
        (
            b"cpu_data " * (MOST_STEPS + 1),
            f": it has {MOST_STEPS + 1:,} steps, and the page plays at most {MOST_STEPS:,}",
        ),
        (b"memory.cpu_data()\n" * (MOST_STEPS + 1), f": it has {MOST_STEPS + 1:,} steps"),
    ],
)
def test_a_file_that_is_no_trace_is_one_line(content: bytes, said: str, refused: Refuse, tmp_path: Path) -> None:
    trace, page = tmp_path / "trace", tmp_path / "page.html"
    trace.write_bytes(content)
    line = refused(trace, "--out", page)

    assert line.startswith(f"syncedmem: {trace}{said}")
    assert line.count("\n") == 1
    assert not page.exists()


TOO_LONG: list[Any] = [[]] * (MOST_STEPS + 1)


@pytest.mark.parametrize(
    "document",
    [
        {"steps": TOO_LONG},
        {"program": TOO_LONG},
        {"findings": [{"program": [1]}, {"program": TOO_LONG}]},
        {"devices": [{}, {"violations": [{"reproducer": "memory.cpu_data()\n" * (MOST_STEPS + 1)}]}]},
        [{"steps": ["cpu_data"]}, {"steps": TOO_LONG}],
        {"program": [["repeat", MOST_STEPS + 1, [["free", 0]]]]},
    ],
    ids=["vector", "replay", "report of fuzz", "report of verify", "list", "loop"],
)
def test_a_trace_that_is_too_long_is_one_line(document: object, refused: Refuse, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(json.dumps(document), encoding="utf-8")

    assert refused(trace) == (
        f"syncedmem: {trace}: it has {MOST_STEPS + 1:,} steps, and the page plays at most {MOST_STEPS:,}\n"
    )


def test_no_more_is_read_than_the_page_opens(refused: Refuse) -> None:
    """The file has no end."""
    assert refused("/dev/zero").startswith(f"syncedmem: /dev/zero: it has more than {MOST_TEXT:,} bytes; expected")


def test_a_trace_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("cpu_data\n", encoding="utf-8-sig")

    assert read_trace(path) == "cpu_data\n"


def test_a_trace_that_cannot_be_read_is_one_line(refused: Refuse, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"

    assert refused(missing, "--out", "never.html") == f"syncedmem: {missing}: No such file or directory\n"
    assert refused(tmp_path, "--out", "never.html") == f"syncedmem: {tmp_path}: it is a directory\n"


def test_a_page_that_cannot_be_written_is_one_line(refused: Refuse, tmp_path: Path) -> None:
    assert refused("--out", tmp_path) == f"syncedmem: {tmp_path}: it is a directory\n"


def test_a_port_that_is_taken_is_one_line(refused: Refuse, server: ThreadingHTTPServer) -> None:
    port = server.server_port

    assert refused("--no-browser", "--port", port) == f"syncedmem: 127.0.0.1:{port}: Address already in use\n"


def test_a_port_and_a_file_are_not_taken_together(refused: Refuse, tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    assert "--port is where the page is served" in refused("--port", 0, "--out", page)
    assert not page.exists()


def test_an_error_of_the_system_without_a_file_says_what_is_wrong(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object = None) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("syncedmem.explorer.explorer_page", fail)

    assert refused() == "syncedmem: No space left on device\n"


@pytest.mark.parametrize(
    "text",
    [
        '{"devices": []}',
        '{"steps": ["cpu_data"]}\n\n{"header": {}}\n',
        '[{"program": []}]',
        "memory = subject.make(4)\nmemory.cpu_data()",
        "cpu_data(), set_cpu_data(NULL);gpu_data!2 set_mode(CPU)\nrelease\n",
        '{"devices": [{"violations": [{"reproducer": null}]}], "steps": 1}',
        "cpu_data\n" * MOST_STEPS,
    ],
)
def test_a_trace_of_any_form_is_taken_as_it_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8")

    assert read_trace(path) == text


def test_no_two_scripts_declare_the_same_name() -> None:
    """The page joins all scripts into one module."""
    names = [name for source in SCRIPTS.values() for name in DECLARED.findall(source)]
    assert len(names) > 50
    assert sorted(set(names)) == sorted(names)


def test_every_script_is_in_the_page_after_those_it_imports() -> None:
    page = explorer_page()
    firsts = {name: page.index(DECLARED.sub(r"\g<0>", source.split("*/")[0])) for name, source in SCRIPTS.items()}
    imports = [
        (name, imported) for name, source in SCRIPTS.items() for imported in re.findall(r'from "\./(\w+\.js)"', source)
    ]
    assert len(imports) > len(SCRIPTS)
    assert not [(name, imported) for name, imported in imports if firsts[imported] > firsts[name]]


def test_every_vector_is_in_the_page_by_its_id() -> None:
    suites = {(it["edition"], it["name"]): it for it in told(explorer_page(), "vectors")}
    assert set(suites) == {(edition, name) for edition in EDITIONS for name in SUITES if name != "large"}
    for (edition, name), suite in suites.items():
        found = list(vectors(name, edition))
        spelled = [[suite["letters"][letter] for letter in word] for word in suite["words"].split(" ")]
        assert spelled == [list(calls_of(vector.program.operations)) for vector in found]
        assert all(vector.id.startswith(start) for start, vector in zip(suite["ids"].split(" "), found, strict=True))
        sizes = [vector.program.made["sizes"][0] for vector in found]
        assert sizes == suite["sizes"] * (len(sizes) // len(suite["sizes"]))


def test_no_two_vectors_have_the_same_id_in_the_page() -> None:
    """The same vector in two suites has one id."""
    shown = explorer_vectors()
    whole = {vector.id for it in shown for vector in vectors(it["name"], it["edition"])}
    starts = {start for suite in shown for start in suite["ids"].split(" ")}
    assert {*SUITES} - {it["name"] for it in shown} == {"large"}, "these are too large for the page"
    assert len(starts) == len(whole)


@pytest.mark.parametrize(
    ("operation", "calls"),
    [
        ({"call": "cpu_data"}, ("cpu_data",)),
        ({"call": "set_cpu_data", "argument": {"buffer": 1, "bytes": 1}}, ("set_cpu_data",)),
        ({"call": "look"}, ()),
        ({"call": "cpu_data", "memory": 1}, ()),
        ({"call": "set_cpu_data", "argument": None}, ("set_cpu_data(NULL)",)),
        ({"call": "set_cpu_data", "argument": {"own": True}}, ()),
        ({"call": "write_buffer", "argument": {"buffer": 1, "bytes": 1}}, ()),
        ({"call": "set_mode", "argument": "CPU"}, ("set_mode(CPU)",)),
        ({"call": "gpu_data", "fail": 2}, ("gpu_data!2",)),
    ],
)
def test_operations_of_vectors_are_inputs_of_the_machine(operation: dict[str, Any], calls: tuple[str, ...]) -> None:
    assert calls_of([operation]) == calls


def test_the_page_is_told_the_whole_machine() -> None:
    machine = explorer_material()["machine"]
    assert [it["name"] for it in machine["editions"]] == list(EDITIONS)
    for edition in machine["editions"]:
        rows = EDITIONS[edition["name"]].rows
        assert [it["id"] for it in edition["transitions"]] == [
            row.identifier(head) for row in rows for head in row.source
        ]
    assert min(SIZES) == 0


def test_caffes_tests_make_eighteen_calls_of_four_kinds() -> None:
    """These numbers were counted in Caffe's file, which has seven tests."""
    calls = [call for test in CAFFE_TESTS for call in test.calls]

    assert len(CAFFE_TESTS) == 7
    assert len(calls) == 18
    assert set(calls) == {caffe.CPU_DATA, caffe.GPU_DATA, caffe.MUTABLE_CPU_DATA, caffe.MUTABLE_GPU_DATA}
