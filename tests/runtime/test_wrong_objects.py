"""Whatever object a public call is given, it works or raises an error of the family, and then nothing has changed."""

from __future__ import annotations

import inspect
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pytest
from subjects import devices

from syncedmem.model import (
    BufferMismatchError,
    FileFormatError,
    InvalidArgumentError,
    InvalidShapeError,
    SyncedMemoryError,
)
from syncedmem.runtime import (
    Adaptor,
    Blob,
    Buffer,
    CPUDeviceAllocator,
    DeviceType,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    MemcpyKind,
    PoolAllocator,
    SimulatedDeviceAllocator,
    StatisticsAllocator,
    SyncedMemory,
    ThreadSafeAllocator,
    TrackingAllocator,
    load_npy,
)
from syncedmem.runtime.blobs.contents import BlobContents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SIZE = 8
DEVICE = SimulatedDeviceAllocator()


def wrong_objects() -> dict[str, Any]:
    """Return objects that most arguments cannot be, new ones each time."""
    return {
        "None": None,
        "object()": object(),
        "3": 3,
        "'x'": "x",
        "b'x'": b"x",
        "[]": [],
        "an array": np.zeros(SIZE - 3, np.uint8),
        "an array of a device": DEVICE.empty(SIZE - 3),
        "a memory": SyncedMemory(SIZE, device=DEVICE),
        "a blob": Blob((2,), device=DEVICE),
        "a buffer": Buffer(SIZE),
    }


class Case(NamedTuple):
    """An object whose calls are tried: how it is made, arguments that fit its calls, and what must not change."""

    make: Callable[[], Any]
    fitting: Callable[[Any, str], dict[str, Any]]
    seen: Callable[[Any, dict[str, Any]], object]


# --- the objects


def of_allocator(allocator: Any, call: str) -> dict[str, Any]:
    """Return arguments for the calls of an allocator; the blocks `ptr` and `src` are lent."""
    if call == "__init__":
        upstream = SimulatedDeviceAllocator()
        return {"upstream": upstream, "limit": SIZE, "operation": "allocate", "ordinal": 0, "pool": False}
    on_host, stream = allocator.device_type == DeviceType.CPU, allocator.stream()
    ptr, src = allocator.allocate(SIZE), allocator.allocate(SIZE)
    for block in (ptr, src):
        allocator.memset_zero(block, SIZE)
    kind = MemcpyKind.CPU2CPU if on_host else MemcpyKind.CUDA2CUDA
    places = {"ptr": ptr, "src": src, "dest": ptr, "first": ptr, "second": src, "buffer": allocator.empty(SIZE)}
    order = {"kind": kind, "stream": stream, "need_sync": False, "event": allocator.record(stream)}
    return places | order | {"byte_size": SIZE, "k": 0, "operation": "allocate", "keep_bytes": 0}


def blocks_of(allocator: Any, given: dict[str, Any]) -> object:
    blocks: list[Any] = [given[name] for name in ("ptr", "src") if name in given]
    contents = [block.get() if hasattr(block, "get") else block for block in blocks]
    return getattr(allocator, "live_blocks", None), [content.tolist() for content in contents]


def of_memory(_: Any, call: str) -> dict[str, Any]:
    data = np.zeros(SIZE, np.uint8) if "cpu" in call else DEVICE.empty(SIZE)
    return {"size": SIZE, "data": data, "stream": DEVICE.stream(), "device": DEVICE}


def written_memory() -> SyncedMemory:
    memory = SyncedMemory(SIZE, device=DEVICE)
    memory.mutable_cpu_data()[:] = 1
    return memory


def state_of(memory: SyncedMemory, _: Any = None) -> object:
    return memory.closed or (memory.head, memory.own_cpu_data, memory.own_gpu_data)


def of_blob(blob: Any, call: str) -> dict[str, Any]:
    part = np.zeros(6, np.float32) if "cpu" in call else DEVICE.empty(24)
    arrays = {"data": part, "diff": part, "array": np.zeros(6, np.float32), "dtype": np.float32, "device": DEVICE}
    places = {"shape": (2, 3), "indices": (0, 0), "axis": 0, "start": 0, "end": 1, "index": 0, "factor": 2.0}
    others = {"other": written_blob(), "source": written_blob(), "contents": load_npy("blob.npy"), "path": "blob.npy"}
    return arrays | places | others | {"proto": None if call == "to_proto" else blob.to_proto()}


