"""Adapters of the GPU libraries, each against the library itself, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from syncedmem import interop
from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    InvalidPointerError,
    NoDeviceError,
    SyncedMemoryError,
    WrongDeviceError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.adaptors import GuardingAllocator
from syncedmem.runtime.interop.lender import Lender

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1000
LIBRARIES = ("rmm", "cupy", "numba", "cuda_core", "warp", "pyopencl")


class Limited(CPUDeviceAllocator):
    """Host memory with a limit, and a note of what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def allocate(self, byte_size: int) -> Any:
        self.asked.append(byte_size)
        if byte_size > 1 << 26:
            raise AllocationError(self.name, byte_size, "the limit")
        return super().allocate(byte_size)


def library(name: str) -> Any:
    """The adapter of a library; without the library its tests are skipped."""
    try:
        return getattr(interop, name)
    except NoDeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def cpu() -> Limited:
    return Limited()


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def check_allocator(allocator: Any, behind: CPUDeviceAllocator) -> None:
    """Foreign memory is usable, full is full, and all of it goes back."""
    first, second = allocator.allocate(SIZE), allocator.allocate(1)
    first[:] = 7
    second[:] = 9
    assert (7, 9) == (first[SIZE - 1], second[0])
    assert behind.live_blocks
    with pytest.raises(AllocationError):
        allocator.allocate(1 << 30)
    with pytest.raises(InvalidPointerError):
        allocator.release(first[:])
    for block in (first, second):
        allocator.release(block)
    assert allocator.allocate(0) is None
    assert 0 == allocator.live_blocks


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
    """Nobody reads device memory from the host by accident."""
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


# --- RMM


@pytest.fixture
def rmm() -> Any:
    return library("rmm")


@pytest.fixture
def mr(rmm: Any) -> Any:
    return rmm.mr


def test_rmms_pools_take_their_memory_from_ours(rmm: Any, mr: Any, cpu: Limited) -> None:
    """Without a driver; and nobody but the pool keeps what it calls."""
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


def test_rmm_sees_out_of_memory_and_zero_bytes(rmm: Any, cpu: Limited) -> None:
    resource = rmm.as_resource(cpu)
    with pytest.raises(MemoryError, match="the limit"):
        resource.allocate(1 << 27)
    assert 0 == resource.allocate(0)
    resource.deallocate(0, 0)

    assert 0 == cpu.live_blocks


def test_what_rmm_gives_back_wrongly_is_printed_and_kept(
    rmm: Any, cpu: Limited, printed: list[BaseException | None]
) -> None:
    """An exception there becomes a SystemError of whatever comes next."""
    resource = rmm.as_resource(cpu)
    address = resource.allocate(SIZE)
    resource.deallocate(address, SIZE - 1)
    resource.deallocate(address + 256, SIZE)
    assert (1, [InvalidPointerError] * 2) == (cpu.live_blocks, [type(error) for error in printed])
    resource.deallocate(address, SIZE)

    assert 0 == cpu.live_blocks


