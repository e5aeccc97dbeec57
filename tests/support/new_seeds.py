"""Runs generated tests and kits with new seeds for a limited time: ``make new-seeds``.

The gate uses the same examples every time, so that its result does not change by chance.  This script tries new
examples.  If a run fails, it is run once more from its seed.  If it fails again, the script fails, and
``make test SEED=n`` or ``make verify SEED=n`` repeats the failure.  If it passes, it is reported as unstable and is no
failure, because the change that is being tested did not cause it.

This file is also a pytest plugin.  It adds two options for these runs: one orders the tests by the seed, and the other
starts no test after some seconds, because all tests take longer than the time that there is.
"""

from __future__ import annotations

import argparse
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("new seeds")
    group.addoption("--order", type=int, metavar="SEED", help="run tests in an order that follows from this seed")
    group.addoption("--seconds", type=float, metavar="N", help="begin no test so many seconds after the first")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests into the order of the seed, which is the same in every process."""
    if (seed := config.getoption("order", None)) is not None:
        random.Random(seed).shuffle(items)  # noqa: S311 -- no secret


class Clock:
    """Starts no test when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Return true if the time is over; pytest then treats the test as done."""
        now = time.monotonic()
        self._end = self._end or now + self._seconds
        return True if now >= self._end else None


def pytest_configure(config: pytest.Config) -> None:
    """Register the clock if the option is given."""
    if (seconds := config.getoption("seconds", None)) is not None:
        config.pluginmanager.register(Clock(seconds))


Job = tuple[str, list[str], list[str]]
"""The command that repeats a failure, the command of the first run, and that of the second run."""


def generated(seed: int, seconds: float, tests: Sequence[str]) -> Job:
    """Return the job that runs generated tests from a seed."""
    again = ["pytest", "-n", "auto", "--quiet", "-m", "hypothesis", f"--hypothesis-seed={seed}", f"--order={seed}"]
    command = [sys.executable, "-m", *again, *tests]
    return f"make test SEED={seed}", [*command, f"--seconds={seconds}"], [*command, "--last-failed"]


def kits(seed: int) -> Job:
    """Return the job that runs the kits of memories and blobs from a seed."""
    devices = [f"--device={name}" for name in ("cpu", "simulated", "simulated-seeded")]
    command = [sys.executable, "-m", "syncedmem", "verify", f"--seed={seed}", *devices]
    return f"make verify SEED={seed}", command, command


def check(job: Job, run: Callable[[Sequence[str]], int]) -> bool:
    """Run a job, and run it again if it fails; return whether it passed or is unstable."""
    repeat, first, second = job
    if run(first) == 0:
        return True
    print(f"\nA new seed has found something; from the same seed again ({repeat}):", flush=True)
    if run(second) == 0:
        print(f"\nUNSTABLE: it does not repeat. Somebody should look at it: {repeat}", flush=True)
        return True
    print(f"\nFAILED: it repeats: {repeat}", flush=True)
    return False


def run_here(command: Sequence[str]) -> int:
    """Run a command in the top folder."""
    return subprocess.run(command, cwd=FOLDER.parent, check=False).returncode


def main(arguments: Sequence[str] | None = None, run: Callable[[Sequence[str]], int] = run_here) -> int:
    """Run the kits once, and generated tests with one seed after another; return the exit status."""
    parser = argparse.ArgumentParser(prog="new_seeds.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for generated tests (default: 60)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32), help="the first one (default: a new one)")
    given = parser.parse_args(arguments)
    seed, end = given.seed, time.monotonic() + given.seconds
    print(f"New examples, from seed {seed}.", flush=True)
    results = [check(kits(seed), run), check(generated(seed, given.seconds, ["tests"]), run)]
    while (left := end - time.monotonic()) > 0:
        seed += 1
        print(f"Seed {seed}.", flush=True)
        results.append(check(generated(seed, left, ["tests"]), run))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
