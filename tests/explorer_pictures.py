"""The option that keeps pictures of the page to play with: ``pytest --screenshots FOLDER tests/test_explorer.py``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", type=Path, metavar="FOLDER", help="keep pictures of the page to play with here")
