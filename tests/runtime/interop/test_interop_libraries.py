"""The adapters of GPU libraries, against the libraries themselves, as far as they go without a GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Limited, address_of, check_allocator, library, limited

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    NoDeviceError,
    WrongDeviceError,
)
from syncedmem.runtime import Buffer, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

cpu = limited
LIBRARIES = ("rmm", "cupy", "numba", "cuda_core", "warp", "pyopencl")


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


@pytest.mark.parametrize("name", ["rmm", "numba", "cupy", "warp"])
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
    "numba": lambda theirs, size: theirs(context=None).memalloc(size).device_pointer,
    "cuda_core": lambda theirs, size: theirs.allocate(size, stream=None).handle,
    "warp": lambda theirs, size: theirs.allocate(size),
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


# --- Numba


@pytest.fixture
def numba() -> Any:
    return library("numba")


def test_numba_takes_our_class_for_its_own(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba checks the version of the interface."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    monkeypatch.setattr(driver, "_memory_manager", None)  # afterwards it is what it was
    manager: Any = numba.as_resource(cpu)
    numba.cuda.set_memory_manager(manager)

    assert manager is driver._memory_manager


def test_numba_pointers_give_their_memory_back_when_they_go_or_before(numba: Any, cpu: Limited) -> None:
    manager: Any = numba.as_resource(cpu)(context=None)
    manager.initialize()
    first, second = manager.memalloc(SIZE), manager.memalloc(SIZE)
    assert (SIZE, 2) == (first.size, cpu.live_blocks)
    ctypes.memset(int(first.device_pointer), 7, SIZE)
    first.free()
    assert 1 == cpu.live_blocks
    del second
    assert 0 == cpu.live_blocks


def test_numba_defers_and_resets(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deferred block is given back later; after a reset nothing is given back twice."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    # The driver makes it, which is not here.
    monkeypatch.setattr(driver, "_logger", driver.make_logger(), raising=False)
    manager: Any = numba.as_resource(cpu)(context=None)
    pointer, kept = manager.memalloc(SIZE), manager.memalloc(SIZE)
    with manager.defer_cleanup():
        del pointer
        gc.collect()
        assert 2 == cpu.live_blocks
    manager.reset()
    assert 0 == cpu.live_blocks
    del kept
    gc.collect()

    assert 0 == cpu.live_blocks


def test_numba_is_told_what_our_allocators_do_not_do(numba: Any, cpu: Limited) -> None:
    manager: Any = numba.as_resource(cpu)(context=None)
    with pytest.raises(NotImplementedError, match="does not say how much memory is free"):
        manager.get_memory_info()
    with pytest.raises(NotImplementedError, match="not shared between processes"):
        manager.get_ipc_handle(manager.memalloc(SIZE))


def test_numbas_context_of_another_device_is_refused(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        class device:  # noqa: N801 -- Numba's name
            id = 1

    numba.as_resource(cpu)(context=Context).initialize()  # host memory is on every device
    monkeypatch.setattr(Limited, "device_type", DeviceType.CUDA)
    manager: Any = numba.as_resource(cpu)(context=Context)
    with pytest.raises(WrongDeviceError, match="lives on device 0, but device 1 is current"):
        manager.initialize()
    Context.device.id = 0
    manager.initialize()


def test_a_manager_of_numba_is_our_allocator(numba: Any, cpu: Limited) -> None:
    """Its pointers may be freed, or count their owners."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    plain: Any = numba.as_resource(cpu)(context=None)

    class Counting:
        """As Numba's own manager: it keeps the pointers, and returns owners that only refer to them."""

        def __init__(self) -> None:
            self.pointers: list[Any] = []

        def memalloc(self, size: int) -> Any:
            block = numba.as_resource(cpu).exporter.export(size)
            pointer = numba.bindings.CUdeviceptr(block.ptr)
            self.pointers.append(driver.AutoFreePointer(None, pointer, size, finalizer=block.give_back))
            return self.pointers[-1].own()

    for manager in (plain, Counting()):
        check_allocator(numba.from_resource(manager, device=None), cpu)
        gc.collect()
        assert 0 == cpu.live_blocks


