"""Cases of one byte, of none and of one line that a wrong token in the code could hide in; each has hidden one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from syncedmem import (
    CPUDeviceAllocator,
    DeviceError,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
)
from syncedmem.runtime.devices import host_buffers
from syncedmem.runtime.devices.simulated.block import SimulatedDeviceError


def test_a_view_that_cannot_be_made_again_is_an_error_of_the_device() -> None:
    """It holds also when making the view is all there is to do but for the check of the current device."""
    device = SimulatedDeviceAllocator()
    broken: list[bool] = []
    make = device.viewer

    def viewer(ptr: Any) -> Any:
        view = make(ptr)

        def made() -> Any:
            if broken:
                raise OSError("no view today")
            return view()

        return made

    device.viewer = viewer  # type: ignore[method-assign]
    memory = SyncedMemory(16, device=device, check_device=True)
    memory.gpu_data()
    broken.append(True)
    with pytest.raises(DeviceError, match="no view today"):
        memory.gpu_data()
    broken.clear()

    assert 16 == len(memory.gpu_data())


def test_what_was_returned_while_another_thread_was_inside_is_lent_again() -> None:
    """The upstream has no room for a second block."""
    pool = PoolAllocator(LimitingAllocator(CPUDeviceAllocator(), 64))
    block = pool.allocate(64)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._lock:  # pyright: ignore[reportPrivateUsage] -- as every call of the pool does
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    pool.release(block)  # it cannot be put among what is idle now
    leave.set()
    thread.join()
    again = pool.allocate(64)

    assert 64 == len(again)  # type: ignore[arg-type]
    pool.release(again)


@pytest.mark.parametrize("freed", [False, True])
def test_a_check_of_the_device_looks_at_all_it_has(freed: bool) -> None:
    """The check includes blocks in use and blocks that were freed lately."""
    device = SimulatedDeviceAllocator()
    block: Any = device.allocate(64)
    raw = np.lib.stride_tricks.as_strided(block.raw(64), (65,))
    if freed:
        device.release(block)
    device.check()
    raw[3 if freed else 64] ^= 0xFF
    with pytest.raises(SimulatedDeviceError):
        device.check()


@pytest.mark.parametrize(
    ("format", "objects"), [("B", False), ("O", True), ("T{B:O:}", False), ("T{O:a:}", True), ("T{B:a:O:b:}", True)]
)
def test_a_format_says_whether_there_are_objects(format: str, objects: bool) -> None:  # noqa: A002 -- as memoryview has it
    """An O in the name of a field does not mean an object."""
    view: Any = SimpleNamespace(obj=None, format=format)

    assert objects is host_buffers._holds_objects(view)  # pyright: ignore[reportPrivateUsage] -- no exporter here has these
