"""How many points calls were interrupted at, at the end of every run that did so and is not quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from interruption import Report

POINTS = "interrupted points"
FOUND = pytest.StashKey[list[tuple[int, int]]]()


@pytest.fixture
def require_unbroken(record_property: Callable[[str, object], None]) -> Callable[[Report], None]:
    """Notes how many points a scenario has, and fails if one of them is broken."""

    def require(report: Report, at_least: int = 1) -> None:
        record_property(POINTS, [report.points, len(report.broken)])
        report.require(at_least)

    return require


class Collector:
    """Gathers what the reports of all processes say."""

    def __init__(self, config: pytest.Config) -> None:
        self.found = config.stash.setdefault(FOUND, [])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test has recorded."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == POINTS:
                points, broken = cast("list[int]", value)
                self.found.append((points, broken))


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.pluginmanager.register(Collector(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the sums."""
    if (found := config.stash.get(FOUND, None)) and config.get_verbosity() >= 0:
        points, broken = map(sum, zip(*found, strict=True))
        terminalreporter.write_line(f"interrupts: {len(found)} scenarios, {points} points tried, {broken} broken")