def test_a_full_device_of_numba_is_an_allocation_error(numba: Any) -> None:
    """Numba's error is no ``MemoryError``; its other errors do not mean a full device."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    codes = numba.bindings.CUresult

    class Failing:
        def __init__(self, code: Any) -> None:
            self.code = code

        def memalloc(self, _: int) -> Any:
            raise driver.CudaAPIError(self.code, "cuMemAlloc")

    for code in (codes.CUDA_ERROR_OUT_OF_MEMORY, 2):
        with pytest.raises(AllocationError, match=r"cannot allocate 1000 bytes on Numba's Failing: .*cuMemAlloc"):
            numba.from_resource(Failing(code), device=None).allocate(SIZE)
    with pytest.raises(DeviceError, match="allocate failed on Numba's Failing: CudaAPIError"):
        numba.from_resource(Failing(codes.CUDA_ERROR_LAUNCH_FAILED), device=None).allocate(SIZE)


@pytest.mark.deep
def test_the_simulator_of_numba_says_what_it_lacks(numba: Any) -> None:
    del numba
    program = "from syncedmem.interop import numba"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"NUMBA_ENABLE_CUDASIM": "1"}
    )

    assert done.stderr.endswith("Numba's simulator has no memory managers: unset NUMBA_ENABLE_CUDASIM\n")


def test_a_numba_without_managers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's simulator is such a one."""
    monkeypatch.setitem(sys.modules, "numba.cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace())
    monkeypatch.delitem(sys.modules, "syncedmem.runtime.interop.numba", raising=False)
    with pytest.raises(NoDeviceError, match="unset NUMBA_ENABLE_CUDASIM"):
        importlib.import_module("syncedmem.runtime.interop.numba")


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


# --- Warp


@pytest.fixture
def warp() -> Any:
    return library("warp")


def test_warp_accepts_our_allocator(warp: Any, cpu: Limited, printed: list[BaseException | None]) -> None:
    """Without a GPU the test can check Warp's protocol, and the check behind the setters."""
    theirs = warp.as_resource(cpu)
    assert isinstance(theirs, warp.wp.Allocator)
    sys.modules["warp._src.context"]._validate_allocator(theirs)
    address = theirs.allocate(SIZE)
    theirs.deallocate(address, SIZE - 1)
    assert (1, warp.wp.MemoryKind.HOST) == (cpu.live_blocks, theirs.memory_kind)
    theirs.deallocate(address, SIZE)
    assert (0, 0, [InvalidPointerError]) == (cpu.live_blocks, theirs.allocate(0), [type(error) for error in printed])


def test_arrays_of_warp_lie_in_our_memory(warp: Any, cpu: Limited) -> None:
    theirs = warp.as_resource(cpu)
    warp.wp.config.quiet = True
    address = theirs.allocate(4 * SIZE)
    array = warp.wp.array(
        ptr=address, shape=SIZE, dtype=warp.wp.int32, device="cpu", deleter=theirs.deallocate, capacity=4 * SIZE
    )
    array.fill_(7)
    assert 7 == ctypes.c_int32.from_address(address).value
    del array
    gc.collect()

    assert 0 == cpu.live_blocks


def test_warps_own_allocator_is_ours(warp: Any) -> None:
    """It says itself that the host can read its memory; a full host is one of our errors."""
    warp.wp.config.quiet = True
    allocator = warp.from_resource(warp.wp.get_device_allocator("cpu"))
    block = allocator.allocate(SIZE)
    block[:] = 7
    allocator.release(block)
    assert "Warp's CpuDefaultAllocator" == allocator.name


def test_an_allocator_of_warp_is_ours(warp: Any, cpu: Limited) -> None:
    theirs = warp.as_resource(cpu)
    check_allocator(warp.from_resource(theirs), cpu)
    del theirs.memory_kind
    check_allocator(warp.from_resource(theirs, device=None), cpu)

    class Full:
        memory_kind = warp.wp.MemoryKind.PINNED
        deallocate = None

        def allocate(self, size: int) -> int:
            raise RuntimeError(f"Failed to allocate {size} bytes on device 'cpu'")

    with pytest.raises(InvalidArgumentError, match="an allocator of Warp, got"):
        warp.from_resource(Full())
    Full.deallocate = print  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue] -- now it is one
    with pytest.raises(AllocationError, match="Failed to allocate 1000 bytes on device 'cpu'"):
        warp.from_resource(Full()).allocate(SIZE)
