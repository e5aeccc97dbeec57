"""The parts of the site are complete, and missing parts are found.  `make docs` builds the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")

from extension import explorer
from extension.command_line import commands, options
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


def test_every_command_has_its_options() -> None:
    """Help of Typer and of no other text: what a command takes is in its section."""
    found = {name: options(name) for name in commands()}

    assert {"verify", "diagram", "devices", "fuzz", "explore"} <= set(found)
    assert {"--device", "--steps", "--out"} <= set(found["verify"])
    assert {"--check", "--insert", "--force"} <= set(found["diagram"])
