"""The table of which suite caught which seeded bug; printed at the end of a run that has any and is not quiet.

tests/mutants/kills.json has the table as it was when ``make kill-table`` wrote it: for each bug the suites that caught
it, each with the requirement that it named.  A suite that catches a bug no more is thereby seen, although others do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from mutants.blob import BLOB_BUGS
from mutants.memory import MEMORY_BUGS
from mutants.selftest import Kill, quickest_first

if TYPE_CHECKING:
    from collections.abc import Callable

Known = dict[str, dict[str, str]]

KILLS = pytest.StashKey[dict[str, Kill]]()
KILL = "kill"
KNOWN = Path(__file__).parents[1] / "mutants" / "kills.json"
BUGS = {**MEMORY_BUGS, **BLOB_BUGS}


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
                self.kills[bug] = Kill(BUGS[bug], caught, tuple(missed))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the table be made in full, which takes ten times as long, and be written down."""
    parser.addoption("--every-suite", action="store_true", help="put each seeded bug to every suite")
    parser.addoption(
        "--write-kills",
        type=Path,
        metavar="FILE",
        help="with --every-suite: write which suites caught each bug; what FILE says of other bugs stays",
    )


@pytest.fixture
def every_suite(request: pytest.FixtureRequest) -> bool:
    """Whether each bug is tested with every suite, and not only to the first that catches it."""
    return bool(request.config.getoption("--every-suite"))


@pytest.fixture
def worse_than_known(request: pytest.FixtureRequest, every_suite: bool) -> Callable[[Kill], str]:
    """Says how a result is worse than what was written down; nothing while it is written."""
    if request.config.getoption("--write-kills"):
        return lambda _: ""
    return lambda kill: worse(kill, known_kills(KNOWN), needed=every_suite)


def known_kills(file: Path) -> Known:
    """What was written down; nothing if there is no such file."""
    found: Known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def worse(kill: Kill, known: Known, *, needed: bool) -> str:
    """How a result is worse than what was written down, as a sentence; empty if it is not.

    A suite that was not run is not judged.  That nothing was written down of the bug is worse only if it is needed.
    """
    name, wanted = kill.bug.name, kill.bug.requirement
    if name not in known:
        return f"nothing is known of {name}: make kill-table BUG={name}" if needed else ""
    blind = [suite for suite in known[name] if suite in kill.missed]
    vague = [item for item, named in known[name].items() if named == wanted != kill.caught.get(item, wanted)]
    told = [
        f"{', '.join(item)} no longer {what}" for what, item in (("catch it", blind), (f"name {wanted}", vague)) if item
    ]
    return f"{name}: {'; '.join(told)}" if told else ""


def write_kills(file: Path, found: dict[str, Kill]) -> None:
    """Write down what was found, a line for each bug; bugs that there are no more are left out."""
    known = known_kills(file) | {name: kill.caught for name, kill in found.items()}
    lines = (f" {json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known) if name in BUGS)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a table."""
    if config.getoption("--write-kills") and not config.getoption("--every-suite"):
        raise pytest.UsageError("--write-kills needs --every-suite: without it most suites are not run")
    config.pluginmanager.register(Collector(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and write it down if that is asked for."""
    found = config.stash.get(KILLS, None)
    if found and (file := config.getoption("--write-kills")):
        write_kills(file, found)
    if found and config.get_verbosity() >= 0:
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
