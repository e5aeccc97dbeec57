"""Shared libraries: the harness answers as the protocol describes, and sees what they do; the kit tests them."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from ctypes import byref, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exported import exported

from syncedmem.spec.conformance import suites_of
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.engine.violation import Violation
from syncedmem.spec.kit.trial import bench_of, run_case
from syncedmem.spec.ports.conformance import Claim, conform_program
from syncedmem.spec.ports.harness import abi, heap
from syncedmem.spec.ports.harness.heap import Heap
from syncedmem.spec.ports.harness.library import Library, LibraryError, load
from syncedmem.spec.ports.protocol import BLOB_REQUESTS, CAFFE, PortError
from syncedmem.spec.ports.targets import library_target, subject_of
from syncedmem.spec.record.steps import OWN, Buffer, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.ports.conformance import PortReport
    from syncedmem.spec.requirements import Profile

    CPort = Callable[..., str]

pytestmark = pytest.mark.deep

HARNESS = Path(abi.__file__).parent
LIMITS = Limits(seconds=30, first=30)
HOST, PINNED, DEVICE = (abi.KINDS[name] for name in ("HOST", "PINNED", "DEVICE"))


class Session:
    """A library that is asked in this process; every answer is checked against the protocol."""

    def __init__(self, path: str, level: str = "L4") -> None:
        self.library = Library(path)
        self.level = level
        self.asked = 0
        self.hello = self.ask("hello", version=1, level=level)
        self.level = min(level, self.hello["level"])

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.asked += 1
        answer = self.library.answer({"id": self.asked, "op": op, **fields})
        assert CAFFE.wrong(CAFFE.requests[op].answer, answer, self.level) == ""
        assert answer.pop("id") == self.asked
        return answer

    def call(self, op: str, memory: int = 1, mode: str = "GPU", **fields: Any) -> dict[str, Any]:
        return self.ask(op, memory=memory, mode=mode, **fields)

    def blob(self, call: str, **fields: Any) -> dict[str, Any]:
        if call not in BLOB_REQUESTS:
            fields["call"], call = call, "blob_call"
        return self.ask(call, **{"blob": 1, "mode": "CPU", **fields})


def of_blobs(path: str, *shape: int, level: str = "L4") -> Session:
    """Return a session with a blob of this shape, which has the number 1."""
    session = Session(path, level)
    assert session.hello["blobs"]
    session.blob("new_blob", type="float32", shape=[*shape])
    return session


def actions(answer: dict[str, Any]) -> list[str]:
    return [action["action"] for action in answer["actions"]]


# --- the header


def test_the_structures_are_those_of_a_c_compiler(tmp_path: Path) -> None:
    """The sizes of the structures and the places of their fields are those that a C compiler finds."""
    header = HARNESS / "syncedmem_port.h"
    assert header.read_text(encoding="utf-8").strip() == exported("port-header").strip()
    kinds = {f"smp_{name}": kind for name, kind in abi.STRUCTURES.items()}
    fields = [(name, field[0], kind) for name, kind in kinds.items() for field in kind._fields_]
    lines = [f"offsetof({name}, {field})" for name, field, _ in fields] + [f"sizeof({name})" for name in kinds]
    text = "\n".join(f'  printf("%zu ", {line});' for line in lines)
    (tmp_path / "main.c").write_text(
        f'#include <stdio.h>\n#include "{header}"\nint main(void) {{\n{text}\n  return 0;\n}}\n', encoding="utf-8"
    )
    subprocess.run(["gcc", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    places = [getattr(kind, field).offset for _, field, kind in fields] + [*map(ctypes.sizeof, kinds.values())]
    assert len(kinds) == 10
    assert places == [*map(int, done.stdout.split())]


def test_the_harness_needs_nothing_but_the_standard_library(c_port: CPort) -> None:
    """It is started for every program that is shortened, so it imports nothing that takes long."""
    code = (
        f"import runpy, sys; sys.argv = ['', {c_port('port')!r}]\n"
        f"try: runpy.run_path({str(HARNESS)!r}, run_name='__main__')\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded <= set(sys.stdlib_module_names) | {"__main__", "harness"}


# --- answers


def test_a_push_is_deferred_until_somebody_waits(c_port: CPort) -> None:
    for level, at_once in (("L3", "07"), ("L4", "cd")):
        port = Session(c_port("port"), level)
        port.ask("new", memory=1, size=1)
        port.call("mutable_cpu_data")
        port.ask("write_view", memory=1, side="cpu", bytes="07")
        assert port.call("async_gpu_push", stream=4)["gpu"] == at_once
        assert port.ask("synchronize") == {}
        assert port.ask("state", memory=1)["gpu"] == "07"


def test_less_is_shown_at_lower_levels(c_port: CPort) -> None:
    shown: list[set[str]] = []
    for level in ("L0", "L1", "L2"):
        port = Session(c_port("port"), level)
        port.ask("new", memory=1, size=1)
        blob = of_blobs(c_port("blob"), 2, level=level).blob("cpu_data")
        shown.append({"view", "cpu", "data_cpu", "actions", "head"} & {*port.call("cpu_data"), *blob})
    assert shown == [{"head"}, {"head", "view", "cpu", "data_cpu"}, {"head", "view", "cpu", "data_cpu", "actions"}]


@pytest.mark.parametrize(("call", "partial", "shown"), [(1, False, ""), (2, True, "0000cd"), (2, False, "cdcdcd")])
def test_an_action_fails_when_it_is_told_to(call: int, partial: bool, shown: str, c_port: CPort) -> None:
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=4)
    answer = port.call("gpu_data", fail=call, partial=partial)
    assert answer["refused"] == "an action failed"
    assert [bool(action.get("failed")) for action in answer["actions"]] == [False] * (call - 1) + [True]
    assert (answer.get("gpu") or "")[:6] == shown
    assert "refused" not in port.call("gpu_data")
    assert of_blobs(c_port("blob"), 2).blob("gpu_data", fail=3)["actions"][-1] == {
        "action": "allocate_gpu", "size": 8, "pinned": False, "failed": True
    }  # fmt: skip


def test_what_is_not_there_is_refused(c_port: CPort) -> None:
    port = Session(c_port("port"))
    for op in ("state", "write_view", "own_buffer", "drop", "cpu_data"):
        fields = {"mode": "CPU"} if op == "cpu_data" else {"side": "cpu", "bytes": "00", "buffer": "x"}
        assert port.ask(op, memory=9, **fields)["refused"] == "there is no such memory"
    port.ask("new", memory=1, size=1)
    unseen = port.ask("write_view", memory=1, side="cpu", bytes="00")
    assert unseen["refused"] == "no call has returned a view to write through"
    assert port.library.answer({"id": 1, "op": "dance"}) == {"id": 1, "refused": "there is no request 'dance'"}
    other = port.ask("hello", version=1, level="L0", edition="early")
    assert other == {"refused": "C is of edition caffe, not early"}
    new: dict[str, Any] = {"op": "new_blob", "blob": 1, "mode": "CPU", "shape": [-1]}
    assert port.ask(**new, type="int32")["refused"] == "C has no blobs"
    blobs = Session(c_port("blob"))
    assert blobs.ask(**new, type="float64")["refused"] == "refused"
    assert blobs.ask(**new, type="float32")["refused"] == "a negative extent"


def test_no_bytes_need_no_view(c_port: CPort) -> None:
    """A memory of zero bytes may have no address."""
    port = Session(c_port("port"))
    port.ask("new", memory=1, size=0)
    assert port.call("gpu_data")["view"] == ""
    assert port.ask("write_view", memory=1, side="cpu", bytes="")["head"] == "HEAD_AT_GPU"


# --- the memory that is lent


class Lent:
    """The functions that a library gets, called as a library calls them."""

    def __init__(self) -> None:
        self.heap = Heap()
        self.table: Any = self.heap.table

    def allocate(self, kind: int, size: int) -> int:
        pointer = c_void_p()
        assert self.table.allocate(None, kind, size, byref(pointer)) == 0
        self.heap.actions.clear()
        return pointer.value or 0


def test_copies_have_the_names_of_their_directions_and_are_cut() -> None:
    lent = Lent()
    host, other, device, second = (lent.allocate(kind, 4) for kind in (HOST, PINNED, DEVICE, DEVICE))
    for to, start in ((device, host), (host, device), (other, host), (second, device)):
        lent.table.copy(None, to, start, 4)
        lent.table.copy_async(None, to, start, 4, None)
    up, down = ["copy_to_gpu", "copy_to_gpu_async"], ["copy_to_cpu", "copy_to_cpu"]
    names = [action["action"] for action in lent.heap.actions]
    assert names == [*up, *down, "copy_cpu", "copy_cpu", "copy_gpu", "copy_gpu"]
    lent.table.zero(None, host, 99)
    lent.heap.write("gpu", device, b"\xcd" * 4)
    assert lent.table.copy(None, device + 1, host, 99) == 0
    assert lent.heap.actions[-1] == {"action": "copy_to_gpu", "size": 99}
    assert lent.heap.read("gpu", device, 99) == b"\xcd\0\0\0"
    assert lent.heap.misdeed([host, device]) == ""


def test_wrong_frees_are_errors_and_shown() -> None:
    lent = Lent()
    block = lent.allocate(HOST, 1)
    lent.heap.buffer("mine", "cpu", b"a")
    buffer = lent.heap.buffers["mine"].address
    frees = ((PINNED, block), (DEVICE, block), (HOST, None), (HOST, buffer), (HOST, block), (HOST, block))
    assert [lent.table.deallocate(None, *free) for free in frees] == [1, 1, 1, 1, 0, 1]
    assert lent.heap.actions == [
        {"action": "free_cpu", "pinned": True, "block": 1},
        {"action": "free_gpu", "pinned": False, "block": 1},
        {"action": "free_cpu", "pinned": False, "block": None},
        {"action": "free_cpu", "pinned": False, "buffer": "mine"},
        {"action": "free_cpu", "pinned": False, "block": 1},
        {"action": "free_cpu", "pinned": False, "block": None},
    ]
    assert lent.heap.read("cpu", buffer, 1) == b"a"
    assert lent.table.allocate(None, HOST, 1 << 60, byref(c_void_p())) != 0
    assert lent.heap.actions[-1]["failed"]


@pytest.mark.parametrize("freed", ["source", "destination"])
def test_a_queued_copy_of_a_freed_block_is_forgotten(freed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages may belong to another block when somebody waits."""
    monkeypatch.setattr(heap, "_QUARANTINE", 0)
    lent = Lent()
    host, device = lent.allocate(HOST, 4097), lent.allocate(DEVICE, 4097)
    lent.heap.defers = True
    lent.table.copy_async(None, device + 1, host + 1, 4096, 5)
    lent.table.deallocate(None, *((HOST, host) if freed == "source" else (DEVICE, device)))
    others = [lent.allocate(kind, 4097) for kind in (HOST, DEVICE) for _ in range(4)]
    assert lent.table.synchronize(None, 5) == 0
    assert {lent.heap.read("gpu", other, 4097) for other in others} == {b"\xcd" * 4097}


