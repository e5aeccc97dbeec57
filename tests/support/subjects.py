"""Subjects for the devices of this machine, and memories in known states, for several test modules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Input, NoDeviceError, caffe
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory, named_device
from syncedmem.spec import Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutants.registry import SeededBug

    from syncedmem.runtime import DeviceAllocator

READ, WRITE, ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
GPU_READ, PUSH, RELEASE = Input(caffe.GPU_DATA), Input(caffe.ASYNC_GPU_PUSH), Input(caffe.RELEASE)


SIZE = 48
"""The size in bytes, if a test does not need another one."""


def filled(memory: SyncedMemory, value: int = 7) -> SyncedMemory:
    """Fill the host side of a memory with one value, and return the memory."""
    memory.mutable_cpu_data()[:] = value
    return memory


def failing(error: type[BaseException], *arguments: object) -> Callable[..., Any]:
    """Return a function that raises an error, a new one each time, whatever its arguments."""

    def fail(*_: object, **__: object) -> Any:
        raise error(*arguments)

    return fail


def device_subject(make: Any = SyncedMemory) -> Subject:
    """Return a subject with its own simulated device, and a second device that can be current."""
    return Subject(
        "simulated",
        make,
        CPUDeviceAllocator(),
        SimulatedDeviceAllocator(),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )


def host_subject(make: Any = SyncedMemory) -> Subject:
    """Return a subject without a device."""
    return Subject("cpu", make, CPUDeviceAllocator(), None)


def subject_for(bug: SeededBug) -> Subject:
    """Return a subject of the kind on which a seeded bug shows."""
    if bug.shows_on == "no device":
        return host_subject()
    return device_subject() if bug.shows_on == "device" else replace(device_subject(), profile="caffe")


def devices() -> list[DeviceAllocator]:
    """Return every device of this machine."""
    found: list[DeviceAllocator] = [SimulatedDeviceAllocator()]
    for name in ("opencl", "cuda"):
        try:
            found.append(named_device(name))
        except NoDeviceError:
            continue
    return found
