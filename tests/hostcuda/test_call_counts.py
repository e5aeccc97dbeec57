"""How many CUDA calls each of our calls makes: on a real GPU, each costs a microsecond or more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostcuda_control import hostcuda

from syncedmem.model import Mode, SyncedHead, using_mode
from syncedmem.runtime import SyncedMemory, arithmetic_of
from syncedmem.runtime.devices.cuda import CUDADeviceAllocator, cupy

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.no_lag

SIZE = 4096
MOST_FOR_A_COPY, MOST_FOR_A_PUSH = 5, 7


def calls_of(call: Callable[[], object]) -> list[str]:
    with hostcuda.recorded() as names:
        call()
    return names


@pytest.fixture(params=[0, 1], ids=["current", "another"])
def device(request: pytest.FixtureRequest) -> Any:
    """The current device, and a device that is not current."""
    return CUDADeviceAllocator(request.param)


def synced(device: Any) -> SyncedMemory:
    """Return a memory with both sides allocated and fresh."""
    memory = SyncedMemory(SIZE, device=device)
    memory.mutable_cpu_data()[:] = 7
    memory.gpu_data()
    assert SyncedHead.SYNCED is memory.head
    return memory


@pytest.mark.parametrize("mode", list(Mode))
def test_what_has_nothing_to_do_calls_nothing(device: Any, mode: Mode) -> None:
    with using_mode(mode), synced(device) as memory:
        for call in (memory.cpu_data, memory.gpu_data, memory.mutable_cpu_data, memory.mutable_cpu_data):
            assert [] == calls_of(call), call.__name__
        memory.mutable_gpu_data()
        for call in (memory.gpu_data, memory.mutable_gpu_data):
            assert [] == calls_of(call), call.__name__


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("reads", [True, False], ids=["read", "write"])
def test_a_copy_takes_few_calls(device: Any, mode: Mode, reads: bool) -> None:
    """Both directions are tested. One of the calls is the copy."""
    names = ("cpu_data", "gpu_data") if reads else ("mutable_cpu_data", "mutable_gpu_data")
    with using_mode(mode), synced(device) as memory:
        down, up = (getattr(memory, name) for name in names)
        memory.mutable_gpu_data()
        counts = [calls_of(down)]
        memory.mutable_cpu_data()
        counts.append(calls_of(up))

    for names_of_calls in counts:
        assert 1 == names_of_calls.count("cudaMemcpyAsync")
        assert len(names_of_calls) <= MOST_FOR_A_COPY, names_of_calls


def test_a_push_takes_few_calls(device: Any) -> None:
    """The first push is not counted.  Changing the device and freeing the event of the last push need more calls."""
    stream = device.stream()
    with using_mode(Mode.GPU), synced(device) as memory:
        memory.mutable_cpu_data()
        memory.async_gpu_push(stream=stream)
        memory.mutable_cpu_data()
        names = calls_of(lambda: memory.async_gpu_push(stream=stream))

    assert 1 == names.count("cudaMemcpyAsync")
    others = names.count("cudaSetDevice") + names.count("cudaEventDestroy")
    assert len(names) - others <= MOST_FOR_A_PUSH, names


def ones(device: Any, count: int) -> Any:
    x = device.allocate(4 * count).view(np.float32)
    with device.using():
        x.fill(1)
    return x


@pytest.mark.deep
def test_a_sum_keeps_a_whole_gpu_busy(device: Any) -> None:
    """A sum has several blocks of threads for each multiprocessor, and no more for a longer vector."""
    arithmetic = arithmetic_of(device)
    multiprocessors = cupy.cuda.runtime.getDeviceProperties(device.ordinal)["multiProcessorCount"]
    for call in ("asum", "sumsq"):
        counts: list[int] = []
        for size in (1 << 18, 1 << 20):
            x = ones(device, size)
            hostcuda.most_blocks()
            assert size == getattr(arithmetic, call)(x)
            counts.append(hostcuda.most_blocks())
        assert counts[0] == counts[1] >= 4 * multiprocessors
