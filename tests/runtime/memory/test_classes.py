"""Classes: what owns memory is neither copied nor pickled."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from adaptors import MAKERS

from syncedmem import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    LimitingAllocator,
    NotCopyableError,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
)
from syncedmem.model import NoDeviceError
from syncedmem.runtime import DeviceAllocator, named_device

if TYPE_CHECKING:
    from collections.abc import Callable

DUPLICATES: dict[str, Callable[[Any], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {number}": partial(pickle.dumps, protocol=number) for number in range(pickle.HIGHEST_PROTOCOL + 1)},
}


class Theirs(CPUDeviceAllocator):
    """A class of somebody else, which does not define how it is copied."""


def on(name: str) -> DeviceAllocator:
    try:
        return named_device(name)
    except NoDeviceError as error:
        pytest.skip(str(error))


def device_array() -> Any:
    memory = SyncedMemory(16, device=SimulatedDeviceAllocator())
    return memory.mutable_gpu_data()


OWNERS: dict[str, Callable[[], Any]] = {
    **{name: partial(make, CPUDeviceAllocator()) for name, make in MAKERS.items()},
    "cpu": CPUDeviceAllocator,
    "simulated": SimulatedDeviceAllocator,
    "pinned": lambda: SimulatedDeviceAllocator().pinned_host(),
    "opencl": lambda: on("opencl"),
    "cuda": lambda: on("cuda"),
    "somebody's": Theirs,
    "memory": lambda: SyncedMemory(16, device=None),
    "memory on a device": lambda: SyncedMemory(16, device=SimulatedDeviceAllocator()),
    "buffer": lambda: Buffer(16, CPUDeviceAllocator()),
    "device array": device_array,
}


@pytest.mark.parametrize("duplicate", DUPLICATES)
@pytest.mark.parametrize("name", OWNERS)
def test_what_owns_memory_is_not_duplicated(name: str, duplicate: str) -> None:
    owner = OWNERS[name]()
    with pytest.raises(TypeError, match=f"^an? {type(owner).__name__} owns memory and cannot be copied or") as caught:
        DUPLICATES[duplicate](owner)

    assert isinstance(caught.value, NotCopyableError)
    assert type(owner).__name__ == caught.value.kind


@pytest.mark.parametrize("duplicate", DUPLICATES)
@pytest.mark.parametrize("kind", ["SimulatedStream", "SimulatedEvent"])
def test_what_orders_work_is_not_duplicated(kind: str, duplicate: str) -> None:
    """A copy of a stream would have a queue of its own, in which nothing happens."""
    device = SimulatedDeviceAllocator()
    stream = device.stream()
    found = {type(item).__name__: item for item in (stream, device.record(stream))}[kind]
    with pytest.raises(
        NotCopyableError, match=f"^a {kind} (owns queued work|is a point in a stream) and cannot be copied"
    ):
        DUPLICATES[duplicate](found)

    assert stream.done


def test_what_users_copy_is_copied() -> None:
    """Blobs, and arrays over memory, define themselves what a copy of them is."""
    memory = SyncedMemory(8, device=None)
    memory.mutable_cpu_data()[:] = 7
    blob = Blob((2,), device=None)
    blob.data = [1, 2]

    pickled = pickle.loads(pickle.dumps(memory.cpu_data()))  # noqa: S301 -- our own

    assert [7] * 8 == copy.deepcopy(memory.cpu_data()).tolist() == pickled.tolist()
    assert np.array_equal(blob.data, copy.deepcopy(blob).data)


ARGUMENTS: dict[type[Any], tuple[Any, ...]] = {
    Blob: ((2, 3),),
    Buffer: (),
    LimitingAllocator: (CPUDeviceAllocator(), 100),
    PoolAllocator: (CPUDeviceAllocator(),),
    SyncedMemory: (8,),
}


@pytest.mark.parametrize("base", ARGUMENTS)
def test_who_calls_it_may_do_so_at_any_time(base: type[Any]) -> None:
    class Mine(base):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            self.earlier = arguments
            super().__init__(*arguments)  # pyright: ignore[reportUnknownMemberType] -- the base is a parameter

    class Deeper(Mine):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.later = True

    made = Deeper(*ARGUMENTS[base])
    assert (made.earlier, made.later) == (ARGUMENTS[base], True)
