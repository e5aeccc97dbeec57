"""Streams and events of the simulated device, the seeds that decide when work happens, and several devices."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import ACROSS, SIZE, UP, allocated, row
from subjects import failing

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidSizeError, NoDeviceError
from syncedmem.runtime import (
    Blob,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
    arithmetic_of,
    using_device,
)
from syncedmem.runtime.devices.simulated.simulation import ORDINALS, current_device

if TYPE_CHECKING:
    from collections.abc import Callable

# --- streams and events


def test_a_queued_copy_happens_when_its_stream_is_waited_for(device: SimulatedDeviceAllocator) -> None:
    """The copy reads its source only then, so a change before that is copied too."""
    source, block, stream = row(7), allocated(device, 9), device.stream()
    device.memcpy(source, block, SIZE, UP, stream)
    before = block.get()
    source[:] = 8
    stream.synchronize()

    assert ([9] * SIZE, [8] * SIZE) == (before.tolist(), block.get().tolist())


def test_the_work_of_a_stream_that_nobody_holds_happens(device: SimulatedDeviceAllocator) -> None:
    """On a real device too, destroying a stream does not stop its work; after the work the stream is freed."""
    block = allocated(device, 9)
    stream = device.stream()
    device.memset_zero(block, SIZE, stream)
    watch = weakref.ref(stream)
    del stream
    gc.collect()
    held = watch() is not None
    device.synchronize()
    gc.collect()

    assert (True, True, 0) == (held, watch() is None, int(block.get().max()))


def test_an_event_is_done_when_what_was_queued_before_it_is(device: SimulatedDeviceAllocator) -> None:
    """A wait for the event runs the stream up to the event and no further."""
    first, second, stream = allocated(device, 1), allocated(device, 1), device.stream()
    assert device.record(stream).done
    device.memset_zero(first, SIZE, stream)
    event = device.record(stream)
    device.memset_zero(second, SIZE, stream)
    assert not event.done
    event.synchronize()

    assert (True, False, 0, 1) == (event.done, stream.done, first.get()[0], second.get()[0])


def test_a_stream_waits_for_an_event_of_another(device: SimulatedDeviceAllocator) -> None:
    """Running the second stream runs the first up to the event."""
    block, first, second = allocated(device, 1), device.stream(), device.stream()
    block.set(row(2), first)
    event = first.record()
    second.wait_event(event)
    copy = allocated(device)
    device.memcpy(block, copy, SIZE, ACROSS, second)
    assert not event.done
    second.synchronize()

    assert (True, [2] * SIZE) == (event.done, copy.get().tolist())


def test_a_wait_that_was_queued_last_is_not_queued_again(device: SimulatedDeviceAllocator) -> None:
    """As by a memory that is read again and again while a push is in flight."""
    stream, seen = device.stream(), list[int]()
    stream.put(lambda: seen.append(1))
    event = device.record(stream)
    for _ in range(3):
        device.order_after(event)
    device.synchronize()

    assert ([1], 1) == (seen, device.current_stream().finished)


def test_waiting_for_all_streams_skips_those_that_others_ran(device: SimulatedDeviceAllocator) -> None:
    first, second, block = device.stream(), device.stream(), allocated(device, 1)
    block.set(row(3), first)
    block.set(row(2), second)
    first.wait_event(second.record())
    device.synchronize()

    assert (True, True, 2) == (first.done, second.done, block.get()[0])


def test_later_work_of_the_default_stream_comes_after_an_event(device: SimulatedDeviceAllocator) -> None:
    """The call does not block: nothing runs until the block is read."""
    block, stream = allocated(device, 1), device.stream()
    block.set(row(2), stream)
    event = device.record(stream)
    device.order_after(event)
    assert not event.done

    assert ([2] * SIZE, True) == (block.get().tolist(), event.done)


# --- the current stream, and kernels


def double(source: Any, target: Any) -> None:
    """A kernel: twice the items."""
    target[...] = 2 * source


def test_a_with_block_makes_a_stream_current_in_its_thread(device: SimulatedDeviceAllocator) -> None:
    first, second = device.stream(), device.stream()
    outside = device.current_stream()
    with first as entered, device.on(second), ThreadPoolExecutor(1) as elsewhere:
        found = device.current_stream(), elsewhere.submit(device.current_stream).result()

    assert (first, second, outside) == (entered, *found)
    assert (0, outside) == (outside.number, device.current_stream())


def test_a_kernel_happens_when_its_stream_is_waited_for(device: SimulatedDeviceAllocator) -> None:
    """It is given the items in their type and shape."""
    source, target = (allocated(device, value).view(np.int16).reshape(2, -1) for value in (1, 0))
    stream = device.stream()
    stream.launch(double, source, target)
    before = target.get()
    stream.synchronize()

    assert (0, (2, SIZE // 4)) == (before.max(), target.get().shape)
    assert (2 * source.get()).tolist() == target.get().tolist()


@pytest.mark.parametrize("entered", [False, True], ids=["default", "entered"])
def test_what_reads_or_copies_comes_after_the_current_stream(device: SimulatedDeviceAllocator, entered: bool) -> None:
    source, target, copy = allocated(device, 1), allocated(device, 0), allocated(device, 0)
    with device.stream() if entered else nullcontext():
        stream = device.current_stream()
        stream.launch(double, source, target)
        shown = int(target.get()[0])
        stream.launch(double, target, target)
        device.memcpy(target, copy, SIZE, ACROSS)
        stream.launch(double, copy, copy)
        total = arithmetic_of(device).asum(copy.view(np.float32))

    assert (2, [8] * SIZE) == (shown, copy.get().tolist())
    assert total == float(np.full(SIZE, 8, np.uint8).view(np.float32).sum(dtype=np.float64))


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_a_push_comes_after_kernels_that_read_the_old_bytes(seed: int | None) -> None:
    """Two blobs in turn, each with a stream for its pushes, as with double buffers, and no events."""
    device = SimulatedDeviceAllocator(seed=seed)
    batches, sums = [Blob((SIZE,), device=device) for _ in range(2)], Blob((24, SIZE), device=device)
    streams = [device.stream() for _ in batches]
    for number in range(24):
        batch = batches[number % 2]
        batch.mutable_cpu_data()[:] = number
        batch.data_memory.async_gpu_push(stream=streams[number % 2])
        row_of_sums = sums.mutable_gpu_data()[number : number + 1].reshape(SIZE)
        device.current_stream().launch(double, batch.gpu_data(), row_of_sums)

    assert [2.0 * number for number in range(24)] == sums.cpu_data()[:, 0].tolist()


def test_kernels_find_bytes_that_were_freed_before_their_turn(device: SimulatedDeviceAllocator) -> None:
    """As on a real device.  Later readers are refused, and the kernel's late write is no stray one."""
    source, target, stream = allocated(device, 3), allocated(device, 0), device.stream()
    stream.launch(double, source, target)
    stream.launch(double, source, source)
    device.release(source)
    device.synchronize()
    device.check()

    assert [6] * SIZE == target.get().tolist()
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        source.get()
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        stream.launch(double, source, target)
    assert stream.done