def test_each_stream_is_a_queue() -> None:
    lent = Lent()
    host, device = lent.allocate(HOST, 1), lent.allocate(DEVICE, 1)
    lent.heap.defers = True
    for stream in (None, 5):
        lent.heap.write("cpu", host, b"x")
        lent.heap.write("gpu", device, b"-")
        lent.table.copy_async(None, device, host, 1, stream)
        for waited, shown in ((6, b"-"), (stream, b"x")):
            assert lent.table.synchronize(None, waited) == 0
            assert lent.heap.actions[-1] == {"action": "wait", "stream": waited or 0}
            assert lent.heap.read("gpu", device, 1) == shown


def test_device_memory_is_guarded_only_from_a_library_whose_actions_are_seen() -> None:
    """The device of another may be memory of the host, which it reads and writes by itself."""
    unguarded = Heap(guards=False)
    unguarded.buffer("mine", "gpu", b"abc")
    address = unguarded.buffers["mine"].address
    ctypes.memmove(address, b"d", 1)
    assert unguarded.read("gpu", address, 3) == b"dbc"
    assert unguarded.misdeed([address]) == ""
    ctypes.memmove(address + 3, b"d", 1)
    assert unguarded.misdeed([address]) == "the port wrote after the end of the buffer mine of 3 bytes"


