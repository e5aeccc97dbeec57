"""The command ``learn``: what it refuses, what it prints and writes."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from port_fixtures import command_of
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import SyncedMemoryError
from syncedmem.spec.learning import report as report_module
from syncedmem.spec.learning.asking import AskedMaker

if TYPE_CHECKING:
    from pathlib import Path

    from syncedmem.spec.learning.answers import Answer, Word

PORT = ["--command", shlex.join(command_of("right")), "--timeout", "60"]

MAKERS = """
from syncedmem.spec import ReferenceMemory

class Careless(ReferenceMemory):
    def set_cpu_data(self, data):
        if data is not None:
            super().set_cpu_data(data)

class Silly(ReferenceMemory):
    own_cpu_data = property(lambda self: True, lambda self, value: None)

class Grows(ReferenceMemory):
    looks = 0

    def cpu_data(self):
        self.looks += 1
        return bytes(super().cpu_data()) + bytes(self.looks)

def broken(size, *, host, device):
    raise RuntimeError(size)
"""


@pytest.fixture
def makers(tmp_path: Path) -> Path:
    path = tmp_path / "makers_of_the_command.py"
    path.write_text(MAKERS, encoding="utf-8")
    return path


def learn(tmp_path: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["learn", "--out", str(tmp_path / "out"), *arguments])


def maker(tmp_path: Path, name: str, *options: str) -> Any:
    return learn(tmp_path, name, "--edition", "cpu_only", "--timeout", "60", *options)


def test_the_declared_machine(tmp_path: Path) -> None:
    done = maker(tmp_path, "syncedmem.spec:ReferenceMemory", "--json", "-", "--states", "5")
    report = json.loads(done.stdout)

    assert 0 == done.exit_code, done.output
    assert done.stderr.splitlines()[-1] == report["verdict"]
    assert report["verdict"].startswith("as declared: cpu_only/L2, 27 of 27 cells, if the port has at most ")
    assert "depth 1 of the W-method" in done.stderr
    assert {"report.json", "machine.svg", "machine.mmd", "machine.dot"} == {
        it.name for it in (tmp_path / "out").iterdir()
    }


def test_a_difference_is_printed_with_a_program_that_runs(tmp_path: Path, makers: Path) -> None:
    done = maker(tmp_path, f"{makers}:Careless", "--json", str(tmp_path / "report.json"))
    program = tmp_path / "out" / "1-set_cpu_data-NULL-in-U.py"

    assert 1 == done.exit_code, done.output
    assert "set_cpu_data(NULL) in U:--\n  declared: the call: refused\n  learned:  the call: done\n" in done.output
    assert done.output.index(" is a configuration: the head (U UNINITIALIZED, ") < done.output.index(
        "set_cpu_data(NULL) in U:--"
    )
    assert "  after:    a new memory\n" in done.output
    assert "  the same: C:" in done.output
    assert f"python {program}" in done.output
    assert "set_cpu_data(NULL) in U:--" in done.output.splitlines()[-1]
    assert "UNINITIALIZED" == runpy.run_path(str(program))["memory"].head.name
    assert "✗" in (tmp_path / "out" / "machine.svg").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["differences"]


def test_only_some_differences_are_printed(tmp_path: Path, makers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.cli.learn._SHOWN", 1)
    done = maker(tmp_path, f"{makers}:Silly", "--steps", "0", "--states", "2")

    assert 1 == done.exit_code, done.output
    assert " more are in " in done.output


def test_cells_that_are_not_reached_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = report_module.learn

    def learned(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        return replace(found, comparison=found.comparison._replace(reached=20))

    monkeypatch.setattr(report_module, "learn", learned)
    done = maker(tmp_path, "syncedmem.spec:ReferenceMemory", "--steps", "0", "--states", "1", "--level", "L0")

    assert "Not compared: 7 of 27 cells. The calls did not reach them." in done.output


@pytest.mark.deep
def test_a_port_without_a_machine(tmp_path: Path, makers: Path) -> None:
    done = maker(tmp_path, f"{makers}:Grows")

    assert 1 == done.exit_code, done.output
    assert "The machine is not known, because it gives more than 200 different answers." in done.output


def test_an_interrupt_does_not_lose_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = AskedMaker.ask
    calls = iter(range(100))

    def interrupted(self: AskedMaker, word: Word) -> list[Answer]:
        if next(calls) == 60:
            raise KeyboardInterrupt
        return asked(self, word)

    monkeypatch.setattr(AskedMaker, "ask", interrupted)
    done = maker(tmp_path, "syncedmem.spec:ReferenceMemory")
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))

    assert 130 == done.exit_code, done.output
    assert "The machine is not known, because it was interrupted. Only what was asked is compared." in done.output
    assert "not learned: it was interrupted" == done.output.splitlines()[-1]
    assert (True, "it was interrupted") == (report["interrupted"], report["stopped"])
    assert 10 < report["cells_compared"] <= 27


def test_the_default_bound_is_the_number_of_declared_states(tmp_path: Path) -> None:
    done = maker(tmp_path, "syncedmem.spec:ReferenceMemory", "--steps", "0")

    assert "at most 4 states: depth 0 of the W-method" in done.output


def test_no_memory_can_be_made(tmp_path: Path, makers: Path) -> None:
    done = maker(tmp_path, f"{makers}:broken")

    assert 1 == done.exit_code, done.output
    assert "not learned: no memory can be made" == done.output.splitlines()[-1]
    assert "subject.make(5" in (tmp_path / "out" / "new.py").read_text(encoding="utf-8")


@pytest.mark.deep
def test_a_program_that_crashes(tmp_path: Path) -> None:
    command = shlex.join(command_of("crash"))
    done = learn(tmp_path, "--command", command, "--timeout", "60", "--level", "L0", "--states", "2", "--steps", "0")

    assert 1 == done.exit_code, done.output
    assert "learned:  the port: the program was ended by SIGSEGV" in done.output
    assert "wrong_port.py crash < " in done.output


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:maker", "no_such_module cannot be imported"),
        ("./libmissing.so", "there is no such file"),
        ("nothing", "is neither module:maker nor a shared library"),
    ],
)
def test_a_target_that_is_none_is_one_line(tmp_path: Path, target: str, message: str) -> None:
    done = learn(tmp_path, target, "--timeout", "60")

    assert isinstance(done.exception, SyncedMemoryError), done.output
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_without_aalpy_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aalpy", None)

    assert "pip install aalpy" in str(learn(tmp_path, *PORT).exception)
