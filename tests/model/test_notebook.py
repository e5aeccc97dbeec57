"""What a notebook shows of a machine, of a trace and of a memory."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.model import InvalidExportError, caffe
from syncedmem.model.declaration import Machine, Row
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.trace import trace_of


def shown(value: Any) -> str | None:
    """Return what IPython is given."""
    found: str | None = value._repr_svg_()
    return found


def marked(svg: str) -> list[str]:
    """Return the names of the states with a thick border."""
    elements = list(fromstring(svg))  # noqa: S314 -- our own
    boxes = [k for k, element in enumerate(elements) if element.get("stroke-width") == "5"]
    return ["".join(elements[k + 1].itertext()) for k in boxes]


def test_a_machine_is_shown_as_its_diagram() -> None:
    assert shown(caffe.CAFFE) == diagram_svg(caffe.CAFFE)


def test_a_trace_is_shown_on_the_diagram_of_its_machine() -> None:
    trace = trace_of("cpu_data", edition="cpu_only", size=4)

    assert shown(trace) == diagram_svg("cpu_only", trace=trace)
    assert "1. cpu_data" in str(shown(trace))


def test_a_memory_is_shown_with_its_head_marked() -> None:
    memory = SyncedMemory(8, device=SimulatedDeviceAllocator())
    assert ["UNINITIALIZED"] == marked(str(shown(memory)))
    memory.mutable_cpu_data()
    assert ["HEAD_AT_CPU"] == marked(str(shown(memory)))
    assert "edition caffe, at HEAD_AT_CPU</title>" in str(shown(memory))
    memory.gpu_data()
    assert ["SYNCED"] == marked(str(shown(memory)))
    memory.close()
    assert shown(memory) is None


def test_a_memory_without_a_device_is_shown_on_its_own_machine() -> None:
    memory = SyncedMemory(8, host=CPUDeviceAllocator(), device=None)

    assert "edition cpu_only, at UNINITIALIZED</title>" in str(shown(memory))


def test_an_unsound_machine_is_shown_as_its_repr() -> None:
    assert shown(Machine("late", [Row("go", "A", "B"), Row("go", "A", "A")])) is None


def test_a_state_is_marked_by_the_name_that_is_drawn() -> None:
    assert ["G:oo"] == marked(diagram_svg(detail=Detail.CONFIGURATIONS, at="G:oo"))
    assert [] == marked(diagram_svg())
    with pytest.raises(InvalidExportError, match="unknown state 'SINCED'"):
        diagram_svg(at="SINCED")