def test_device_memory_of_rmm_waits_for_its_stream(rmm: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our side of it, without a GPU."""
    waits: list[int] = []
    stream = SimpleNamespace(synchronize=lambda: waits.append(cpu.live_blocks))

    def made(*functions: Any) -> Any:
        return functions

    monkeypatch.setattr(rmm, "mr", SimpleNamespace(CallbackMemoryResource=made))
    for kind in (DeviceType.CPU, DeviceType.CUDA):
        monkeypatch.setattr(Limited, "device_type", kind)
        monkeypatch.setattr(Lender, "_start", staticmethod(address_of))
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


def test_a_pool_of_rmm_may_be_the_last_to_go(rmm: Any) -> None:
    """When Python goes, nothing calls what is gone."""
    del rmm
    program = """
import numpy as np
from syncedmem import CPUDeviceAllocator
from syncedmem.interop import rmm
np.late = rmm.mr.PoolMemoryResource(rmm.as_resource(CPUDeviceAllocator()), initial_pool_size=1 << 20)
np.block = rmm.from_resource(np.late, device=None).allocate(1000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


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


def test_cupy_sees_out_of_memory_and_zero_bytes(cupy: Any, cpu: Limited) -> None:
    """CUDA cannot say which device a null pointer is on."""
    allocate = cupy.as_resource(cpu)
    pointer = allocate(0)
    assert (0, 0, 0) == (pointer.ptr, pointer.mem.size, pointer.mem.device_id)
    with pytest.raises(MemoryError, match="the limit"):
        allocate(1 << 27)


def test_cupy_takes_our_allocator_for_its_own(cupy: Any, cpu: Limited) -> None:
    """As far as CuPy gets without a GPU: it is set, and found again."""
    allocate = cupy.as_resource(cpu)
    with cupy.cupy.cuda.using_allocator(allocate):
        assert allocate is cupy.cupy.cuda.get_allocator()


def test_cupys_pinned_memory_is_ours(cupy: Any, cpu: Limited) -> None:
    """It is a buffer, and CuPy itself hands it out."""
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
    """A function, a pool, and pinned memory."""

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


def test_a_function_allocator_of_cupy_is_made(cupy: Any, cpu: Limited) -> None:
    try:
        theirs = cupy.as_function_allocator(cpu)
    except cupy.cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no GPU here: {error}")
    assert callable(theirs.malloc)


# --- Numba


@pytest.fixture
def numba() -> Any:
    return library("numba")


def test_numba_takes_our_class_for_its_own(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """It checks the version of the interface."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    monkeypatch.setattr(driver, "_memory_manager", None)  # afterwards it is what it was
    manager: Any = numba.as_resource(cpu)
    numba.cuda.set_memory_manager(manager)

    assert manager is driver._memory_manager


def test_numba_pointers_give_their_memory_back_when_they_go_or_before(numba: Any, cpu: Limited) -> None:
    manager: Any = numba.as_resource(cpu)(context=None)
    manager.initialize()
    first, second, nothing = manager.memalloc(SIZE), manager.memalloc(SIZE), [manager.memalloc(0) for _ in range(2)]
    assert (SIZE, 2, 0) == (first.size, cpu.live_blocks, int(nothing[0].device_pointer))
    ctypes.memset(int(first.device_pointer), 7, SIZE)
    first.free()
    assert 1 == cpu.live_blocks
    del second
    assert 0 == cpu.live_blocks
    with pytest.raises(MemoryError, match="the limit"):
        manager.memalloc(1 << 27)


def test_numba_defers_and_resets(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is deferred goes back later; after a reset nothing goes back twice."""
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
    """Pointers that are freed, and pointers that count their owners."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    plain: Any = numba.as_resource(cpu)(context=None)

    class Counting:
        """As Numba's own manager: it keeps the pointers, and hands out owners that only know them."""

        def __init__(self) -> None:
            self.pointers: list[Any] = []

        def memalloc(self, size: int) -> Any:
            loan = numba.as_resource(cpu).lender.loan(size)
            pointer = numba.bindings.CUdeviceptr(loan.ptr)
            self.pointers.append(driver.AutoFreePointer(None, pointer, size, finalizer=loan.give_back))
            return self.pointers[-1].own()

    for manager in (plain, Counting()):
        check_allocator(numba.from_resource(manager, device=None), cpu)
        gc.collect()
        assert 0 == cpu.live_blocks


def test_the_simulator_of_numba_says_what_it_lacks(numba: Any) -> None:
    del numba
    program = "from syncedmem.interop import numba"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"NUMBA_ENABLE_CUDASIM": "1"}
    )

    assert done.stderr.endswith("Numba's simulator has no memory managers: unset NUMBA_ENABLE_CUDASIM\n")


def test_a_numba_without_managers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its simulator is, in this process."""
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
    """NumPy reads them without a copy; closed or gone, they give their memory back."""
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


def test_cuda_core_sees_out_of_memory_and_zero_bytes(cuda_core: Any, cpu: Limited) -> None:
    resource = cuda_core.as_resource(cpu)
    with pytest.raises(MemoryError, match="the limit"):
        resource.allocate(1 << 27, stream=None)
    nothing = resource.allocate(0, stream=None)
    assert (0, 0) == (nothing.size, int(nothing.handle))
    nothing.close()

    assert [1 << 27] == cpu.asked


def test_what_cuda_core_gives_back_wrongly_is_printed(
    cuda_core: Any, cpu: Limited, printed: list[BaseException | None]
) -> None:
    resource = cuda_core.as_resource(cpu)
    resource.deallocate(4096, SIZE, stream=None)

    assert [InvalidPointerError] == [type(error) for error in printed]


def test_device_memory_of_cuda_core_says_where_it_is_and_waits_for_the_stream(
    cuda_core: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our side of it, without a GPU."""

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
    monkeypatch.setattr(resource._lender, "_start", address_of)
    resource.allocate(SIZE, stream=stream)
    ((address, size), keywords) = made[0]
    assert (SIZE, {"mr": resource, "stream": stream}) == (size, keywords)
    assert (True, False, 0) == (resource.is_device_accessible, resource.is_host_accessible, resource.device_id)
    resource.deallocate(address, SIZE, stream=stream)

    assert (1, 0) == (stream.waits, cpu.live_blocks)


def test_a_resource_of_cuda_core_is_our_allocator(cuda_core: Any, cpu: Limited) -> None:
    """It says itself whether the host can read it."""
    allocator = cuda_core.from_resource(cuda_core.as_resource(cpu))
    check_allocator(allocator, cpu)
    gc.collect()
    assert (0, "cuda.core's LentResource") == (cpu.live_blocks, allocator.name)


# --- Warp


@pytest.fixture
def warp() -> Any:
    return library("warp")


def test_warp_accepts_our_allocator(warp: Any, cpu: Limited, printed: list[BaseException | None]) -> None:
    """As far as Warp gets without a GPU: it is an allocator, by its protocol and the check behind the setters."""
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
    """It says itself that the host can read it; a full host is an error of ours."""
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


# --- PyOpenCL


@pytest.fixture
def pyopencl() -> Any:
    return library("pyopencl")


@pytest.fixture
def opencl(pyopencl: Any) -> Any:
    del pyopencl  # it is there
    try:
        return sys.modules["syncedmem.runtime.opencl"].OpenCLDeviceAllocator()
    except NoDeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def tools(opencl: Any) -> Any:
    import pyopencl.tools

    del opencl
    return pyopencl.tools


def test_a_pool_of_pyopencl_is_our_allocator(pyopencl: Any, opencl: Any, tools: Any) -> None:
    """What is released goes back to the pool, and not to the driver."""
    pool = tools.MemoryPool(tools.ImmediateAllocator(opencl.queue))
    allocator = pyopencl.from_resource(pool, opencl.queue)
    with Buffer(SIZE, allocator) as buffer, Buffer(SIZE, CPUDeviceAllocator()) as host:
        host.ptr[:] = 7
        buffer.copy_from(host)
        assert [7] * SIZE == buffer.ptr.get().tolist()
        assert 1 == pool.active_blocks
        allocator.memset_zero(buffer.ptr, SIZE)
        assert [0] * SIZE == buffer.ptr.get().tolist()
    del buffer
    gc.collect()
    assert (0, 1) == (pool.active_blocks, pool.held_blocks)
    assert (opencl.ordinal, opencl.queue) == (allocator.ordinal, allocator.queue)


def test_every_allocator_of_pyopencl_is_full_at_some_time(pyopencl: Any, opencl: Any, tools: Any) -> None:
    immediate = tools.ImmediateAllocator(opencl.queue)
    nothing: dict[int, object] = {}
    for theirs in (immediate, tools.MemoryPool(immediate), nothing.get):
        allocator = pyopencl.from_resource(theirs, opencl.queue)
        with pytest.raises(AllocationError, match=f"cannot allocate {1 << 50} bytes on opencl:0"):
            allocator.allocate(1 << 50)
        assert allocator.allocate(0) is None
        assert 0 == allocator.live_blocks


def test_what_is_no_buffer_of_opencl_is_refused(pyopencl: Any, opencl: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match="what the allocator returns must be a buffer of OpenCL, got ndarray"
    ):
        pyopencl.from_resource(np.zeros, opencl.queue).allocate(3)
    with pytest.raises(InvalidArgumentError, match="theirs must be an allocator of PyOpenCL"):
        pyopencl.from_resource(7, opencl.queue)
    with pytest.raises(InvalidArgumentError, match=r"queue must be a pyopencl\.CommandQueue of .*, got None"):
        pyopencl.from_resource(np.zeros, None)


def test_arrays_of_pyopencl_lie_in_our_memory(pyopencl: Any, opencl: Any, cpu: Limited) -> None:
    """OpenCL's own, and host memory that OpenCL uses; a part of an array keeps the whole."""
    import pyopencl.array as cla

    for ours, theirs in ((opencl, pyopencl.as_resource(opencl)), (cpu, pyopencl.as_resource(cpu, opencl.queue))):
        array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=theirs)
        array.fill(7)
        part = array[10:20]
        assert ([7] * SIZE, 1) == (array.get().tolist(), ours.live_blocks)
        del array
        gc.collect()
        assert ([7] * 10, 1) == (part.get().tolist(), ours.live_blocks)
        del part
        gc.collect()
        assert (0, None) == (ours.live_blocks, theirs(0))


