"""Foreign memory of a real GPU, both ways.  Without one all of it is skipped."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from syncedmem import interop
from syncedmem.model import AllocationError, NoDeviceError
from syncedmem.runtime import DeviceType, MemcpyKind, SyncedMemory

try:
    import syncedmem.runtime.cuda as cuda_module

    cuda_module.CUDADeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no GPU here: {error}", allow_module_level=True)

cupy: Any = cuda_module.cupy
SIZE = 4096


def check_memory(allocator: Any) -> None:
    """A memory over it goes up and down."""
    assert DeviceType.CUDA is allocator.device_type
    with SyncedMemory(SIZE, device=allocator) as memory:
        memory.mutable_cpu_data()[:] = 7
        memory.mutable_gpu_data().fill(9)
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


def test_copies_reach_foreign_memory() -> None:
    allocator = interop.cupy.from_resource(cupy.cuda.MemoryPool())
    block: Any = allocator.allocate(SIZE)
    allocator.memcpy(np.full(SIZE, 7, np.uint8), block, SIZE, MemcpyKind.CPU2CUDA)
    assert [7] * SIZE == block.get().tolist()
