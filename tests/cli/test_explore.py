"""The command that writes a machine as a page, and what the page is told."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from command_fixtures import run
from machines import EXAMPLES, MSI, ODD

from syncedmem.cli.output import signed
from syncedmem.explorer import explorer_material, explorer_page
from syncedmem.model import EDITIONS, Machine, Row, caffe
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.exports.document import machine_json
from syncedmem.model.states import explore, stepper

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANY = (*EDITIONS.values(), *EXAMPLES)

# --- the page


def told(page: str) -> Any:
    """Return the data that a page contains."""
    (text,) = re.findall(r'<script type="application/json" id="material">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


@pytest.mark.parametrize("machine", ANY, ids=str)
def test_the_page_has_every_step_of_the_machine_as_the_model_takes_it(machine: Machine) -> None:
    table = explorer_material(machine)
    whole = explore(stepper(machine), stepper(machine).inputs(end=True))
    states, inputs = list(whole.steps), {item["name"]: k for k, item in enumerate(table["inputs"])}
    steps = [(state, entry, step) for state, row in whole.steps.items() for entry, step in row.items()]
    for number, state in enumerate(states):
        shown = table["states"][number]
        assert shown["name"] == str(whole.configuration(state))
        assert table["heads"][shown["head"]]["name"] == state.head
        assert {table["facts"][fact]["name"] for fact in shown["facts"]} == state.facts
    for state, entry, step in steps:
        line, after, way, reason = table["steps"][states.index(state)][inputs[str(entry)]]
        assert tuple(table["actions"][item]["name"] for item in table["ways"][way]) == step.actions
        assert (reason >= 0) == bool(step.refusal)
        assert (after == -1) if entry.ends else (states[after] == step.after)
        assert (table["rows"][line]["id"] == step.row.identifier(state.head)) if step.row else line == -1
    assert len(steps) == sum(bool(item) for row in table["steps"] for item in row)


@pytest.mark.parametrize("machine", ANY, ids=str)
def test_a_page_is_one_small_file_that_loads_nothing_and_is_complete_without_scripts(machine: Machine) -> None:
    page = explorer_page(machine)
    ids = re.findall(r' id="(\w+)"', page)

    assert len(page.encode()) < 150_000
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import|^import\b|^export\b', page, re.MULTILINE) == []
    assert len(set(ids)) == len(ids) > 20
    assert "default-src 'none'" in page
    assert "{{" not in page.split('<script type="module">')[0]
    assert set(told(page)) >= {"states", "steps", "rows", "reasons"}
    (still,) = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert all(f">{call}</th>" in still for call in machine.calls)


def test_what_the_page_is_made_of_knows_no_machine() -> None:
    made_of = [path for path in files("syncedmem.explorer").iterdir() if path.name.endswith((".html", ".css", ".js"))]

    assert len(made_of) == 9
    assert [] == [item.name for item in made_of if re.search("caffe|cpu|gpu", item.read_text("utf-8"), re.IGNORECASE)]


def test_odd_names_cannot_break_the_page() -> None:
    page = explorer_page(ODD, theme_key='"><p>')

    assert [head["name"] for head in told(page)["heads"]] == list(ODD.heads)
    assert page.count("</script>") == page.count("<script") == 3
    assert "<p>" not in page.split("<style>")[0]
    assert 'data-theme-key="&quot;&gt;&lt;p&gt;"' in page
    assert "<title>Odd &lt;b&gt;" in page


def test_a_machine_of_too_many_steps_is_refused() -> None:
    heads = [f"h{k}" for k in range(150)]
    rows = [Row(f"to_{head}", heads, head) for head in heads]

    with pytest.raises(InvalidExportError, match=r"many has 22,500 transitions, and a page .* at most 20,000"):
        explorer_page(Machine("many", rows))


# --- the command

SOUND = "from syncedmem.model import Machine, Row\nM = Machine('door', [Row('go', 'A', 'B'), Row('go', 'B', 'A')])\n"


@pytest.mark.parametrize(
    ("arguments", "machine"),
    [
        ([], caffe.CAFFE),
        (["--edition", "early"], caffe.EARLY),
        (["--machine", "{folder}/sound.py:M"], Machine("door", [Row("go", "A", "B"), Row("go", "B", "A")])),
        (["--machine", "{folder}/msi.json"], MSI),
    ],
)
def test_the_command_writes_the_page_of_any_machine(arguments: list[str], machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "sound.py").write_text(SOUND)
    page, given = tmp_path / "new" / "page.html", [argument.format(folder=tmp_path) for argument in arguments]
    (tmp_path / "msi.json").write_text(machine_json(MSI), encoding="utf-8")
    result = run("explore", *given, "-o", str(page))

    assert (result.exit_code, result.output) == (0, "")
    assert page.read_bytes() == signed(explorer_page(machine), "html")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs a file for it: -o PAGE.html"),
        (["-o", "{folder}"], "{folder}: "),
        (["-o", "{folder}/file/page.html"], "{folder}/file: "),
    ],
)
def test_where_no_page_can_be_written_is_said(
    arguments: list[str], said: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    assert said.format(folder=tmp_path) in refused(
        "explore", *(argument.format(folder=tmp_path) for argument in arguments)
    )
    assert ["file"] == [path.name for path in tmp_path.iterdir()]
