"""`Buffer`: memory with an owner, on every device of this machine."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    ClosedMemoryError,
    DeviceError,
    InvalidArgumentError,
    InvalidSizeError,
    ReentrantCallError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.devices.host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

ALLOCATORS: list[Any] = [CPUDeviceAllocator(), *devices(), SimulatedDeviceAllocator(2)]


def name_of(allocator: Any) -> str:
    """The name of a device in test ids."""
    return str(allocator.name)


def holding(value: int, allocator: Any, size: int = SIZE) -> Buffer:
    """A buffer whose bytes all have one value."""
    buffer, content = Buffer(size, allocator), np.full(size, value, np.uint8)
    buffer.copy_from(Buffer(size, None, content, use_external=True))
    return buffer


def shown(buffer: Buffer) -> list[int]:
    """The bytes of a buffer."""
    host = np.zeros(buffer.byte_size, np.uint8)
    Buffer(buffer.byte_size, None, host, use_external=True).copy_from(buffer)
    return host.tolist()


@pytest.mark.parametrize("to", ALLOCATORS, ids=name_of)
@pytest.mark.parametrize("from_", ALLOCATORS, ids=name_of)
def test_bytes_are_copied_between_any_two_devices(from_: Any, to: Any) -> None:
    """The two devices decide the direction; if they cannot reach each other, the bytes go through the host."""
    source, target = holding(7, from_), holding(0, to, SIZE + 2)
    target.copy_from(source, need_sync=True)

    assert [7] * SIZE + [0, 0] == shown(target)
    assert [7] * SIZE == shown(source)


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=name_of)
def test_what_is_its_own_is_released_once(allocator: Any) -> None:
    """It is released by close, at the end of a with block, or when nobody uses the buffer any more."""
    before = allocator.live_blocks
    closed = Buffer(SIZE, allocator)
    closed.close()
    closed.close()
    with Buffer(SIZE, allocator) as inside:
        owned = (inside.is_external, inside.ptr is not None, allocator.live_blocks - before)
    dropped = Buffer(SIZE, allocator)
    del dropped

    assert (False, True, 1) == owned
    assert (None, None, before) == (closed.ptr, inside.ptr, allocator.live_blocks)


@pytest.mark.parametrize("external", [False, True])
def test_a_closed_buffer_is_not_entered_until_it_has_memory_again(
    device: SimulatedDeviceAllocator, external: bool
) -> None:
    """A buffer that never had memory is not closed."""
    ptr = device.empty(SIZE) if external else None
    buffer = Buffer(SIZE, device, ptr, use_external=external)
    with buffer:
        pass
    with pytest.raises(ClosedMemoryError, match="with: this buffer of 48 bytes is closed"), buffer:
        pytest.fail("inside")
    buffer.allocate()
    with buffer as opened, Buffer():
        assert opened.ptr is not None

    assert device.live_blocks == 0


def test_external_memory_is_used_and_never_released(device: SimulatedDeviceAllocator) -> None:
    block = device.allocate(SIZE)
    with Buffer(SIZE, device, block, use_external=True) as buffer:
        buffer.copy_from(holding(9, CPUDeviceAllocator()))
        external = buffer.is_external

    assert (True, 1, [9] * SIZE) == (external, device.live_blocks, block.get().tolist() if block else None)


def test_a_block_can_be_handed_over(device: SimulatedDeviceAllocator) -> None:
    """After that the buffer has to release it."""
    block = device.allocate(SIZE)
    buffer = Buffer(SIZE, device, block)
    owned = (buffer.is_external, buffer.ptr is block, buffer.device_type)
    buffer.close()

    assert ((False, True, DeviceType.SIMULATED), 0) == (owned, device.live_blocks)


def test_allocating_anew_releases_what_was_there(device: SimulatedDeviceAllocator) -> None:
    """KuiperLLama's allocate() forgets the old pointer."""
    buffer = holding(3, device)
    first = buffer.ptr
    again = buffer.allocate()

    assert (True, 1, True) == (again, device.live_blocks, buffer.ptr is not first)
    external = Buffer(SIZE, device, device.empty(SIZE), use_external=True)
    assert (True, False, 2) == (external.allocate(), external.is_external, device.live_blocks)


