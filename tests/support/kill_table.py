"""The table of which suite caught which seeded bug; printed at the end of a run that has any and is not quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from mutants.blob import BLOB_BUGS
from mutants.memory import MEMORY_BUGS
from mutants.selftest import Kill, quickest_first

if TYPE_CHECKING:
    from collections.abc import Callable

KILLS = pytest.StashKey[dict[str, Kill]]()
KILL = "kill"


@pytest.fixture
def report_kill(record_property: Callable[[str, object], None]) -> Callable[[Kill], None]:
    """Record the result of a seeded bug, in a form that can also be sent from another process."""
    return lambda kill: record_property(KILL, [kill.bug.name, kill.caught, kill.missed])


class Collector:
    """Collects the results of seeded bugs from the reports of all processes."""

    def __init__(self, config: pytest.Config) -> None:
        self.kills = config.stash.setdefault(KILLS, {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store what a test has recorded."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == KILL:
                bug, caught, missed = cast("tuple[str, dict[str, str], list[str]]", value)
                self.kills[bug] = Kill({**MEMORY_BUGS, **BLOB_BUGS}[bug], caught, tuple(missed))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the table be made in full, which takes ten times as long."""
    parser.addoption("--every-suite", action="store_true", help="put each seeded bug to every suite")


@pytest.fixture
def every_suite(request: pytest.FixtureRequest) -> bool:
    """Whether each bug is tested with every suite, and not only to the first that catches it."""
    return bool(request.config.getoption("--every-suite"))


def pytest_configure(config: pytest.Config) -> None:
    """Begin a table."""
    config.pluginmanager.register(Collector(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if (found := config.stash.get(KILLS, None)) and config.get_verbosity() >= 0:
        terminalreporter.section("seeded bugs, and what caught them", sep="-")
        for bugs in (MEMORY_BUGS, BLOB_BUGS):
            if some := {name: kill for name, kill in found.items() if name in bugs}:
                for line in table(some):
                    terminalreporter.write_line(line)


def table(found: dict[str, Kill]) -> list[str]:
    """One line for each bug: the requirement it breaks, and for each suite whether it named that, another or none.

    Where there is nothing the suite was not run, because an earlier one had caught the bug.
    """
    suites = quickest_first(next(iter(found.values())).bug)
    wide = 2 + max(len(name) for name in found)
    head = f"{'bug':{wide}}{'requirement':28}" + "".join(f"{name:>10}" for name in suites)
    rows = [f"{name:{wide}}{kill.bug.requirement:28}{_marks(kill, suites)}" for name, kill in sorted(found.items())]
    totals = "".join(f"{sum(name in kill.caught for kill in found.values()):>10}" for name in suites)
    killed = sum(kill.killed for kill in found.values())
    return [head, *rows, f"{f'{killed} of {len(found)} caught; by suite':{wide + 28}}{totals}"]


def _marks(kill: Kill, suites: tuple[str, ...]) -> str:
    seen = {name: "caught" if kill.caught.get(name) == kill.bug.requirement else "other" for name in kill.caught}
    seen.update(dict.fromkeys(kill.missed, "-"))
    return "".join(f"{seen.get(name, ''):>10}" for name in suites)
