"""Every command prints its help with any releases of its libraries that are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from syncedmem import cli
from syncedmem.cli import app
from syncedmem.cli.display import help_of

COMMANDS = sorted(getattr(get_command(app), "commands"))  # noqa: B009 -- whose type differs from release to release of typer


@pytest.mark.deep
@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_a_command_prints_its_help(command: str | None) -> None:
    words = [sys.executable, "-m", "syncedmem", *([command] if command else []), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert all(part in done.stdout for part in ("Usage:", command or "verify", "--help"))


def test_the_page_of_the_package_names_commands_that_exist() -> None:
    page = (Path(__file__).parents[2] / "src" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`syncedmem ([\w-]+)`", page))
    assert set(COMMANDS) - {"replay"} <= named <= set(COMMANDS)


def test_a_command_is_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module has a function with its name. A module without one is not a command."""
    (tmp_path / "greet.py").write_text("def greet(): ...\n", encoding="utf-8")
    (tmp_path / "words.py").write_text("def say(): ...\n", encoding="utf-8")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])

    assert {"greet", *COMMANDS} == {command.__name__.replace("_", "-") for command in cli.commands()}


def test_a_list_in_a_docstring_stays_one() -> None:
    """Text that is not a list is wrapped."""

    def command() -> None:
        """Do it.

        Statuses:
          0  done
        """

    assert "Do it.\n\n\b\nStatuses:\n  0  done" == help_of(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_does_is_said_in_one_line(command: str) -> None:
    """The list of commands would cut off a longer sentence."""
    listed = CliRunner().invoke(cli.app, ["--help"]).output
    name = command.replace("-", "_")
    first = (getattr(import_module(f"syncedmem.cli.{name}"), name).__doc__ or "").strip().splitlines()[0]

    assert re.search(rf"^  {command} +{re.escape(first)}$", listed, re.MULTILINE)
