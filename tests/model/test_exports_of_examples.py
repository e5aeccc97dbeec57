"""What each format says of examples, and of machines that are no memories, in the program for which it is written."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from machines import DOOR, EXAMPLES, KEYWORDS, ODD, PETSC, TCP
from pictured import PICTURED, SPELLING
from programs import program, run_node, typeset

from syncedmem.model import EDITIONS
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.formats import export, tla_config
from syncedmem.model.exports.xstate import xstate_machine
from syncedmem.model.states import space

if TYPE_CHECKING:
    from pathlib import Path

    from syncedmem.model.declaration import Machine

pytestmark = pytest.mark.deep

MACHINES = (*EXAMPLES, DOOR, *PICTURED)
in_names = pytest.mark.parametrize("machine", [*MACHINES, ODD], ids=str)
in_code = pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES, ODD, KEYWORDS], ids=str)

_STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


def compiles(command: list[str], text: str, file: Path) -> None:
    """Compile a file without a warning."""
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, file.name], cwd=file.parent, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)


@in_code
def test_c_and_rust_compile_without_a_warning(machine: Machine, tmp_path: Path) -> None:
    header = str(export("c", edition=machine))
    compiles([program("cc"), "-std=c99", *_STRICT, "-Wno-unused-function", "-fsyntax-only"], header, tmp_path / "m.c")
    compiles([program("c++"), *_STRICT, "-Wno-unused-function", "-fsyntax-only"], header, tmp_path / "m.cc")
    rust = [program("rustc"), "--crate-type", "lib", "-D", "warnings", "--edition", "2021"]
    compiles(rust, str(export("rust", edition=machine)), tmp_path / "m.rs")


@pytest.mark.parametrize("machine", [TCP, PETSC], ids=str)
def test_a_program_that_uses_little_of_a_rust_module_has_no_warning(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "machine.rs").write_text(str(export("rust", edition=machine)), encoding="utf-8")
    rust = [program("rustc"), "-D", "warnings", "--edition", "2021", "--emit", "metadata"]
    compiles(rust, "mod machine;\nfn main() {}\n", tmp_path / "main.rs")


@in_names
def test_xstate_starts_where_the_machine_does(machine: Machine) -> None:
    """A target that is no state is an error of XState."""
    answer = run_node("run_xstate.mjs", {"machine": xstate_machine(machine, detail=Detail.GUARDS), "cases": []})
    assert machine.initial.name == answer["initial"]


@in_code
def test_checkers_of_models_find_no_fault(machine: Machine, tmp_path: Path) -> None:
    """But for Kokkos: after `clear_sync_state` both sides count as fresh, and nobody has copied anything."""
    sound = machine.name != "kokkos"
    config = tla_config(machine)
    found = run_node("run_tla.mjs", {"module": str(export("tla", edition=machine)), "config": config})
    assert sound == found["success"], found["error_message"]
    assert not sound or found["states_explored"] >= len(space(machine).steps)
    (tmp_path / "m.pml").write_text(str(export("promela", edition=machine)), encoding="utf-8")
    for command in ([program("spin"), "-DK=4", "-a", "m.pml"], [program("cc"), "-DSAFETY", "-o", "pan", "pan.c"]):
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    said = subprocess.run(["./pan", "-m1000000"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert sound == ("errors: 0" in said)


@in_names
@pytest.mark.parametrize("format_", ["dot -Tsvg", "plantuml -tsvg -pipe -charset UTF-8"])
def test_graphviz_and_plantuml_draw_every_head(format_: str, machine: Machine) -> None:
    """Drawings wrap lines."""
    name, *options = format_.split()
    text = str(export(name, edition=machine)).encode()
    done = subprocess.run([program(name), *options], input=text, capture_output=True, check=True)
    shown = "".join("".join(ET.fromstring(done.stdout.decode()).itertext()).split())  # noqa: S314
    assert [] == [head for head in machine.heads if "".join(head.split()) not in shown]


@pytest.mark.parametrize(
    "machine", [machine for machine in MACHINES if machine is not SPELLING], ids=str
)  # no font has its letters
def test_latex_is_set(machine: Machine, tmp_path: Path) -> None:
    assert typeset(tmp_path, str(export("latex", edition=machine, detail=Detail.HEADS)))