def test_a_kernel_cannot_write_to_what_is_read_only(device: SimulatedDeviceAllocator) -> None:
    block = allocated(device, 1)
    device.current_stream().launch(double, block, device.read_only(block))
    with pytest.raises(ValueError, match="read-only"):
        device.synchronize()

    assert 1 == block.get()[0]


def test_what_is_no_kernel_no_array_no_stream_and_no_event_is_refused(device: SimulatedDeviceAllocator) -> None:
    """Nothing is queued then."""
    stream, block, elsewhere = device.stream(), allocated(device), allocated(SimulatedDeviceAllocator())
    wrong: Any
    refused: list[tuple[str, Callable[[Any], object], tuple[Any, ...]]] = [
        ("function", lambda wrong: stream.launch(wrong, block), (3, None)),
        ("arrays", lambda wrong: stream.launch(double, block, wrong), (row(1), None, elsewhere)),
        ("stream", device.on, (elsewhere, 3)),
        ("stream", lambda wrong: block.set(row(1), wrong), (elsewhere, 3)),
        ("event", stream.wait_event, (None, 3, "x", object(), row(1))),
    ]
    for argument, use, values in refused:
        for wrong in values:
            with pytest.raises(InvalidArgumentError) as error:
                use(wrong)
            assert argument == error.value.argument

    assert stream.done


# --- work that fails


