"""`OpenCLDeviceAllocator` on this machine's OpenCL; PoCL provides one on any processor."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import failing

from syncedmem.model import (
    InvalidArgumentError,
    NoDeviceError,
)
from syncedmem.runtime import (
    DeviceType,
    MemcpyKind,
    SyncedMemory,
    arithmetic_of,
)
from syncedmem.runtime.allocators.pointers import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import syncedmem.runtime.devices.opencl as opencl_module

    opencl_module.OpenCLDeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no OpenCL here: {error}", allow_module_level=True)

cl: Any = opencl_module.cl
cla: Any = opencl_module.cla

SIZE = 16
UP, DOWN, ACROSS = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA


@pytest.fixture
def device() -> Any:
    """The first device, with a context that only this test uses."""
    return opencl_module.OpenCLDeviceAllocator()


@pytest.fixture
def gate(device: Any) -> Iterator[Any]:
    """An event that a queue can wait for; it is completed at the end, so that nothing hangs."""
    event = cl.UserEvent(device.context)
    yield event
    if event.command_execution_status > 0:
        event.set_status(cl.command_execution_status.COMPLETE)


def hold(queue: Any, gate: Any) -> None:
    """Hold the queue: work that is queued from now on runs only after the gate is opened."""
    cl.enqueue_barrier(queue, wait_for=[gate])
    queue.flush()


def let_go(gate: Any) -> None:
    """Open the gate."""
    gate.set_status(cl.command_execution_status.COMPLETE)


def opening(gate: Any) -> None:
    """Open the gate a little later, while the caller waits."""
    threading.Timer(0.1, let_go, (gate,)).start()


def row(value: int, size: int = SIZE) -> Any:
    """Host bytes that are all the same."""
    return np.full(size, value, np.uint8)


def filled(device: Any, value: int, size: int = SIZE) -> Any:
    """A block of device memory that holds one value."""
    block = device.allocate(size)
    block.set(row(value, size))
    return block


def test_the_device_is_named_by_its_driver(device: Any) -> None:
    found = device.context.devices[0]

    assert (DeviceType.OPENCL, "opencl:0") == (device.device_type, device.name)
    assert found.name in device.description
    assert found.platform.name in device.description


def test_a_device_that_there_is_not_is_refused() -> None:
    with pytest.raises(NoDeviceError, match="there is no OpenCL device 999; there are "):
        opencl_module.OpenCLDeviceAllocator(999)
    with pytest.raises(InvalidArgumentError, match="ordinal must be the number of a device"):
        opencl_module.OpenCLDeviceAllocator("0")  # type: ignore[arg-type] # on purpose


def test_a_device_that_cannot_be_used_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver lists it and then fails."""
    monkeypatch.setattr(cl, "Context", failing(cl.Error, "DEVICE_NOT_AVAILABLE"))
    with pytest.raises(NoDeviceError, match="OpenCL cannot be used: DEVICE_NOT_AVAILABLE"):
        opencl_module.OpenCLDeviceAllocator()


def test_other_memory_is_not_adopted(device: Any) -> None:
    elsewhere, near = opencl_module.OpenCLDeviceAllocator(), device.empty(SIZE)
    cases: list[tuple[Any, int, str]] = [
        (near.base_data, SIZE, "not a pyopencl.array.Array"),
        (elsewhere.empty(SIZE), SIZE, "belongs to another OpenCL context"),
        (cla.zeros(device.queue, (4, 4), np.uint8, order="F"), SIZE, "not contiguous"),
        (device.empty(2 * SIZE)[::2], SIZE, "not contiguous"),
    ]
    for buffer, size, reason in cases:
        with pytest.raises(ValueError, match=reason):
            device.adopt(buffer, size)


