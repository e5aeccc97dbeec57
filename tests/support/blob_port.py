"""A port with blobs: ``python blob_port.py [NAME]`` speaks the protocol of ports with the reference blob of the kit.

NAME is a seeded bug of `mutants.blob`, one of `WAYS`, in which answers are wrong, ``caffe``, for a
blob with Caffe's limit of elements, or ``cpu_only``, for one without a device.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

sys.path.append(str(Path(__file__).parents[1]))

from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob, IntHandmadeBlob

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.model import Mode, SyncedHead, using_mode
from syncedmem.spec.blob.elements import shown
from syncedmem.spec.engine.call_log import TO_DEVICE, TO_HOST, CallLog, InjectedFailure, RecordingAllocator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Answer = dict[str, Any]
BLOCKS = count(1)
"""The numbers of blocks, on all sides."""
FRESH = {
    SyncedHead.UNINITIALIZED: (),
    SyncedHead.HEAD_AT_CPU: ("cpu",),
    SyncedHead.HEAD_AT_GPU: ("gpu",),
    SyncedHead.SYNCED: ("cpu", "gpu"),
}


class Noting(RecordingAllocator):
    """A recording allocator that also notes each call as an action of the protocol, with the numbers of blocks."""

    def __init__(self, inner: Any, log: CallLog, side: Any, notes: list[Answer], *, pinned: bool = False) -> None:
        super().__init__(inner, log, side, pinned=pinned)
        self._notes = notes
        self._about: Answer = {"pinned": True} if pinned else {}
        self._blocks: dict[int, int] = {}

    @contextmanager
    def _noted(self, action: str, **fields: Any) -> Generator[Answer]:
        """Note an action, which failed if the block raises."""
        note = {"action": action, **fields}
        self._notes.append(note)
        try:
            yield note
        except InjectedFailure:
            note["failed"] = True
            raise

    def allocate(self, byte_size: int) -> Any:
        with self._noted(f"allocate_{self._side}", size=byte_size, **self._about) as note:
            pointer = super().allocate(byte_size)
            note["block"] = self._blocks[id(pointer)] = next(BLOCKS)
        return pointer

    def release(self, ptr: Any) -> None:
        with self._noted(f"free_{self._side}", block=self._blocks.get(id(ptr)), **self._about):
            super().release(ptr)

    def memcpy(self, *arguments: Any, **_: Any) -> None:  # source, destination, size, kind, and more
        size, kind = arguments[2:4]
        across = kind in (TO_DEVICE, TO_HOST)
        side = "gpu" if kind == TO_DEVICE or (not across and self._side == "gpu") else "cpu"
        with self._noted(f"copy_to_{side}" if across else f"copy_{side}", size=size):
            super().memcpy(*arguments)

    def memset_zero(self, *arguments: Any, **_: Any) -> None:
        with self._noted(f"zero_{self._side}", size=arguments[1]):
            super().memset_zero(*arguments)

    def pinned_host(self) -> Noting:
        """The same allocator each time, because it knows its blocks."""
        return self._pinned_host

    @cached_property
    def _pinned_host(self) -> Noting:
        return Noting(self.inner.pinned_host(), self.log, "cpu", self._notes, pinned=True)


class BlobPort:
    """Answers the requests of the protocol with blobs of one class."""

    def __init__(self, make: Any, *, has_device: bool = True) -> None:
        self.make = make
        self.notes, self.log = list[Answer](), CallLog()
        self.host = Noting(CPUDeviceAllocator(), self.log, "cpu", self.notes)
        self.device = Noting(SimulatedDeviceAllocator(), self.log, "gpu", self.notes) if has_device else None
        self.blobs: dict[int, Any] = {}
        self.buffers: dict[str, Any] = {}
        self.views: dict[tuple[int, str, str], Any] = {}
        self.numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self.unused = count(1)

    def answer(self, request: Answer) -> Answer:
        """The answer to a request."""
        self.notes.clear()
        told = self.log.moves.armed(request.get("fail", 0), partial=request.get("partial", False))
        found: Answer
        try:
            with using_mode(Mode[request.get("mode", "GPU")]), told:
                found = getattr(self, f"on_{request['op']}")(request)
        except Exception as error:  # noqa: BLE001 -- whatever a wrong blob raises
            found = {"refused": f"{type(error).__name__}: {error}"}
            if request["op"] == "blob_call":
                found |= self.shown(request["blob"])
        if request["op"] in ("new_blob", "blob_call", "drop_blob"):
            found["actions"] = [*self.notes]
        return {"id": request["id"], **found}

    def on_hello(self, _: Answer) -> Answer:
        edition = "cpu_only" if self.device is None else "caffe"
        return {"version": 1, "name": self.make.__name__, "level": "L4", "edition": edition, "blobs": True}

    def on_new_blob(self, request: Answer) -> Answer:
        shape = () if request["shape"] is None else (request["shape"],)
        self.blobs[request["blob"]] = self.make(*shape, dtype=request["type"], host=self.host, device=self.device)
        return self.shown(request["blob"])

    def on_blob_state(self, request: Answer) -> Answer:
        return self.shown(request["blob"])

    def on_drop_blob(self, request: Answer) -> Answer:
        self.views = {key: view for key, view in self.views.items() if key[0] != request["blob"]}
        del self.blobs[request["blob"]]
        return {}

    def on_buffer(self, request: Answer) -> Answer:
        content = bytes.fromhex(request["bytes"])
        device = None if request["side"] == "cpu" or self.device is None else self.device.inner
        made: Any = bytearray(len(content)) if device is None else device.empty(len(content))
        self.buffers[request["buffer"]] = made
        return self.on_write_buffer(request)

    def on_write_buffer(self, request: Answer) -> Answer:
        overwrite(self.buffers[request["buffer"]], bytes.fromhex(request["bytes"]))
        return {}

    def on_write_blob(self, request: Answer) -> Answer:
        place = request["blob"], request["part"], request["side"]
        overwrite(self.views[place], bytes.fromhex(request["bytes"]))
        return self.shown(request["blob"])

    def on_blob_call(self, request: Answer) -> Answer:
        found: Any = getattr(self.blobs[request["blob"]], request["call"])
        value = found(*self.arguments(request)) if callable(found) else found
        answer = self.result(request, value)
        return answer | self.shown(request["blob"])

    def arguments(self, request: Answer) -> list[Any]:
        """The arguments of a call."""
        if "buffer" in request:
            return [None if request["buffer"] is None else self.buffers[request["buffer"]]]
        if "other" in request:
            options = [request[name] for name in ("copy_diff", "reshape") if name in request]
            return [self.blobs[request["other"]], *options]
        if "factor" in request:
            return [float(request["factor"])]
        numbers = request.get("numbers", [])
        return [numbers] if request.get("sequence") else numbers

    def result(self, request: Answer, value: Any) -> Answer:
        """What a call returned: nothing, a number, a text, or a view."""
        if isinstance(value, int | str):
            return {"value": value}
        if isinstance(value, float):
            return {"value": value if math.isfinite(value) else str(value)}
        if value is None:
            return {}
        name = request["call"]
        side, part = ("cpu" if "cpu" in name else "gpu"), name.rpartition("_")[2]
        self.views[request["blob"], part, side] = value
        return {"view": shown(value).hex()}

    def shown(self, number: int) -> Answer:
        """What is seen of a blob."""
        if number not in self.blobs:
            return {}
        blob = self.blobs[number]
        found = {"shape": [*blob.shape], "count": blob.count, "capacity": blob.capacity}
        for part in ("data", "diff"):
            memory = getattr(blob, f"{part}_memory")
            found |= {part: self.number(memory), f"{part}_head": memory.head.name, f"{part}_size": memory.size}
            for side in FRESH[memory.head]:
                found[f"{part}_{side}"] = shown(getattr(memory, f"{side}_data")()).hex()
        return found

    def number(self, memory: Any) -> int:
        if memory not in self.numbers:
            self.numbers[memory] = next(self.unused)
        return self.numbers[memory]


def overwrite(view: Any, content: bytes) -> None:
    """Overwrite the first bytes of a view, on either side."""
    there = view.get() if hasattr(view, "get") else view
    memoryview(there).cast("B")[: len(content)] = content
    if there is not view:
        view.set(there)


def no_block(answer: Answer) -> None:
    for action in answer.get("actions", ()):
        action.pop("block", None)


def no_size(answer: Answer) -> None:
    for action in answer.get("actions", ()):
        action.pop("size", None)


def without(*names: str) -> Callable[[Answer], None]:
    def changed(answer: Answer) -> None:
        for name in names:
            answer.pop(name, None)

    return changed


def no_failure(answer: Answer) -> None:
    for action in answer.get("actions", ()):
        action.pop("failed", None)


def freeing(**fields: object) -> Callable[[Answer], None]:
    """Another free in each answer that has actions."""
    return lambda answer: answer["actions"].append({"action": "free_cpu", **fields}) if "value" in answer else None


def talkative(answer: Answer) -> None:
    if "actions" in answer:
        answer["actions"] += ["adopt_cpu", {"action": "wait"}]


WAYS: dict[str, Callable[[Answer], None]] = {
    "no block": no_block,
    "no size": no_size,
    "no shape": without("shape"),
    "no value": without("value"),
    "no view": without("view"),
    "no capacity": without("capacity"),
    "no side": without("data_cpu", "data_gpu"),
    "no failure": no_failure,
    "stray free": freeing(block=None),
    "buffer freed": freeing(buffer="host1"),
    "talkative": talkative,
}


def main(name: str = "") -> None:
    """Answer the requests of standard input."""
    made = BLOB_BUGS[name].make if name in BLOB_BUGS else IntHandmadeBlob if name == "caffe" else HandmadeBlob
    port = BlobPort(made, has_device=name != "cpu_only")
    for line in sys.stdin:
        answer = port.answer(json.loads(line))
        if name in WAYS:
            WAYS[name](answer)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