def test_a_failed_operation_is_dropped_and_raised_where_somebody_waits(device: SimulatedDeviceAllocator) -> None:
    """Later operations still run, and the call that raises the error has done nothing itself."""
    gone, block, stream = allocated(device), allocated(device, 1), device.stream()
    device.memset_zero(gone, SIZE, stream)
    device.memset_zero(block, SIZE, stream)
    device.order_after(device.record(stream))
    device.release(gone)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        device.memcpy(row(7), block, SIZE, UP)

    assert ([0] * SIZE, True) == (block.get().tolist(), stream.done)


def test_an_operation_that_was_interrupted_happens_when_somebody_waits_again(device: SimulatedDeviceAllocator) -> None:
    """An operation that waits for its own stream, as a finaliser may do, is finished once."""
    stream, seen = device.stream(), list[str]()

    def operation() -> None:
        seen.append("begun")
        if len(seen) == 1:
            raise KeyboardInterrupt
        if len(seen) == 2:
            stream.synchronize()

    stream.put(operation)
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    assert not stream.done
    stream.synchronize()

    assert (True, 3, 1) == (stream.done, len(seen), stream.finished)


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize("wait", ["stream", "event"])
def test_an_operation_that_ran_out_is_not_over(
    device: SimulatedDeviceAllocator, wait: str, error: type[Exception]
) -> None:
    """It has not failed either: it happens when somebody waits again, once, and before what comes after it."""
    stream, seen, answers = device.stream(), list[str](), [error()]

    def operation() -> None:
        if answers:
            raise answers.pop()
        seen.append("first")

    stream.put(operation)
    stream.put(lambda: seen.append("second"))
    event = device.record(stream)
    waited_for: Any = stream if wait == "stream" else event
    with pytest.raises(error):
        waited_for.synchronize()
    assert ([], False, False) == (seen, stream.done, event.done)
    waited_for.synchronize()

    assert (["first", "second"], True, True) == (seen, stream.done, event.done)
    event.synchronize()


@pytest.mark.parametrize("wait", ["stream", "event", "get"])
def test_what_a_signal_handler_raises_in_a_copy_reaches_only_the_one_who_waits(
    device: SimulatedDeviceAllocator, wait: str
) -> None:
    """The copy may be of somebody else.  It is no failure: it happens when somebody waits again."""
    stream, block, seen = device.stream(), allocated(device), list[str]()

    def operation() -> None:
        if not seen:
            seen.append("interrupted")
            raise TimeoutError

    stream.put(operation)
    device.memcpy(row(7), block, SIZE, UP, stream)
    event = device.record(stream)
    waits: dict[str, Callable[[], object]] = {
        "stream": stream.synchronize,
        "event": event.synchronize,
        "get": device.synchronize,
    }
    with pytest.raises(TimeoutError):
        waits[wait]()
    assert not event.done
    event.synchronize()

    assert [7] * SIZE == block.get().tolist()


def test_an_event_goes_on_failing_when_its_copy_failed(device: SimulatedDeviceAllocator) -> None:
    """Work that waits for the event fails too; events of later copies on the same stream do not fail."""
    stream, source = device.stream(), np.zeros(SIZE, np.uint8)
    target = allocated(device)
    device.memcpy(source, target, SIZE, UP, stream)
    lost = device.record(stream)
    device.release(target)
    for _ in range(3):
        with pytest.raises(SimulatedDeviceError, match="after it was freed"):
            lost.synchronize()
    assert lost.done

    other = allocated(device)
    device.memcpy(source, other, SIZE, UP, stream)
    device.record(stream).synchronize()
    assert not other.get().any()
    device.order_after(lost)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        other.get()


def test_failures_that_no_event_can_tell_of_take_no_memory(device: SimulatedDeviceAllocator) -> None:
    stream = device.stream()

    def operation() -> None:
        raise SimulatedDeviceError("lost" * 10_000)

    tracemalloc.start()
    try:
        for _ in range(50):
            stream.put(operation)
            with pytest.raises(SimulatedDeviceError):
                stream.synchronize()
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


# --- seeds


def moments(seed: Any) -> list[list[bool]]:
    """Return which of three streams are done after each of 24 calls."""
    device = SimulatedDeviceAllocator(seed=seed)
    streams = [device.stream() for _ in range(3)]
    block, seen = allocated(device), list[list[bool]]()
    for step in range(24):
        device.memset_zero(block, SIZE, streams[step % 3])
        seen.append([stream.done for stream in streams])
    return seen


