"""What the page about a machine of your own says is what happens: its file, its commands, its error, its picture."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import DeclarationError, Rule, head_machine
from syncedmem.model.exports.declared import machine_named
from syncedmem.model.exports.formats import export
from syncedmem.spec.vectors.own_vectors import OWN_SUITES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "own-machine.md").read_text(encoding="utf-8")
FILE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
RUN = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]
COMMANDS = re.findall(r"^\$ syncedmem (.*)\n((?:(?!\$|```).*\n)*)", PAGE, re.MULTILINE)
"""The commands, each with what it prints."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page, in which commands run."""
    (tmp_path / "buffer.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "run.jsonl").write_text(RUN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_draw_the_picture_of_the_page(folder: Path) -> None:
    assert len(COMMANDS) == 5
    for command, output in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command))
        assert (done.exit_code, done.output) == (0, output), command
    picture = (folder / "buffer.svg").read_text(encoding="utf-8")  # the last command makes it of the JSON

    assert picture == str(export("svg", edition=machine_named("buffer.py:BUFFER")))
    assert picture == (DOCS / "pictures" / "buffer.svg").read_text(encoding="utf-8"), (
        "write docs/pictures/buffer.svg again, with the commands of the page"
    )


@pytest.mark.usefixtures("folder")
def test_the_options_of_the_page_are_options() -> None:
    options = re.findall(r"`(--(?:calls|trace|labels|detail)[^`]*)`", PAGE)
    assert len(options) == 4
    for option in options:
        words = ["diagram", "--edition", "buffer.py:BUFFER", "--format", "svg", *shlex.split(option)]
        assert CliRunner().invoke(app, words).exit_code == 0, option


def test_the_error_of_the_page_is_that_of_a_missing_row(folder: Path) -> None:
    rows = FILE.splitlines(keepends=True)
    last = max(number for number, row in enumerate(rows) if "Rule(" in row)
    (folder / "buffer.py").write_text("".join(rows[:last] + rows[last + 1 :]), encoding="utf-8")

    with pytest.raises(DeclarationError) as refused:
        head_machine(machine_named("buffer.py:BUFFER"))
    assert f"```\n{refused.value}\n```" in PAGE


def test_the_table_has_the_parts_of_a_rule_in_their_order() -> None:
    table = PAGE.partition("| part | says |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == Rule._fields


def test_the_table_of_suites_has_all() -> None:
    table = PAGE.partition("| file in `vectors/buffer/` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)\.jsonl` \|", table, re.MULTILINE) == [*OWN_SUITES]
