"""Simulated devices: which is current, how they are numbered, and threads that share one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from simulated_blocks import SIZE, UP, allocated, row

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidSizeError, NoDeviceError
from syncedmem.runtime import SimulatedDeviceAllocator, using_device
from syncedmem.runtime.devices.simulated.simulation import ORDINALS, current_device

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_current_device_belongs_to_a_thread_and_is_restored(device: SimulatedDeviceAllocator) -> None:
    """Also after an exception, and after calls on another device."""
    other, seen = SimulatedDeviceAllocator(2), list[int]()

    def work() -> None:
        other.release(other.allocate(SIZE))
        seen.append(other.current_ordinal())
        with other.using():
            seen.append(device.current_ordinal())
        with pytest.raises(AllocationError):
            other.allocate(1 << 60)
        seen.append(current_device())
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join(10)
        raise KeyError

    with pytest.raises(KeyError), using_device(3):
        work()
    seen.append(current_device())

    assert [3, 2, 3, 0, 0] == seen


@pytest.mark.parametrize("ordinal", [-1, ORDINALS])
def test_there_are_no_other_devices(ordinal: int) -> None:
    with pytest.raises(NoDeviceError, match=f"there is no simulated device {ordinal}; there are 4"):
        SimulatedDeviceAllocator(ordinal)
    with pytest.raises(NoDeviceError), using_device(ordinal):
        pass

    assert (current_device(), "simulated:3") == (0, SimulatedDeviceAllocator(ORDINALS - 1).name)


@pytest.mark.parametrize("ordinal", [1.0, True, "1"])
def test_a_device_has_a_whole_number(ordinal: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ordinal must be the number of a device"):
        SimulatedDeviceAllocator(ordinal)


@pytest.mark.parametrize(("capacity", "error"), [(-1, InvalidSizeError), (1.5, InvalidArgumentError)])
def test_a_capacity_is_a_size(capacity: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        SimulatedDeviceAllocator(capacity=capacity)


@pytest.mark.parametrize("use", ["get", "memcpy", "allocate", "release", "synchronize"])
def test_two_threads_on_one_device_wait_for_each_other(device: SimulatedDeviceAllocator, use: str) -> None:
    """While one of them performs what is queued, the other does not return with it half done."""
    block, other, stream = allocated(device, 1), allocated(device), device.stream()
    entered, gate = threading.Event(), threading.Event()
    uses: dict[str, Callable[[], object]] = {
        "get": block.get,
        "memcpy": lambda: device.memcpy(row(1), other, SIZE, UP),
        "allocate": lambda: device.allocate(SIZE),
        "release": lambda: device.release(other),
        "synchronize": stream.synchronize,
    }

    def operation() -> None:
        entered.set()
        gate.wait(10)

    stream.put(operation)
    threads = [threading.Thread(target=stream.synchronize), threading.Thread(target=uses[use])]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    waits = threads[1].is_alive()
    gate.set()
    for thread in threads:
        thread.join(10)

    assert (True, False) == (waits, threads[1].is_alive())
