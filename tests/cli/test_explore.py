"""The command that serves the page of a machine or writes it to a file, what the page has, and the traces it opens."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from machines import EXAMPLES, MSI, PETSC
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.explorer import TraceText, explorer_material, explorer_page, page_server, read_trace
from syncedmem.explorer.material import explorer_vectors
from syncedmem.explorer.server import MOST_CLIENTS, Page, names_of
from syncedmem.explorer.trace import MOST_STEPS
from syncedmem.model import EDITIONS, Machine, Row, caffe
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.files import MOST_TEXT
from syncedmem.model.states import explore, stepper
from syncedmem.spec.vectors import SUITES, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import ThreadingHTTPServer
    from pathlib import Path

SCRIPTS = [it.read_text("utf-8") for it in files("syncedmem.explorer").iterdir() if it.name.endswith(".js")]
ANY = (*EDITIONS.values(), *EXAMPLES)

# --- the server


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with page_server("<p>hello</p>") as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


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


OWN = "127.0.0.1:{}"


@pytest.mark.parametrize("host", [OWN, "localhost:{}", "LocalHost:{}", "[::1]:{}"])
def test_the_server_answers_to_its_own_names(host: str, server: ThreadingHTTPServer) -> None:
    said = answered(server, host.format(server.server_port))

    assert (said[:13], said[-12:]) == ("HTTP/1.0 200 ", "<p>hello</p>")


OTHERS = f"evil.example:{{}}, 127.0.0.1, 127.0.0.1:1, {OWN}.evil.example, evil.example {OWN}, {OWN} {OWN}, "


@pytest.mark.parametrize("hosts", OTHERS.split(", "))
def test_the_server_answers_to_no_other_name(hosts: str, server: ThreadingHTTPServer) -> None:
    """Another site, whose name was made to lead to this server, must not read the trace."""
    port = server.server_port
    said = answered(server, *(host.format(port) for host in hosts.split()))

    assert ipaddress.ip_address(str(server.server_address[0])).is_loopback
    assert ("localhost" in names_of(80), "localhost" in names_of(port)) == (True, False)
    assert said.startswith("HTTP/1.0 421 ")
    assert said.endswith(f"\r\n\r\nThis is http://127.0.0.1:{port}/ and answers to no other name.\n")


def test_a_client_that_says_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch, server: ThreadingHTTPServer) -> None:
    monkeypatch.setattr(Page, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as silent:
        assert b"" == silent.recv(1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as slow:
        slow.sendall(b"GET / HT")
        assert b"" == slow.recv(1)


def test_idle_clients_hold_a_bounded_number_of_threads(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More clients are dropped. When the idle ones have closed, the server accepts clients again."""
    monkeypatch.setattr(Page, "timeout", 600)
    before, address = set(threading.enumerate()), ("127.0.0.1", server.server_port)
    clients = [socket.create_connection(address, timeout=30) for _ in range(MOST_CLIENTS + 9)]
    for client in clients[MOST_CLIENTS:]:
        with contextlib.suppress(ConnectionResetError):
            assert not client.recv(1)
    threads = set(threading.enumerate()) - before
    for client in clients:
        client.close()
    for thread in threads:
        thread.join(30)

    assert MOST_CLIENTS == len(threads)
    assert answered(server, f"localhost:{server.server_port}").endswith("<p>hello</p>")


# --- the page


