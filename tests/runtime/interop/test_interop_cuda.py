"""Memory of other libraries on a real GPU, in both directions.  Without a GPU all tests are skipped."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from subjects import failing

from syncedmem import interop
from syncedmem.model import AllocationError, DeviceError, NoDeviceError, WrongDeviceError
from syncedmem.runtime import DeviceType, MemcpyKind, PoolAllocator, SyncedMemory, TrackingAllocator
from syncedmem.runtime.interop.exporter import Exporter

try:
    import syncedmem.runtime.devices.cuda as cuda_module

    cuda_module.CUDADeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no GPU here: {error}", allow_module_level=True)

cupy: Any = cuda_module.cupy
GPUS: int = cupy.cuda.runtime.getDeviceCount()
SIZE = 4096


def check_memory(allocator: Any) -> None:
    """Check that a memory over the allocator copies both ways, and that a request for too much is refused."""
    assert DeviceType.CUDA is allocator.device_type
    with SyncedMemory(SIZE, device=allocator) as memory:
        memory.mutable_cpu_data()[:] = 7
        view: Any = memory.mutable_gpu_data()
        view.fill(9)
        assert [9] * SIZE == memory.cpu_data().tolist()
    with pytest.raises(AllocationError):
        allocator.allocate(1 << 50)


def test_a_pool_of_cupy_is_our_device() -> None:
    pool = cupy.cuda.MemoryPool()
    check_memory(interop.cupy.from_resource(pool))
    gc.collect()
    assert 0 == pool.used_bytes()


def test_pinned_memory_of_cupy_is_our_host() -> None:
    host = interop.cupy.from_resource(cupy.cuda.alloc_pinned_memory, device=None)
    block: Any = host.allocate(SIZE)
    block[:] = 7
    assert cupy.cuda.runtime.memoryTypeHost == cupy.cuda.runtime.pointerGetAttributes(block.ctypes.data).type


def test_resources_of_rmm_are_our_device() -> None:
    try:
        rmm = interop.rmm
    except NoDeviceError as error:
        pytest.skip(str(error))
    try:
        rmm.mr.CudaMemoryResource().allocate(SIZE)
    except MemoryError as error:
        if "cudaErrorInsufficientDriver" not in str(error):
            raise
        pytest.skip(f"CuPy finds a GPU here, and RMM none: {error}")
    check_memory(rmm.from_resource(rmm.mr.CudaMemoryResource()))
    check_memory(
        rmm.from_resource(rmm.mr.PoolMemoryResource(rmm.as_resource(cuda_module.CUDADeviceAllocator()), 1 << 20))
    )


@pytest.mark.parametrize("make", [interop.cupy.as_resource, interop.cupy.as_function_allocator])
def test_arrays_of_cupy_lie_in_our_memory(make: Any) -> None:
    ours = cuda_module.CUDADeviceAllocator()
    theirs = make(ours)
    with cupy.cuda.using_allocator(getattr(theirs, "malloc", theirs)):
        array = cupy.arange(SIZE, dtype=cupy.uint8)
        assert np.arange(SIZE, dtype=np.uint8).tolist() == array.get().tolist()
        assert ours.live_blocks
        del array
        gc.collect()
    assert 0 == ours.live_blocks


def straight(size: int) -> Any:
    """An allocator for CuPy that takes memory directly from CUDA."""
    return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)


def straight_pinned(size: int) -> Any:
    """An allocator for CuPy that takes page-locked memory directly from CUDA."""
    return cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)


@pytest.mark.parametrize("size", [1 << 50, 2**63 - 1])
@pytest.mark.parametrize(
    ("theirs", "device"),
    [
        (straight, 0),
        (cupy.cuda.MemoryPool(), 0),
        (cupy.cuda.PinnedMemoryPool(), None),
        (straight_pinned, None),
    ],
    ids=["cudaMalloc", "pool", "pinned pool", "cudaHostAlloc"],
)
def test_a_full_device_is_an_allocation_error_whatever_cupy_makes_of_it(theirs: Any, device: Any, size: int) -> None:
    allocator: Any = interop.cupy.from_resource(theirs, device=device)
    with pytest.raises(AllocationError, match=f"cannot allocate {size} bytes on CuPy's allocator: "):
        allocator.allocate(size)

    assert 0 == allocator.live_blocks


def test_another_error_of_cupy_is_no_lack_of_room() -> None:

    with pytest.raises(DeviceError, match="allocate failed on CuPy's allocator: CUDARuntimeError: cudaErrorL"):
        interop.cupy.from_resource(failing(cupy.cuda.runtime.CUDARuntimeError, 719)).allocate(SIZE)


def test_our_pooled_pinned_memory_can_be_what_cupy_takes_pinned_memory_from() -> None:
    """Our pool does not use CuPy's current allocator: that is our pool itself, and the calls would never end."""
    pinned = cuda_module.CUDADeviceAllocator(pool=True).pinned_host()
    cupy.cuda.set_pinned_memory_allocator(interop.cupy.as_pinned_resource(pinned))
    try:
        memory = cupy.cuda.alloc_pinned_memory(SIZE)
        assert 1 == pinned.live_blocks
    finally:
        cupy.cuda.set_pinned_memory_allocator(cupy.get_default_pinned_memory_pool().malloc)
    del memory
    gc.collect()

    assert 0 == pinned.live_blocks


