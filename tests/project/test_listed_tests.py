"""The lists of tests that are not traced, and that take long, and how they are found."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import listed_tests
import pytest
from find_long import long_ones
from find_untraced import needed, seconds_of, spared, taken
from listed_tests import LISTS

ROOT = Path(__file__).parents[2]
PROGRAM = """
def one(x):
    if x:
        y = 1
    else:
        y = 2
    return y
"""


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", LISTS.values(), ids=lambda file: file.name)
def test_every_name_on_a_list_is_that_of_a_test(file: Path) -> None:
    names = file.read_text(encoding="utf-8").splitlines()
    parts = {tuple(name.partition("[")[0].split("::")[:2]) for name in names}

    assert len(names) > 100
    assert sorted(set(names)) == names
    # Classes of suites are there with tests that the suite makes.
    assert not [(path, it) for path, it in parts if f"{'def' if it[0] == 't' else 'class'} {it}(" not in text_of(path)]


def test_what_takes_a_second_is_long() -> None:
    assert ["a", "c"] == long_ones({"c": 1.0, "b": 0.9, "a": 60})


def test_who_takes_what_no_other_takes_is_needed() -> None:
    """Of those who take the same, the quick one is."""
    of = {"slow": {1, 2}, "quick": {1, 2}, "alone": {3}, "needless": {3, 2}, "nothing": set[int]()}
    seconds = {"slow": 9.0, "needless": 9.0}

    assert {"quick", "alone"} == needed(of, seconds)
    assert {"slow", "alone"} == needed({name: of[name] for name in ("slow", "alone", "needless")}, seconds)


def test_who_becomes_needless_is_dropped() -> None:
    """The one that took most of the new is not needed when two others are there for something else."""
    of = {"most": {1, 2, 3, 4}, "left": {1, 2, 5}, "right": {3, 4, 6}}

    assert {"left", "right"} == needed(of, {})


def test_what_only_a_slow_machine_takes_is_left_to_no_chance() -> None:
    """Tests of processes stay traced, also if another test has taken the same lines this time."""
    supervised, other = "tests/spec/test_supervisor.py::test_a", "tests/cli/test_b.py::test_b"
    of = {"tests/test_c.py::test_c": {1, 2}, supervised: {1}, other: {2}}

    assert [other] == spared(of, {"tests/test_c.py::test_c": 0.2, supervised: 9, other: 9})


def test_lines_and_branches_of_each_test_are_read(tmp_path: Path) -> None:
    """A test that takes only the other branch is needed, and one that takes nothing new is not."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "test_program.py").write_text(
        "import time\nfrom program import one\n"
        "def test_yes():\n    assert one(1) == 1\n"
        "def test_no():\n    assert one(0) == 2\n"
        "def test_yes_again():\n    time.sleep(0.5)\n    assert one(2) == 1\n"
        "class TestGroup:\n    def test_yes(self):\n        assert one(3) == 1\n",
        encoding="utf-8",
    )
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov=program", "--cov-branch", "--cov-context=test")
    done = subprocess.run(
        [sys.executable, *arguments, "--cov-report=", "--junitxml=times.xml", "test_program.py"],
        cwd=tmp_path, env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stdout
    found, seconds = taken(tmp_path / ".coverage"), seconds_of(tmp_path / "times.xml")

    names = ("test_yes", "test_no", "test_yes_again", "TestGroup::test_yes")
    assert {f"test_program.py::{name}" for name in names} == set(found) == set(seconds)
    assert "test_program.py::test_no" in needed(found, seconds)
    assert len(needed(found, seconds)) == 2
    assert seconds["test_program.py::test_yes_again"] > 0.4


@pytest.mark.parametrize("mark", LISTS)
def test_a_list_decides_who_is_marked(
    mark: str,
    pytestconfig: pytest.Config,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A test that is not on it is not marked, and one that is on it is."""
    item = request.node
    assert item.nodeid not in LISTS[mark].read_text(encoding="utf-8").splitlines()

    listed_tests.pytest_collection_modifyitems(pytestconfig, [item])
    assert item.get_closest_marker(mark) is None
    (tmp_path / "list.txt").write_text(f"{item.nodeid}\n", encoding="utf-8")
    monkeypatch.setitem(LISTS, mark, tmp_path / "list.txt")
    listed_tests.pytest_collection_modifyitems(pytestconfig, [item])
    assert item.get_closest_marker(mark) is not None