def test_zero_bytes_allocate_nothing_and_copy(device: SimulatedDeviceAllocator) -> None:
    empty, nothing = Buffer(0, device), Buffer()
    holding(1, device).copy_from(empty)
    empty.copy_from(nothing)

    assert (None, False, 0) == (empty.ptr, empty.allocate(), len(empty))
    assert (DeviceType.UNKNOWN, None) == (nothing.device_type, nothing.allocator)


def test_a_buffer_that_cannot_be_allocated_anew_is_as_it_was() -> None:
    """Either there is no room for both blocks, or the old block cannot be released."""
    small = SimulatedDeviceAllocator(capacity=SIZE + 8)
    buffer = holding(5, small)
    with pytest.raises(AllocationError, match="bytes are in use"):
        buffer.allocate()
    roomy = SimulatedDeviceAllocator()
    other = holding(6, roomy)
    roomy.fail_at(1, "release")
    with pytest.raises(ReleaseError, match="release failed on simulated:0"):
        other.allocate()

    assert ([5] * SIZE, [6] * SIZE, 1) == (shown(buffer), shown(other), roomy.live_blocks)


def test_any_memory_error_is_an_allocation_error() -> None:
    class Full(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            raise MemoryError(f"{byte_size} is too much")

    with pytest.raises(AllocationError, match="cannot allocate 48 bytes on cpu:0: 48 is too much"):
        Buffer(SIZE, Full())


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Buffer(-1), InvalidSizeError, "got -1"),
        (lambda: Buffer("16"), InvalidArgumentError, "got '16'"),  # type: ignore[arg-type] # the point
        (lambda: Buffer(16, "cpu"), InvalidArgumentError, "allocator must be an allocator, or None, got 'cpu'"),  # type: ignore[arg-type] # the point
        (lambda: Buffer(16, CPUDeviceAllocator), InvalidArgumentError, "allocator must be an allocator"),  # type: ignore[arg-type] # the point
        (lambda: Buffer(16, None, bytearray(16)), InvalidArgumentError, "which ptr came from"),
        (lambda: Buffer(16).allocate(), InvalidArgumentError, "an allocator, to allocate with, got None"),
        (lambda: Buffer(16, None, bytearray(15), use_external=True), BufferMismatchError, "it has 15 bytes, and 16"),
        (lambda: Buffer(16, cpu_allocator(), bytes(16), use_external=True), BufferMismatchError, "read-only"),
        (
            lambda: Buffer(16, SimulatedDeviceAllocator(), bytearray(16), use_external=True),
            BufferMismatchError,
            "it is not memory of simulated:0",
        ),
        (lambda: Buffer(4).copy_from(b"1234"), InvalidArgumentError, "source must be a Buffer"),  # type: ignore[arg-type] # the point
        (lambda: Buffer(4).copy_from(Buffer(5)), InvalidSizeError, "between 0 and 4 bytes, got 5"),
        (lambda: Buffer(4).copy_from(Buffer(4)), InvalidArgumentError, "source must be a buffer with memory"),
        (
            lambda: Buffer(4).copy_from(Buffer(4, cpu_allocator())),
            InvalidArgumentError,
            "destination must be a buffer with memory, got <Buffer 4 bytes on unknown, no memory>",
        ),
    ],
)
def test_bad_input_is_refused_with_the_value_in_it(
    make: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_queued_copy_is_waited_for_before_memory_goes(device: SimulatedDeviceAllocator) -> None:
    """Both buffers wait.  Buffers that are read again and again drop the copies that are over."""
    stream, source = device.stream(), holding(4, cpu_allocator())
    target = Buffer(SIZE, device)
    for _ in range(3):
        target.copy_from(source, stream=stream)
        stream.synchronize()
    target.copy_from(source, stream=stream)
    pending = (stream.done, len(source._held.flights), len(target._held.flights))  # pyright: ignore[reportPrivateUsage] -- the list itself
    source.close()

    assert ((False, 1, 1), True, [4] * SIZE) == (pending, stream.done, shown(target))
    target.copy_from(holding(5, cpu_allocator()), stream=stream, need_sync=True)
    assert stream.done
    target.close()
    device.check()
    assert device.live_blocks == 0


def test_between_host_buffers_a_stream_has_no_meaning() -> None:
    source, target = holding(8, cpu_allocator()), holding(0, cpu_allocator())
    target.copy_from(source, stream=object())

    assert [8] * SIZE == shown(target)


def test_a_copy_that_cannot_be_queued_leaves_nothing_to_wait_for(device: SimulatedDeviceAllocator) -> None:
    """An object that is no stream is refused; a copy that fails is reported and dropped."""
    source, target, stream = holding(1, cpu_allocator()), Buffer(SIZE, device), device.stream()
    with pytest.raises(InvalidArgumentError, match="stream must be a stream of simulated:0"):
        target.copy_from(source, stream=3)
    device.fail_at(1, "memcpy")
    with pytest.raises(Exception, match="told to fail"):
        target.copy_from(source, stream=stream)

    assert ([], []) == (target._held.flights, source._held.flights)  # pyright: ignore[reportPrivateUsage] -- the lists themselves


def test_a_copy_that_failed_on_its_way_is_told_once(device: SimulatedDeviceAllocator) -> None:
    """The memory is released nevertheless."""
    block = device.allocate(SIZE)
    target = Buffer(SIZE, device, block, use_external=True)
    source = holding(1, cpu_allocator())
    target.copy_from(source, stream=device.stream())
    device.release(block)
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        source.close()
    source.close()
    target.close()

    assert (None, None) == (source.ptr, target.ptr)


def test_two_threads_may_copy_back_and_forth(device: SimulatedDeviceAllocator) -> None:
    """Neither thread waits for the other for ever."""
    one, other = holding(1, device), holding(1, device)

    def work(first: Buffer, second: Buffer) -> None:
        for _ in range(200):
            first.copy_from(second)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert not any(thread.is_alive() for thread in threads)
    assert [1] * SIZE == shown(one) == shown(other)


def test_a_finaliser_that_fails_warns(device: SimulatedDeviceAllocator) -> None:
    buffer = Buffer(SIZE, device)
    device.fail_at(1, "release")

    with pytest.warns(ResourceWarning, match="48 bytes of a Buffer leaked: release failed on simulated:0"):
        del buffer
        gc.collect()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_the_object_is_refused(device: SimulatedDeviceAllocator, duplicate: Any) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(Buffer(SIZE, device))


@pytest.mark.parametrize(
    "memory", [bytearray(SIZE), np.zeros(SIZE // 4, np.float32), np.zeros((2, SIZE // 2), np.int8)]
)
def test_external_memory_is_wrapped_whole(memory: Any) -> None:
    """Of any type and shape, kept alive and never released; the bytes are the very same."""
    buffer = Buffer.from_external(memory)
    bytes_of: Any = buffer.ptr
    bytes_of[:] = 7
    buffer.close()

    assert (SIZE, SIZE) == (buffer.nbytes, len(buffer))
    assert bytes([7]) * SIZE == bytes(memory)


def test_external_memory_of_a_device_is_wrapped(device: SimulatedDeviceAllocator) -> None:
    """With its allocator; the same as the constructor makes of it, of all bytes or of the first."""
    array = device.empty(SIZE)
    whole, part = Buffer.from_external(array, allocator=device), Buffer.from_external(array, 4, device)
    whole.copy_from(Buffer.from_external(bytearray(range(SIZE))))

    assert (True, SIZE, 4) == (whole.is_external and part.is_external, whole.nbytes, part.nbytes)
    assert [0, 1, 2, 3] == shown(part) == shown(Buffer(4, device, array, use_external=True))
    for buffer in (whole, part):
        buffer.close()
    assert 0 == device.live_blocks


@pytest.mark.parametrize("memory", [None, object(), 7, b"read-only", [1, 2]])
def test_what_is_no_memory_is_not_wrapped(memory: Any) -> None:
    with pytest.raises(BufferMismatchError, match=r"^Buffer"):
        Buffer.from_external(memory)
    with pytest.raises(BufferMismatchError, match="it has 4 bytes, and 5 are needed"):
        Buffer.from_external(bytearray(4), 5)


def test_repr_says_where_and_whose(device: SimulatedDeviceAllocator) -> None:
    external = Buffer(4, None, bytearray(4), use_external=True)

    assert "<Buffer 4 bytes on cpu, external>" == repr(external)
    assert "<Buffer 48 bytes on simulated:0, owned>" == repr(Buffer(SIZE, device))
    assert "<Buffer 0 bytes on unknown, no memory>" == repr(Buffer())


class Odd(CPUDeviceAllocator):
    """A host allocator that returns what it is told to return."""

    answer: Any = None

    def allocate(self, byte_size: int) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        del byte_size

    def adopt(self, buffer: object, byte_size: int) -> Any:
        del buffer, byte_size
        raise self.answer


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (RuntimeError("bus"), DeviceError, "allocate failed on cpu:0: RuntimeError: bus"),
        (None, AllocationError, "cannot allocate 48 bytes on cpu:0: the allocator returned None"),
    ],
)
def test_whatever_an_allocator_raises_is_of_the_family(answer: Any, error: type[Exception], text: str) -> None:
    odd = Odd()
    odd.answer = answer

    with pytest.raises(error, match=text):
        Buffer(SIZE, odd)


@pytest.mark.parametrize(
    ("answer", "error"), [(OSError("no"), BufferMismatchError), (AllocationError("here", 1), AllocationError)]
)
def test_whatever_looking_at_memory_raises_is_of_the_family(answer: Exception, error: type[Exception]) -> None:
    odd = Odd()
    odd.answer = answer

    with pytest.raises(error):
        Buffer(SIZE, odd, bytearray(SIZE), use_external=True)


def test_a_buffer_is_initialised_once(device: SimulatedDeviceAllocator) -> None:
    buffer = Buffer(SIZE, device)

    with pytest.raises(TypeError, match="initialised once"):
        buffer.__init__(SIZE, device)  # type: ignore[misc] # the point of the test
    buffer.close()
    assert device.live_blocks == 0


@pytest.mark.parametrize("name", ["close", "allocate"])
def test_an_interrupt_while_memory_goes_back_waits_until_it_has_gone(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """After that the buffer has the contents that it would have had."""
    buffer, release = Buffer(SIZE, device), device.release

    def release_and_interrupt(ptr: Any) -> None:
        release(ptr)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(device, "release", release_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(buffer, name)()

    assert ((buffer.ptr is not None), device.live_blocks) == (name == "allocate", name == "allocate")
    buffer.close()
    assert device.live_blocks == 0


def test_what_can_neither_be_released_nor_given_back_is_reported(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = Buffer(SIZE, device)

    def fail(_: object) -> None:
        raise RuntimeError("dead")

    with monkeypatch.context() as patch, pytest.warns(ResourceWarning, match="48 bytes leaked on simulated:0: Runtime"):
        patch.setattr(device, "release", fail)
        with pytest.raises(ReleaseError):
            buffer.allocate()

    buffer.close()
    assert (buffer.ptr, device.live_blocks) == (None, 1)


def test_a_finaliser_frees_what_a_lost_copy_used(device: SimulatedDeviceAllocator) -> None:
    """A lost copy is reported even if another copy was queued after it."""
    block, stream = device.allocate(SIZE), device.stream()
    target, source = Buffer(SIZE, device, block, use_external=True), Buffer(SIZE, device)
    source.copy_from(holding(1, cpu_allocator()))
    target.copy_from(source, stream=stream)
    device.release(block)
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        stream.synchronize()
    target.copy_from(source, stream=stream)
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        target.close()
    del source, target

    assert device.live_blocks == 0


def test_copies_on_two_streams_are_both_waited_for(device: SimulatedDeviceAllocator) -> None:
    """If the first copy were forgotten when the second is queued, it would write into freed memory."""
    first, second = device.stream(), device.stream()
    target, source = Buffer(SIZE, device), holding(1, cpu_allocator())
    target.copy_from(source, stream=first)
    target.copy_from(source, stream=second)
    pending = (first.done, second.done)
    target.close()

    assert ((False, False), (True, True)) == (pending, (first.done, second.done))
    device.check()


def test_a_copy_that_was_lost_is_told_after_one_that_was_not(device: SimulatedDeviceAllocator) -> None:
    """The first copy is over when the second is queued, but has not happened."""
    block, stream, target = device.allocate(SIZE), device.stream(), Buffer(SIZE, device)
    gone = Buffer(SIZE, device, block, use_external=True)
    target.copy_from(gone, stream=stream)
    device.release(block)
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        stream.synchronize()
    target.copy_from(holding(2, device), stream=stream)
    stream.synchronize()

    ptr: Any = target.ptr
    assert [2] * SIZE == ptr.get().tolist()
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        target.close()
    target.close()


def test_waiting_for_the_device_is_done_whatever_the_size(device: SimulatedDeviceAllocator) -> None:
    stream, other = device.stream(), device.stream()
    holding(1, device).copy_from(Buffer(0), need_sync=True)
    target, source = Buffer(SIZE, device), holding(2, cpu_allocator())
    target.copy_from(source, stream=stream)
    Buffer(0, device).copy_from(Buffer(0, device), need_sync=True)
    done = stream.done
    target.copy_from(source, stream=stream)
    target.copy_from(source, stream=other, need_sync=True)

    assert (True, True, True) == (done, stream.done, other.done)


@pytest.mark.parametrize("device", devices(), ids=name_of)
def test_a_copy_without_a_stream_comes_after_those_that_were_queued(device: Any) -> None:
    """It waits for queued copies into the buffer and out of it."""
    stream = device.stream()
    host, one, other = holding(1, cpu_allocator()), holding(2, device), holding(3, device)
    other.copy_from(one, stream=stream)
    one.copy_from(host, stream=stream)
    host.copy_from(holding(9, cpu_allocator()))
    first = shown(other)
    other.copy_from(one, stream=stream)
    other.copy_from(host)

    assert ([2] * SIZE, [9] * SIZE, [1] * SIZE) == (first, shown(other), shown(one))
    assert [] == [*host._held.flights, *one._held.flights, *other._held.flights]  # pyright: ignore[reportPrivateUsage] -- the lists


def test_a_copy_by_way_of_the_host_comes_after_those_that_were_queued(device: SimulatedDeviceAllocator) -> None:
    stream, far = device.stream(), Buffer(SIZE, SimulatedDeviceAllocator(1))
    near = holding(1, device)
    near.copy_from(holding(5, cpu_allocator()), stream=stream)
    far.copy_from(near, stream=stream)

    assert [5] * SIZE == shown(far)


def test_a_queued_copy_that_was_lost_is_told_to_the_next_one_once(device: SimulatedDeviceAllocator) -> None:
    """The next copy then does nothing; repeated, it works."""
    block, source = device.allocate(SIZE), holding(1, device)
    target = Buffer(SIZE, device, block, use_external=True)
    target.copy_from(source, stream=device.stream())
    device.release(block)
    fresh = holding(2, cpu_allocator())
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        source.copy_from(fresh)
    before = shown(source)
    source.copy_from(fresh)

    assert ([1] * SIZE, [2] * SIZE, True) == (before, shown(source), target.is_external)


@pytest.mark.parametrize("call", ["close", "allocate", "copy_from"])
def test_a_release_that_calls_back_is_refused(call: str) -> None:
    """Nothing is released twice: the buffer is unchanged, and can be closed."""
    back: list[Callable[[], object]] = []

    class Chatty(CPUDeviceAllocator):
        def release(self, ptr: Any) -> None:
            while back:
                back.pop()()
            super().release(ptr)

    chatty = Chatty()
    buffer = Buffer(SIZE, chatty)
    arguments = (Buffer(0),) if call == "copy_from" else ()
    back.append(lambda: getattr(buffer, call)(*arguments))
    with pytest.raises(ReleaseError, match=f"{call}: this memory is in the middle of another call") as caught:
        buffer.close()

    assert (True, 1) == (isinstance(caught.value.__cause__, ReentrantCallError), chatty.live_blocks)
    buffer.close()
    assert (None, 0) == (buffer.ptr, chatty.live_blocks)


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=name_of)
def test_a_buffer_may_be_copied_onto_itself(allocator: Any) -> None:
    """Also where the device refuses a copy whose ends overlap, as OpenCL does."""
    buffer = holding(3, allocator)
    buffer.copy_from(buffer, need_sync=True)

    assert [3] * SIZE == shown(buffer)
