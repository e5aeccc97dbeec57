"""The harness with blobs: it makes their calls, sees what they do, and refuses tables that are wrong."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from port_fixtures import SOURCES, STRICT

from syncedmem.model.interface import BLOB_CALLS
from syncedmem.spec.ports import harness, protocol
from syncedmem.spec.ports.harness import Harness, Library, Wrong

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.deep


def asking(path: str, level: str = "L4") -> Callable[..., dict[str, Any]]:
    """Return a function that asks a library, and checks that each answer fits the protocol."""
    asked = Harness(Library(path))
    number = 0

    def ask(op: str, **fields: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        answer = asked.answer({"id": number, "op": op, "mode": "CPU", **fields})
        assert protocol.wrong(protocol.REQUESTS[op].answer, answer, level) == ""
        assert answer.pop("id") == number
        return answer

    assert ask("hello", version=1, level=level)["blobs"]
    return ask


def made(path: str, *shape: int, level: str = "L4", dtype: str = "float32") -> Callable[..., dict[str, Any]]:
    """Return a function that makes calls of a blob of this shape, which has the number 1."""
    ask = asking(path, level)
    ask("new_blob", blob=1, type=dtype, shape=[*shape])

    def call(name: str, **fields: Any) -> dict[str, Any]:
        op = name if name in (*protocol.BLOB_REQUESTS, "buffer") else "blob_call"
        return ask(op, **{"blob": 1, **({"call": name} if op == "blob_call" else {}), **fields})

    return call


def test_the_numbers_are_those_of_the_protocol() -> None:
    assert harness.BLOB_CALLS == BLOB_CALLS
    assert tuple(harness.BLOB_TYPES) == protocol.BLOB_TYPES


def test_the_numbers_are_those_of_the_header(c_port: Callable[[str], str]) -> None:
    header = (Path(c_port("blob")).parent / "syncedmem_port.h").read_text(encoding="utf-8")
    calls = re.findall(r"SMP_BLOB_(\w+) = (\d+)", header)
    assert calls == [(name.upper(), str(number)) for number, name in enumerate(harness.BLOB_CALLS)]
    types = re.findall(r"SMP_(U?(?:FLOAT|INT)\d+) = (\d+)", header)
    assert types == [(name.upper(), str(number)) for number, name in enumerate(harness.BLOB_TYPES)]
    options = [int(it) for it in re.findall(r"SMP_OPTION_\w+ = (\d+)", header)]
    assert options == [harness.SEQUENCE, harness.COPY_DIFF, harness.RESHAPE]


def test_a_blob_shows_what_it_does(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 2, 1)
    written = call("mutable_cpu_data")
    assert written["actions"] == [
        {"action": "allocate_cpu", "size": 8, "pinned": False, "block": 1},
        {"action": "zero_cpu", "size": 8},
    ]
    assert (written["shape"], written["count"], written["capacity"], written["diff"]) == ([2, 1], 2, 2, None)
    assert written["view"] == written["data_cpu"] == "00" * 8
    assert call("write_blob", part="data", side="cpu", bytes="0000803f00000040")["data_cpu"] == "0000803f00000040"
    assert call("write_blob", part="data", side="cpu", bytes="")["data_head"] == "HEAD_AT_CPU"
    assert call("gpu_data")["data_gpu"] == "0000803f00000040"
    assert call("scale_data", factor=2)["data_gpu"] == "0000004000008040"
    assert call("shape_string")["value"] == "2 axes"
    assert call("num")["value"] == 2
    assert call("gpu_shape")["view"] == "0000004000008040"
    dropped = call("drop_blob")
    assert [it["action"] for it in dropped["actions"]] == ["free_cpu", "free_gpu"]
    assert call("blob_state") == {"refused": "there is no such blob"}
    assert call("num") == call("drop_blob") == {"refused": "there is no such blob", "actions": []}


def test_numbers_that_json_does_not_have_are_texts(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 1)
    call("mutable_cpu_data")
    call("write_blob", part="data", side="cpu", bytes="0000c07f")
    assert call("data_at", numbers=[0])["value"] == "nan"
    call("write_blob", part="data", side="cpu", bytes="0000003f")
    assert call("data_at", numbers=[0])["value"] == 0.5


def test_options_reach_the_library(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 1)
    assert call("offset", sequence=True)["value"] == harness.SEQUENCE
    assert "value" not in call("copy_from", copy_diff=True, reshape=True)


def test_a_buffer_is_adopted_and_a_memory_is_shared(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 2)
    call("buffer", buffer="small", side="cpu", bytes="00")
    call("buffer", buffer="host", side="cpu", bytes="0102030405060708")
    assert call("set_cpu_data", buffer=None)["refused"] == "refused"
    assert call("set_cpu_data", buffer="small")["refused"] == "refused"
    assert call("set_cpu_data", buffer="host")["data_cpu"] == "0102030405060708"
    call("new_blob", blob=2, type="int32", shape=[2])
    assert call("share_data", blob=2, other=1)["data"] == call("blob_state")["data"]


def test_an_action_that_has_to_fail_fails(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 2)
    answer = call("gpu_data", fail=3)
    assert answer["refused"] == "an action failed"
    assert answer["actions"][-1] == {"action": "allocate_gpu", "size": 8, "pinned": False, "failed": True}


def test_less_is_shown_at_lower_levels(c_port: Callable[[str], str]) -> None:
    seen: list[set[str]] = []
    for level in ("L0", "L1", "L2"):
        shown = made(c_port("blob"), 2, level=level)("cpu_data")
        seen.append({"view", "data_cpu", "actions", "data_head"} & shown.keys())
    assert seen == [{"data_head"}, {"data_head", "view", "data_cpu"}, {"data_head", "view", "data_cpu", "actions"}]


def test_blobs_that_cannot_be_made_are_refused(c_port: Callable[[str], str]) -> None:
    ask = asking(c_port("blob"))
    assert ask("new_blob", blob=1, type="float64", shape=[1])["refused"] == "refused"
    assert ask("new_blob", blob=2, type="float32", shape=[-1])["refused"] == "a negative extent"
    assert ask("new_blob", blob=3, type="float32", shape=None)["shape"] == []
    memories = Harness(Library(c_port("port")))
    hello = memories.answer({"id": 1, "op": "hello", "version": 1, "level": "L4"})
    assert "blobs" not in hello
    request: dict[str, Any] = {"id": 2, "op": "new_blob", "blob": 1, "mode": "CPU", "type": "int32", "shape": []}
    assert memories.answer(request) == {"id": 2, "refused": "C has no blobs", "actions": []}


def test_a_view_that_is_missing_is_none(c_port: Callable[[str], str]) -> None:
    assert made(c_port("blob"), 2)("mutable_gpu_data")["view"] is None
    assert not made(c_port("blob"), 0)("mutable_gpu_data")["view"]


def test_a_blob_that_writes_beside_its_memory_ends_the_harness(c_port: Callable[[str], str]) -> None:
    call = made(c_port("blob"), 2, 1, 1)
    call("mutable_cpu_data")
    with pytest.raises(Wrong, match="in update the port wrote after the end of a block of 8 bytes"):
        call("update")


def test_a_status_that_is_none_ends_the_harness(c_port: Callable[[str], str]) -> None:
    with pytest.raises(Wrong, match="call returned 7"):
        made(c_port("blob"), 1)("shrink_to_fit")


def test_what_is_left_is_dropped_at_the_end(c_port: Callable[[str], str]) -> None:
    asked = Harness(Library(c_port("blob")))
    asked.answer({"id": 1, "op": "hello", "version": 1, "level": "L4"})
    asked.answer({"id": 2, "op": "new_blob", "blob": 1, "mode": "CPU", "type": "int32", "shape": [1]})
    asked.answer({"id": 3, "op": "blob_call", "blob": 1, "mode": "CPU", "call": "cpu_data"})
    asked.close()
    assert asked.heap.actions[-1] == {"action": "free_cpu", "pinned": False, "block": 1}


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (1, "its blobs have version 7, and this is version 1"),
        (2, "the field call of its table of blobs is NULL"),
        (3, "syncedmem_blobs returned NULL"),
    ],
)
def test_a_wrong_table_of_blobs_is_refused(mistake: int, sentence: str, c_port: Callable[[str], str]) -> None:
    with pytest.raises(Wrong, match=sentence):
        Library(mistaken(mistake, c_port))


def test_a_head_that_is_none_is_shown_as_it_is(c_port: Callable[[str], str]) -> None:
    asked = Harness(Library(mistaken(4, c_port)))
    asked.answer({"id": 1, "op": "hello", "version": 1, "level": "L4"})
    made_ = asked.answer({"id": 2, "op": "new_blob", "blob": 1, "mode": "CPU", "type": "int32", "shape": []})
    assert "'diff_head' is '9', not one of" in protocol.wrong("blob", made_, "L4")


def mistaken(mistake: int, c_port: Callable[[str], str]) -> str:
    """Return the library with this mistake."""
    folder = Path(c_port("blob")).parent
    library = folder / f"libblob{mistake}.so"
    options = [*STRICT, f"-DMISTAKE={mistake}", f"-I{folder}"]
    subprocess.run(["gcc", *options, str(SOURCES / "blob.c"), "-o", str(library)], check=True)
    return str(library)
