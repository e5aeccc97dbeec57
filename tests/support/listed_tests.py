"""Two lists of tests, by name: those that run without coverage, and those that ``make test`` leaves out.

A test that is not on a list is traced, and runs each time, so a new test always counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

__all__ = ["LISTS", "LONG", "UNTRACED", "pytest_addoption", "pytest_collection_modifyitems"]

_FOLDER = Path(__file__).parent

UNTRACED: Final = _FOLDER / "untraced.txt"
"""All lines and branches that these take are taken by other tests too, and tracing makes a test take about three times
as long. ``make untraced`` writes it."""

LONG: Final = _FOLDER / "long.txt"
"""These take most of the time of all tests. The CI runs them. ``make long`` writes it."""

LISTS = {"no_cover": UNTRACED, "long": LONG}
"""The mark of each list."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let every test be traced."""
    parser.addoption("--trace-all", action="store_true", help=f"trace also the tests of tests/support/{UNTRACED.name}")


@pytest.hookimpl(tryfirst=True)  # before -m leaves tests out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests on the lists."""
    for mark, file in LISTS.items():
        names = {*file.read_text(encoding="utf-8").splitlines()}
        if mark == "no_cover" and config.getoption("--trace-all"):
            continue
        for item in items:
            if item.nodeid in names:
                item.add_marker(mark)