def told(page: str) -> Any:
    """Return the data that a page contains."""
    (text,) = re.findall(r'<script type="application/json" id="material">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


@pytest.mark.parametrize("machine", ANY, ids=str)
def test_the_page_has_every_step_of_the_machine_as_the_model_takes_it(machine: Machine) -> None:
    table = explorer_material(machine)
    whole = explore(stepper(machine), stepper(machine).inputs(end=True))
    states, inputs = list(whole.steps), {it["name"]: k for k, it in enumerate(table["inputs"])}
    steps = [(state, entry, step) for state, row in whole.steps.items() for entry, step in row.items()]
    for state, entry, step in steps:
        line, after, way, reason = table["steps"][states.index(state)][inputs[str(entry)]]
        assert tuple(table["actions"][it]["name"] for it in table["ways"][way]) == step.actions
        assert (reason >= 0) == bool(step.refusal)
        assert (after == -1) if entry.ends else (states[after] == step.after)
        assert (table["rows"][line]["id"] == step.row.identifier(state.head)) if step.row else line == -1
    assert len(steps) == sum(bool(it) for row in table["steps"] for it in row)


def test_sentences_hold_of_some_machines_and_one_with_too_many_steps_is_refused() -> None:
    assert (len(explorer_material("caffe")["laws"]), explorer_material(MSI)["laws"]) == (6, [])
    heads = [f"h{k}" for k in range(150)]
    rows = [Row(f"to_{head}", heads, head) for head in heads]

    with pytest.raises(InvalidExportError, match=r"many has 22,500 transitions, and a page .* at most 20,000"):
        explorer_page(edition=Machine("many", rows))


@pytest.mark.parametrize("machine", ANY, ids=str)
def test_a_page_is_one_small_file_that_loads_nothing_and_is_complete_without_scripts(machine: Machine) -> None:
    page = explorer_page(edition=machine)
    ids = re.findall(r' id="(\w+)"', page)

    assert len(page.encode()) < (300_000 if machine in EDITIONS.values() else 150_000)
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import|import\s*[("{]', page) == []
    assert len(set(ids)) == len(ids) > 40
    assert "default-src 'none'" in page
    assert sum(source.count("\n") for source in SCRIPTS) <= 985, "half of what they once were"
    assert "{{" not in page.split('<script type="module">')[0]
    assert f"<title>{told(page)['title'].replace(chr(39), '&#x27;')}</title>" in page
    (still,) = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert all(f">{call}</th>" in still for call in machine.calls)
    assert ("affe" in page) == (machine in EDITIONS.values() or "affe" in repr(explorer_material(machine)))


def test_a_script_and_a_trace_cannot_break_the_page() -> None:
    machine = Machine("door", [Row("<script>", "</script>", '"&'), Row("shut", '"&', "</script>")], title="</title><p>")
    page = explorer_page("<script>", edition=machine, theme_key='"><p>')

    assert told(page)["opened"][0]["calls"] == [["<script>", 0]]
    assert page.count("</script>") == page.count("<script") == 4
    assert "<p>" not in page.split("<style>")[0]
    assert 'data-theme-key="&quot;&gt;&lt;p&gt;"' in page


def test_every_vector_is_in_the_page_by_its_id() -> None:
    for edition in EDITIONS:
        suites = explorer_vectors(edition)
        whole = {vector.id for suite in SUITES for vector in vectors(suite, edition)}
        assert len({start for suite in suites for start in suite["ids"].split(" ")}) == len(whole)
        for suite in suites[:3]:
            for vector, word in zip(vectors(suite["name"], edition), suite["words"].split(" "), strict=True):
                (walk,) = TraceText(vector.line()).walks(EDITIONS[edition])
                spelled = [suite["letters"][letter].partition("!") for letter in word]
                assert [(name, int(fail or 0)) for name, _, fail in spelled] == walk["calls"]
    assert explorer_vectors(PETSC) == []


# --- the command


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ([], "edition caffe"),
        (["--edition", "early"], "edition early"),
        (["--machine", "{file}:DOOR"], "door"),
        (["{trace}"], "edition early"),
    ],
)
def test_the_command_writes_the_page_of_any_machine(arguments: list[str], title: str, tmp_path: Path) -> None:
    page, file, trace = tmp_path / "new" / "machine.html", tmp_path / "door.py", tmp_path / "trace.json"
    file.write_text(
        UNSOUND.replace("'bad'", "'door'").replace("'go', 'A', 'A'", "'shut', 'B', 'A'").replace("M =", "DOOR =")
    )
    trace.write_text('{"edition": "early", "steps": ["cpu_data"]}')
    given = [it.format(file=file, trace=trace) for it in arguments]
    result = CliRunner().invoke(app, ["explore", *given, "--out", str(page)])

    assert result.exit_code == 0, result.output
    assert re.search(f"<title>.*{title}</title>", page.read_text(encoding="utf-8"))


Refuse = Callable[..., str]


UNSOUND = "from syncedmem.model import Machine, Row\nM = Machine('bad', [Row('go', 'A', 'B'), Row('go', 'A', 'A')])\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--machine", "nobody"], "unknown edition 'nobody'; there are"),
        (["--machine", "{folder}/bad.py:M"], "bad: "),
        (["--machine", "{folder}/bad.py:N"], "{folder}/bad.py has no N"),
        (["--machine", "{folder}/bad.py:Row"], "{folder}/bad.py:Row is no Machine but of type type"),
        (["--machine", "{folder}/none.json"], "{folder}/none.json: No such file or directory"),
        (["{folder}/missing"], "{folder}/missing: No such file or directory"),
        (["{folder}"], "{folder}: it is a directory"),
        (["--out", "{folder}"], "{folder}: it is a directory"),
        (["--out", "{folder}/bad.py/page.html"], "{folder}/bad.py: File exists"),
        (["/dev/zero"], f"/dev/zero: it has more than {MOST_TEXT:,} bytes; expected"),
        (["--port", "0", "--out", "{folder}/page.html"], "--port is where the page is served"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, refused: Refuse, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(UNSOUND)
    line = refused("explore", *(it.format(folder=tmp_path) for it in arguments))

    assert said.format(folder=tmp_path) in line
    assert line.startswith("syncedmem: ") or "--port" in line
    assert len(line.strip().splitlines()) == 1 or "--port" in line
    assert not (tmp_path / "page.html").exists()


def test_a_port_that_is_taken_is_one_line(refused: Refuse, server: ThreadingHTTPServer) -> None:
    port = server.server_port

    assert (
        refused("explore", "--no-browser", "--port", port) == f"syncedmem: 127.0.0.1:{port}: Address already in use\n"
    )


# --- traces


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cpu_data \xff", ", byte 9: it is not text; expected a report of verify,"),
        (b" \n\t", ": the file is empty; expected"),
        (b'{"steps": [', ": this is broken JSON: line 1, column 12: Expecting value"),
        (b'{"a": 1}', ": it is JSON, but not a trace; expected"),
        (b"cpu_data\nfly", ": caffe has no call 'fly'; expected"),
        (b"[" * 100_000, ": this is broken JSON: it is nested too deeply"),
        (b'{"steps": [NaN]}', ": this is broken JSON: NaN is not a number"),
        (b'{"devices": [{"violations": []}]}', ": the report has no violations: everything passed"),
        (b'{"header": {}}', ": there is no trace in it"),
        (b'{"steps": [], "shapes": []}', ": it is a vector of blobs, and the page plays memories"),
        (b'[{"edition": "early", "steps": []}, {"edition": "caffe", "steps": []}]', ": it is about caffe, and the"),
        (b"memory.cpu_data()\n" * (MOST_STEPS + 1), f": it has {MOST_STEPS + 1:,} steps, and the page plays at most"),
        (json.dumps({"steps": [[]] * (MOST_STEPS + 1)}).encode(), f": it has {MOST_STEPS + 1:,} steps"),
        (json.dumps({"program": [["repeat", MOST_STEPS + 1, [["free", 0]]]]}).encode(), ": "),
        (b'{"devices": [{"parts": {"memories": 5}}, {"parts": 5}]}', ": the report has no violations"),
        (b'{"program": [["repeat", "many"]]}', ": not a loop: ['repeat', 'many']; a loop is"),
    ],
)
def test_a_file_that_is_no_trace_is_one_line(content: bytes, said: str, refused: Refuse, tmp_path: Path) -> None:
    trace, page = tmp_path / "trace", tmp_path / "page.html"
    trace.write_bytes(content)
    line = refused("explore", trace, "--out", page)

    assert line.startswith(f"syncedmem: {trace}{said}")
    assert line.count("\n") == 1
    assert not page.exists()


