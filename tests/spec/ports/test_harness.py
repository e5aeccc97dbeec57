"""The harness: its numbers are the header's, it answers as the protocol describes, and sees what a library does."""

from __future__ import annotations

import ctypes
import io
import json
import os
import runpy
import subprocess
import sys
from ctypes import byref, c_int32, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exported import exported

from syncedmem.model import EDITIONS, Mode, SyncedHead, caffe
from syncedmem.spec.ports import harness, protocol
from syncedmem.spec.ports.harness import DEVICE, HOST, PINNED, Harness, Heap, Library, Wrong

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.deep

SCRIPT = Path(harness.__file__)


class Session:
    """A harness that is asked in this process; every answer is checked against the protocol."""

    def __init__(self, path: str, level: str = "L4") -> None:
        self.harness = Harness(Library(path))
        self.level = level
        self.asked = 0
        self.hello = self.ask("hello", version=1, level=level)
        self.level = min(level, self.hello["level"])

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.asked += 1
        answer = self.harness.answer({"id": self.asked, "op": op, **fields})
        assert protocol.wrong(protocol.REQUESTS[op].answer, answer, self.level) == ""
        assert answer.pop("id") == self.asked
        return answer

    def call(self, op: str, memory: int = 1, mode: str = "GPU", **fields: Any) -> dict[str, Any]:
        return self.ask(op, memory=memory, mode=mode, **fields)


def actions(answer: dict[str, Any]) -> list[str]:
    return [it["action"] for it in answer["actions"]]


# --- the numbers


def test_the_numbers_are_those_of_the_model() -> None:
    assert list(harness.HEADS) == [head.name for head in sorted(SyncedHead, key=lambda head: head.value)]
    assert list(harness.CALLS) == [*caffe.EVERYTHING.calls]
    assert harness.REFUSALS == dict(enumerate(caffe.EVERYTHING.refusals, 1))
    assert harness.MODES == {mode.name: mode.value for mode in Mode}
    bits = {fact: 1 << number for number, fact in enumerate(caffe.EVERYTHING.facts)}
    assert harness.FLAGS == {flag.name: bits[flag.name] for flag in caffe.CAFFE.flags}
    assert list(harness.EDITIONS) == list(EDITIONS)


def test_the_numbers_are_those_of_the_protocol() -> None:
    assert harness.VERSION == protocol.VERSION
    assert tuple(protocol.LEVELS) == harness.LEVELS
    assert protocol.HEADS == harness.HEADS
    assert protocol.CALLS == harness.CALLS


