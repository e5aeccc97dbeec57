"""What is gone says what to use instead, wherever it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import syncedmem
from syncedmem import interop
from syncedmem.model import InvalidExportError
from syncedmem.model.exports.formats import FORMATS, export, format_of
from syncedmem.model.gone import GONE, gone

ROOT = Path(__file__).parents[2]
NAMES = [key for key in GONE if key.isidentifier()]
LIBRARIES = [key.removeprefix("interop.") for key in GONE if key.startswith("interop.")]
GONE_FORMATS = [key.removeprefix("--format ") for key in GONE if key.startswith("--format ")]
OPTIONS = [key for key in GONE if re.fullmatch(r"[a-z-]+ --[a-z-]+", key)]


def test_every_key_is_asked_for_somewhere() -> None:
    others = {
        *NAMES,
        *(f"interop.{name}" for name in LIBRARIES),
        *(f"--format {name}" for name in GONE_FORMATS),
        *OPTIONS,
    }
    assert others == {*GONE}
    assert not FORMATS.keys() & {*GONE_FORMATS}


@pytest.mark.parametrize(
    ("place", "name", "key"),
    [*((syncedmem, name, name) for name in NAMES), *((interop, name, f"interop.{name}") for name in LIBRARIES)],
)
def test_a_name_that_is_gone(place: object, name: str, key: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(gone(key))):
        getattr(place, name)


@pytest.mark.parametrize("name", GONE_FORMATS)
def test_a_format_that_is_gone(name: str) -> None:
    with pytest.raises(InvalidExportError, match=re.escape(gone(f"--format {name}"))):
        export(name)
    with pytest.raises(InvalidExportError, match=re.escape(gone(f"--format {name}"))):
        format_of(f"machine.{name}")


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_is_gone(option: str) -> None:
    command = [sys.executable, "-m", "syncedmem", *option.split(), "value"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"syncedmem: {gone(option)}\n")


def test_the_changelog_has_all_of_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [] == [key for key in GONE if f"`{key}`" not in text]