# --- libraries that are none, and libraries that do what no port may do


@pytest.mark.parametrize(
    ("name", "mistake", "sentence"),
    [
        ("rude", 1, "it was built with version 1 of syncedmem_port.h, and this is version 2"),
        ("rude", 2, "'level': 'L5' is not one of L0, L1, L2, L3, L4"),
        ("rude", 3, "its memories have 3 sides, not 2"),
        ("rude", 4, "the field name of its table is NULL"),
        ("rude", 5, "'edition': 'late' is not one of caffe, early, cpu_only"),
        ("rude", 6, "it has allocators of its own, so its level is at most 1, not 4"),
        ("rude", 7, "the field call of its table is NULL"),
        ("rude", 12, "does not say hello: hello: the program was ended by SIGABRT"),
        ("rude", 13, "syncedmem_port returned NULL"),
        ("blob", 1, "its blobs have version 7, and this is version 1"),
        ("blob", 2, "the field call of its table of blobs is NULL"),
        ("blob", 3, "syncedmem_blobs returned NULL"),
    ],
)
def test_a_wrong_table_is_one_line(name: str, mistake: int, sentence: str, c_port: CPort) -> None:
    path = c_port(name, mistake)
    with pytest.raises(PortError) as raised:
        library_target(path).connect(LIMITS, "")
    assert str(raised.value).startswith((f"{path}: ", f"{path} does not say hello"))
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_port_is_one_line(tmp_path: Path) -> None:
    import _ctypes

    (tmp_path / "text.so").write_text("text, and more text, and more\n" * 9, encoding="utf-8")
    for path, sentence in (
        (str(tmp_path / "text.so"), r"^.*text\.so cannot be loaded: [^/\n]+$"),
        (str(tmp_path / "none.so"), r"^there is no file .*none\.so$"),
        (_ctypes.__file__, r" exports no function syncedmem_port: see syncedmem_port\.h$"),
    ):
        with pytest.raises(LibraryError, match=sentence):
            load(path)
        with pytest.raises(PortError, match=sentence):
            library_target(path).connect(LIMITS, "")
    done = subprocess.run([sys.executable, str(HARNESS)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "give one shared library: harness ./libport.so\n")


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (9, {"refused": "an action failed"}),
        (10, {"refused": "not on Mondays: \u00e4"}),
        (11, {"view": None, "head": "9"}),
    ],
)
def test_what_a_library_answers_is_passed_on(mistake: int, answer: Any, c_port: CPort) -> None:
    port = Library(c_port("rude", mistake))
    port.answer({"id": 1, "op": "hello", "version": 1, "level": "L1"})
    requests = [{"op": "new", "memory": 1, "size": 8}, {"op": "cpu_data", "memory": 1, "mode": "GPU"}]
    answers = [port.answer({"id": 2, **request}) for request in requests[: 1 if mistake == 9 else 2]]
    assert answers[-1].items() >= answer.items()


