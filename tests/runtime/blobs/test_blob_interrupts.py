"""Interrupts of a blob: at every point its shape and its memories belong together, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interruption import INTERRUPTS, acquired_elsewhere, interrupt_everywhere, interrupt_with_signals

from syncedmem.runtime import Blob, CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.runtime.devices.simulated.block import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    Require = Callable[..., None]


class Shelf:
    """Two blobs on a host and a device that nobody else uses."""

    def __init__(self, *before: Callable[[Shelf], object]) -> None:
        self.host, self.device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
        self.array = np.full(6, 3, np.float32)
        self.blobs: list[Any] = [self.new(), self.new()]
        for step in before:
            step(self)

    def new(self) -> Any:
        return Blob((2, 3), host=self.host, pinned=self.device.pinned_host(), device=self.device)

    @property
    def blob(self) -> Any:
        return self.blobs[0]

    @property
    def other(self) -> Any:
        return self.blobs[1]

    @property
    def memories(self) -> list[Any]:
        """The memories of all blobs, each once."""
        return list({id(it): it for blob in self.blobs for it in (blob.data_memory, blob.diff_memory)}.values())

    @property
    def live_blocks(self) -> int:
        return self.host.live_blocks + self.device.pinned_host().live_blocks + self.device.live_blocks


def written(shelf: Shelf) -> None:
    for value, blob in enumerate(shelf.blobs):
        blob.data = np.arange(6, dtype=np.float32).reshape(2, 3) + value
        blob.diff = 2


def on_device(shelf: Shelf) -> None:
    written(shelf)
    for blob in shelf.blobs:
        blob.mutable_gpu_data()
        blob.gpu_diff()


def subtract_in_place(shelf: Shelf) -> None:
    shelf.blob.data -= 1


def assign_item(shelf: Shelf) -> None:
    shelf.blob.data[1] = 9


def from_array(shelf: Shelf) -> None:
    pinned = shelf.device.pinned_host()
    shelf.blobs[0] = Blob.from_array(shelf.array.reshape(2, 3), host=shelf.host, pinned=pinned, device=shelf.device)


def close(shelf: Shelf) -> None:
    for memory in shelf.memories:
        memory.close()


WAYS: dict[str, tuple[Callable[[Shelf], object], ...]] = {
    "reshape to more": (written, lambda shelf: shelf.blob.reshape(4, 3)),
    "reshape to less": (written, lambda shelf: shelf.blob.reshape(2)),
    "shrink": (written, lambda shelf: shelf.blob.reshape(2), lambda shelf: shelf.blob.shrink_to_fit()),
    "share the data": (written, lambda shelf: shelf.blob.share_data(shelf.other)),
    "copy": (written, lambda shelf: shelf.blob.copy_from(shelf.other)),
    "copy to another shape": (
        written,
        lambda shelf: shelf.other.reshape(5, 5).mutable_cpu_data().fill(4),
        lambda shelf: shelf.blob.copy_from(shelf.other, reshape=True),
    ),
    "update": (written, lambda shelf: shelf.blob.update()),
    "sum": (written, lambda shelf: shelf.blob.asum_data()),
    "scale": (written, lambda shelf: shelf.blob.scale_diff(2)),
    "adopt": (written, lambda shelf: shelf.blob.set_cpu_data(shelf.array)),
    "adopt an array": (from_array,),
    "read": (on_device, lambda shelf: shelf.blob.data),
    "read on the device": (written, lambda shelf: shelf.blob.gpu_data()),
    "subtract in place": (written, subtract_in_place),
    "assign to an item": (written, assign_item),
    "the shape on the device": (written, lambda shelf: shelf.blob.gpu_shape()),
    "close": (on_device, close),
}
LONG = {
    "copy",
    "copy to another shape",
    "shrink",
    "read on the device",
    "the shape on the device",
    "close",
    "update",
    "sum",
}
"""They consist of calls of memories, which are tried at every point elsewhere; here it is one point in four."""

CASES = [(way, error) for way in WAYS for error in (INTERRUPTS if way in ("copy", "adopt") else INTERRUPTS[:1])]


def seen(blob: Any) -> Any:
    """The shape, and the numbers on their fresh sides."""
    numbers: list[Any] = []
    for memory in (blob.data_memory, blob.diff_memory):
        sides = [] if memory.closed else [memory._cpu, memory._gpu]
        heads = () if memory.closed else ((1, 3), (2, 3))
        fresh = [side for side, head in zip(sides, heads, strict=True) if memory.head in head]
        shown: list[Any] = [side if isinstance(side, np.ndarray) else side.get() for side in fresh]
        numbers.append([it.view(np.float32)[: blob.count].tolist() for it in shown][:1])
    return blob.shape, numbers


@pytest.mark.deep(quick=2)
@pytest.mark.parametrize(("way", "error"), CASES, ids=str)
def test_an_interrupt_anywhere_leaves_a_blob_as_before_or_as_after(
    way: str, error: type[BaseException], require_unbroken: Require
) -> None:
    *before, act = WAYS[way]
    untouched, done = Shelf(*before), Shelf(*before)
    act(done)
    possible = [seen(shelf.blob) for shelf in (untouched, done)]

    def check(shelf: Shelf, _raised: BaseException | None) -> None:
        assert acquired_elsewhere(exclusive, *[memory._lock for memory in shelf.memories])
        now, data_of = seen(shelf.blob), [it[1][0] for it in possible]
        # What is asked for on a side may be brought there before the rest is done, which moves heads and no numbers.
        if way != "close":
            assert now[0] in [it[0] for it in possible]
            assert now[1][0] in data_of or now[1][0] == [] or shelf.blob.data_memory.head == 0
        for memory in shelf.memories:
            if not memory.closed:
                memory.mutable_cpu_data()
                memory.gpu_data()
        close(shelf)
        shelf.blobs.clear()
        shelf.device.check()
        assert shelf.live_blocks == 0

    report = interrupt_everywhere(lambda: Shelf(*before), act, check, error, stride=4 if way in LONG else 1)

    require_unbroken(report, at_least=20)


def test_real_signals_leave_a_blob_that_can_be_used(require_unbroken: Require) -> None:
    shelf = Shelf(written)

    def act() -> None:
        for _ in range(100):
            shelf.blob.reshape(4, 3)
            shelf.blob.copy_from(shelf.other, reshape=True)
            shelf.blob.gpu_data()
            shelf.blob.shrink_to_fit()
            shelf.blob.share_diff(shelf.other)
            shelf.blobs[0] = shelf.new()

    def check(_raised: BaseException | None) -> None:
        assert acquired_elsewhere(exclusive, *[memory._lock for memory in shelf.memories])
        assert shelf.blob.count <= shelf.blob.capacity
        shelf.blob.data = 1
        assert shelf.blob.gpu_data().get().ravel().tolist() == [1] * shelf.blob.count
        owned = sum(repr(memory).count("owned") for memory in shelf.memories)
        assert shelf.live_blocks == owned

    require_unbroken(interrupt_with_signals(act, check, times=150, microseconds=3_000), at_least=100)
