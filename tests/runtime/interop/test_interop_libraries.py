"""The adapters of GPU libraries, against the libraries themselves, as far as they go without a GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Limited, address_of, check_allocator, library, limited
from subjects import failing

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    NoDeviceError,
)
from syncedmem.runtime import Buffer, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

cpu = limited
LIBRARIES = ("rmm", "cupy", "cuda_core", "pyopencl")


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("theirs", [None, 7, Limited])
def test_what_is_no_source_of_memory_is_refused(name: str, theirs: object) -> None:
    queue = () if name != "pyopencl" else (None,)
    with pytest.raises(
        InvalidArgumentError, match=r"^theirs must be an? .*of (RMM|CuPy|Numba|cuda\.core|Warp|PyOpenCL)"
    ):
        library(name).from_resource(theirs, *queue)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("allocator", [None, 7, Limited, SimulatedDeviceAllocator()])
def test_an_allocator_without_addresses_is_refused(name: str, allocator: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^allocator must be an allocator of memory with addresses"):
        library(name).as_resource(allocator)


@pytest.mark.parametrize("name", ["rmm", "cupy"])
def test_device_memory_is_assumed_and_needs_a_device(name: str, cpu: Limited) -> None:
    """So nobody reads device memory from the host by accident."""
    module = library(name)
    theirs = module.as_resource(cpu)
    if name == "numba":
        theirs = theirs(context=None)
    if name == "warp":
        del theirs.memory_kind
    try:
        assert DeviceType.CUDA is module.from_resource(theirs).device_type
    except NoDeviceError as error:
        assert "CUDA" in str(error)  # noqa: PT017 -- whether it is raised depends on the machine


REQUESTS: dict[str, Callable[[Any, int], Any]] = {
    "rmm": lambda theirs, size: theirs.allocate(size),
    "cupy": lambda theirs, size: theirs(size).ptr,
    "cuda_core": lambda theirs, size: theirs.allocate(size, stream=None).handle,
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_library_sees_a_lack_of_room_and_zero_bytes(name: str, cpu: Limited) -> None:
    """Zero bytes are at address zero, and our allocator is not asked for them."""
    theirs = library(name).as_resource(cpu)
    with pytest.raises(MemoryError, match="the limit"):
        REQUESTS[name](theirs, 1 << 27)
    assert 0 == int(REQUESTS[name](theirs, 0))

    assert ([1 << 27], 0) == (cpu.asked, cpu.live_blocks)


# --- RMM


@pytest.fixture
def rmm() -> Any:
    return library("rmm")


@pytest.fixture
def mr(rmm: Any) -> Any:
    return rmm.mr


def test_rmms_pools_take_their_memory_from_ours(rmm: Any, mr: Any, cpu: Limited) -> None:
    """No GPU driver is needed; only the pool keeps the functions that it calls."""
    makers: list[Callable[[Any], Any]] = [
        lambda upstream: mr.PoolMemoryResource(upstream, initial_pool_size=1 << 20, maximum_pool_size=1 << 22),
        lambda upstream: mr.FixedSizeMemoryResource(upstream, block_size=1 << 16, blocks_to_preallocate=4),
        lambda upstream: mr.BinningMemoryResource(upstream, 12, 18),
        lambda upstream: mr.TrackingResourceAdaptor(mr.StatisticsResourceAdaptor(upstream)),
    ]
    for make in makers:
        pool = make(rmm.as_resource(cpu))
        gc.collect()
        first, second = pool.allocate(SIZE), pool.allocate(2 * SIZE)
        assert (0, 0) == (first % 256, second % 256)
        assert cpu.live_blocks
        pool.deallocate(first, SIZE)
        pool.deallocate(second, 2 * SIZE)
        del pool
        gc.collect()
        assert 0 == cpu.live_blocks


def test_what_rmm_gives_back_wrongly_is_printed_and_kept(
    rmm: Any, cpu: Limited, printed: list[BaseException | None]
) -> None:
    """An exception there would become a SystemError of the next call."""
    resource = rmm.as_resource(cpu)
    address = resource.allocate(SIZE)
    resource.deallocate(address, SIZE - 1)
    resource.deallocate(address + 256, SIZE)
    assert (1, [InvalidPointerError] * 2) == (cpu.live_blocks, [type(error) for error in printed])
    resource.deallocate(address, SIZE)

    assert 0 == cpu.live_blocks


def test_device_memory_of_rmm_waits_for_its_stream(rmm: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test covers our side of it, without a GPU."""
    waits: list[int] = []
    stream = SimpleNamespace(synchronize=lambda: waits.append(cpu.live_blocks))

    def made(*functions: Any) -> Any:
        return functions

    monkeypatch.setattr(rmm, "mr", SimpleNamespace(CallbackMemoryResource=made))
    for kind in (DeviceType.CPU, DeviceType.CUDA):
        monkeypatch.setattr(Limited, "device_type", kind)
        monkeypatch.setattr(Exporter, "_start", staticmethod(address_of))
        allocate, deallocate = rmm.as_resource(cpu)
        deallocate(allocate(SIZE, stream), SIZE, stream)

    assert ([1], 0) == (waits, cpu.live_blocks)