def test_the_structures_are_those_of_the_header(tmp_path: Path, c_port: Callable[[str], str]) -> None:
    """The sizes of the structures and the places of their fields are those that a C compiler finds."""
    assert c_port("port")
    names = {
        "smp_allocators": harness.Allocators, "smp_arguments": harness.Arguments, "smp_result": harness.Result,
        "smp_state": harness.State, "smp_port": harness.Table, "smp_blob_arguments": harness.BlobArguments,
        "smp_blob_result": harness.BlobResult, "smp_blob_part": harness.BlobPart,
        "smp_blob_state": harness.BlobState, "smp_blobs": harness.BlobTable,
    }  # fmt: skip
    fields = [(name, field[0], kind) for name, kind in names.items() for field in kind._fields_]
    text = "".join(f'  printf("%zu ", offsetof({name}, {field}));\n' for name, field, _ in fields)
    text += "".join(f'  printf("%zu ", sizeof({name}));\n' for name in names)
    (tmp_path / "syncedmem_port.h").write_text(exported("port-header"), encoding="utf-8")
    (tmp_path / "main.c").write_text(
        f'#include <stdio.h>\n#include "syncedmem_port.h"\nint main(void) {{\n{text}  return 0;\n}}\n', encoding="utf-8"
    )
    subprocess.run(["gcc", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    expected = [getattr(kind, field).offset for _, field, kind in fields] + [*map(ctypes.sizeof, names.values())]
    assert expected == [int(it) for it in done.stdout.split()]


# --- answers


def test_a_memory_shows_what_it_does(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    about = {"version": 1, "name": "C", "level": "L4", "edition": "caffe"}
    assert port.hello == {
        **about, "offers": ["own_buffer", "drop"], "largest": 1 << 21, "defers": True, "streams": True
    }  # fmt: skip
    flags = {"own_cpu_data": False, "own_gpu_data": False, "cpu_malloc_use_cuda": False}
    assert port.ask("new", memory=1, size=3) == {"actions": [], "head": "UNINITIALIZED", "size": 3, **flags}
    written = port.call("mutable_cpu_data")
    assert written["actions"] == [
        {"action": "allocate_cpu", "size": 3, "pinned": True, "block": 1},
        {"action": "zero_cpu", "size": 3},
    ]
    assert written["view"] == written["cpu"] == "000000"
    assert port.ask("write_view", memory=1, side="cpu", bytes="010203")["cpu"] == "010203"
    read = port.call("gpu_data")
    assert actions(read) == ["allocate_gpu", "copy_to_gpu"]
    assert (read["view"], read["head"], read["own_gpu_data"]) == ("010203", "SYNCED", True)
    assert port.call("async_gpu_push", stream=1)["refused"] == "not_head_at_cpu"
    assert port.call("mutable_gpu_data")["head"] == "HEAD_AT_GPU"
    assert port.ask("write_view", memory=1, side="gpu", bytes="0405")["gpu"] == "040503"
    assert port.ask("state", memory=1)["head"] == "HEAD_AT_GPU"
    assert port.call("release")["actions"] == [
        {"action": "free_cpu", "pinned": True, "block": 1},
        {"action": "free_gpu", "pinned": False, "block": 2},
    ]
    assert port.ask("state", memory=1) == {}
    port.harness.close()


def test_a_buffer_is_adopted_and_written_through(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=2)
    for side in ("cpu", "gpu"):
        port.ask("buffer", buffer=side, side=side, bytes="0a0b0c")
        adopted = port.call(f"set_{side}_data", buffer=side)
        assert (adopted["actions"], adopted[side]) == ([], "0a0b")
        port.ask("write_buffer", buffer=side, bytes="01")
        assert port.ask("state", memory=1)[side] == "010b"
    port.call("cpu_data")
    assert port.ask("read_buffer", buffer="cpu") == {"bytes": "010b0c"}
    assert port.call("set_cpu_data", buffer=None)["refused"] == "null_data"


def test_its_own_block_can_be_named_and_handed_in(c_port: Callable[[str], str]) -> None:
    """A port that takes it frees it, and is not read there any more; another name is a buffer of the caller."""
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=2)
    assert port.ask("own_buffer", memory=1, side="cpu", buffer="own") == {"refused": "there is nothing on the side cpu"}
    port.call("cpu_data")
    assert port.ask("own_buffer", memory=1, side="cpu", buffer="own") == {}
    adopted = port.call("set_cpu_data", buffer="own")
    assert (actions(adopted), "refused" in adopted, "cpu" in adopted) == (["free_cpu"], False, False)
    port.ask("buffer", buffer="mine", side="cpu", bytes="0a0b")
    assert port.call("set_cpu_data", buffer="mine")["cpu"] == "0a0b"


def test_a_dropped_memory_frees_what_it_owns(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    for memory in (1, 2):
        port.ask("new", memory=memory, size=2)
        port.call("gpu_data", memory)
    port.call("release", 2)
    assert actions(port.ask("drop", memory=1)) == ["free_gpu"]
    assert actions(port.ask("drop", memory=2)) == []
    for memory in (1, 2):
        assert port.ask("drop", memory=memory) == {"refused": "there is no such memory", "actions": []}
    port.harness.close()


def test_a_push_is_deferred_until_somebody_waits(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=1)
    port.call("mutable_cpu_data")
    port.ask("write_view", memory=1, side="cpu", bytes="07")
    assert port.call("async_gpu_push", stream=4)["gpu"] == "cd"
    assert port.ask("synchronize") == {}
    assert port.ask("state", memory=1)["gpu"] == "07"


def test_a_push_happens_at_once_below_level_4(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"), "L3")
    port.ask("new", memory=1, size=1)
    port.call("cpu_data")
    assert "defers" not in port.hello
    assert port.call("async_gpu_push", stream=4)["gpu"] == "00"


def test_a_push_on_freed_memory_is_dropped(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=1)
    port.call("cpu_data")
    port.call("async_gpu_push", stream=4)
    port.call("release")
    assert port.ask("synchronize") == {}


def test_less_is_shown_at_lower_levels(c_port: Callable[[str], str]) -> None:
    seen: list[set[str]] = []
    for level in ("L0", "L1", "L2"):
        port = Session(c_port("port"), level)
        port.ask("new", memory=1, size=1)
        seen.append({"view", "cpu", "actions", "head"} & port.call("cpu_data").keys())
    assert seen == [{"head"}, {"head", "view", "cpu"}, {"head", "view", "cpu", "actions"}]


@pytest.mark.parametrize(("call", "partial", "shown"), [(1, False, None), (2, True, "0000cd"), (2, False, "cdcdcd")])
def test_an_action_fails_when_it_is_told_to(
    call: int, partial: bool, shown: str | None, c_port: Callable[[str], str]
) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=4 if partial else 3)
    answer = port.call("gpu_data", fail=call, partial=partial)
    assert answer["refused"] == "an action failed"
    assert [bool(it.get("failed")) for it in answer["actions"]] == [False] * (call - 1) + [True]
    assert (answer.get("gpu") or "")[:6] == (shown or "")
    assert "refused" not in port.call("gpu_data")


def test_what_is_not_there_is_refused(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    assert port.ask("state", memory=9) == {"refused": "there is no such memory"}
    assert port.call("cpu_data", memory=9) == {"refused": "there is no such memory", "actions": []}
    assert port.harness.answer({"id": 1, "op": "dance"}) == {"id": 1, "refused": "there is no request 'dance'"}
    other = port.ask("hello", version=1, level="L0", edition="early")
    assert other == {"refused": "C is of edition caffe, not early"}


def test_released_memories_are_dropped_at_last(c_port: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_KEPT", 1)
    port = Session(c_port("port"))
    for memory in (1, 2, 3):
        port.ask("new", memory=memory, size=1)
        port.call("release", memory=memory)
    assert port.call("release", memory=3)["actions"] == []
    assert port.ask("state", memory=2) == {"refused": "there is no such memory"}


def test_zero_bytes_have_an_empty_view(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=0)
    assert port.call("gpu_data")["view"] == ""


def test_a_device_of_the_library_is_read_with_its_allocators(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("own"))
    assert port.hello["level"] == "L1"
    port.ask("new", memory=1, size=2)
    port.call("mutable_cpu_data")
    port.ask("write_view", memory=1, side="cpu", bytes="0102")
    assert port.call("gpu_data")["view"] == "0102"
    port.call("mutable_gpu_data")
    assert port.ask("write_view", memory=1, side="gpu", bytes="0304")["gpu"] == "0304"
    assert port.call("cpu_data")["view"] == "0304"
    port.ask("buffer", buffer="device", side="gpu", bytes="0506")
    assert port.call("set_gpu_data", buffer="device")["gpu"] == "0506"
    assert port.call("cpu_data")["cpu"] == "0506"
    assert port.ask("read_buffer", buffer="device") == {"bytes": "0506"}


def test_old_buffers_are_forgotten(c_port: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_BUFFERS", 1)
    for port in (Session(c_port("port")), Session(c_port("own"))):
        for name in ("a", "b"):
            port.ask("buffer", buffer=name, side="gpu", bytes="01")
        assert list(port.harness.heap.buffers) == ["b"]


# --- the memory that is lent


class Lent:
    """The functions that a library gets, called as a library calls them."""

    def __init__(self) -> None:
        self.heap = Heap()
        self.table: Any = self.heap.table

    def allocate(self, kind: int, size: int) -> int:
        pointer = c_void_p()
        assert self.table.allocate(None, kind, size, byref(pointer)) == 0
        return pointer.value or 0

    def taken(self) -> list[dict[str, Any]]:
        taken, self.heap.actions = self.heap.actions, []
        return taken


@pytest.fixture
def lent() -> Lent:
    return Lent()


@pytest.mark.parametrize("size", [0, 1, 16, 4097])
@pytest.mark.parametrize("kind", [HOST, PINNED, DEVICE])
def test_fresh_memory_is_aligned_and_not_zero(lent: Lent, kind: int, size: int) -> None:
    address = lent.allocate(kind, size)
    assert address % 16 == 0
    assert lent.heap.read("cpu", address, size) == b"\xcd" * size


def test_memory_that_cannot_be_had_is_an_error(lent: Lent) -> None:
    pointer = c_void_p()
    assert lent.table.allocate(None, HOST, 1 << 60, byref(pointer)) != 0
    assert [it.get("failed") for it in lent.taken()] == [True]


def test_copies_have_the_names_of_their_directions(lent: Lent) -> None:
    host, other, device, second = (lent.allocate(kind, 4) for kind in (HOST, PINNED, DEVICE, DEVICE))
    lent.taken()
    pairs = ((device, host), (host, device), (other, host), (second, device))
    for to, start in pairs:
        lent.table.copy(None, to, start, 4)
        lent.table.copy_async(None, to, start, 4, None)
    names = [it["action"] for it in lent.taken()]
    up, down = ["copy_to_gpu", "copy_to_gpu_async"], ["copy_to_cpu", "copy_to_cpu"]
    assert names == [*up, *down, "copy_cpu", "copy_cpu", "copy_gpu", "copy_gpu"]


def test_a_copy_that_is_too_long_is_cut_and_told(lent: Lent) -> None:
    host, device = lent.allocate(HOST, 8), lent.allocate(DEVICE, 4)
    lent.table.zero(None, host, 99)
    lent.taken()
    assert lent.table.copy(None, device + 1, host, 99) == 0
    assert lent.taken() == [{"action": "copy_to_gpu", "size": 99}]
    assert lent.heap.read("gpu", device, 99) == b"\xcd\0\0\0"
    assert lent.heap.misdeed([host, device]) == ""


def test_memory_of_the_library_itself_can_be_copied(lent: Lent) -> None:
    device, buffer = lent.allocate(DEVICE, 2), ctypes.create_string_buffer(b"ab")
    lent.table.copy(None, device, ctypes.addressof(buffer), 2)
    assert lent.heap.read("gpu", device, 2) == b"ab"
    lent.table.zero(None, ctypes.addressof(buffer), 2)
    assert buffer.raw == b"\0\0\0"
    lent.heap.write("cpu", ctypes.addressof(buffer), b"c")
    assert buffer.raw == b"c\0\0"


def test_half_of_a_copy_is_done_if_it_fails_partially(lent: Lent) -> None:
    host, device = lent.allocate(HOST, 4), lent.allocate(DEVICE, 4)
    lent.table.zero(None, host, 4)
    for partial, expected in ((False, b"\xcd" * 4), (True, b"\0\0\xcd\xcd")):
        lent.heap.fail, lent.heap.partial = 1, partial
        assert lent.table.copy(None, device, host, 4) != 0
        assert lent.heap.read("gpu", device, 4) == expected


@pytest.mark.parametrize(
    ("made", "freed", "action"),
    [
        (HOST, PINNED, {"action": "free_cpu", "pinned": True, "block": 1}),
        (HOST, DEVICE, {"action": "free_gpu", "pinned": False, "block": 1}),
        (None, HOST, {"action": "free_cpu", "pinned": False, "block": None}),
    ],
)
def test_a_wrong_free_is_an_error_and_told(lent: Lent, made: int | None, freed: int, action: dict[str, Any]) -> None:
    address = None if made is None else lent.allocate(made, 1)
    lent.taken()
    assert lent.table.deallocate(None, freed, address) != 0
    assert lent.taken() == [action]


def test_a_second_free_is_an_error_and_told(lent: Lent) -> None:
    address = lent.allocate(HOST, 1)
    assert lent.table.deallocate(None, HOST, address) == 0
    assert lent.table.deallocate(None, HOST, address) != 0
    assert [it["block"] for it in lent.taken()] == [1, 1, None]
    assert lent.heap.is_freed(address)


def test_a_buffer_of_the_caller_cannot_be_freed(lent: Lent) -> None:
    lent.heap.buffer("mine", "cpu", b"a")
    address = lent.heap.buffers["mine"].address
    assert lent.table.deallocate(None, HOST, address) != 0
    assert lent.taken() == [{"action": "free_cpu", "pinned": False, "buffer": "mine"}]
    assert lent.heap.read("cpu", address, 1) == b"a"


def test_pages_of_old_blocks_are_given_back(lent: Lent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_QUARANTINE", 1)
    first, second = lent.allocate(HOST, 1), lent.allocate(HOST, 1)
    for address in (first, second):
        lent.table.deallocate(None, HOST, address)
    assert (lent.heap.is_freed(first), lent.heap.is_freed(second)) == (False, True)


@pytest.mark.parametrize(("offset", "where"), [(-1, "before the start"), (5, "after the end")])
def test_a_write_beside_a_block_is_seen(lent: Lent, offset: int, where: str) -> None:
    block = lent.allocate(HOST, 5)
    lent.heap.buffer("mine", "cpu", b"12345")
    buffer = lent.heap.buffers["mine"].address
    for address, name in ((block, "a block"), (buffer, "the buffer mine")):
        ctypes.memset(address + offset, 0, 1)
        assert lent.heap.misdeed([address]) == f"the port wrote {where} of {name} of 5 bytes"


def test_waiting_for_a_stream_is_an_action(lent: Lent) -> None:
    host, device = lent.allocate(HOST, 1), lent.allocate(DEVICE, 1)
    lent.heap.defers = True
    lent.heap.write("cpu", host, b"x")
    for stream in (None, 5):
        lent.table.copy_async(None, device, host, 1, stream)
        assert lent.taken()[-1] == {"action": "copy_to_gpu_async", "size": 1, "stream": stream or 0}
    for other, shown in ((6, b"\xcd"), (5, b"x")):
        assert lent.table.synchronize(None, other) == 0
        assert lent.heap.read("gpu", device, 1) == shown
        assert lent.taken() == [{"action": "wait", "stream": other}]
    lent.heap.write("cpu", host, b"y")
    assert lent.table.synchronize(None, None) == 0  # NULL is a queue like any other
    assert lent.taken() == [{"action": "wait", "stream": 0}]
    assert lent.heap.read("gpu", device, 1) == b"y"


@pytest.mark.parametrize("freed", ["source", "destination"])
def test_a_queued_copy_of_a_freed_block_is_forgotten(lent: Lent, freed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages may belong to another block when somebody waits."""
    monkeypatch.setattr(harness, "_QUARANTINE", 0)
    host, device = lent.allocate(HOST, 4097), lent.allocate(DEVICE, 4097)
    lent.heap.defers = True
    lent.table.copy_async(None, device + 1, host + 1, 4096, 5)
    lent.table.deallocate(None, *((HOST, host) if freed == "source" else (DEVICE, device)))
    others = [lent.allocate(kind, 4097) for kind in (HOST, DEVICE) for _ in range(4)]
    lent.taken()
    assert lent.table.synchronize(None, 5) == 0
    assert {lent.heap.read(side, it, 4097) for side, it in zip(["cpu"] * 4 + ["gpu"] * 4, others, strict=True)} == {
        b"\xcd" * 4097
    }


def test_another_device_cannot_be_made_current(lent: Lent) -> None:
    device = c_int32(-1)
    assert lent.table.set_device(None, 0) == 0
    assert lent.heap.misdeed(()) == ""
    assert lent.table.set_device(None, 3) == 1
    assert lent.table.get_device(None, byref(device)) == 0
    assert device.value == 0
    assert lent.heap.misdeed(()) == "the port made device 3 current, and there is only device 0"


def test_device_memory_is_guarded_only_from_a_library_whose_actions_are_seen() -> None:
    """The device of another may be memory of the host, which it reads and writes by itself."""
    heap = Heap(guards=False)
    heap.buffer("mine", "gpu", b"abc")
    address = heap.buffers["mine"].address
    assert ctypes.string_at(address, 3) == b"abc"
    ctypes.memmove(address, b"d", 1)
    assert heap.read("gpu", address, 3) == b"dbc"
    assert heap.misdeed([address]) == ""
    ctypes.memmove(address + 3, b"d", 1)
    assert heap.misdeed([address]) == "the port wrote after the end of the buffer mine of 3 bytes"


# --- libraries that are none


_FUNCTIONS = ("create", "call", "state", "destroy")


def _nothing(*_: object) -> None:
    """Do nothing."""


def _done(*_: object) -> int:
    return harness.OK


def _failed(*_: object) -> int:
    return harness.FAILED


def _odd(*_: object) -> int:
    return 7


def table(**changed: Any) -> Any:
    """Return a table that is right, but for some fields."""
    made: Any = harness.Table()
    made.abi_version, made.level, made.sides = harness.ABI_VERSION, 4, 2
    made.name, made.edition = b"python", b"caffe"
    kinds: dict[str, Any] = {name: type(getattr(made, name)) for name in _FUNCTIONS}
    for name in _FUNCTIONS:
        setattr(made, name, kinds[name](_nothing if name in ("state", "destroy") else _done))
    for name, value in changed.items():
        setattr(made, name, kinds[name](*filter(None, [value])) if name in _FUNCTIONS else value)
    return made


class Symbols(dict[str, Any]):
    """The functions of a library; as in ctypes, one that is not there is an AttributeError."""

    def __missing__(self, name: str) -> None:
        raise AttributeError(name)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Library]:
    """Return a function that loads a table as if it were in a library."""

    def load(made: Any) -> Library:
        def entry() -> Any:
            return made and ctypes.pointer(made)

        def opened(_path: str) -> Any:
            return Symbols({harness.SYMBOL: entry})

        monkeypatch.setattr(ctypes, "CDLL", opened)
        return Library(__file__)

    return load


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"abi_version": 1}, "it was built with version 1 of syncedmem_port.h, and this is version 2"),
        ({"sides": 3}, "its memories have 3 sides, not 2"),
        ({"name": None}, "the field name of its table is NULL"),
        ({"call": None}, "the field call of its table is NULL"),
        ({"edition": b"late"}, "its edition is 'late', not one of caffe, early, cpu_only"),
        ({"level": 5}, "its level is 5, not one of 0 to 4"),
        (
            {"own": ctypes.pointer(harness.Allocators())},
            "it has allocators of its own, so its level is at most 1, not 4",
        ),
    ],
)
def test_a_wrong_table_is_one_line(changed: dict[str, Any], sentence: str, loaded: Callable[[Any], Library]) -> None:
    with pytest.raises(Wrong) as raised:
        loaded(table(**changed))
    assert str(raised.value) == f"{__file__}: {sentence}"


def test_no_table_is_one_line(loaded: Callable[[Any], Library]) -> None:
    with pytest.raises(Wrong) as raised:
        loaded(None)
    assert str(raised.value) == f"{__file__}: syncedmem_port returned NULL"


def test_a_file_that_is_no_library_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("text, and more text, and more\n" * 9, encoding="utf-8")
    with pytest.raises(Wrong, match=r"^.*text\.so cannot be loaded: [^/\n]+$"):
        Library(str(text))
    with pytest.raises(Wrong, match=r"^there is no file .*none\.so$"):
        Library(str(tmp_path / "none.so"))


def test_a_library_without_the_symbol_is_one_line() -> None:
    import _ctypes

    with pytest.raises(Wrong, match=r" exports no function syncedmem_port: see syncedmem_port\.h$"):
        Library(_ctypes.__file__)


# --- libraries that do what no port may do


def test_a_status_that_is_none_is_an_error(loaded: Callable[[Any], Library]) -> None:
    port = Harness(loaded(table(create=_odd)))
    with pytest.raises(Wrong, match=r"^create returned 7, which is none of SMP_OK, SMP_REFUSED and SMP_FAILED$"):
        port.answer({"id": 1, "op": "new", "memory": 1, "size": 1})


def test_a_memory_may_not_be_made(loaded: Callable[[Any], Library]) -> None:
    port = Harness(loaded(table(create=_failed)))
    assert port.answer({"id": 1, "op": "new", "memory": 1, "size": 1}) == {"id": 1, "refused": "an action failed"}


def test_a_port_says_why_it_refuses(loaded: Callable[[Any], Library]) -> None:
    said = ctypes.create_string_buffer("not on Mondays: \u00e4".encode())

    def call(_memory: int, asked: Any, result: Any) -> int:
        if asked[0].mode == 1:
            result[0].message = ctypes.addressof(said)
        return 1

    found = table(call=call)
    port = Harness(loaded(found))
    port.answer({"id": 1, "op": "new", "memory": 1, "size": 1})
    asked = [{"id": 1, "op": "release", "memory": 1, "mode": mode} for mode in ("GPU", "CPU")]
    assert [port.answer(it)["refused"] for it in asked] == ["not on Mondays: \u00e4", "refused"]


def test_a_head_that_is_none_and_a_view_that_is_none_are_passed_on(loaded: Callable[[Any], Library]) -> None:
    def state(_memory: int, seen: Any) -> None:
        seen[0].head = 9

    port = Harness(loaded(table(state=state)))
    port.answer({"id": 1, "op": "hello", "version": 1, "level": "L1"})
    port.answer({"id": 2, "op": "new", "memory": 1, "size": 1})
    read = port.answer({"id": 3, "op": "cpu_data", "memory": 1, "mode": "CPU"})
    assert (read["view"], read["head"]) == (None, "9")


def served(path: str, *requests: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the harness as a program, with a new memory of a size and some requests."""
    lines = "".join(json.dumps({"id": number, **it}) + "\n" for number, it in enumerate(requests, 1))
    return subprocess.run([sys.executable, str(SCRIPT), path], input=lines, capture_output=True, text=True, check=False)


HELLO = {"op": "hello", "version": 1, "level": "L4"}
READS = ({"op": "cpu_data", "memory": 1, "mode": "CPU"}, {"op": "gpu_data", "memory": 1, "mode": "CPU"})


@pytest.mark.parametrize(
    ("size", "status", "last"),
    [
        (1, -11, "the port touched byte 0 of a device block, which only copies and fills may touch, of 1 bytes"),
        (2, 1, "in gpu_data the port wrote after the end of a block of 2 bytes"),
        (3, 1, "in gpu_data the port wrote before the start of a block of 3 bytes"),
        (4, 5, ""),
        (5, 0, '{"id": 1}'),
        (6, 0, ""),
        (7, -11, "the port touched byte 100 of a host block of 7 bytes"),
    ],
)
def test_what_no_port_may_do_is_seen(size: int, status: int, last: str, c_port: Callable[[str], str]) -> None:
    """A port that touches device memory or far away memory crashes; beside a block it is told what it did."""
    done = served(c_port("rude"), HELLO, {"op": "new", "memory": 1, "size": size}, *READS)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr.strip()) == (status, last)
    assert [it["id"] for it in answers] == [1, 2, 3, 4][: 3 if status else 4]
    assert (answers[-1].get("refused") == "refused") is (size == 6)


def test_no_bytes_need_no_view(c_port: Callable[[str], str]) -> None:
    """A memory of zero bytes may have no address."""
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=0)
    assert port.ask("write_view", memory=1, side="cpu", bytes="")["head"] == "UNINITIALIZED"


def test_a_write_beside_a_block_ends_the_answers(c_port: Callable[[str], str]) -> None:
    port = Session(c_port("rude"))
    port.ask("new", memory=1, size=2)
    port.call("cpu_data")
    with pytest.raises(Wrong, match=r"^in gpu_data the port wrote after the end of a block of 2 bytes$"):
        port.call("gpu_data")


def test_a_write_to_freed_memory_is_a_crash(c_port: Callable[[str], str]) -> None:
    buffer = {"op": "buffer", "buffer": "mine", "side": "cpu", "bytes": "01"}
    adopt = {"op": "set_cpu_data", "memory": 1, "mode": "CPU", "buffer": "mine"}
    done = served(c_port("rude"), HELLO, {"op": "new", "memory": 1, "size": 1}, READS[0], buffer, adopt)
    assert done.returncode == -11
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr == "the port touched byte 0 of a freed host block of 1 bytes\n"


def test_a_fault_elsewhere_says_where(lent: Lent, capfd: pytest.CaptureFixture[str]) -> None:
    info = (ctypes.c_uint64 * 4)(0, 0, 0x10, 0)
    with harness.explained(lent.heap) as explain:
        explain(11, ctypes.addressof(info), None)
    assert capfd.readouterr().err == "the port touched memory that was not lent, at 0x10\n"


def test_a_place_is_told_in_words(lent: Lent) -> None:
    pinned, freed = lent.allocate(PINNED, 5), lent.allocate(HOST, 6)
    lent.table.deallocate(None, HOST, freed)
    assert lent.heap.place(pinned + 5) == "byte 5 of a page-locked block of 5 bytes"
    assert lent.heap.place(freed - 1) == "byte -1 of a freed host block of 6 bytes"


# --- the program


def test_the_program_answers_until_its_input_ends(c_port: Callable[[str], str], capfd: Any) -> None:
    """It has its own standard input and output; what the library prints is not among the answers."""
    ends = os.pipe(), os.pipe()
    saved = os.dup(0), os.dup(1)
    try:
        os.write(ends[0][1], b'{"id": 1, "op": "hello", "version": 1, "level": "L0"}\n')
        os.close(ends[0][1])
        os.dup2(ends[0][0], 0)
        os.dup2(ends[1][1], 1)
        assert harness.main([c_port("port")]) == 0
    finally:
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)
    os.close(ends[1][1])
    with os.fdopen(ends[1][0]) as answers:
        assert [json.loads(line)["name"] for line in answers] == ["C"]
    os.close(ends[0][0])
    assert capfd.readouterr().err == ""


def test_a_library_that_is_none_is_told_in_the_first_answer(tmp_path: Path) -> None:
    done = served(str(tmp_path / "none.so"), HELLO)
    assert json.loads(done.stdout) == {"id": 1, "refused": f"there is no file {tmp_path / 'none.so'}"}
    assert (done.returncode, done.stderr) == (2, "")
    answers = io.BytesIO()
    harness.refuse("no", io.BytesIO(b'{"id": 7}\n'), answers)
    assert json.loads(answers.getvalue()) == {"id": 7, "refused": "no"}


def test_the_program_takes_one_library(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["harness.py"])
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert raised.value.code == 2
    assert capsys.readouterr().err == "give one shared library: harness.py ./libport.so\n"


def test_a_broken_promise_ends_the_program(monkeypatch: pytest.MonkeyPatch, c_port: Callable[[str], str]) -> None:
    def broken(*_: object) -> None:
        raise Wrong("it did what no port may do")

    saved = os.dup(0), os.dup(1)
    try:
        monkeypatch.setattr(harness, "serve", broken)
        statuses = [harness.main([c_port("port")])]
        monkeypatch.setattr(harness, "refuse", _nothing)
        statuses.append(harness.main(["/no/such/library"]))
    finally:
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)
    assert statuses == [1, 2]


def test_the_harness_needs_nothing_but_the_standard_library() -> None:
    """It is started for every program that is shortened, so it imports nothing that takes long."""
    code = f"import runpy, sys; runpy.run_path({str(SCRIPT)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded <= set(sys.stdlib_module_names) | {"__main__"}
