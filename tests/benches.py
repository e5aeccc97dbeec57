"""What several test modules need: benches for the devices of this machine, and memories in known states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory, named_device
from syncedmem.spec import Bench, BlobPort, Port

if TYPE_CHECKING:
    from syncedmem.runtime import DeviceAllocator
    from syncedmem.spec import Fault

READ, WRITE, ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
GPU_READ, GPU_WRITE, GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
PUSH, RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)


SIZE = 48
"""In bytes, where a test has no reason for another."""


def filled(memory: SyncedMemory, value: int = 7) -> SyncedMemory:
    """A memory whose host side is fresh and holds one value."""
    memory.mutable_cpu_data()[:] = value
    return memory


def device_bench(make: Any = SyncedMemory) -> Bench:
    """A bench with a simulated device of its own, and another one to be current."""
    return Bench(
        "simulated",
        make,
        CPUDeviceAllocator(),
        SimulatedDeviceAllocator(),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )


def host_bench(make: Any = SyncedMemory) -> Bench:
    """A bench without a device."""
    return Bench("cpu", make, CPUDeviceAllocator(), None)


def port_bench(make: Any = Port) -> Bench:
    """A bench for the hand-written memory."""
    return device_bench(make)


def blob_device_bench(make: Any = BlobPort) -> Bench:
    """A bench of blobs with a simulated device."""
    return device_bench(make)


def bench_for(fault: Fault) -> Bench:
    """A bench of the kind that a fault shows on."""
    if fault.bench == "no device":
        return host_bench()
    return device_bench() if fault.bench == "device" else replace(device_bench(), profile="caffe")


def devices() -> list[DeviceAllocator]:
    """Every device of this machine."""
    found: list[DeviceAllocator] = [SimulatedDeviceAllocator()]
    for name in ("opencl", "cuda"):
        try:
            found.append(named_device(name))
        except NoDeviceError:
            continue
    return found