def test_an_rmm_resource_is_our_allocator(rmm: Any, mr: Any, cpu: Limited) -> None:
    pool = mr.PoolMemoryResource(rmm.as_resource(cpu), initial_pool_size=1 << 20, maximum_pool_size=1 << 22)
    allocator = rmm.from_resource(pool, device=None)
    check_allocator(allocator, cpu)
    with Buffer(SIZE, allocator) as buffer:
        assert 0 == address_of(buffer.ptr) % 256
    assert "RMM's PoolMemoryResource" == allocator.name


def test_an_rmm_resource_is_given_the_stream(rmm: Any) -> None:
    class Spy:
        def __init__(self) -> None:
            self.calls: list[Any] = []
            self.memory = ctypes.create_string_buffer(SIZE)

        def allocate(self, size: int, stream: Any) -> int:
            self.calls.append((size, stream))
            return ctypes.addressof(self.memory)

        def deallocate(self, _ptr: int, size: int, stream: Any) -> None:
            self.calls.append((-size, stream))

    spy = Spy()
    for stream, expected in ((None, rmm.streams.DEFAULT_STREAM), ("mine", "mine")):
        allocator = rmm.from_resource(spy, device=None, stream=stream)
        allocator.release(allocator.allocate(SIZE))
        assert [(SIZE, expected), (-SIZE, expected)] == spy.calls[-2:]


# --- CuPy


@pytest.fixture
def cupy() -> Any:
    return library("cupy")


def test_cupy_pointers_give_their_memory_back_when_they_go(cupy: Any, cpu: Limited) -> None:
    allocate = cupy.as_resource(cpu)
    pointer = allocate(SIZE)
    later = pointer + 10
    assert (1, SIZE, 0, pointer.ptr + 10) == (cpu.live_blocks, pointer.mem.size, pointer.mem.device_id, later.ptr)
    del pointer, allocate
    assert 1 == cpu.live_blocks
    del later

    assert 0 == cpu.live_blocks


def test_cupy_takes_our_allocator_for_its_own(cupy: Any, cpu: Limited) -> None:
    """Without a GPU the test can only set the allocator and read it again."""
    allocate = cupy.as_resource(cpu)
    with cupy.cupy.cuda.using_allocator(allocate):
        assert allocate is cupy.cupy.cuda.get_allocator()


def test_cupys_pinned_memory_is_ours(cupy: Any, cpu: Limited) -> None:
    """Such memory is a buffer, and CuPy itself returns it."""
    allocate = cupy.as_pinned_resource(cpu)
    cupy.cupy.cuda.set_pinned_memory_allocator(allocate)
    try:
        pinned = cupy.cupy.cuda.alloc_pinned_memory(SIZE)
    finally:
        cupy.cupy.cuda.set_pinned_memory_allocator()
    view = np.frombuffer(pinned, np.uint8)
    view[:] = 7
    assert (SIZE, 1) == (len(view), cpu.live_blocks)
    del view, pinned
    gc.collect()
    assert 0 == cpu.live_blocks
    with pytest.raises(InvalidArgumentError, match="on the host, got"):
        cupy.as_pinned_resource(SimulatedDeviceAllocator())


def test_an_allocator_of_cupy_is_ours(cupy: Any, cpu: Limited) -> None:
    """It may be a function, a pool, or pinned memory."""

    class Pool:
        malloc = staticmethod(cupy.as_resource(cpu))

    for theirs in (cupy.as_resource(cpu), Pool(), cupy.as_pinned_resource(cpu)):
        check_allocator(cupy.from_resource(theirs, device=None), cpu)
        gc.collect()
        assert 0 == cpu.live_blocks


def test_the_functions_for_cupy_know_their_device(
    cupy: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch, printed: list[BaseException | None]
) -> None:
    given: list[Any] = []

    def made(*functions: Any) -> list[Any]:
        given.append(functions)
        return given

    monkeypatch.setattr(cupy.cupy.cuda, "PythonFunctionAllocator", made)
    assert given is cupy.as_function_allocator(cpu)
    malloc, free = given[0]
    address = malloc(SIZE, 1)  # host memory is on every device
    free(address, 1)
    free(address, 1)
    assert (0, [InvalidPointerError]) == (cpu.live_blocks, [type(error) for error in printed])
    monkeypatch.setattr(Limited, "device_type", DeviceType.CUDA)
    cupy.as_function_allocator(cpu)
    with pytest.raises(InvalidArgumentError, match=r"device must be 0, where the memory is, got 1"):
        given[1][0](SIZE, 1)


# --- cuda.core


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


def test_a_block_that_cuda_core_makes_no_buffer_of_is_given_back(
    cuda_core: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = SimpleNamespace(from_handle=failing(RuntimeError, "not today"))
    monkeypatch.setattr(cuda_core, "core", SimpleNamespace(Buffer=refusing))
    with pytest.raises(RuntimeError, match="not today"):
        cuda_core.as_resource(cpu).allocate(SIZE, stream=None)

    assert 0 == cpu.live_blocks


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
