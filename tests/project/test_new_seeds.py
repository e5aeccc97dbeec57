"""If a test fails with a new seed, it is run again. If it fails again, the run fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from new_seeds import generated, main

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPPORT = Path(__file__).parents[1] / "support"
PYTEST = [sys.executable, "-m", "pytest", "--quiet", "-c", os.devnull, "--rootdir", ".", "test_small.py"]
TWENTY = """
import pathlib, pytest, time

@pytest.mark.parametrize("number", range(20))
def test_it(number):
    with pathlib.Path("order").open("a") as file:
        print(number, file=file)
    time.sleep(0.2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose tests run with the plugin."""
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['new_seeds']\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    return tmp_path


@pytest.mark.parametrize(
    ("statuses", "expected", "said"),
    [
        ([0, 0], 0, []),
        ([0, 1, 0], 0, ["UNSTABLE: it does not repeat. Somebody should look at it: make test SEED=7\n"]),
        ([0, 1, 1], 1, ["FAILED: it repeats: make test SEED=7\n"]),
        ([1, 1, 0], 1, ["FAILED: it repeats: make verify SEED=7\n"]),
        ([1, 0, 1, 1], 1, ["UNSTABLE: ", "FAILED: it repeats: make test SEED=7\n"]),
    ],
    ids=["passed", "unstable", "failed", "kit failed", "both"],
)
def test_what_fails_is_run_again_from_its_seed(
    statuses: list[int], expected: int, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    left, commands = list(statuses), list[object]()

    def run(command: object) -> int:
        commands.append(command)
        return left.pop(0)

    assert expected == main(["--seed", "7", "--seconds", "0"], run)
    assert [] == left
    out = capsys.readouterr().out
    assert "from seed 7" in out
    assert [True] * len(said) == [text in out for text in said]
    assert len(said) == out.count("it does not repeat") + out.count("it repeats")
    assert all("7" in str(command) for command in commands)


def test_generated_tests_are_run_with_one_seed_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs go on until the time is over."""
    seconds = iter([0.0, 30.0, 59.0, 61.0])
    monkeypatch.setattr("new_seeds.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> int:
        commands.append(command)
        return 0

    assert 0 == main(["--seed", "7"], run)
    seeds = [part for command in commands for part in command if part.startswith("--hypothesis-seed=")]
    assert [f"--hypothesis-seed={seed}" for seed in (7, 8, 9)] == seeds
    assert ["--seconds=30.0", "--seconds=1.0"] == [command[-1] for command in commands[2:]]


@pytest.mark.deep
def test_a_failure_that_repeats_is_found_by_pytest_itself(folder: Path) -> None:
    """The commands are real. They run only the generated test, which fails in both runs."""
    (folder / "test_small.py").write_text(
        "from hypothesis import given, strategies as st\n"
        "@given(st.integers())\ndef test_it(number):\n    assert number < 1000\n"
        "def test_not_generated():\n    assert False\n",
        encoding="utf-8",
    )
    _, first, second = generated(3, 60, ["test_small.py", "--rootdir", ".", "-c", os.devnull])

    runs = [subprocess.run(command, capture_output=True, text=True, check=False) for command in (first, second)]

    for run in runs:
        assert "1 failed" in run.stdout, run.stderr
        assert 1 == run.returncode


@pytest.mark.deep
@pytest.mark.parametrize("workers", [0, 2])
def test_each_seed_has_an_order_of_its_own(folder: Path, workers: int) -> None:
    (folder / "test_small.py").write_text(TWENTY.replace("0.2", "0"), encoding="utf-8")
    orders: list[list[str]] = []
    for seed in (1, 1, 2):
        (folder / "order").unlink(missing_ok=True)
        command = [*PYTEST, "-n", str(workers), f"--order={seed}"]
        subprocess.run(command, capture_output=True, check=True)
        orders.append((folder / "order").read_text(encoding="utf-8").split())

    assert [list(map(str, range(20)))] * 3 == [sorted(order, key=int) for order in orders]
    assert orders[0] != orders[2]
    assert workers or orders[0] == orders[1]


@pytest.mark.deep
def test_no_test_begins_after_the_end(folder: Path) -> None:
    """A test that does not begin is no failure.  The first test always runs."""
    (folder / "test_small.py").write_text(TWENTY, encoding="utf-8")
    command = [*PYTEST, "-n", "2", "--seconds=0.1"]

    subprocess.run(command, capture_output=True, check=True)

    assert len((folder / "order").read_text(encoding="utf-8").split()) in (1, 2)