# --- our memory, and the work of CuPy on it


def stream() -> Any:
    return cupy.cuda.Stream(non_blocking=True)


def function_over(allocator: Any) -> Any:
    return interop.cupy.as_function_allocator(allocator).malloc


@pytest.mark.parametrize("make", [interop.cupy.as_resource, function_over])
@pytest.mark.parametrize("used", ["where it was taken", "where it is let go"])
def test_memory_that_cupy_still_uses_is_given_to_nobody(gate: threading.Event, make: Any, used: str) -> None:
    """CuPy drops an array while a copy from it is queued on one of the two streams that CuPy knows."""
    pool = PoolAllocator(cuda_module.CUDADeviceAllocator())
    ours, found = make(pool), cupy.zeros(SIZE, cupy.uint8)
    taken, other = stream(), stream()
    user = taken if used == "where it was taken" else other
    with taken, cupy.cuda.using_allocator(ours):
        array = cupy.empty(SIZE, cupy.uint8)
    array.data.memset_async(9, SIZE, user)
    cupy.cuda.runtime.deviceSynchronize()
    gc.collect()
    user.launch_host_func(gate.wait, 30)
    with other, cupy.cuda.using_allocator(ours):
        found.data.copy_from_device_async(array.data, SIZE, user)
        address = array.data.ptr
        del array
        meanwhile = cupy.empty(SIZE, cupy.uint8)
    meanwhile.data.memset_async(1, SIZE, stream())
    assert (False, False) == (user.done, address == meanwhile.data.ptr)
    gate.set()
    user.synchronize()
    with cupy.cuda.using_allocator(ours):
        afterwards = cupy.empty(SIZE, cupy.uint8)

    assert ([9] * SIZE, address) == (found.get().tolist(), afterwards.data.ptr)
    del meanwhile, afterwards
    gc.collect()
    assert 0 == pool.live_blocks
    pool.close()


def test_an_allocator_that_cannot_hold_a_block_gets_it_after_the_work(gate: threading.Event) -> None:
    ours = TrackingAllocator(cuda_module.CUDADeviceAllocator(pool=True))
    user = stream()
    with user, cupy.cuda.using_allocator(interop.cupy.as_resource(ours)):
        array = cupy.empty(SIZE, cupy.uint8)
        user.launch_host_func(gate.wait, 30)
        array.data.memset_async(9, SIZE, user)
        threading.Timer(0.2, gate.set).start()
        del array

    assert (True, 0) == (gate.is_set(), ours.allocated_bytes)


def test_the_default_stream_of_another_thread_is_waited_for(gate: threading.Event) -> None:
    """Each thread has its own default stream under the same name, so another thread cannot query it."""
    pool, kept = PoolAllocator(cuda_module.CUDADeviceAllocator()), list[Any]()
    ours = interop.cupy.as_resource(pool)

    def take() -> None:
        with cupy.cuda.Stream.ptds, cupy.cuda.using_allocator(ours):
            array = cupy.empty(SIZE, cupy.uint8)
            cupy.cuda.Stream.ptds.launch_host_func(gate.wait, 30)
            array.data.memset_async(9, SIZE, cupy.cuda.Stream.ptds)
            kept.append(array)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    threading.Timer(0.2, gate.set).start()
    kept.clear()

    assert (True, 0) == (gate.is_set(), pool.live_blocks)
    pool.close()


@pytest.mark.parametrize("give_back", ["a block", "an address"])
def test_a_library_without_streams_waits_for_the_device(gate: threading.Event, give_back: str) -> None:
    """Numba and Warp are such libraries. The wait ends before a pool can use the memory again."""
    pool = PoolAllocator(cuda_module.CUDADeviceAllocator())
    exporter, user = Exporter(pool), stream()
    blocks = [exporter.export(SIZE, exporter.wait_for_device)] if give_back == "a block" else []
    address = 0 if blocks else exporter.allocate(SIZE)
    user.launch_host_func(gate.wait, 30)
    threading.Timer(0.2, gate.set).start()
    blocks.clear()
    exporter.give_back(address, None, exporter.wait_for_device)

    assert (True, 0) == (gate.is_set(), pool.live_blocks)
    pool.close()


@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
@pytest.mark.parametrize("size", [0, SIZE])
def test_cupy_is_refused_memory_of_another_gpu_than_the_current_one(size: int) -> None:
    """CuPy would treat it as memory of the current GPU; with one allocator for each GPU, the user can choose."""
    ours = [cuda_module.CUDADeviceAllocator(ordinal) for ordinal in range(2)]
    first, second = (interop.cupy.as_resource(item) for item in ours)
    with cupy.cuda.Device(1):
        with pytest.raises(WrongDeviceError, match="lives on device 0, but device 1 is current"):
            first(size)
        array = second(size)
        assert (1, 1) == (array.device.id, array.mem.device_id)

    assert (0, size > 0) == (ours[0].live_blocks, ours[1].live_blocks)


def test_copies_reach_foreign_memory() -> None:
    allocator = interop.cupy.from_resource(cupy.cuda.MemoryPool())
    block: Any = allocator.allocate(SIZE)
    allocator.memcpy(np.full(SIZE, 7, np.uint8), block, SIZE, MemcpyKind.CPU2CUDA)
    assert [7] * SIZE == block.get().tolist()