def test_a_block_inside_a_larger_buffer_is_lent_where_it_is(pyopencl: Any, opencl: Any) -> None:
    """A guard's red zones lie around the block, and stay as they are."""
    import pyopencl.array as cla

    guarded = GuardingAllocator(opencl)
    array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=pyopencl.as_resource(guarded))
    array.fill(7)
    assert [7] * SIZE == array.get().tolist()
    del array
    gc.collect()
    guarded.check()  # looks at the zones
    guarded.clear()

    assert 0 == opencl.live_blocks


def test_host_memory_under_opencl_is_the_blocks_own(pyopencl: Any, opencl: Any, cpu: Limited) -> None:
    blocks: list[Any] = []

    class Spy(Limited):
        def allocate(self, byte_size: int) -> Any:
            blocks.append(super().allocate(byte_size))
            return blocks[-1]

    import pyopencl.array as cla

    array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=pyopencl.as_resource(Spy(), opencl.queue))
    array.fill(9)
    opencl.queue.finish()
    assert [9] * SIZE == blocks[0].tolist()
    with pytest.raises(InvalidArgumentError, match=r"queue must be a pyopencl\.CommandQueue, for host memory"):
        pyopencl.as_resource(cpu)


def test_opencl_is_done_with_host_memory_before_it_is_given_back(pyopencl: Any, opencl: Any, cpu: Limited) -> None:
    """OpenCL keeps its handle while a kernel runs, and not the memory behind it."""
    seen: list[int] = []

    class Queue(pyopencl.cl.CommandQueue):  # type: ignore[misc]  # a class of a library without types
        def finish(self) -> None:
            seen.append(cpu.live_blocks)
            super().finish()  # pyright: ignore[reportUnknownMemberType] -- as above

    buffer = pyopencl.as_resource(cpu, Queue(opencl.context))(SIZE)
    del buffer
    assert ([1], 0) == (seen, cpu.live_blocks)


