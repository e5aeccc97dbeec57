"""The state diagram as plain text, and a trace in the Informal Trace Format."""

from __future__ import annotations

import json

from machines import DOOR, PETSC

from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.formats import export


def test_a_diagram_of_text_spelt_out() -> None:
    trace = trace_of("open close", edition=DOOR)
    assert """door

SHUT (at first)
  close           creak + ring
  open   -> OPEN

OPEN
  close  -> SHUT  creak + ring

open [locked] in every head but OPEN: refused, no_key

1. open: SHUT → OPEN, nothing
2. close: OPEN → SHUT, creak + ring
""" == export("text", edition=DOOR, trace=trace)


def test_a_trace_has_the_states_that_the_machine_takes() -> None:
    calls = ["VecGetArray", "VecCUDAGetArrayRead", "VecGetArrayWrite"]
    data = json.loads(str(export("itf", trace=trace_of(calls, edition=PETSC))))

    assert ["head", "array", "GPUarray", "refused", "mbt::actionTaken"] == data["vars"]
    assert ["UNALLOCATED", "CPU", "BOTH", "CPU"] == [it["head"] for it in data["states"]]
    assert ["", *calls] == [it["mbt::actionTaken"] for it in data["states"]]
    assert [False, False, True, True] == [it["GPUarray"] for it in data["states"]]
    assert [0, 1, 2, 3] == [it["#meta"]["index"] for it in data["states"]]


def test_a_trace_says_the_mode_and_what_was_refused() -> None:
    data = json.loads(str(export("itf", trace=trace_of("set_mode(CPU) async_gpu_push"))))
    assert ["GPU", "CPU", "CPU"] == [it["mode"] for it in data["states"]]
    assert ["", "", "not_head_at_cpu"] == [it["refused"] for it in data["states"]]
    assert len(json.loads(str(export("itf", edition=PETSC)))["states"]) > 10
