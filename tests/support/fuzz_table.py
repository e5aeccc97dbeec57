"""The tables of the fuzzer: allocators that passed, and seeded bugs that it caught.

They are printed at the end of every run that has them, unless it is quiet.  ``--write-proof`` also writes
docs/fuzzing-proof.md.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.spec.fuzz import Report

PAGE = Path(__file__).parents[2] / "docs" / "fuzzing-proof.md"
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the page."""
    parser.addoption("--write-proof", action="store_true", help="write docs/fuzzing-proof.md")


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
    if config.getoption("--write-proof") and all(rows.values()):
        PAGE.write_text(page(list(rows[BACKEND].values()), list(rows[BUG].values())), encoding="utf-8")


def aligned(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Rows as lines, in columns."""
    texts = [list(heads), *([_text(cell) for cell in row] for row in sorted(rows, key=lambda row: str(row[0])))]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in texts]


def page(backends: Sequence[Sequence[object]], bugs: Sequence[Sequence[object]]) -> str:
    """The page; the figures are those of one run on one machine."""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"""# What the fuzzer was run against

Written by `make proof`; the figures are those of that run ({machine}) and differ from machine to machine. The test
suite puts the fuzzer to all of these every time, and compares the names on this page with what it has.

## Allocators that pass

Operations a second are those of the fast generator, the oracle's work included.

{_table(_BACKENDS, backends)}

## Seeded bugs

Each is caught in every run within ten seconds of processor time, as its first finding. The operations are those of all
generators until then; what replays it is at most ten lines.

{_table(_BUGS, sorted(bugs, key=lambda row: (str(row[1]), str(row[0]))))}
"""


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(map(_text, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _text(cell: object) -> str:
    return f"{cell:,.0f}" if isinstance(cell, float) and cell >= 100 else str(cell)
