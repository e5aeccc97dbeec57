"""The adapter of cuda.core, against cuda.core itself, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Limited, address_of, check_allocator, library, limited

from syncedmem.model import AllocationError, DeviceError, InvalidPointerError
from syncedmem.runtime import DeviceType

cpu = limited


@pytest.fixture
def cuda_core() -> Any:
    return library("cuda_core")


def test_buffers_of_cuda_core_are_ours(cuda_core: Any, cpu: Limited) -> None:
    """NumPy reads them without a copy; they give their memory back when they are closed or gone."""
    resource = cuda_core.as_resource(cpu)
    first, second = resource.allocate(SIZE, stream=None), resource.allocate(SIZE, stream=None)
    np.from_dlpack(first)[:] = 7
    assert bytes([7]) * SIZE == ctypes.string_at(int(first.handle), SIZE)
    assert (SIZE, True, False, -1) == (
        first.size,
        first.is_host_accessible,
        first.is_device_accessible,
        first.device_id,
    )
    assert isinstance(resource, cuda_core.core.MemoryResource)
    assert not resource.is_managed
    assert 2 == cpu.live_blocks
    first.close()
    del second
    gc.collect()
    assert 0 == cpu.live_blocks


def test_what_cuda_core_gives_back_wrongly_is_printed(
    cuda_core: Any, cpu: Limited, printed: list[BaseException | None]
) -> None:
    resource = cuda_core.as_resource(cpu)
    resource.deallocate(4096, SIZE, stream=None)

    assert [InvalidPointerError] == [type(error) for error in printed]


def test_device_memory_of_cuda_core_says_where_it_is_and_waits_for_the_stream(
    cuda_core: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test covers our side of it, without a GPU."""

    class Stream:
        waits = 0

        def sync(self) -> None:
            self.waits += 1

    made: list[Any] = []

    class Buffer:
        @staticmethod
        def from_handle(*arguments: Any, **keywords: Any) -> None:
            made.append((arguments, keywords))

    stream = Stream()
    monkeypatch.setattr(Limited, "device_type", DeviceType.CUDA)
    monkeypatch.setattr(cuda_core, "core", SimpleNamespace(Buffer=Buffer))
    resource = cuda_core.as_resource(cpu)
    monkeypatch.setattr(resource._exporter, "_start", address_of)
    resource.allocate(SIZE, stream=stream)
    ((address, size), keywords) = made[0]
    assert (SIZE, {"mr": resource, "stream": stream}) == (size, keywords)
    assert (True, False, 0) == (resource.is_device_accessible, resource.is_host_accessible, resource.device_id)
    resource.deallocate(address, SIZE, stream=stream)
    assert (1, 0) == (stream.waits, cpu.live_blocks)

    waits: list[Any] = []
    monkeypatch.setattr(resource._exporter, "wait_for_device", waits.append)
    resource.allocate(SIZE, stream=stream)
    ((address, _), _) = made[1]
    resource.deallocate(address, SIZE)  # without a stream
    assert (1, 0, [address]) == (stream.waits, cpu.live_blocks, waits)


def test_a_resource_of_cuda_core_is_our_allocator(cuda_core: Any, cpu: Limited) -> None:
    """The resource itself says whether the host can read its memory."""
    allocator = cuda_core.from_resource(cuda_core.as_resource(cpu))
    check_allocator(allocator, cpu)
    gc.collect()
    assert (0, "cuda.core's ExportedResource") == (cpu.live_blocks, allocator.name)


def test_a_full_device_of_cuda_core_is_an_allocation_error(cuda_core: Any) -> None:
    """Its error is no ``MemoryError`` and has no code; the test makes it as cuda.core does."""
    made: Any = importlib.import_module("cuda.core._utils.cuda_utils").handle_return
    codes: Any = importlib.import_module("cuda.bindings.runtime").cudaError_t

    class Failing:
        is_host_accessible, deallocate = True, print

        def __init__(self, code: Any) -> None:
            self.code = code

        def allocate(self, _: int, *, stream: Any) -> Any:
            made((self.code,), stream)

    with pytest.raises(AllocationError, match=r"cannot allocate 1000 bytes on cuda\.core's Failing: cudaErrorMemory"):
        cuda_core.from_resource(Failing(codes.cudaErrorMemoryAllocation)).allocate(SIZE)
    with pytest.raises(DeviceError, match=r"allocate failed on cuda\.core's Failing: CUDAError: cudaErrorLaunch"):
        cuda_core.from_resource(Failing(codes.cudaErrorLaunchFailure)).allocate(SIZE)
