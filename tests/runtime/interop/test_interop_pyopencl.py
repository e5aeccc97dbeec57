"""The adapter for PyOpenCL, tested with PyOpenCL itself, on any OpenCL device."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from interop_fixtures import SIZE, Limited, library, limited
from subjects import failing

from syncedmem.model import AllocationError, InvalidArgumentError, NoDeviceError
from syncedmem.runtime import Buffer, CPUDeviceAllocator
from syncedmem.runtime.allocators import GuardingAllocator, PoolAllocator

if TYPE_CHECKING:
    from collections.abc import Callable

cpu = limited


@pytest.fixture
def pyopencl() -> Any:
    return library("pyopencl")


@pytest.fixture
def opencl(pyopencl: Any) -> Any:
    del pyopencl  # it only skips the test if PyOpenCL is missing
    try:
        return sys.modules["syncedmem.runtime.devices.opencl"].OpenCLDeviceAllocator()
    except NoDeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def tools(opencl: Any) -> Any:
    import pyopencl.tools

    del opencl
    return pyopencl.tools


def test_a_pool_of_pyopencl_is_our_allocator(pyopencl: Any, opencl: Any, tools: Any) -> None:
    """Released memory goes back to the pool, and not to the driver."""
    pool = tools.MemoryPool(tools.ImmediateAllocator(opencl.queue))
    allocator = pyopencl.from_resource(pool, opencl.queue)
    with Buffer(SIZE, allocator) as buffer, Buffer(SIZE, CPUDeviceAllocator()) as host:
        here: Any = host.ptr
        there: Any = buffer.ptr
        here[:] = 7
        buffer.copy_from(host)
        assert [7] * SIZE == there.get().tolist()
        assert 1 == pool.active_blocks
        allocator.memset_zero(there, SIZE)
        assert [0] * SIZE == there.get().tolist()
    del buffer, there
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


def test_an_allocator_of_pyopencl_is_asked_for_nothing_in_a_child_of_a_fork(
    pyopencl: Any, opencl: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process forks here; the test sets the state that a child would have."""
    allocator = pyopencl.from_resource(tools.ImmediateAllocator(opencl.queue), opencl.queue)
    monkeypatch.setattr(allocator._home, "lost", True)
    with pytest.raises(NoDeviceError, match="does not survive a fork"):
        allocator.allocate(SIZE)


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
    """The memory is OpenCL's own, or host memory that OpenCL uses; a part of an array keeps the whole alive."""
    import pyopencl.array as cla

    for ours, theirs in ((opencl, pyopencl.as_resource(opencl)), (cpu, pyopencl.as_resource(cpu, opencl.queue))):
        array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=theirs)
        array.set(np.full(SIZE, 7, np.uint8))
        part = array[10:20]
        assert ([7] * SIZE, 1) == (array.get().tolist(), ours.live_blocks)
        del array
        gc.collect()
        assert ([7] * 10, 1) == (part.get().tolist(), ours.live_blocks)
        del part
        gc.collect()
        assert (0, None) == (ours.live_blocks, theirs(0))


def test_a_block_inside_a_larger_buffer_is_exported_where_it_is(pyopencl: Any, opencl: Any) -> None:
    """The red zones of a guarding allocator, which are around the block, do not change."""
    import pyopencl.array as cla

    guarded = GuardingAllocator(opencl)
    array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=pyopencl.as_resource(guarded))
    array.set(np.full(SIZE, 7, np.uint8))
    assert [7] * SIZE == array.get().tolist()
    del array
    gc.collect()
    guarded.check()  # checks the red zones
    guarded.clear()

    assert 0 == opencl.live_blocks


def test_a_pool_lends_an_exported_block_again_after_the_work_on_it(pyopencl: Any, opencl: Any) -> None:
    """The work is on the queue that was current when the block was taken; another is when it is given back."""
    cl, pool, queue = pyopencl.cl, PoolAllocator(opencl), opencl.stream()
    gate = cl.UserEvent(opencl.context)
    with opencl.on(queue):
        buffer = pyopencl.as_resource(pool)(SIZE)
    cl.enqueue_fill_buffer(queue, buffer, np.uint8(7), 0, SIZE, wait_for=[gate])
    queue.flush()
    del buffer
    early = pool.allocate(SIZE)
    assert 1 == pool.idle_blocks
    gate.set_status(cl.command_execution_status.COMPLETE)
    queue.finish()
    late = pool.allocate(SIZE)
    assert 0 == pool.idle_blocks
    for block in (early, late):
        pool.release(block)


def test_host_memory_under_opencl_is_the_blocks_own(pyopencl: Any, opencl: Any, cpu: Limited) -> None:
    blocks: list[Any] = []

    class Spy(Limited):
        def allocate(self, byte_size: int) -> Any:
            blocks.append(super().allocate(byte_size))
            return blocks[-1]

    import pyopencl.array as cla

    array = cla.zeros(opencl.queue, SIZE, np.uint8, allocator=pyopencl.as_resource(Spy(), opencl.queue))
    array.set(np.full(SIZE, 9, np.uint8))
    opencl.queue.finish()
    assert [9] * SIZE == blocks[0].tolist()
    with pytest.raises(InvalidArgumentError, match=r"queue must be a pyopencl\.CommandQueue, for host memory"):
        pyopencl.as_resource(cpu)


def test_opencl_is_done_with_host_memory_before_it_is_given_back(pyopencl: Any, opencl: Any, cpu: Limited) -> None:
    """While a kernel runs, OpenCL keeps its handle alive, but not the host memory behind it."""
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

    monkeypatch.setattr(pyopencl.cl, "Buffer", failing(pyopencl.cl.LogicError, "Buffer", -61, "not today"))
    with pytest.raises(AllocationError, match="cannot allocate 1000 bytes on cpu:0: Buffer"):
        theirs(SIZE)
    monkeypatch.setattr(pyopencl.cl, "Buffer", failing(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        theirs(SIZE)

    assert 0 == cpu.live_blocks


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_block_that_cannot_be_given_back_is_told_of(
    pyopencl: Any, opencl: Any, error: Any, printed: list[BaseException | None]
) -> None:
    class Queue(pyopencl.cl.CommandQueue):  # type: ignore[misc]  # a class of a library without types
        finish = failing(error, "lost")

    buffer = pyopencl.as_resource(CPUDeviceAllocator(), Queue(opencl.context))(SIZE)
    with pytest.warns(ResourceWarning, match="1000 bytes leaked on cpu:0"):
        del buffer
    assert [error] == [type(unraisable) for unraisable in printed]


def test_an_exported_buffer_may_be_released_first(pyopencl: Any, opencl: Any) -> None:
    """Pools do this; our block is released when the Python object is freed."""
    theirs: Callable[[int], Any] = pyopencl.as_resource(opencl)
    buffer = theirs(SIZE)
    buffer.release()
    assert 1 == opencl.live_blocks
    del buffer
    assert 0 == opencl.live_blocks


def test_an_exported_buffer_is_left_alone_when_python_goes(pyopencl: Any, opencl: Any) -> None:
    buffer = pyopencl.as_resource(opencl)(SIZE)
    cast("Any", type(buffer)).__del__(buffer, {}, lambda: True)
    assert 1 == opencl.live_blocks
