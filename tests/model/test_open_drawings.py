"""Drawings, tables, charts and traces of machines of others, in their own words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loops import some
from machines import DOOR, MACHINES, MSI, PETSC, TCP

from syncedmem.model import EDITIONS, DeclarationError, InvalidExportError
from syncedmem.model.declaration import Machine, Row
from syncedmem.model.diagrams.drawing import Detail, Kind, drawing
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.document import machine_json
from syncedmem.model.exports.formats import FORMATS, export, tla_config
from syncedmem.model.exports.reading import machine_of_document
from syncedmem.model.exports.xstate import xstate_machine
from syncedmem.model.states import configurations, matrix

TEXTS = ("mermaid", "plantuml", "markdown", "html", "latex", "xstate")
"""The formats that lay out nothing themselves."""


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("format_", TEXTS)
def test_any_machine_has_every_text(format_: str, machine: Machine) -> None:
    """Each names all heads and all calls, and no word of Caffe's."""
    for detail in some(FORMATS[format_].details or (None,)):
        text = str(export(format_, edition=machine, detail=detail))
        plain = text.replace("\\allowbreak", "").replace("\\_", "_")
        assert [] == [word for word in (*machine.heads, *machine.calls) if word not in plain]
        assert "cpu_data" not in text
        assert "SyncedMemory" not in text


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_a_drawing_has_the_arrows_of_the_matrix(machine: Machine) -> None:
    drawn = drawing(machine, detail=Detail.CONFIGURATIONS)
    assert [str(configuration) for configuration in configurations(machine)] == [node.name for node in drawn.nodes]
    assert len({(edge.source, edge.dest) for edge in drawn.edges}) == len(drawn.edges)
    expected = {
        (str(before), str(asked), str(entry.after))
        for before, row in matrix(machine).items()
        for asked, entry in row.items()
        if not entry.refusal
    }
    assert expected == {(edge.source, line.call, edge.dest) for edge in drawn.edges for line in edge.lines}


def test_a_picture_speaks_of_the_sides_of_its_machine() -> None:
    text = str(export("svg", edition=PETSC))
    assert all(f">{head}<" in text for head in PETSC.heads)
    assert ["copies to DEVICE", "copies to HOST"] == [kind.said(PETSC) for kind in (Kind.DEVICE, Kind.HOST)]
    assert "copies to A or B or C" == Kind.DEVICE.said(MSI)
    assert "digraph" in str(export("dot", edition=PETSC))


def test_a_refusal_says_when_it_happens() -> None:
    assert ["open [locked] in every head but OPEN: refused, no_key"] == [note.text for note in drawing(DOOR).notes]


def test_a_row_without_a_next_head_is_a_loop() -> None:
    """As it is after it was written to JSON and read again."""
    light = Machine("light", [Row("switch", "OFF", "ON"), Row("switch", "ON", "OFF"), Row("look", ["ON", "OFF"])])
    again = machine_of_document(json.loads(machine_json(light)))
    for format_ in ("mermaid", "markdown", "xstate"):
        assert export(format_, edition=light) == export(format_, edition=again)
    assert "OFF --> OFF : look" in str(export("mermaid", edition=light))


def test_a_refusal_in_few_heads_names_them() -> None:
    rows = [Row("go", "A", "B"), Row("go", "B", "C"), Row("go", "C", refused="over"), Row("back", "C", "A")]
    assert ["go in C: refused, over"] == [note.text for note in drawing(Machine("m", rows)).notes]


@pytest.mark.parametrize("machine", [PETSC, MSI, TCP, DOOR], ids=str)
def test_formal_models_have_the_invariants_that_a_machine_has_words_for(machine: Machine) -> None:
    config = tla_config(machine)
    assert ("INVARIANT FreshExists" in config) == (machine is PETSC)
    assert ("INVARIANT FreshIsNewest" in config) == bool(machine.sides)
    assert ("INVARIANT NoFault" in config) == bool(machine.sides)
    assert ("mode" in str(export("promela", edition=machine))) is False


def test_cells_without_a_row_are_empty() -> None:
    assert "| close | creak, ring → SHUT | creak, ring → SHUT |" in str(export("markdown", edition=DOOR))
    assert "| `OPEN` |  |  | `creak ring` → `SHUT` |" in str(
        export("markdown", edition=DOOR, detail=Detail.CONFIGURATIONS)
    )


def test_a_trace_of_any_machine() -> None:
    assert (
        "1. open [locked] in SHUT: refused, no_key",
        "2. open [!locked]: SHUT → OPEN, nothing",
        "3. close: OPEN → SHUT, creak + ring",
    ) == trace_of("open[locked] open close", edition=DOOR).lines()
    petsc = trace_of("VecGetArray VecCUDAGetArrayRead VecGetArrayWrite", edition=PETSC, size=8)
    assert ("3. VecGetArrayWrite: BOTH → CPU, nothing", "Copied: 8 bytes to DEVICE, 0 bytes to HOST.") == (
        petsc.lines()[2:]
    )
    assert "1: VecGetArray" in str(export("svg", edition=PETSC, trace=petsc))
    with pytest.raises(
        InvalidExportError, match=r"^door has no row for open \[!locked\] in OPEN, at call 2 of the trace$"
    ):
        trace_of("open open", edition=DOOR)


def test_a_chart_with_guards_has_the_facts_that_actions_change() -> None:
    """What nobody changes is no part of the context: whoever sends an event says it."""
    petsc: Any = xstate_machine(PETSC, detail=Detail.GUARDS)
    assert {"array": False, "GPUarray": False} == petsc["context"]
    assert {} == xstate_machine(DOOR, detail=Detail.GUARDS)["context"]
    assert ["open", "open[locked]", "close"] == [
        *json.loads(str(export("xstate", edition=DOOR)))["states"]["SHUT"]["on"]
    ]


def test_a_chart_has_the_name_of_its_machine_and_an_end_only_if_something_ends() -> None:
    charts = {machine: xstate_machine(machine) for machine in (TCP, EDITIONS["caffe"])}
    assert ["tcp", "caffe"] == [chart["id"] for chart in charts.values()]
    assert [False, True] == ["RELEASED" in chart["states"] for chart in charts.values()]
    assert "MODULE tcp" in str(export("tla", edition=TCP))


def test_an_unsound_machine_is_not_drawn() -> None:
    late = Machine("late", [Row("go", "A", "B"), Row("go", "A", "A")])
    with pytest.raises(DeclarationError, match=r"^late: go in A: 2 rows are enabled at once"):
        export("mermaid", edition=late)
