"""The tables of the fuzzer: allocators that passed, and seeded bugs that it caught.

They are printed at the end of every run that has them, unless it is quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.spec.fuzz import Report

BACKEND, BUG = "fuzzed backend", "fuzzed bug"
Rows = dict[str, dict[str, list[object]]]
ROWS = pytest.StashKey[Rows]()

_BACKENDS = ("allocator", "operations a second", "requirements that passed", "not checked")
_BUGS = ("seeded bug", "requirement", "operations to catch", "steps that replay it", "seconds")


@pytest.fixture
def report_backend(record_property: Callable[[str, object], None]) -> Callable[[str, Report], None]:
    """Record what was checked of an allocator."""

    def note(name: str, report: Report) -> None:
        statuses = [verdict.status for verdict in report.verdicts()]
        fast = next(run for run in report.suites if run.name == "fast")
        row = [name, round(fast.rate, -2), statuses.count("passed"), statuses.count("not checked")]
        record_property(BACKEND, row)

    return note


@pytest.fixture
def report_catch(record_property: Callable[[str, object], None]) -> Callable[[str, Report, float], None]:
    """Record after how many operations a seeded bug was caught."""

    def note(name: str, report: Report, seconds: float) -> None:
        finding = report.findings[0]
        record_property(BUG, [name, finding.requirement, finding.operations, len(finding.program), round(seconds, 1)])

    return note


class Collector:
    """Collects the records from the reports of all processes."""

    def __init__(self, config: pytest.Config) -> None:
        self.rows: Rows = config.stash.setdefault(ROWS, {BACKEND: {}, BUG: {}})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store what a test has recorded."""
        for kind, value in report.user_properties if report.when == "call" and report.passed else ():
            if kind in self.rows:
                row = cast("list[object]", value)
                self.rows[kind][str(row[0])] = row


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    config.pluginmanager.register(Collector(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables."""
    rows: Rows = config.stash[ROWS]
    for title, heads, found in (("fuzzed", _BACKENDS, rows[BACKEND]), ("caught", _BUGS, rows[BUG])):
        if found and config.get_verbosity() >= 0:
            terminalreporter.section(f"allocators that were {title}", sep="-")
            for line in aligned(heads, list(found.values())):
                terminalreporter.write_line(line)


def aligned(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Rows as lines, in columns."""
    texts = [list(heads), *([_text(cell) for cell in row] for row in sorted(rows, key=lambda row: str(row[0])))]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in texts]


def _text(cell: object) -> str:
    return f"{cell:,.0f}" if isinstance(cell, float) and cell >= 100 else str(cell)
