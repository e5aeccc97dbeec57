"""A pytest plugin, and a program: a test that failed runs once more after the tests that ran before it.

With ``--write-order=FOLDER`` each process writes down which tests it runs.  As a program this prints a file for each
process in which a test failed, with the tests that it ran until then, and ``--follow-order=FILE`` runs those tests in
that order.  A test that fails because of the tests before it fails again; one that passes then is unstable.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

FAILED = Path("v", "cache", "lastfailed")
"""Where pytest keeps the tests that failed, below the folder of its cache."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Write an order down, or follow one."""
    parser.addoption("--write-order", metavar="FOLDER", type=Path, help="write down which tests each process runs")
    parser.addoption("--follow-order", metavar="FILE", type=Path, help="run the tests that are listed, in that order")


class Writer:
    """Writes down the tests of this process."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write a line before anything is done; the process may end in the test."""
        self._file.write(f"{item.nodeid}\n")
        self._file.flush()
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Write in the processes that run tests."""
    folder: Path | None = config.getoption("--write-order")
    if folder is None:
        return
    worker = getattr(config, "workerinput", {"workerid": "main"})["workerid"]
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"{worker}.order").open("w", encoding="utf-8")
    config.add_cleanup(file.close)
    config.pluginmanager.register(Writer(file))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests of a list, in its order."""
    file: Path | None = config.getoption("--follow-order")
    if file is not None:
        known = {item.nodeid: item for item in items}
        items[:] = [known[name] for name in file.read_text(encoding="utf-8").splitlines()]


def lists_to_follow(folder: Path) -> list[Path]:
    """Make a file for each process in which a test failed, with the tests until the last that failed there.

    Raises
    ------
    SystemExit
        If something else than a test of these processes failed.
    """
    kept = folder / FAILED
    failed: set[str] = {*json.loads(kept.read_text(encoding="utf-8"))} if kept.is_file() else set()
    files, orders = list[Path](), list[list[str]]()
    for order in sorted(folder.glob("*.order")):
        names = order.read_text(encoding="utf-8").splitlines()
        orders.append(names)
        last = max((number for number, name in enumerate(names) if name in failed), default=-1)
        if last >= 0:
            files.append(order.with_suffix(".again"))
            files[-1].write_text("".join(f"{name}\n" for name in names[: last + 1]), encoding="utf-8")
    if others := failed.difference(*orders):
        sys.exit(f"What failed is no test that can run once more: {', '.join(sorted(others))}")
    if not files:
        sys.exit("No test failed, so none can run once more")
    print("Once more in the same order; what passes now is UNSTABLE:", *sorted(failed), sep="\n", file=sys.stderr)
    return files


if __name__ == "__main__":
    print(*lists_to_follow(Path(sys.argv[1])), sep="\n")
