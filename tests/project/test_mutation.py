"""Mutants are made, and run, as `make mutation` does; that takes too long for all files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mutmut", reason="mutmut is not installed: pip install mutmut")

from mutation_operators import mutants

SUPPORT = Path(__file__).parents[1] / "support"
MEASURED: dict[str, Any] = json.loads((SUPPORT / "mutation.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("return a + 1", {"return a - 1", "return a + 2", "return None"}),
        ("if a: print(2)", {"if not (a): print(2)", "if a: print(3)", "if a: print(None)", "if a: pass"}),
        ("while a == b: f()", {"while a != b: f()", "while a == b: pass"}),
        ("raise KeyError(a)", {"raise KeyError(None)", "pass"}),
        ("with a, b: f()", {"with b: f()", "with a: f()", "with a, b: pass"}),
        ("with a: f()", {"if True: f()", "with a: pass"}),
        ("with a as b: f()", {"with a as b: pass"}),
        ("return None", set[str]()),
        ("return False", {"return True"}),
        ("a.b = False", {"a.b = True"}),
        ("b: list[1] = 'Text'", {"b: list[1] = 'XXTextXX'", "b: list[1] = None"}),
        ("return cast('int', 1)", {"return cast('int', 2)", "return None"}),
        ("return len(a)", {"return None"}),
        ('"""Text."""', set[str]()),
    ],
)
def test_each_operator_makes_its_mutants(was: str, now: set[str]) -> None:
    found = mutants(f"class A:\n    def f(self, a, b):\n        {was}\n")
    assert now == {it.now for it in found}
    assert all((it.where, it.was, it.lines) == ("A.f", was, range(3, 4)) for it in found)


def test_a_mutant_of_a_function_keeps_its_key_when_the_function_moves() -> None:
    function = "def f(a):\n    b = a + 1\n    return b\n"
    before, moved, other = (
        [it.key for it in mutants(text)] for text in (function, f"import os\n\n{function}", f"{function}    # more\n")
    )
    assert before == moved
    assert not set(before) & set(other)
    assert len(set(before)) == 4


@pytest.mark.deep
def test_a_survivor_of_weak_tests_is_told_and_is_killed_by_better_ones(tmp_path: Path) -> None:
    """A mutant that was killed is not run again."""

    def run(tests: str) -> str:
        words = ("--kept", tmp_path, "model/mode.py", "--tests", tests)
        done = subprocess.run(
            [sys.executable, SUPPORT / "mutation.py", *words], capture_output=True, text=True, check=False, timeout=300
        )
        assert (1, "") == (done.returncode, done.stderr)
        return done.stdout

    survivor = "set_mode\n    - _mode.set(_checked(mode))\n    + pass"
    told = run("tests/model/test_mode.py::test_the_mode_is_gpu_unless_set")
    ((killed, every),) = re.findall(r"(\d+) of (\d+) mutants killed", told)
    assert 0 < int(killed) < int(every)
    assert survivor in told

    told = run("tests/model/test_mode.py")
    assert told.startswith(f"model/mode.py: {every} mutants, {int(every) - int(killed)} to judge\n")
    assert survivor not in told


@pytest.mark.deep
def test_a_file_that_is_not_on_the_list_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, SUPPORT / "mutation.py", "model/nothing.py"], capture_output=True, text=True, check=False
    )
    assert 2 == done.returncode
    assert "model/nothing.py is not among the files to measure" in done.stderr


def test_the_figures_that_are_kept_add_up() -> None:
    sums = [(it["mutants"] - it["killed"], len(it["survivors"])) for it in MEASURED.values()]
    assert sums
    assert all(alive == listed for alive, listed in sums)