def test_shared_virtual_memory_is_not_adopted(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyOpenCL's arrays can be in shared virtual memory, but our copies are between buffers."""
    array = device.empty(SIZE)
    monkeypatch.setattr(array, "base_data", object())
    with pytest.raises(ValueError, match="lies in shared virtual memory"):
        device.adopt(array, SIZE)


def test_a_part_of_a_buffer_overlaps_it(device: Any) -> None:
    """A sub-buffer is a separate object over some of the same bytes, with its own offset."""
    align = device.queue.device.mem_base_addr_align // 8
    block = device.allocate(4 * align)
    part = cla.Array(device.queue, (align,), np.uint8, data=block.base_data.get_sub_region(align, 2 * align))

    assert device.overlaps(part, block)
    assert device.overlaps(part, block[2 * align - 1 : 2 * align])
    assert not device.overlaps(part, block[2 * align :])
    assert not device.overlaps(part, block[:align])
    device.release(block)


def test_an_array_without_bytes_has_no_address(device: Any) -> None:
    """PyOpenCL gives it no buffer."""
    assert 0 == address_of(cla.Array(device.queue, (0,), np.uint8))


# --- streams that are held back by a gate


def test_later_work_of_the_own_queue_comes_after_an_event(device: Any, gate: Any) -> None:
    """The host is not blocked."""
    block, stream = filled(device, 9), device.stream()
    hold(stream, gate)
    device.memcpy(row(7), block, SIZE, UP, stream)
    device.order_after(device.record(stream))
    copy = device.empty(SIZE)
    done = cl.enqueue_copy(device.queue, copy.base_data, block.base_data, byte_count=SIZE)
    device.queue.flush()
    assert done.command_execution_status != cl.command_execution_status.COMPLETE
    let_go(gate)

    assert [7] * SIZE == copy.get().tolist()


@pytest.mark.parametrize("entered", [False, True], ids=["own", "entered"])
def test_a_push_comes_after_what_the_current_queue_has(device: Any, gate: Any, entered: bool) -> None:
    """Work there reads the old bytes, and the host is not blocked."""
    with SyncedMemory(SIZE, device=device) as memory, device.on(device.stream()) if entered else nullcontext():
        memory.mutable_cpu_data()[:] = 7
        old, found, stream = memory.gpu_data(), device.empty(SIZE), device.stream()
        hold(device.current_stream(), gate)
        device.memcpy(old, found, SIZE, ACROSS, device.current_stream())
        memory.mutable_cpu_data()[:] = 9
        memory.async_gpu_push(stream=stream)
        pushed = device.record(stream)
        assert not pushed.done
        let_go(gate)
        pushed.synchronize()

        assert [7] * SIZE == found.get().tolist()
        assert [9] * SIZE == memory.gpu_data().get().tolist()


def test_a_fill_on_a_queue_comes_after_what_the_current_queue_has(device: Any, gate: Any) -> None:
    block, stream = filled(device, 7), device.stream()
    hold(device.queue, gate)
    device.memset_zero(block, SIZE, stream)
    filling = device.record(stream)
    assert not filling.done
    let_go(gate)
    filling.synchronize()

    assert [0] * SIZE == block.get().tolist()


def test_a_with_block_makes_a_queue_current_in_its_thread(device: Any) -> None:
    """Arrays that are shown there are on the queue, and arithmetic uses it."""
    queue, block = device.stream(), filled(device, 1)
    with device.on(queue) as entered, ThreadPoolExecutor(1) as others:
        inside = device.viewer(block)(), device.empty(4), device.empty(0)
        elsewhere = others.submit(device.current_stream).result()
        assert (queue, queue) == (entered, device.current_stream())
    after = device.viewer(block)()

    assert [queue] * 3 == [array.queue for array in inside]
    assert [device.queue] * 3 == [elsewhere, device.current_stream(), after.queue]
    with pytest.raises(InvalidArgumentError, match="stream must be a command queue of opencl:0"), device.on("queue"):
        pass


def test_arithmetic_comes_after_what_the_current_queue_has(device: Any, gate: Any) -> None:
    """Work of the allocator's own queue, which is held, is not waited for."""
    numbers, queue = device.empty(16).view(np.float32), device.stream()
    numbers.set(np.arange(4, dtype=np.float32))
    hold(device.queue, gate)
    with device.on(queue):
        total = arithmetic_of(device).asum(numbers)
    let_go(gate)

    assert total == 6.0


def test_a_copy_on_the_host_comes_after_what_its_stream_holds(device: Any, gate: Any) -> None:
    """Here the stream holds a copy from the device into the source."""
    block, stream, near, dest = filled(device, 7), device.stream(), row(0), row(0)
    hold(stream, gate)
    device.memcpy(block, near, SIZE, DOWN, stream)
    opening(gate)
    device.memcpy(near, dest, SIZE, MemcpyKind.CPU2CPU, stream)

    assert [7] * SIZE == dest.tolist()


def test_copies_that_are_over_are_not_kept(device: Any, gate: Any) -> None:
    """Copies in flight are kept, with their host memory."""
    block, stream = filled(device, 9), device.stream()
    hold(stream, gate)
    for _ in range(3):
        device.memcpy(row(7), block, SIZE, UP, stream)
    assert len(device._queued) == 3
    let_go(gate)
    stream.finish()
    device.memcpy(row(7), block, SIZE, UP, stream)

    assert len(device._queued) == 1


def test_an_event_after_a_failure_is_over_and_says_so(gate: Any) -> None:
    """A failed event is never complete, so a wait must also end at a failure."""
    event: Any = opencl_module._QueueEvent(gate, lambda: None)  # pyright: ignore[reportPrivateUsage] -- made by hand, so that it can fail
    assert not event.done
    gate.set_status(-5)

    assert event.done
    with pytest.raises(cl.Error):
        event.synchronize()


def test_arithmetic_comes_after_what_is_in_the_queue(device: Any, gate: Any) -> None:
    x = device.empty(16).view(np.float32)
    x.set(np.ones(4, np.float32))
    hold(device.queue, gate)
    cl.enqueue_fill_buffer(device.queue, x.base_data, np.float32(3), 0, 16)
    timer = threading.Timer(0.2, gate.set_status, [cl.command_execution_status.COMPLETE])
    timer.start()

    assert arithmetic_of(device).asum(x) == 12
    timer.join()


def test_an_allocator_that_computed_goes_without_a_collector() -> None:
    device = opencl_module.OpenCLDeviceAllocator()
    x = device.empty(16).view(np.float32)
    arithmetic_of(device).scal(0.0, x)
    gone = weakref.ref(device)
    gc.disable()
    try:
        del device
        assert gone() is None
    finally:
        gc.enable()


def test_a_view_of_fresh_memory_is_refused_in_a_child_of_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the view would wait for ever. This test does not fork; it sets the state that a child would have."""
    device = opencl_module.OpenCLDeviceAllocator()
    with SyncedMemory(8, device=device) as memory:
        memory.gpu_data()
        with monkeypatch.context() as child:
            child.setattr(device._home, "lost", True)  # pyright: ignore[reportPrivateUsage] -- only a child sets it
            with pytest.raises(NoDeviceError, match="does not survive a fork"):
                memory.gpu_data()
        assert memory.gpu_data().get().tolist() == [0] * 8
