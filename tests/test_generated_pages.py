"""The pages that are made from the spec."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated_pages import PAGES, errata_page, main, requirements_page, stale, table

from syncedmem.spec import REQUIREMENTS
from syncedmem.spec.errata import ERRATA

DOCS = Path(__file__).parent.parent / "docs"


def test_they_are_up_to_date() -> None:
    assert [] == stale(DOCS)


def test_what_is_not_up_to_date_is_said_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "errata.md").write_text("old", encoding="utf-8")

    assert 1 == main(["--check"], tmp_path)
    said = capsys.readouterr().err
    assert all(name in said for name in PAGES)
    assert "old" == (tmp_path / "errata.md").read_text(encoding="utf-8")
    assert (0, 0) == (main([], tmp_path), main(["--check"], tmp_path))
    assert errata_page() == (tmp_path / "errata.md").read_text(encoding="utf-8")


def test_every_requirement_is_there_with_a_fault_that_breaks_it() -> None:
    rows = [line for line in requirements_page().splitlines() if line.startswith("| <a id=")]

    assert len(REQUIREMENTS) == len(rows)
    assert all(line.rstrip(" |").endswith(".py)") for line in rows)


def test_every_erratum_is_there() -> None:
    page = errata_page()

    assert all(f"| {it.place} | {it.says}: ".replace("||", "\\|\\|") in page for it in ERRATA)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_what_they_link_to_is_there(page: str) -> None:
    """Files of the checkout; links inside the site are looked at when it is built."""
    links = {part.partition(")")[0] for part in PAGES[page]().split("](../")[1:]}

    assert links
    assert [] == [link for link in links if not (DOCS.parent / link).is_file()]


def test_bars_in_cells_are_no_borders() -> None:
    assert "| a |\n| --- |\n| x \\| y |" == table(("a",), [("x | y",)])
