"""The reasons for which a test may be skipped; a skip for any other reason fails the run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ALLOWED: Sequence[str] = (
    # What this machine does not have.
    r"no GPU here: ",
    r"there is no (cuda|opencl) here",
    r"no OpenCL( device)? here",
    r"the compiler of OpenCL fails here: ",
    r"needs (a GPU|two GPUs|PyTorch|SLURM)",
    r".+ is installed, but .+ cannot be used: ",
    r"CuPy finds a GPU here, and RMM none: ",
    r"an unreachable GPU is certain only where the test makes it so",
    r"only Linux promises zeros after MADV_DONTNEED",
    r"there are no signals elsewhere",
    r"root may have any number of processes",
    # What is not installed; each says how to install it.
    r".+ is not installed: (pip install|make) ",
    r".+ needs the package ",
    r"there is no \S+ here: make system-deps",
    r"npm cannot download ",
    r"npm cannot install what tests/support/node/package.json names: ",
    # Parts of a kit that were not requested: the kit of allocators is a test case, which is run here as an example.
    r"not checked: ",
    # Tests that run in another job.
    r"needs the stand-in for CUDA: make test-hostcuda",
    r"needs Caffe's own files: make test-caffe",
    r"needs a run without a tracer: ",
)
"""Regular expressions; one of them has to match the beginning of the reason."""


class Watch:
    """Collects the skips that are not allowed."""

    def __init__(self) -> None:
        self.unlisted: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Check the report of a test."""
        self._look(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Check the report of a module."""
        self._look(report)

    def _look(self, report: Any) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        *_, said = cast("tuple[str, int, str]", report.longrepr)
        reason = said.removeprefix("Skipped: ")
        if not any(re.match(pattern, reason) for pattern in ALLOWED):
            self.unlisted.append((report.nodeid, reason))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run, unless it has failed already."""
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the skips that are not allowed."""
        if self.unlisted:
            terminalreporter.section("skipped for a reason that is not in tests/support/allowed_skips.py", red=True)
            for nodeid, reason in self.unlisted:
                terminalreporter.write_line(f"{nodeid}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in the process that gets all reports; worker processes do not have it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Watch())
