"""The explorer of a machine of somebody's own: it shows what is declared, and knows no names by itself."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from state_words import words_of
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.explorer import explorer_material, explorer_page, read_trace
from syncedmem.explorer.machines import editions_of
from syncedmem.explorer.material import explorer_vectors
from syncedmem.model import Action, Call, Declaration, SyncedHead, matrix
from syncedmem.model.errors import FileFormatError
from syncedmem.model.exports.document import machine_json

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Explorer

CAFFE = Declaration.of("caffe")


def mine(name: str, *rows: Any) -> Declaration:
    return Declaration(replace(CAFFE.edition, name=name, about="mine", cycles=()), rows)


NO_PUSH = mine("no_push", *(row for row in CAFFE.rows if row.call is not Call.ASYNC_GPU_PUSH))
ZEALOUS = mine(
    "zealous",
    *(
        replace(row, actions=(Action.ZERO_CPU, Action.COPY_TO_CPU))
        if row.call is Call.CPU_DATA and row.source == (SyncedHead.HEAD_AT_GPU,) and row.conditions
        else row
        for row in CAFFE.rows
    ),
)
"""It zeroes the host before it copies: only the row says so."""
OURS = "from syncedmem.model import Declaration\nMACHINE = Declaration.of('early')\n"


def write_page(path: Path, machine: Declaration) -> str:
    path.write_text(explorer_page(edition=machine), encoding="utf-8")
    return path.as_uri()


# --- the command


def test_an_edition_of_ours_is_the_one_that_the_page_begins_with() -> None:
    assert ("caffe", "early", "cpu_only") == editions_of() == editions_of("caffe")
    assert ("cpu_only", "caffe", "early") == editions_of("cpu_only")
    assert ["early", "caffe", "cpu_only"] == [
        it["name"] for it in explorer_material(edition="early")["machine"]["editions"]
    ]


def test_a_machine_of_ones_own_is_alone_on_its_page() -> None:
    """Its name may be that of one of ours, and it has no test vectors."""
    same = mine("caffe", *NO_PUSH.rows)
    found = explorer_material(edition=same)["machine"]["editions"]

    assert (same,) == editions_of(same)
    assert [("caffe", len(found[0]["calls"]))] == [(it["name"], 7) for it in found]
    assert [] == explorer_vectors(same)
    assert "<title>The caffe machine</title>" in explorer_page(edition=same)
    assert "<title>The SyncedMemory machine</title>" in explorer_page(edition="early")


@pytest.mark.parametrize("named", ["mine.py:MACHINE", "mine.json", "mine.json:early"])
def test_the_command_takes_what_diagram_takes(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.py").write_text(OURS, encoding="utf-8")
    tmp_path.joinpath("mine.json").write_text(machine_json("early"), encoding="utf-8")
    result = CliRunner().invoke(app, ["explore", "--edition", named, "--out", "page.html"])

    assert result.exit_code == 0, result.output
    assert tmp_path.joinpath("page.html").read_text(encoding="utf-8") == explorer_page(edition=Declaration.of("early"))


def test_a_trace_has_the_calls_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("cpu_data async_gpu_push", encoding="utf-8")

    assert "cpu_data async_gpu_push" == read_trace(path) == read_trace(path, "early")
    with pytest.raises(FileFormatError, match="there is no call 'async_gpu_push'"):
        read_trace(path, NO_PUSH)


# --- the page


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [NO_PUSH, ZEALOUS], ids=str)
def test_every_cell_does_what_is_declared(explorer: Explorer, machine: Declaration, tmp_path: Path) -> None:
    """With a reason for each action, and in the quiz."""
    from browser import Program, address, button

    explorer.visit(write_page(tmp_path / "page.html", machine))
    ways = words_of(machine)
    cells = [(before, asked, entry) for before, row in matrix(machine).items() for asked, entry in row.items()]
    programs = [Program(address(ways[before]), [button(str(asked))]) for before, asked, _ in cells]
    seen = explorer.play(programs)

    assert len(seen) > 100
    for (_, asked, entry), (_, shown) in zip(cells, seen, strict=True):
        actions = [action.value for action in entry.actions]
        assert (str(entry.after), actions) == (shown.configuration, [name for name, *_ in shown.actions])
        assert actions == [it.done for it in shown.reasons if it.done], asked
    assert (machine is ZEALOUS) == any(it.kind == "row" for _, shown in seen for it in shown.reasons)


def test_what_no_rule_explains_has_its_row_as_the_reason(explorer: Explorer, tmp_path: Path) -> None:
    explorer.visit(write_page(tmp_path / "page.html", ZEALOUS) + "#calls=cpu_data,mutable_gpu_data,cpu_data")
    said = [it.text for it in explorer.shown().reasons]

    assert "Zeroed on the host, because the row of cpu_data in HEAD_AT_GPU says so." == said[0]
    assert "Copied to the host, because the device wrote last (step 2)." == said[1]


def test_the_page_has_only_what_the_machine_has(explorer: Explorer, tmp_path: Path) -> None:
    explorer.visit(write_page(tmp_path / "page.html", NO_PUSH))

    assert ["no_push"] == explorer.run("return [...document.getElementById('edition').options].map((it) => it.value)")
    assert "no_push: mine." in explorer.text("about")
    assert not explorer.find("#shelf-vectors").is_displayed()
    assert explorer.find("#shelf-tests").is_displayed()
    assert explorer.run("return document.querySelector('[data-do=async_gpu_push]')") is None
    explorer.press("#prove")
    assert "✗" not in explorer.text("proof")


# --- other names


def renamed(page: str) -> str:
    """Return the page with other names for everything in its document, and no words of the vocabulary."""
    start, end = '<script type="text/plain" id="material">', "</script>"
    before, rest = page.split(start)
    packed, after = rest.split(end, 1)
    material: Any = json.loads(zlib.decompress(base64.b64decode(packed)))
    document = material["machine"]
    kinds = ("heads", "facts", "guards", "actions", "calls", "refusals")
    names = {it["name"]: f"x{kind[0]}{n}" for kind in kinds for n, it in enumerate(document[kind])}
    names |= {"cpu": "disk", "gpu": "card"}
    # The role of a call, and a call, are both named release: the role stays.
    strings = re.compile(r'(?<!"role": )"(\w+)(\(NULL\))?"')
    text = strings.sub(lambda it: f'"{names.get(it[1], it[1])}{it[2] or ""}"', json.dumps(document))
    material |= {"machine": json.loads(text), "words": {}, "tests": [], "drawings": {"no_push": "<svg></svg>"}}
    packed = base64.b64encode(zlib.compress(json.dumps(material).encode())).decode()
    return f"{before}{start}{packed}{end}{after}"


def test_a_machine_with_other_names_is_played_and_explained(explorer: Explorer, tmp_path: Path) -> None:
    """Heads, calls, actions, guards, flags and sides have other names, and people have no words for them."""
    path = tmp_path / "page.html"
    path.write_text(renamed(explorer_page(edition=NO_PUSH)), encoding="utf-8")
    calls = {call.value: f"xc{n}" for n, call in enumerate(Call)}
    actions = {action.value: f"xa{n}" for n, action in enumerate(Action)}
    explorer.visit(path.as_uri())
    explorer.call(calls["mutable_gpu_data"])
    explorer.press("#quiz")
    explorer.call(calls["cpu_data"])
    explorer.press("[data-answer=both]")
    shown = explorer.shown()

    assert "✓ Right. Both sides are fresh.1 of 1 right" == explorer.text("score")
    assert [f"{actions['allocate_cpu']} is done", f"{actions['copy_to_cpu']} is done"] == [
        it.text.split(",")[0].lower() for it in shown.reasons
    ]
    assert "because the card wrote last (step 1)." in shown.reasons[1].text
    assert {"disk", "card"} == set(shown.bytes) == set(shown.fresh)
    assert {"01" * 16} == set(shown.bytes.values())
    assert ["Disk", "Card"] == explorer.run(
        "return [...document.querySelectorAll('.side h3')].map((it) => it.innerText.trim())"
    )
    assert not explorer.find("#shelf-tests").is_displayed()
    explorer.press("#prove")
    assert "✗" not in explorer.text("proof")
