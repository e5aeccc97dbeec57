"""What the gate needs of a run of the tests: a second try, and how long each test took.

With ``--gate FOLDER`` up to ten tests that fail run once more, in a process of their own and without xdist.  If all
pass then, the run passes, and they are listed in ``FOLDER/unstable.txt``.  If more fail, or a process died, or a module
cannot be collected, there is no second try.  ``FOLDER/seconds.txt`` has the seconds of each test.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MOST", "Gate", "pytest_addoption", "pytest_configure"]

MOST = 10
"""So many failures may be an accident.  More are not."""


class Gate:
    """Collects the results of all processes, and runs again what failed.

    Parameters
    ----------
    config : pytest.Config
    folder : Path
        For the two files; it is made.
    """

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._failures: dict[str, None] = {}
        self._reason = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the seconds of a test, and whether it failed."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self._failures[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that a module cannot be collected."""
        if report.failed:
            self._reason = f"{report.nodeid} cannot be collected"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Note that a process died."""
        if error:
            self._reason = f"the process of {node} died"

    @pytest.hookimpl(tryfirst=True)  # before skips are judged, which may still fail the run
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the seconds, and run the failures once more."""
        self._append("seconds.txt", (f"{seconds:.2f} {name}" for name, seconds in self._seconds.items()))
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or self._reason:
            return
        if len(self._failures) > MOST:
            self._reason = f"{len(self._failures)} tests failed, more than {MOST}"
            return
        status = subprocess.run(self._command(), check=False).returncode
        if status == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.OK
            seed = self._config.getoption("--hypothesis-seed", None)
            said = "the examples of the gate" if seed is None else f"seed {seed}"
            self._append("unstable.txt", (f"unstable: {name} ({said})" for name in self._failures))
        else:
            self._reason = "the second try failed too"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the second try came to."""
        if self._failures:
            end = f"no pass: {self._reason}" if self._reason else "passed the second time, so they are unstable"
            terminalreporter.write_line(f"{len(self._failures)} failed the first time: {end}")

    def _command(self) -> list[str]:
        """The command of this run, for the failures only, in one process."""
        config, given = self._config, self._config.invocation_params.args
        options = [it for it in given if it not in config.args and not str(it).startswith("--gate")]
        tests = [str(config.rootpath / name) for name in self._failures]
        # -P: this folder may have packages called model, runtime and spec.
        return [sys.executable, "-P", "-m", "pytest", *map(str, options), "-n", "0", *tests]

    def _append(self, name: str, lines: Iterable[str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--gate", type=Path, metavar="FOLDER", help="run up to ten failures once more; write seconds here")


def pytest_configure(config: pytest.Config) -> None:
    """Begin in the process that gets all reports; worker processes do not have it."""
    if (folder := config.getoption("--gate")) is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Gate(config, folder.absolute()))