def test_a_buffer_that_opencl_refuses_is_given_back(
    pyopencl: Any, opencl: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = pyopencl.as_resource(cpu, opencl.queue)
    with pytest.raises(MemoryError, match="the limit"):
        theirs(1 << 27)

    def refuse(*_: Any, **__: Any) -> None:
        raise pyopencl.cl.LogicError("Buffer", -61, "not today")

    monkeypatch.setattr(pyopencl.cl, "Buffer", refuse)
    with pytest.raises(AllocationError, match="cannot allocate 1000 bytes on cpu:0: Buffer"):
        theirs(SIZE)

    assert 0 == cpu.live_blocks


def test_a_lent_buffer_may_be_released_first(pyopencl: Any, opencl: Any) -> None:
    """As pools do it; our block goes back when the object does."""
    theirs: Callable[[int], Any] = pyopencl.as_resource(opencl)
    buffer = theirs(SIZE)
    buffer.release()
    assert 1 == opencl.live_blocks
    del buffer
    assert 0 == opencl.live_blocks


def test_a_lent_buffer_is_left_alone_when_python_goes(pyopencl: Any, opencl: Any) -> None:
    buffer = pyopencl.as_resource(opencl)(SIZE)
    cast("Any", type(buffer)).__del__(buffer, {}, lambda: True)
    assert 1 == opencl.live_blocks


def test_a_lent_buffer_may_be_the_last_to_go(pyopencl: Any, opencl: Any) -> None:
    del pyopencl, opencl
    program = """
import numpy as np
from syncedmem import named_device
from syncedmem.interop import pyopencl
np.late = pyopencl.as_resource(named_device("opencl"))(1000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_errors_are_of_the_family(rmm: Any) -> None:
    """Whatever a library raises, our callers see ours."""

    class Broken:
        def allocate(self, *_: Any) -> int:
            raise OSError("unplugged")

        deallocate = allocate

    with pytest.raises(SyncedMemoryError, match="allocate failed on RMM's Broken: OSError: unplugged"):
        rmm.from_resource(Broken(), device=None).allocate(SIZE)
