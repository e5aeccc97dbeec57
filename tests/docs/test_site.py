"""The parts of the site are complete, and missing parts are found.  `make docs` builds the site."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")

from extension import explorer
from extension.command_line import commands, options, records
from extension.names import DOORS, undocumented
from extension.pictures import picture_of
from extension.public_names import described

from syncedmem.model.exports.formats import export

DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"^```.*?^```|`[^`]*`", re.MULTILINE | re.DOTALL)
"""Matches the code on a page."""


def test_the_page_to_play_shows_the_explorer() -> None:
    """Its links are written in HTML, which Sphinx does not change."""
    links = re.findall(r'(?:href|src)="([^"]*)"', (DOCS / "play.md").read_text(encoding="utf-8"))

    assert {explorer.FILE} == set(links)


def test_the_page_to_play_follows_the_switch_of_the_theme() -> None:
    """The theme of the site keeps what the reader chose under this key, and has it written into the page."""
    pytest.importorskip("pydata_sphinx_theme", reason="the theme of the site is not installed: make docs")
    scripts = files("pydata_sphinx_theme") / "theme" / "pydata_sphinx_theme" / "static" / "scripts"
    kept = re.findall(r'localStorage\.setItem\("(\w+)"', (scripts / "pydata-sphinx-theme.js").read_text("utf-8"))

    assert explorer.THEME_KEY in kept
    assert "theme_key" not in kept


def test_the_page_is_written_with_the_site_and_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    page = tmp_path / explorer.FILE

    def built(name: str, failure: Exception | None) -> Any:
        explorer.write(cast("Any", SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name=name))), failure)
        return page.exists()

    assert [False, False, True] == [built("text", None), built("html", OSError()), built("html", None)]
    assert f'data-theme-key="{explorer.THEME_KEY}"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_links_of_other_pages_are_not_in_html(page: Path) -> None:
    """Sphinx checks only links that are not written in HTML."""
    assert page.name == "play.md" or not re.search(r"<\w+ [^>]*(href|src)=", CODE.sub("", page.read_text()))


def test_a_public_name_without_a_place_is_found() -> None:
    from syncedmem import model

    everything = {f"{door}.{name}" for door in DOORS for name in __import__(door, fromlist=["x"]).__all__}
    without = everything - {"syncedmem.model.tour"}

    assert [] == undocumented(everything)
    assert ["syncedmem.model.tour"] == undocumented(without)
    assert "tour" in model.__all__


def test_the_reference_of_a_module_has_every_name_it_lists() -> None:
    """Errors are documented as exceptions, and all others as classes."""
    from syncedmem.model import errors

    lines = [line for line in described("syncedmem.model.errors").splitlines() if line.startswith("..")]

    assert [f".. autoexception:: syncedmem.{name}" for name in errors.__all__] == lines
    assert ".. autoclass:: syncedmem.PoolAllocator" in described("syncedmem.runtime.allocators")


def test_a_block_of_mermaid_becomes_the_models_picture() -> None:
    text = str(export("mermaid", edition="early"))

    assert export("svg", edition="early") == picture_of(text)


def test_a_block_that_is_not_the_models_is_refused() -> None:
    text = str(export("mermaid")).replace("SYNCED", "IN_STEP")

    with pytest.raises(ValueError, match="no edition has this diagram any more"):
        picture_of(text)


def test_every_command_is_there_with_its_options() -> None:
    assert {"verify", "diagram", "devices", "fuzz", "explore"} <= {*commands()}
    assert {"--out", "--seed", "--threads", "--harness"} <= {*options("fuzz")}
    assert "<" not in "".join(typed for name, it in commands().items() for _, typed, _ in records(name, it))