def written_blob() -> Blob[Any]:
    blob: Blob[Any] = Blob((2, 3), device=DEVICE)
    blob.data = blob.diff = np.ones((2, 3), np.float32)
    return blob


def parts_of(blob: Blob[Any], _: Any) -> object:
    memories = blob.data_memory, blob.diff_memory
    return blob.shape, blob.capacity, memories, [state_of(memory) for memory in memories]


def of_buffer(_: Any, call: str) -> dict[str, Any]:
    allocator = None if call == "from_external" else DEVICE
    return {"byte_size": SIZE, "allocator": allocator, "source": Buffer(SIZE, DEVICE), "memory": bytearray(SIZE)}


def allocators() -> dict[str, Callable[[], Any]]:
    """Return how each allocator and each adaptor is made."""
    found: dict[str, Callable[[], Any]] = {"cpu": CPUDeviceAllocator, "simulated": SimulatedDeviceAllocator}
    found["pinned"] = lambda: SimulatedDeviceAllocator().pinned_host()
    for device in devices()[1:]:
        found |= {device.name: partial(same, device), f"{device.name}, pinned": device.pinned_host}
    found["LimitingAllocator"] = lambda: LimitingAllocator(SimulatedDeviceAllocator(), 1 << 20)
    kinds: list[Any] = [Adaptor, TrackingAllocator, StatisticsAllocator, FailingAllocator, GuardingAllocator]
    for kind in (*kinds, ThreadSafeAllocator, PoolAllocator):
        found[kind.__name__] = partial(over, kind, SimulatedDeviceAllocator)
        found[f"{kind.__name__}, host"] = partial(over, kind, CPUDeviceAllocator)
    return found


def same(device: Any) -> Any:
    return device


def over(kind: Any, upstream: Any) -> Any:
    return kind(upstream())


def shape_of(buffer: Any, _: Any) -> object:
    return id(buffer.ptr), buffer.byte_size, buffer.is_external


CASES: dict[str, Case] = {name: Case(make, of_allocator, blocks_of) for name, make in allocators().items()} | {
    "SyncedMemory": Case(written_memory, of_memory, state_of),
    "Blob": Case(written_blob, of_blob, parts_of),
    "Buffer": Case(partial(Buffer, SIZE, DEVICE), of_buffer, shape_of),
}


# --- their calls

VALUE = inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY)


def public_calls(kind: Any) -> Iterator[tuple[str, list[inspect.Parameter]]]:
    """The public calls of a class with their parameters: the class itself, its methods, and the properties to set."""
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        if isinstance(static, property) and static.fset:
            yield name, [VALUE]
        elif not name.startswith("_") and callable(getattr(kind, name)):
            # What an adaptor passes on as it is has the parameters of the base class.
            passed_on = issubclass(kind, Adaptor) and name in ("memcpy", "memset_zero")
            of_call = inspect.signature(getattr(Adaptor if passed_on else kind, name)).parameters.values()
            yield name, [item for item in of_call if item.name != "self"]
    if "Pinned" not in kind.__name__:  # these are made by their devices
        yield "__init__", [*inspect.signature(kind).parameters.values()]


def perform(owner: Any, call: str, parameters: list[inspect.Parameter], given: dict[str, Any]) -> None:
    """Make a call, and use its result as it is meant."""
    if parameters == [VALUE]:
        setattr(owner, call, given["value"])
        return
    places: list[Any] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            places += given[parameter.name] if isinstance(given[parameter.name], tuple) else [given[parameter.name]]
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            places.append(given.get(parameter.name, parameter.default))
    names = {
        parameter.name: given[parameter.name]
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name in given
    }
    use_result(owner, call, getattr(owner, "__class__" if call == "__init__" else call)(*places, **names))