REPRODUCER = """log, host, device = recorded(subject)
memory = subject.make(5, host=host, device=device)
set_mode(Mode.CPU)
memory.cpu_data()
with log.moves.armed(2), suppress(Exception): memory.gpu_data()
memory.set_gpu_data(None)
view = memory.mutable_gpu_data()
memory.close()
# R32-strong-guarantee: something"""
PROGRAM = REPRODUCER.splitlines()
CALLS = "set_mode(CPU) cpu_data gpu_data!2 set_gpu_data(NULL) mutable_gpu_data release"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (REPRODUCER, CALLS),
        (json.dumps({"devices": [{"parts": {"memories": {"violations": [{"statements": PROGRAM}]}}}]}), CALLS),
        ("\n\ncpu_data(), set_cpu_data(NULL);gpu_data!2\n", "cpu_data set_cpu_data(NULL) gpu_data!2"),
        (
            '{"steps": ["cpu_data", {"call": "look"}, {"call": "set_mode", "argument": "CPU"}]}',
            "cpu_data set_mode(CPU)",
        ),
        # Adopting calls no allocator, so the second step has one allocator call and two actions.
        ('{"steps": ["cpu_data", {"call": "set_cpu_data", "fail": 2}]}', "cpu_data set_cpu_data"),
        ('{"mode": "CPU", "steps": [{"call": "set_cpu_data", "argument": null}]}', "set_mode(CPU) set_cpu_data(NULL)"),
        ("cpu_data\n" * MOST_STEPS, " ".join(["cpu_data"] * MOST_STEPS)),
    ],
    ids=["program", "report", "names", "vector", "adopts", "mode", "most"],
)
def test_a_trace_of_any_form_is_read(text: str, calls: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8-sig")
    (walk, *_) = read_trace(path).walks(caffe.CAFFE)

    assert " ".join(f"{name}!{fail}" if fail else name for name, fail in walk["calls"]) == calls


def test_names_of_any_machine_are_read_and_replays_of_allocators() -> None:
    program = [["allocate", 0, 8], ["repeat", 2, [["allocate", 1, 1]], 1], ["free", 0]]
    (walk,) = TraceText(json.dumps({"target": "mine", "property": "P1", "program": program})).walks(caffe.CAFFE)

    assert TraceText("VecGetArray VecGetArrayRead").walks(PETSC)[0]["calls"] == [
        ("VecGetArray", 0),
        ("VecGetArrayRead", 0),
    ]
    assert walk["title"] == "mine breaks P1"
    assert [live for _, live in walk["program"]][-1] == "live: block 1 (1 byte), block 2 (1 byte)"
    assert walk["program"][0] == ("allocate(block=0, size=8)", "live: block 0 (8 bytes)")
