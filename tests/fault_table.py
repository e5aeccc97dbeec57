"""The table of which suite caught which planted fault, at the end of every run that planted them."""

from __future__ import annotations

import pytest
from benches import device_bench

from syncedmem.spec import Kill, suite_names

KILLS = pytest.StashKey[dict[str, Kill]]()


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> dict[str, Kill]:
    """What became of the planted faults so far, by name."""
    return request.config.stash.setdefault(KILLS, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    found = config.stash.get(KILLS, None) or dict[str, Kill]()
    if found:
        terminalreporter.section("planted faults, and what caught them", sep="-")
        for line in table(found):
            terminalreporter.write_line(line)


def table(found: dict[str, Kill]) -> list[str]:
    """One line for each fault: the requirement it breaks, and whether a suite named it, another one, or nothing."""
    suites = suite_names(device_bench())
    head = f"{'fault':27}{'requirement':28}" + "".join(f"{name:>10}" for name in suites)
    rows = [f"{name:27}{kill.fault.requirement:28}{_marks(kill, suites)}" for name, kill in sorted(found.items())]
    totals = "".join(f"{sum(name in kill.caught for kill in found.values()):>10}" for name in suites)
    killed = sum(kill.killed for kill in found.values())
    return [head, *rows, f"{f'{killed} of {len(found)} caught; by suite':55}{totals}"]


def _marks(kill: Kill, suites: tuple[str, ...]) -> str:
    seen = {name: "caught" if kill.caught.get(name) == kill.fault.requirement else "other" for name in kill.caught}
    return "".join(f"{seen.get(name, '-'):>10}" for name in suites)
