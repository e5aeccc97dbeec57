"""What the site is made of, and that what is missing in it is found.  `make docs` builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")

from extension.command_line import helps
from extension.links import DOORS, broken, undocumented
from extension.pictures import picture_of
from extension.public_names import described

from syncedmem.model.exports.formats import export

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<p id="place"></p>')
    (tmp_path / "page.html").write_text(
        '<a href="there.html#place"></a><a href="https://example.org"></a><a href="#top"></a>'
        '<a href="there.html#elsewhere"></a><img src="lost.png"><a></a>'
    )

    assert [("page.html", "lost.png"), ("page.html", "there.html#elsewhere")] == sorted(broken(tmp_path))


def test_a_folder_stands_for_its_first_page(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").write_text('<a href=".."></a>')

    assert [("folder/index.html", "..")] == list(broken(tmp_path))


def test_a_public_name_without_a_place_is_found() -> None:
    from syncedmem import model

    everything = {f"{door}.{name}" for door in DOORS for name in __import__(door, fromlist=["x"]).__all__}
    without = everything - {"syncedmem.model.tour"}

    assert [] == undocumented(everything)
    assert ["syncedmem.model.tour"] == undocumented(without)
    assert "tour" in model.__all__


def test_the_reference_of_a_module_has_every_name_it_lists() -> None:
    """Errors as errors, and all others as classes."""
    from syncedmem.model import errors

    lines = [line for line in described("syncedmem.model.errors").splitlines() if line.startswith("..")]

    assert [f".. autoexception:: syncedmem.{name}" for name in errors.__all__] == lines
    assert ".. autoclass:: syncedmem.PoolAllocator" in described("syncedmem.runtime.allocators")


def test_a_block_of_mermaid_becomes_the_models_picture() -> None:
    text = str(export("mermaid", edition="early"))

    assert export("svg", edition="early") == picture_of(text)


def test_a_block_that_is_not_the_models_is_refused() -> None:
    text = str(export("mermaid")).replace("SYNCED", "IN_STEP")

    with pytest.raises(ValueError, match="no edition is drawn so any more"):
        picture_of(text)


def test_every_command_says_how_it_is_used() -> None:
    texts = helps()

    assert {"verify", "diagram", "devices", "fuzz", "explore"} <= set(texts)
    assert all(f"syncedmem {name} [OPTIONS]" in text for name, text in texts.items())
