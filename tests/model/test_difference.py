"""Where two machines differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_fixtures import run
from loops import some
from machines import DOOR, MSI, MSI_OF_TWO, PETSC, TCP, THIRD, changed, example, machine_with

from syncedmem.model import DeclarationError, caffe
from syncedmem.model.caffe import EDITIONS
from syncedmem.model.declaration import Row
from syncedmem.model.difference import compare

EXAMPLES = Path(__file__).parents[2] / "examples" / "machines"


def test_a_machine_does_not_differ_from_itself() -> None:
    for machine in (*EDITIONS.values(), PETSC, MSI, DOOR, TCP):
        found = compare(machine, machine)
        assert found.same
        assert found.compared >= len(machine.calls)


def test_machines_in_other_words_are_compared_by_meaning() -> None:
    """What PETSc and Caffe both have differs in the zeros alone."""
    found = compare("caffe", PETSC)
    assert "VecGetArrayRead" == found.shared["cpu_data"]
    assert (
        ("set_cpu_data", "set_gpu_data", "async_gpu_push", "release"),
        ("VecGetArrayWrite", "VecCUDAGetArrayWrite"),
    ) == (found.calls)
    assert {("UNINITIALIZED", "UNALLOCATED")} == {cell.heads for cell in some(found.cells)}
    assert ("allocate_cpu, zero_cpu -> HEAD_AT_CPU", "malloc -> CPU") == found.cells[0].does


@pytest.mark.parametrize(
    ("call", "head", "parts", "sequence"),
    [
        ("gpu_data", "UNINITIALIZED", {"do": "allocate_gpu"}, ["gpu_data"]),
        ("cpu_data", "HEAD_AT_GPU", {"dest": "HEAD_AT_CPU"}, ["gpu_data", "cpu_data"]),
        ("mutable_gpu_data", "SYNCED", {"do": "copy_to_gpu"}, ["cpu_data", "gpu_data", "mutable_gpu_data"]),
    ],
)
def test_the_sequence_is_a_shortest_one(call: str, head: str, parts: dict[str, str], sequence: list[str]) -> None:
    found = compare(caffe.CAFFE, changed(caffe.CAFFE, call, head, **parts))
    assert sequence == [str(item) for item in found.cells[0].sequence]
    assert head == found.cells[0].heads[0]


def test_a_flag_that_differs_is_a_difference() -> None:
    kept = changed(caffe.CAFFE, "set_cpu_data", "UNINITIALIZED", do="allocate_cpu")
    assert ["set_cpu_data"] == [str(item) for item in compare(caffe.CAFFE, kept).cells[0].sequence]


def test_what_only_one_has_is_listed() -> None:
    third, smaller = compare("caffe", THIRD), compare(MSI, MSI_OF_TWO)
    assert ((), ("HEAD_AT_PRV", "SYNCED_PRV")) == third.heads
    assert () == third.cells  # with two sides it is Caffe
    assert (("read_c", "write_c", "evict_c"), ()) == smaller.calls
    assert ("S_c", "S_ac", "S_bc", "S_abc", "M_c") == smaller.heads[0]
    write_only = compare("caffe", example("write_only")["WRITE_ONLY"])
    assert ((), ("overwrite_cpu_data", "overwrite_gpu_data")) == write_only.calls
    assert () == write_only.cells


def test_words_without_meaning_are_compared_by_name() -> None:
    found = compare(DOOR, changed(DOOR, "close", "OPEN", dest="OPEN"))
    assert [("open", "close")] == [tuple(map(str, cell.sequence)) for cell in found.cells]
    assert 0 == compare("caffe", TCP).compared


def test_a_call_for_which_only_one_has_a_row_is_a_difference() -> None:
    found = compare(DOOR, machine_with(DOOR, [*DOOR.rows, Row("open", "OPEN")]))

    assert [("nothing", "no action")] * 2 == [cell.does for cell in found.cells]
    assert [("open", "open"), ("open", "open[locked]")] == [tuple(map(str, cell.sequence)) for cell in found.cells]


def test_an_unsound_machine_is_refused() -> None:
    with pytest.raises(DeclarationError, match="unknown machine"):
        compare("caffe", "caffee")


def test_the_command_says_it_in_words_and_in_json(tmp_path: Path) -> None:
    petsc, report = f"{EXAMPLES / 'petsc.py'}:PETSC", tmp_path / "diff.json"
    found = run("diff", "caffe", petsc, "--json", str(report))
    assert 1 == found.exit_code
    assert "Calls of petsc alone: VecGetArrayWrite, VecCUDAGetArrayWrite" in found.stdout
    assert "4 of 16 cells differ" in found.stdout
    assert "Shortest: cpu_data\n  caffe: allocate_cpu, zero_cpu -> HEAD_AT_CPU\n  petsc: malloc -> CPU" in found.stdout
    data = json.loads(report.read_text(encoding="utf-8"))
    assert (False, 16, ["cpu_data"]) == (data["same"], data["compared_cells"], data["cells"][0]["sequence"])

    same = run("diff", "caffe", "caffe")
    assert (0, "Calls that both have: 8; all 48 cells are the same.\n") == (same.exit_code, same.stdout)