def test_a_seed_replays_the_moments_and_other_seeds_have_others() -> None:
    """The addresses of objects, which differ between runs, have no influence."""
    keep = [object() for _ in range(1000)]
    runs = [moments(5), moments(np.int64(5)), moments(6), moments(7)]
    del keep[::2]

    assert runs[0] == runs[1] == moments(5)
    assert len({str(run) for run in runs}) == 3
    assert {True, False} == {done for run in runs for step in run for done in step}
    assert not any(done for step in moments(None)[2:] for done in step)


def test_a_seeded_device_keeps_the_order_of_a_stream() -> None:
    """At whatever moments the copies run, the last one queued runs last."""
    for seed in range(20):
        device = SimulatedDeviceAllocator(seed=seed)
        block, stream = allocated(device), device.stream()
        for value in range(8):
            block.set(row(value), stream)
        stream.synchronize()
        assert block.get()[0] == 7


def test_an_error_that_cannot_be_said_leaves_the_queue(device: SimulatedDeviceAllocator) -> None:
    """Who waits must not wait on; the error has its name then."""

    class MuteError(SimulatedDeviceError):
        def __str__(self) -> str:
            raise TypeError("nothing says it")

    stream = device.stream()
    stream.put(failing(MuteError))
    event = stream.record()
    with pytest.raises(SimulatedDeviceError, match=r"^MuteError$"):
        event.synchronize()

    assert stream.done
    assert event.done


# --- devices and threads


def test_the_current_device_belongs_to_a_thread_and_is_restored(device: SimulatedDeviceAllocator) -> None:
    """It is restored after an exception too, and after calls on another device."""
    other, seen = SimulatedDeviceAllocator(2), list[int]()

    def work() -> None:
        other.release(other.allocate(SIZE))
        seen.append(other.current_ordinal())
        with other.using():
            seen.append(device.current_ordinal())
        with pytest.raises(AllocationError):
            other.allocate(1 << 60)
        seen.append(current_device())
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join(10)
        raise KeyError

    with pytest.raises(KeyError), using_device(3):
        work()
    seen.append(current_device())

    assert [3, 2, 3, 0, 0] == seen


def test_a_device_that_is_made_current_twice_is_left_twice() -> None:
    again = using_device(2)
    with using_device(1):
        with again, using_device(3), again:
            assert 2 == current_device()
        assert 1 == current_device()


@pytest.mark.parametrize(
    ("error", "options"),
    [
        *((NoDeviceError, {"ordinal": wrong}) for wrong in (-1, ORDINALS)),
        *((InvalidArgumentError, {"ordinal": wrong}) for wrong in (1.0, True, "1")),
        *((InvalidArgumentError, {"seed": wrong}) for wrong in (1.5, "seed", True)),
        (InvalidSizeError, {"capacity": -1}),
        (InvalidArgumentError, {"capacity": 1.5}),
    ],
)
def test_there_are_no_other_devices(error: type[Exception], options: dict[str, Any]) -> None:
    with pytest.raises(error) as refused:
        SimulatedDeviceAllocator(**options)
    if isinstance(refused.value, NoDeviceError):
        with pytest.raises(NoDeviceError), using_device(options["ordinal"]):
            pass

    assert (current_device(), "simulated:3") == (0, SimulatedDeviceAllocator(ORDINALS - 1).name)


@pytest.mark.parametrize("use", ["get", "memcpy", "allocate", "release", "synchronize"])
def test_two_threads_on_one_device_wait_for_each_other(device: SimulatedDeviceAllocator, use: str) -> None:
    """While one thread performs queued work, the other does not return before that work is complete."""
    block, other, stream = allocated(device, 1), allocated(device), device.stream()
    entered, gate = threading.Event(), threading.Event()
    uses: dict[str, Callable[[], object]] = {
        "get": block.get,
        "memcpy": lambda: device.memcpy(row(1), other, SIZE, UP),
        "allocate": lambda: device.allocate(SIZE),
        "release": lambda: device.release(other),
        "synchronize": stream.synchronize,
    }

    def operation() -> None:
        entered.set()
        gate.wait(10)

    stream.put(operation)
    threads = [threading.Thread(target=stream.synchronize), threading.Thread(target=uses[use])]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    waits = threads[1].is_alive()
    gate.set()
    for thread in threads:
        thread.join(10)

    assert (True, False) == (waits, threads[1].is_alive())
