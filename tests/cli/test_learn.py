"""The command ``learn``: what it refuses, what it prints and writes."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from typing import TYPE_CHECKING, Any

from command_fixtures import run
from port_fixtures import command_of

from syncedmem.model import SyncedMemoryError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MAKERS = """
from syncedmem.spec import ReferenceMemory

class Careless(ReferenceMemory):
    def set_cpu_data(self, data):
        if data is not None:
            super().set_cpu_data(data)
"""


def learn(tmp_path: Path, *arguments: str) -> Any:
    return run("learn", "--out", str(tmp_path / "out"), "--timeout", "60", *arguments)


def test_the_declared_machine(tmp_path: Path) -> None:
    done = learn(tmp_path, "syncedmem.spec:ReferenceMemory", "--edition", "cpu_only", "--json", "-", "--extra", "1")
    report = json.loads(done.stdout)

    assert 0 == done.exit_code, done.output
    assert (True, [], 4, 5) == (report["passed"], report["findings"], report["states"], report["right"])
    assert done.stderr.splitlines()[-1] == report["verdict"]
    assert {"report.json", "machine.svg"} == {path.name for path in (tmp_path / "out").iterdir()}


def test_a_difference_is_printed_with_a_program_that_runs(tmp_path: Path) -> None:
    (tmp_path / "makers.py").write_text(MAKERS, encoding="utf-8")
    done = learn(tmp_path, f"{tmp_path / 'makers.py'}:Careless", "--edition", "cpu_only")
    program = tmp_path / "out" / "1-set_cpu_data-NULL-in-U.py"

    assert 1 == done.exit_code, done.output
    assert "R20-null-refused" in done.output
    assert f"python {program}" in done.output
    assert "UNINITIALIZED" == runpy.run_path(str(program))["memory"].head.name
    assert "✗" in (tmp_path / "out" / "machine.svg").read_text(encoding="utf-8")


def test_a_target_that_is_none_is_one_line(tmp_path: Path) -> None:
    done = learn(tmp_path, "no_such_module:maker")

    assert isinstance(done.exception, SyncedMemoryError), done.output
    assert "no_such_module" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_without_aalpy_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aalpy", None)

    assert "pip install aalpy" in str(learn(tmp_path, "--command", shlex.join(command_of("right"))).exception)
