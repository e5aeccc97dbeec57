"""The committed diagrams, tables and documents are what the program makes today."""

from __future__ import annotations

import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app

ROOT = Path(__file__).parents[2]


@cache
def commands() -> dict[str, list[str]]:
    """Return the arguments with which ``make generated`` makes each file from the model."""
    made = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "--directory", str(ROOT), "generated", "CHECK=--check"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (shlex.split(line) for line in made.stdout.splitlines() if "/syncedmem diagram " in line)
    return {words[words.index("-o") + 1]: words[1:] for words in lines}


def test_there_are_such_files() -> None:
    assert {"docs/machine.svg", "docs/machine.json", "docs/pictures/msi.svg"} <= commands().keys()


@pytest.mark.parametrize("file", sorted(commands()))
def test_a_committed_file_is_made_again(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, commands()[file])

    assert not done.exit_code, done.output


def test_what_differs_is_told(tmp_path: Path) -> None:
    """Nothing is written then."""
    words = commands()["docs/machine.svg"]
    stale = tmp_path / "machine.svg"
    stale.write_text((ROOT / "docs/machine.svg").read_text(encoding="utf-8").replace("SYNCED", "SINKED", 1), "utf-8")
    before = stale.read_bytes()
    done = CliRunner().invoke(app, [str(stale) if word == "docs/machine.svg" else word for word in words])

    assert done.exit_code == 1
    assert stale.name in done.output.replace("\n", "")
    assert before == stale.read_bytes()