def served(path: str, *requests: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the harness as a program, with some requests."""
    lines = "".join(json.dumps({"id": number, **request}) + "\n" for number, request in enumerate(requests, 1))
    return subprocess.run(
        [sys.executable, str(HARNESS), path], input=lines, capture_output=True, text=True, check=False
    )


HELLO = {"op": "hello", "version": 1, "level": "L4"}
READS = ({"op": "cpu_data", "memory": 1, "mode": "CPU"}, {"op": "gpu_data", "memory": 1, "mode": "CPU"})
MINE = {"op": "buffer", "buffer": "mine", "side": "cpu", "bytes": "01"}
ADOPT = {"op": "set_cpu_data", "memory": 1, "mode": "CPU", "buffer": "mine"}


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
        (8, -11, "the port touched byte 0 of a freed host block of 8 bytes"),
    ],
)
def test_what_no_port_may_do_is_seen(size: int, status: int, last: str, c_port: CPort) -> None:
    """A port that touches device, freed or far away memory crashes; beside a block it is told what it did."""
    last_requests = (READS[0], MINE, ADOPT) if size == 8 else READS
    done = served(c_port("rude"), HELLO, {"op": "new", "memory": 1, "size": size}, *last_requests)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr.strip()) == (status, last)
    assert [answer["id"] for answer in answers] == [*range(1, 3 + len(last_requests) - (status != 0))]
    assert (answers[-1].get("refused") == "refused") is (size == 6)


def test_a_blob_may_not_write_beside_its_memory(c_port: CPort) -> None:
    port = of_blobs(c_port("blob"), 2, 1, 1)
    port.blob("mutable_cpu_data")
    with pytest.raises(LibraryError, match="in update the port wrote after the end of a block of 8 bytes"):
        port.blob("update")
    with pytest.raises(LibraryError, match="call returned 7"):
        port.blob("shrink_to_fit")


# --- the kit


def verdict(path: str, **wanted: Any) -> PortReport:
    """Return the report on a library."""
    return conform_program(library_target(path), Claim("caffe", **wanted), LIMITS)


def test_a_port_with_a_device_of_its_own_conforms_at_level_1(c_port: CPort) -> None:
    report = verdict(c_port("own"))
    assert report.reached is not None
    assert (report.reached.level, report.violations) == ("L1", [])


def test_the_kit_names_its_own_block_and_drops_a_memory(c_port: CPort) -> None:
    own = Step("call", 0, "set_cpu_data", Buffer(OWN, "cpu"))
    with library_target(c_port("port")).connect(LIMITS, "") as port:
        bench = bench_of(subject_of(port, "C", "safe", "L4"))
        begun = (Step("new", size=5), Step("call", 0, "cpu_data"))
        run_case(bench, (*begun, Step("drop")))

        assert {"own_buffer", "drop", "streams"} == port.offers
        assert "drop" == json.loads(bench.performer.program()[-1])["op"]
        with pytest.raises(Violation, match="R35-own-buffer-refused"):  # it is Caffe's form, and refuses nothing
            run_case(bench, (*begun, own))
        asked = [json.loads(line)["op"] for line in bench.performer.program()]
        assert ["own_buffer", "set_cpu_data"] == asked[-2:]


@pytest.mark.parametrize("profile", ["caffe", "safe"])
def test_a_port_frees_what_a_dropped_memory_owns(profile: Profile, c_port: CPort) -> None:
    """In the profile safe also with a push in flight, which this port does not wait for."""
    with library_target(c_port("port")).connect(LIMITS, "") as port:
        subject = subject_of(port, "C", profile, "L4")
        bench, cases = bench_of(subject), [*suites_of(subject)["dropped"]()]
        if profile == "caffe":
            assert len([run_case(bench, case) for case in cases]) > 17
        else:
            with pytest.raises(Violation, match="a push still used it"):
                [run_case(bench, case) for case in cases]
