"""The explorer in a real browser, as a fixture; and the option that stores pictures of it.

``pytest --screenshots FOLDER tests/cli/test_explorer.py`` writes the pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browser import Explorer


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", type=Path, metavar="FOLDER", help="keep pictures of the page to play with here")


@pytest.fixture
def pictures(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder for pictures."""
    folder: Path = request.config.getoption("--screenshots") or tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """One browser for all tests of a worker process; the tests are skipped if Chromium is not installed."""
    pytest.importorskip("selenium", reason="Selenium is not installed: pip install selenium")
    from browser import MISSING, Explorer

    from syncedmem.explorer import explorer_page

    if MISSING:
        pytest.skip(MISSING)
    page = tmp_path_factory.mktemp("explorer") / "page.html"
    page.write_text(explorer_page(), encoding="utf-8")
    explorer = Explorer(page)
    yield explorer
    explorer.driver.quit()


@pytest.fixture
def explorer(opened: Explorer) -> Iterator[Explorer]:
    """The page as it is at first; after the test, the page must not have written an error to the console."""
    opened.look(1360, 1000)
    opened.visit()
    yield opened
    assert opened.complaints() == []
