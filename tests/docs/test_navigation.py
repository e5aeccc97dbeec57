"""A page has the same name in the navigation as at its top: its title is what the reader has clicked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(.+?)\s*<([^<>]+)>")
ROW = re.compile(r"^\|.*$", re.MULTILINE)
LINK = re.compile(r"\[([A-Z][^\]]*)\]\(([\w/-]+)\.md\)")
"""Matches a link to a page by its name, which begins with a capital letter."""


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def entries(page: Path) -> dict[Path, str]:
    """The pages in the toctrees of a page, each with its name there.

    Sphinx takes the title of a page for its name, but for ``name <page>``.
    """
    text = page.read_text(encoding="utf-8")
    found: dict[Path, str] = {}
    for line in "".join(TOCTREE.findall(text)).splitlines():
        named = NAMED.fullmatch(line)
        name, target = named.groups() if named else ("", line)
        if target and not target.startswith(":"):
            found |= {it: name or title_of(it) for it in page.parent.glob(f"{target}.md")}
    return found


def tabled(page: Path) -> list[tuple[Path, str]]:
    """The pages that the tables of a page name, if it has a toctree; each with its name there."""
    text = page.read_text(encoding="utf-8")
    rows = "".join(ROW.findall(text)) if TOCTREE.search(text) else ""
    return [(page.parent / f"{to}.md", name) for name, to in LINK.findall(rows)]


def misnamed(folder: Path) -> list[str]:
    """The names in the navigation that are not the title of their page."""
    named = [it for page in sorted(folder.rglob("*.md")) for it in (*entries(page).items(), *tabled(page))]
    return [f"{page.name}: {name}" for page, name in named if name != title_of(page)]


def test_the_title_of_a_page_is_its_name_in_the_navigation() -> None:
    assert [] == misnamed(DOCS)


def test_every_page_is_in_the_navigation_once() -> None:
    named = [it for page in DOCS.rglob("*.md") for it in entries(page)]

    assert sorted(set(DOCS.rglob("*.md")) - {DOCS / "index.md"}) == sorted(named)


@pytest.mark.parametrize(
    "entry", ["```{toctree}\nOther <page>\n```", "| page |\n| --- |\n| [Other](page.md) |\n\n```{toctree}\npage\n```"]
)
def test_another_name_is_found(entry: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n", encoding="utf-8")
    (tmp_path / "index.md").write_text(f"# Top\n\n{entry}\n", encoding="utf-8")

    assert ["page.md: Other"] == misnamed(tmp_path)
