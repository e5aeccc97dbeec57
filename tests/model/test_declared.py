"""A machine of somebody's own is exported, read back and drawn."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from machines import MACHINES, changed

from syncedmem.model import EDITIONS, FileFormatError, InvalidExportError, caffe, hsi_suite, space, tour
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.document import machine_document, machine_json
from syncedmem.model.exports.formats import export
from syncedmem.model.exports.reading import machine_of_document, read_machine

if TYPE_CHECKING:
    from pathlib import Path

    from syncedmem.model.opening import AnyMachine

NO_PUSH = caffe.CAFFE.select("no_push", title=caffe.TITLE.format("no_push"), without="async_gpu_push")
BOTH = ("allocate_cpu", "zero_cpu", "allocate_gpu", "zero_gpu")
BOTH_AT_ONCE = changed(caffe.CAFFE, "cpu_data", "UNINITIALIZED", dest="SYNCED", do=BOTH)
BACK = changed(caffe.CAFFE, "mutable_cpu_data", "SYNCED", dest="UNINITIALIZED")
STAYS = changed(caffe.CAFFE, "mutable_cpu_data", "UNINITIALIZED", dest="UNINITIALIZED", do=())


def test_suites_and_spaces_take_a_machine() -> None:
    assert "async_gpu_push" not in NO_PUSH.calls
    assert space(NO_PUSH).transitions == len(space(NO_PUSH).steps) * 8
    assert 0 < sum(map(len, tour(NO_PUSH))) < sum(map(len, tour(caffe.CAFFE)))
    assert hsi_suite(NO_PUSH)


# --- the JSON document


@pytest.mark.parametrize("machine", [*EDITIONS, NO_PUSH, BOTH_AT_ONCE, BACK, *MACHINES], ids=str)
def test_a_document_that_is_read_and_written_again_is_the_same(machine: AnyMachine) -> None:
    text = machine_json(machine)
    found = machine_of_document(json.loads(text))
    assert machine_json(found) == text
    assert machine_of_document(json.loads(machine_json(found))) == found


def test_one_edition_of_several_is_read_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(machine_json())
    assert [*EDITIONS] == [read_machine(path, name).name for name in EDITIONS]
    with pytest.raises(FileFormatError, match=r"it has several machines: name one, caffe, early, cpu_only$"):
        read_machine(path)
    with pytest.raises(FileFormatError, match=r"it has no machine 'late'; it has caffe, early, cpu_only$"):
        read_machine(path, "late")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "machine", "its format is 'machine', not 'syncedmem-machine'"),
        (("version",), "3.0", "its version is 3.0, and this reads 1.0: export it again"),
        (("version",), "\u202e\n", r"its version is \u202e\n, and this reads 1.0: export it again"),
        (("editions",), [], "it has no machine"),
        (("editions", 0, "heads"), ["HEAD_AT_MOON"], "this is no machine in JSON: string indices must be integers"),
        (("editions", 0, "heads", 0, "name"), "HEAD_AT_MOON", "no_push: cpu_data@UNINITIALIZED names the head"),
        (("editions", 0, "calls", 0, "does"), "look", "the call cpu_data cannot mean 'look': there are"),
        (("editions", 0, "sides"), "cpu", "this is no machine in JSON: 'cpu' is no list"),
        (("editions", 0, "about"), 3, "this is no machine in JSON: 3 is no text"),
        (("editions", 0, "about"), "x" * 10_001, f"this is no machine in JSON: '{'x' * 76}... has 10,001 characters"),
        (("version",), "3" * 10_000, f"its version is {'3' * 80}, and this reads 1.0"),
        (("editions", 0, "cycles"), 3, "this is no machine in JSON: 'int' object is not iterable"),
        (("editions", 0, "transitions", 0), {}, "this is no machine in JSON: 'call' is missing or unknown"),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused(path: tuple[str | int, ...], value: object, message: str) -> None:
    document = copy.deepcopy(machine_document(NO_PUSH))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(FileFormatError) as found:
        machine_of_document(document, source="mine.json")
    assert str(found.value).startswith(f"mine.json: {message}")


@pytest.mark.parametrize("document", [3, [], "text", None])
def test_what_is_no_document_is_refused(document: object) -> None:
    with pytest.raises(FileFormatError, match=r"^the document: this is no machine in JSON"):
        machine_of_document(document)


# --- the exports


def test_a_trace_of_a_machine_is_drawn() -> None:
    trace = trace_of("cpu_data gpu_data", edition=NO_PUSH, size=8)
    assert "edition no_push" in str(export("svg", edition=NO_PUSH, trace=trace))
    with pytest.raises(InvalidExportError, match=r"^'async_gpu_push' is not a call of no_push;"):
        trace_of("async_gpu_push", edition=NO_PUSH)


@pytest.mark.parametrize("format_", ["svg", "dot", "mermaid"])
@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.CONFIGURATIONS])
def test_a_machine_with_caffes_heads_and_other_arrows_is_drawn(detail: Detail, format_: str) -> None:
    for machine in (NO_PUSH, BOTH_AT_ONCE, BACK, STAYS):
        text = str(export(format_, edition=machine, detail=detail))
        assert "mutable_gpu_data" in text
        assert "async_gpu_push" not in text or machine is not NO_PUSH