def use_result(owner: Any, call: str, result: Any) -> None:
    """Give back what was allocated, make a view, enter a ``with`` block."""
    if result is None:
        return
    if call == "allocate" and not isinstance(owner, Buffer):
        owner.release(result)
    elif call == "viewer":
        result()
    elif call in {"on", "scope", "using"}:
        with result:
            pass


def attempt(  # noqa: PLR0913 -- whose call, which, and with what
    case: Case, call: str, parameters: list[inspect.Parameter], name: str, wrong: Any, *, taken: bool | None = None
) -> str:
    """Make a call with one wrong argument, which must be `taken` or not; returns what is wrong with the answer."""
    owner = case.make()
    fitting = case.fitting(owner, call)
    before = case.seen(owner, fitting)
    try:
        perform(owner, call, parameters, fitting | {name: wrong})
    except SyncedMemoryError:
        fault = "" if before == case.seen(owner, fitting) and not taken else "refused, or something has changed"
    except Exception as error:  # noqa: BLE001 -- all that it must not be
        fault = repr(error)
    else:
        fault = "taken" if taken is False else ""
    for block in (fitting.get("ptr"), fitting.get("src")):
        with suppress(SyncedMemoryError, AttributeError):
            owner.release(block)
    return fault


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file that can be read, in a folder where anything may be written."""
    monkeypatch.chdir(tmp_path)
    written_blob().save("blob.npy")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_object_is_refused_by_name(name: str) -> None:
    """Every argument of every public call is tried with each object, while the other arguments fit."""
    case, tried = CASES[name], 0
    faults: list[str] = []
    for call, parameters in public_calls(type(case.make())):
        for parameter in parameters:
            for said, wrong in wrong_objects().items():
                tried += 1
                if fault := attempt(case, call, parameters, parameter.name, wrong):
                    faults.append(f"{call}({parameter.name}={said}): {fault}")

    assert not faults
    assert tried


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("name", CASES)
def test_a_flag_is_true_or_false(name: str) -> None:
    """On the host too, where nothing is waited for, so that ``need_sync`` makes no difference."""
    case = CASES[name]
    faults: list[str] = []
    for call, parameters in public_calls(type(case.make())):
        for parameter in (parameter for parameter in parameters if isinstance(parameter.default, bool)):
            right = np.bool_(parameter.default)
            values: list[Any] = [right, np.zeros(2), np.zeros(1), "yes", None, 2, []]
            faults += [
                f"{call}({parameter.name}={value!r}): {fault}"
                for value in values
                if (fault := attempt(case, call, parameters, parameter.name, value, taken=value is right))
            ]

    assert not faults


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        (BlobContents((2,), np.ma.array([1.0, 2.0], mask=True), None), InvalidArgumentError),
        (BlobContents((2,), np.array(["1", "2"]), None), InvalidArgumentError),
        (BlobContents((2,), np.zeros(2), cast("Any", [0, 0])), InvalidArgumentError),
        (BlobContents((2,), cast("Any", None), None), InvalidArgumentError),
        (BlobContents((3,), np.zeros(2), None), InvalidShapeError),
        (BlobContents((2,), np.zeros(2), np.zeros(3)), InvalidShapeError),
        (BlobContents(cast("Any", "2"), np.zeros(2), None), InvalidArgumentError),
        (BlobContents((-1,), np.zeros(2), None), FileFormatError),
    ],
)
def test_contents_whose_parts_do_not_fit_are_refused(contents: BlobContents, error: type[Exception]) -> None:
    with pytest.raises(error):
        Blob.from_contents(contents, device=None)


def test_an_allocator_says_why_it_adopts_nothing() -> None:
    """Its error is of the family too, and that of a memory names the memory's own call."""
    with pytest.raises(BufferMismatchError) as first:
        DEVICE.adopt(bytearray(SIZE), SIZE)
    with pytest.raises(BufferMismatchError) as second, SyncedMemory(SIZE, device=DEVICE) as memory:
        memory.set_gpu_data(cast("Any", bytearray(SIZE)))

    assert ("adopt", "set_gpu_data") == (first.value.call, second.value.call)
    assert first.value.reason == second.value.reason
