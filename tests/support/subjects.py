"""What several test modules need: subjects for the devices of this machine, and memories in known states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory, named_device
from syncedmem.spec import ReferenceBlob, ReferenceMemory, Subject

if TYPE_CHECKING:
    from syncedmem.runtime import DeviceAllocator
    from syncedmem.spec.mutants.registry import SeededBug

READ, WRITE, ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
GPU_READ, GPU_WRITE, GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
PUSH, RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)


SIZE = 48
"""In bytes, where a test has no reason for another."""


def filled(memory: SyncedMemory, value: int = 7) -> SyncedMemory:
    """A memory whose host side is fresh and holds one value."""
    memory.mutable_cpu_data()[:] = value
    return memory


def device_subject(make: Any = SyncedMemory) -> Subject:
    """A subject with a simulated device of its own, and another one to be current."""
    return Subject(
        "simulated",
        make,
        CPUDeviceAllocator(),
        SimulatedDeviceAllocator(),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )


def host_subject(make: Any = SyncedMemory) -> Subject:
    """A subject without a device."""
    return Subject("cpu", make, CPUDeviceAllocator(), None)


def reference_subject(make: Any = ReferenceMemory) -> Subject:
    """A subject for the hand-written memory."""
    return device_subject(make)


def blob_device_subject(make: Any = ReferenceBlob) -> Subject:
    """A subject of blobs with a simulated device."""
    return device_subject(make)


def subject_for(bug: SeededBug) -> Subject:
    """A subject of the kind that a bug shows on."""
    if bug.shows_on == "no device":
        return host_subject()
    return device_subject() if bug.shows_on == "device" else replace(device_subject(), profile="caffe")


def devices() -> list[DeviceAllocator]:
    """Every device of this machine."""
    found: list[DeviceAllocator] = [SimulatedDeviceAllocator()]
    for name in ("opencl", "cuda"):
        try:
            found.append(named_device(name))
        except NoDeviceError:
            continue
    return found
