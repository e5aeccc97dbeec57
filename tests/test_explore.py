"""The command that serves the page or writes it, and how the page is put together."""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import webbrowser
from http.client import HTTPConnection
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.explore import page_server
from syncedmem.explorer import explorer_material, explorer_page
from syncedmem.explorer.material import SIZES, vector_id
from syncedmem.model import EDITIONS, Call, head_machine, hsi_suite, tour
from syncedmem.spec.caffe_tests import CAFFE_TESTS

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


def test_a_trace_is_opened_with_the_page_and_cannot_break_it(tmp_path: Path) -> None:
    """A report may hold anything, also the end of a script."""
    trace, path = tmp_path / "trace.txt", tmp_path / "machine.html"
    trace.write_text("cpu_data </script><p>", encoding="utf-8")
    CliRunner().invoke(app, ["explore", str(trace), "--out", str(path)])
    text = path.read_text(encoding="utf-8")

    (material,) = re.findall(r'<script type="application/json" id="material">(.*?)</script>', text, re.DOTALL)
    assert json.loads(material)["opened"] == "cpu_data </script><p>"


def test_a_trace_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncedmem import cli

    monkeypatch.setattr("sys.argv", ["syncedmem", "explore", "missing.json", "--out", "never.html"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2


def test_no_two_scripts_declare_the_same_name() -> None:
    """They become one module."""
    names = [name for source in SCRIPTS.values() for name in DECLARED.findall(source)]
    assert len(names) > 50
    assert sorted(set(names)) == sorted(names)


def test_every_script_is_in_the_page_after_those_it_imports() -> None:
    page = explorer_page()
    firsts = {name: page.index(DECLARED.sub(r"\g<0>", source.split("*/")[0])) for name, source in SCRIPTS.items()}
    for name, source in SCRIPTS.items():
        for imported in re.findall(r'from "\./(\w+\.js)"', source):
            assert firsts[imported] < firsts[name]


def words_of_the_machine() -> set[str]:
    """Names of heads, calls, actions, guards, facts and refusals, as the document has them."""
    document = explorer_material()["machine"]
    kinds = ("heads", "calls", "actions", "guards", "facts", "refusals")
    return {item["name"] for kind in kinds for item in document[kind]} - {"release"}


def typed_in(source: str) -> set[str]:
    """The words of the machine that a script spells out."""
    return {word for word in words_of_the_machine() if re.search(rf"\b{word}\b", source, re.IGNORECASE)}


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_nothing_about_the_machine_is_typed_in_a_script(name: str) -> None:
    assert typed_in(SCRIPTS[name]) == set()


def test_a_word_of_the_machine_in_a_script_is_seen() -> None:
    assert typed_in('if (state.head === "SYNCED") call("cpu_data")') == {"SYNCED", "cpu_data"}


def test_the_vectors_are_those_of_the_model() -> None:
    suites: dict[tuple[str, str], Any] = {(it["edition"], it["name"]): it for it in explorer_material()["suites"]}
    for (edition, name), suite in suites.items():
        words = {"tour": tour, "hsi": hsi_suite}[name](edition)
        spelled = [[suite["letters"][letter] for letter in word] for word in suite["words"]]
        assert spelled == [list(map(str, word)) for word in words]
        assert suite["ids"] == [vector_id(edition, word) for word in words]
        assert len(set(suite["ids"])) == len(words)
    assert {edition for edition, _ in suites} == set(EDITIONS)


def test_the_page_is_told_the_whole_machine() -> None:
    machine = explorer_material()["machine"]
    for edition in machine["editions"]:
        rows = head_machine(edition["name"]).declaration.rows
        assert [it["id"] for it in edition["transitions"]] == [
            row.identifier(head) for row in rows for head in row.source
        ]
    assert min(SIZES) == 0


def test_caffes_tests_make_eighteen_calls_of_four_kinds() -> None:
    """As was counted in their file: seven tests."""
    calls = [call for test in CAFFE_TESTS for call in test.calls]

    assert len(CAFFE_TESTS) == 7
    assert len(calls) == 18
    assert set(calls) == {Call.CPU_DATA, Call.GPU_DATA, Call.MUTABLE_CPU_DATA, Call.MUTABLE_GPU_DATA}
