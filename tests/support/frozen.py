"""For each seeded bug the requirement that refuses it, as it was frozen in tests/mutants/frozen.json.

A test of a seeded bug says by `refuse` which requirement refused it.  ``make frozen`` runs these tests and compares:
another suite may catch a bug, but its requirement stays.  A bug that goes is taken out of the file by name, in the same
commit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

Table = dict[str, dict[str, str]]

FROZEN = Path(__file__).parents[1] / "mutants" / "frozen.json"
REFUSED = "refused"
"""The property of a test's report that has the kind of a bug, its name and the requirement that refused it."""


@pytest.fixture
def refuse(record_property: Callable[[str, object], None]) -> Callable[[str, str, str], None]:
    """Record which requirement refused a bug: its kind, its name, the requirement."""
    return lambda kind, name, requirement: record_property(REFUSED, [kind, name, requirement])


class Comparison:
    """Collects from the reports of all processes what refused each bug."""

    def __init__(self) -> None:
        self.seen: Table = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store what a test has recorded."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == REFUSED:
                kind, bug, requirement = (str(part) for part in value)  # type: ignore[attr-defined]
                self.seen[kind][bug] = requirement

    def differences(self) -> list[str]:
        """What is not as it was frozen, a line each; only of the kinds of which a bug was run."""
        kept: Table = json.loads(FROZEN.read_text(encoding="utf-8"))
        both = ((kind, kept.get(kind, {}), seen) for kind, seen in self.seen.items())
        return [
            f"{kind} {bug}: frozen as {frozen.get(bug, 'unknown')}, now {seen.get(bug, 'not refused')}"
            for kind, frozen, seen in both
            for bug in sorted(frozen.keys() | seen.keys())
            if frozen.get(bug) != seen.get(bug)
        ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Compare with what is frozen, or freeze what is seen."""
    parser.addoption(
        "--frozen", choices=["compare", "write"], help="compare the requirement that refuses each bug, or write it down"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that has all reports."""
    if config.getoption("--frozen") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Comparison(), "frozen-comparison")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if something is not as it was frozen; or write it down."""
    comparison = session.config.pluginmanager.get_plugin("frozen-comparison")
    if comparison is None:
        return
    if session.config.getoption("--frozen") == "write":
        kept: Table = json.loads(FROZEN.read_text(encoding="utf-8")) if FROZEN.is_file() else {}
        kept |= {kind: dict(sorted(bugs.items())) for kind, bugs in comparison.seen.items()}
        FROZEN.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    elif not comparison.seen or comparison.differences():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what is not as it was frozen."""
    comparison = config.pluginmanager.get_plugin("frozen-comparison")
    if comparison is not None and config.getoption("--frozen") == "compare":
        for line in comparison.differences() or [
            f"as frozen: {', '.join(f'{len(bugs)} of {kind}' for kind, bugs in sorted(comparison.seen.items()))}"
        ]:
            terminalreporter.write_line(line)
