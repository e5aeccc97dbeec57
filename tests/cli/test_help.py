"""Every command prints its help, with whatever releases of its libraries are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from syncedmem.cli import app

COMMANDS = sorted(getattr(get_command(app), "commands"))  # noqa: B009 -- whose type differs from release to release of typer


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_a_command_prints_its_help(command: str | None) -> None:
    words = [sys.executable, "-m", "syncedmem", *([command] if command else []), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert all(part in done.stdout for part in ("Usage:", command or "verify", "--help"))


def test_the_page_of_the_package_names_commands_that_exist() -> None:
    page = (Path(__file__).parents[2] / "src" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`syncedmem (\w+)`", page))
    assert {"verify", "devices"} <= named <= set(COMMANDS)


def test_the_commands_are_found() -> None:
    assert {"verify", "devices", "diagram", "fuzz", "replay", "explore", "vectors"} <= set(COMMANDS)
