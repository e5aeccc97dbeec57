"""`Buffer`: what it owns, what it copies and in which order, what it refuses, and failures on the way."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    ClosedMemoryError,
    DeviceError,
    InvalidArgumentError,
    InvalidSizeError,
    NotCopyableError,
    ReentrantCallError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.model.interface import is_host
from syncedmem.runtime import (
    Buffer,
    CPUDeviceAllocator,
    DeviceType,
    SimulatedDeviceAllocator,
    SyncedMemory,
    TrackingAllocator,
)
from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.runtime.devices.registry import sibling
from syncedmem.spec.contracts.place import Place
from syncedmem.spec.engine.contents import Watched, pattern

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICES = {device.name: device for device in devices()}
PLACES = {"cpu": CPUDeviceAllocator(), **DEVICES}
ALL_PLACES: dict[str, Any] = {
    **PLACES,
    **{f"another {name}": other for name, device in DEVICES.items() if (other := sibling(device)) is not None},
}
"""Also another device of the same kind, where there is one: a copy to it goes by way of the host."""
SIZES = (1, SIZE, 4097)


@pytest.fixture(params=PLACES.values(), ids=list(PLACES))
def place(request: pytest.FixtureRequest) -> TrackingAllocator:
    """Return an allocator of the host or of a device, which knows its live blocks."""
    return TrackingAllocator(request.param)


@pytest.fixture(params=DEVICES.values(), ids=list(DEVICES))
def streaming(request: pytest.FixtureRequest) -> TrackingAllocator:
    """Return an allocator of a device, which has streams."""
    return TrackingAllocator(request.param)


def patterned(number: int, allocator: Any, size: int = SIZE) -> Buffer:
    """A buffer with a pattern in it, which the allocator has written."""
    buffer = Buffer(size, allocator)
    Place(allocator).write(buffer.ptr, pattern(number, size))
    return buffer


def bytes_of(buffer: Buffer) -> bytes:
    """The bytes of a buffer, as its allocator reads them."""
    return Place(buffer.allocator).read(buffer.ptr)


# --- memory and its owner


def test_a_buffer_of_zero_bytes_has_no_memory(place: TrackingAllocator) -> None:
    """A copy from it or to it changes nothing."""
    nothing, full = Buffer(0, place), patterned(1, place)
    allocated = nothing.allocate()
    nothing.copy_from(Buffer(0, place))
    full.copy_from(nothing)
    full.copy_from(Buffer())

    assert (None, False, 1) == (nothing.ptr, allocated, place.live_blocks)
    assert pattern(1, SIZE) == bytes_of(full)


@pytest.mark.parametrize("size", SIZES)
def test_a_buffer_is_one_block_of_its_allocator(place: TrackingAllocator, size: int) -> None:
    """It goes back once: by close, by the end of a with block, or if the buffer is dropped."""
    buffer = Buffer(size, place)
    ptr: Any = buffer.ptr
    assert (size,) * 4 == (len(ptr), buffer.byte_size, buffer.nbytes, len(buffer))
    assert (1, size) == (place.live_blocks, place.allocated_bytes)
    assert (place, False) == (buffer.allocator, buffer.is_external)
    for _ in range(2):
        buffer.close()
        assert (None, 0) == (buffer.ptr, place.live_blocks)
    with pytest.raises(ClosedMemoryError), buffer:
        pass
    with Buffer(size, place) as entered:
        assert (size, 1) == (entered.nbytes, place.live_blocks)
    assert 0 == place.live_blocks
    dropped = Buffer(size, place)
    del dropped
    gc.collect()
    assert 0 == place.live_blocks


OTHERS: list[Callable[[int], Any]] = [Watched, bytearray, np.zeros, lambda size: np.zeros((2, size // 4), np.int16)]
"""Memory of somebody else, of several types and shapes."""


@pytest.mark.parametrize("wrap", OTHERS)
def test_external_memory_is_used_in_place_and_kept_alive(wrap: Callable[[int], Any]) -> None:
    theirs = wrap(SIZE)
    size = memoryview(theirs).nbytes
    buffer = Buffer.from_external(theirs)
    ptr: Any = buffer.ptr
    memoryview(ptr)[:] = pattern(1, size)

    assert (pattern(1, size), True) == (bytes(theirs), buffer.is_external)
    assert (size, size) == (buffer.nbytes, len(buffer))
    if isinstance(theirs, Watched):
        alive = weakref.ref(theirs)
        del theirs
        gc.collect()
        assert alive() is not None


def test_external_memory_of_a_place_is_used_and_not_released(place: TrackingAllocator) -> None:
    """All of it or its first bytes, given to the constructor or wrapped; `allocate` drops it."""
    block = place.allocate(SIZE)
    whole, first = Buffer.from_external(block, allocator=place), Buffer.from_external(block, 4, place)
    whole.copy_from(patterned(2, cpu_allocator()))
    assert (True, True, SIZE, 4) == (whole.is_external, first.is_external, whole.nbytes, first.nbytes)
    assert pattern(2, SIZE)[:4] == bytes_of(first) == bytes_of(Buffer(4, place, block, use_external=True))
    whole.allocate()
    assert (False, True) == (whole.is_external, whole.ptr is not block)
    whole.close()
    first.close()

    assert (pattern(2, SIZE), 1) == (Place(place).read(block), place.live_blocks)
    place.release(block)


def test_a_block_that_is_handed_over_is_released_by_the_buffer(place: TrackingAllocator) -> None:
    buffer = Buffer(SIZE, place, place.allocate(SIZE))
    assert not buffer.is_external
    buffer.close()

    assert 0 == place.live_blocks


def test_allocate_takes_new_memory_and_releases_the_old(place: TrackingAllocator) -> None:
    """It opens a closed buffer again."""
    buffer = Buffer(SIZE, place)
    old = buffer.ptr
    assert buffer.allocate()
    assert (True, 1) == (buffer.ptr is not old, place.live_blocks)
    buffer.close()
    assert buffer.allocate()
    with buffer:
        assert (True, 1) == (buffer.ptr is not None, place.live_blocks)
    with pytest.raises(InvalidArgumentError, match="allocator"):
        Buffer().allocate()


def test_without_room_the_buffer_is_as_it_was(place: TrackingAllocator, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = patterned(3, place)
    old = buffer.ptr
    with monkeypatch.context() as patch:
        patch.setattr(place, "allocate", failing(AllocationError, "a full device", SIZE))
        with pytest.raises(AllocationError):
            buffer.allocate()
        with pytest.raises(AllocationError):
            Buffer(SIZE, place)

    assert (True, 1, pattern(3, SIZE)) == (buffer.ptr is old, place.live_blocks, bytes_of(buffer))


def test_if_the_old_memory_cannot_be_released_the_new_memory_is(
    place: TrackingAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer, release = patterned(3, place), place.release
    old = buffer.ptr

    def stuck(ptr: Any) -> None:
        if ptr is old:
            raise RuntimeError("the release fails")
        release(ptr)

    with monkeypatch.context() as patch:
        patch.setattr(place, "release", stuck)
        with pytest.raises(ReleaseError):
            buffer.allocate()

    assert (True, 1, pattern(3, SIZE)) == (buffer.ptr is old, place.live_blocks, bytes_of(buffer))


# --- copies


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("here", ALL_PLACES)
def test_a_copy_between_any_two_places_copies_the_source_and_changes_no_other_byte(
    place: TrackingAllocator, here: str, size: int
) -> None:
    source, target = patterned(4, place, size), patterned(5, ALL_PLACES[here], size + 2)
    target.copy_from(source)

    assert pattern(4, size) + pattern(5, size + 2)[size:] == bytes_of(target)
    assert pattern(4, size) == bytes_of(source)


def test_a_copy_that_is_refused_changes_nothing(place: TrackingAllocator) -> None:
    """Nor is it queued.  A copy of a buffer onto itself is done, and changes nothing either."""
    target, closed, source = patterned(7, place), Buffer(SIZE, place), patterned(1, place)
    closed.close()
    target.copy_from(target)
    with pytest.raises(InvalidSizeError) as longer:
        target.copy_from(patterned(8, place, SIZE + 1))
    assert SIZE + 1 == longer.value.size

    wrong: list[tuple[Buffer, Any, dict[str, Any], str, Any]] = [
        (target, closed, {}, "source", closed),
        (closed, target, {}, "destination", closed),
        (target, bytearray(SIZE), {}, "source", bytearray(SIZE)),
        (target, source, {"need_sync": "yes"}, "need_sync", "yes"),
    ]
    stream = None if is_host(place) else place.stream()
    for destination, wrong_source, options, argument, value in wrong:
        with pytest.raises(InvalidArgumentError) as refused:
            destination.copy_from(wrong_source, stream=stream, **options)
        assert (argument, value) == (refused.value.argument, refused.value.value)
    place.memcpy(None, None, 0, need_sync=True)

    assert pattern(7, SIZE) == bytes_of(target)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (InvalidSizeError, (-1,)),
        (InvalidArgumentError, ("8",)),
        (InvalidArgumentError, (SIZE, 3)),
        (InvalidArgumentError, (SIZE, None, bytearray(SIZE))),
    ],
    ids=["size", "type", "allocator", "owner"],
)
def test_wrong_arguments_are_refused(error: type[Exception], arguments: tuple[Any, ...]) -> None:
    """Memory that is to be released needs an allocator to go back to."""
    with pytest.raises(error):
        Buffer(*arguments)


@pytest.mark.parametrize(
    "memory",
    [None, object(), 7, [1, 2], bytearray(SIZE - 1), bytes(SIZE), np.zeros(2 * SIZE, np.uint8)[::2]],
    ids=["None", "object", "number", "list", "too small", "read-only", "with gaps"],
)
def test_unsuitable_memory_is_refused(memory: Any) -> None:
    """Also without a size, of which none is too small."""
    for size in (SIZE, None) if not isinstance(memory, bytearray) else (SIZE,):
        with pytest.raises(BufferMismatchError) as refused:
            Buffer.from_external(memory, size)
        assert memory is refused.value.buffer
        assert ("Buffer.from_external" if memory is None else "Buffer") == refused.value.call


# --- queued copies


class Lost:
    """An event after a copy that is over and was lost."""

    done = True

    def __init__(self, event: Any) -> None:
        event.synchronize()

    def synchronize(self) -> None:
        raise RuntimeError("the copy was lost")


def close_target(target: list[Buffer], _: Buffer) -> None:
    target[0].close()


def close_source(_: list[Buffer], source: Buffer) -> None:
    source.close()


def drop_target(target: list[Buffer], _: Buffer) -> None:
    target.clear()
    gc.collect()


def allocate_anew(target: list[Buffer], _: Buffer) -> None:
    target[0].allocate()


@pytest.mark.parametrize("leave", [close_target, close_source, drop_target, allocate_anew])
def test_queued_copies_are_over_when_the_memory_of_either_buffer_goes(
    streaming: TrackingAllocator, monkeypatch: pytest.MonkeyPatch, leave: Callable[[list[Buffer], Buffer], object]
) -> None:
    """Of both streams. An event is recorded directly after each copy, before any that the buffer records."""
    memcpy, queued = streaming.memcpy, list[Any]()

    def noted(*copied: Any) -> None:
        memcpy(*copied)
        _, _, byte_size, _, stream, *_ = (*copied, None)
        if stream is not None and byte_size:
            queued.append(streaming.upstream.record(stream))

    monkeypatch.setattr(streaming, "memcpy", noted)
    target, source = [Buffer(SIZE, streaming)], patterned(1, cpu_allocator())
    for stream in (streaming.stream(), streaming.stream()):
        target[0].copy_from(source, stream=stream)
    leave(target, source)
    over = [event.done for event in queued]
    for event in queued:
        event.synchronize()

    assert [True, True] == over


@pytest.mark.parametrize("here", ALL_PLACES)
@pytest.mark.parametrize(
    ("target", "source", "changed", "number"),
    [("result", "written", "result", 1), ("written", "other", "written", 3), ("read", "other", "written", 1)],
    ids=["out of the target", "into the target", "into the source"],
)
def test_a_copy_without_a_stream_comes_after_those_that_are_queued(  # noqa: PLR0913, PLR0917 -- of one table
    streaming: TrackingAllocator, here: str, target: str, source: str, changed: str, number: int
) -> None:
    """The queued copy is from `read` to `written`."""
    stream = streaming.stream()
    buffers = {
        "read": patterned(1, streaming),
        "written": patterned(2, streaming),
        "other": patterned(3, ALL_PLACES[here]),
        "result": Buffer(SIZE, ALL_PLACES[here]),
    }
    buffers["written"].copy_from(buffers["read"], stream=stream)
    buffers[target].copy_from(buffers[source])
    streaming.record(stream).synchronize()

    assert pattern(number, SIZE) == bytes_of(buffers[changed])


@pytest.mark.parametrize("another", [False, True], ids=["alone", "before another copy"])
def test_a_lost_copy_is_told_once(streaming: TrackingAllocator, monkeypatch: pytest.MonkeyPatch, another: bool) -> None:
    """The second close releases the memory."""
    target, source, record = Buffer(SIZE, streaming), patterned(1, streaming), streaming.record

    def lost(stream: Any) -> Lost:
        return Lost(record(stream))

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "record", lost)
        target.copy_from(source, stream=streaming.stream())
    if another:
        target.copy_from(patterned(2, streaming), stream=streaming.stream())
    with pytest.raises(SyncedMemoryError, match="the copy was lost"):
        target.close()
    target.close()

    assert target.ptr is None


@pytest.mark.parametrize("size", [0, SIZE])
def test_need_sync_waits_for_all_work_of_the_device(streaming: TrackingAllocator, size: int) -> None:
    stream, target, source = streaming.stream(), Buffer(SIZE, streaming), patterned(1, cpu_allocator())
    target.copy_from(source, stream=stream)
    event = streaming.record(stream)
    Buffer(size, streaming).copy_from(Buffer(size, streaming), need_sync=True)
    done = event.done
    event.synchronize()

    assert done


# --- the object


def test_a_buffer_says_where_its_memory_is(place: TrackingAllocator) -> None:
    """With an allocator there, else on the host, else nowhere."""
    kinds = [item.device_type for item in (Buffer(), Buffer.from_external(bytearray(SIZE)), Buffer(SIZE, place))]

    assert [DeviceType.UNKNOWN, DeviceType.CPU, place.device_type] == kinds


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_buffer_cannot_be_copied_or_pickled(duplicate: Callable[[Buffer], object]) -> None:
    """Two would release one block."""
    with pytest.raises(NotCopyableError):
        duplicate(Buffer(SIZE, cpu_allocator()))


def test_threads_may_copy_in_opposite_directions(place: TrackingAllocator) -> None:
    """None of them waits for ever."""
    one, other, start = patterned(1, place), patterned(1, place), threading.Barrier(2)
    over: list[bool] = []

    def copy_often(target: Buffer, source: Buffer) -> None:
        start.wait()
        for _ in range(20):
            target.copy_from(source)
        over.append(True)

    threads = [threading.Thread(target=copy_often, args=item, daemon=True) for item in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [True, True] == over


def test_a_close_inside_of_a_close_is_refused(place: TrackingAllocator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer is as it was."""
    buffer, refused = Buffer(SIZE, place), list[Exception]()
    old = buffer.ptr

    def call_back(_: object) -> None:
        try:
            buffer.close()
        except ReentrantCallError as error:
            refused.append(error)
            raise

    with monkeypatch.context() as patch:
        patch.setattr(place, "release", call_back)
        with suppress(SyncedMemoryError):
            buffer.close()

    assert (1, True, 1) == (len(refused), buffer.ptr is old, place.live_blocks)
    buffer.close()
    assert 0 == place.live_blocks


def test_copies_that_are_over_are_forgotten(device: SimulatedDeviceAllocator) -> None:
    """Otherwise a buffer that is read again and again would keep all of them."""
    stream, source, target = device.stream(), patterned(4, cpu_allocator()), Buffer(SIZE, device)
    for _ in range(3):
        target.copy_from(source, stream=stream)
        stream.synchronize()
    target.copy_from(source, stream=stream)

    assert (1, 1) == (len(source._held.flights), len(target._held.flights))  # pyright: ignore[reportPrivateUsage] -- the lists


def test_between_host_buffers_a_stream_has_no_meaning() -> None:
    source, target = patterned(8, cpu_allocator()), patterned(0, cpu_allocator())
    target.copy_from(source, stream=object())

    assert pattern(8, SIZE) == bytes_of(target)


@pytest.mark.parametrize("size", [0, SIZE])
def test_what_is_no_stream_is_refused_whatever_is_copied(device: SimulatedDeviceAllocator, size: int) -> None:
    buffer = Buffer(SIZE, device)
    with pytest.raises(InvalidArgumentError):
        buffer.copy_from(Buffer(size, device), stream=5)
    with pytest.raises(InvalidArgumentError):
        buffer.copy_from(buffer, stream=5)


def test_a_copy_that_cannot_be_queued_leaves_nothing_to_wait_for(device: SimulatedDeviceAllocator) -> None:
    """To wait would be a copy of nothing, which fails here too."""
    source, target = patterned(1, cpu_allocator()), Buffer(SIZE, device)
    device.fail_at(1, "memcpy")
    with pytest.raises(SyncedMemoryError, match="told to fail"):
        target.copy_from(source, stream=device.stream())
    device.fail_at(1, "memcpy")
    target.close()

    assert device.live_blocks == 0


def answering(name: str, answer: Exception | None) -> CPUDeviceAllocator:
    """A host allocator with one call that raises, or returns nothing."""

    def call(*_: object) -> None:
        if answer is not None:
            raise answer

    odd = CPUDeviceAllocator()
    setattr(odd, name, call)
    return odd


@pytest.mark.parametrize(
    ("call", "answer", "error", "text"),
    [
        ("allocate", RuntimeError("bus"), DeviceError, "failed on cpu:0: RuntimeError: bus"),
        ("allocate", MemoryError("no"), AllocationError, "cannot allocate 48 bytes on cpu:0: no"),
        ("allocate", None, AllocationError, "cannot allocate 48 bytes on cpu:0: the allocator returned None"),
        ("adopt", OSError("no"), BufferMismatchError, "OSError: no"),
        ("adopt", AllocationError("here", 1), AllocationError, "here"),
    ],
)
def test_whatever_an_allocator_raises_is_of_the_family(
    call: str, answer: Exception | None, error: type[Exception], text: str
) -> None:
    """It is the same for a buffer and for a memory."""
    odd = answering(call, answer)
    with pytest.raises(error, match=text):
        Buffer(SIZE, odd) if call == "allocate" else Buffer(SIZE, odd, bytearray(SIZE), use_external=True)
    memory = SyncedMemory(SIZE, host=odd, device=None)
    with pytest.raises(error, match=text):
        memory.cpu_data() if call == "allocate" else memory.set_cpu_data(bytearray(SIZE))


def test_what_can_neither_be_released_nor_given_back_is_reported(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = Buffer(SIZE, device)

    with monkeypatch.context() as patch, pytest.warns(ResourceWarning, match="48 bytes leaked on simulated:0: Runtime"):
        patch.setattr(device, "release", failing(RuntimeError, "dead"))
        with pytest.raises(ReleaseError):
            buffer.allocate()
        with pytest.raises(ReleaseError):
            buffer.close()
        assert "<Buffer 48 bytes on simulated:0, owned>" == repr(buffer)

    buffer.close()
    assert (buffer.ptr, device.live_blocks) == (None, 1)


def test_a_copy_by_way_of_the_host_comes_after_those_that_were_queued(device: SimulatedDeviceAllocator) -> None:
    stream, far = device.stream(), Buffer(SIZE, SimulatedDeviceAllocator(1))
    near = patterned(1, device)
    near.copy_from(patterned(5, cpu_allocator()), stream=stream)
    far.copy_from(near, stream=stream)

    assert pattern(5, SIZE) == bytes_of(far)


def test_a_queued_copy_that_was_lost_is_told_to_the_next_one_once(device: SimulatedDeviceAllocator) -> None:
    """The next copy then does nothing; repeated, it works."""
    block, source = device.allocate(SIZE), patterned(1, device)
    target = Buffer(SIZE, device, block, use_external=True)
    target.copy_from(source, stream=device.stream())
    device.release(block)
    fresh = patterned(2, cpu_allocator())
    with pytest.raises(SyncedMemoryError, match="after it was freed"):
        source.copy_from(fresh)
    before = bytes_of(source)
    source.copy_from(fresh)

    assert (pattern(1, SIZE), pattern(2, SIZE), True) == (before, bytes_of(source), target.is_external)


@pytest.mark.parametrize(("call", "left"), [(Buffer.allocate, 1), (Buffer.close, 0)], ids=["allocate", "close"])
def test_an_interrupt_while_old_memory_goes_back_waits_until_it_has_gone(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch, call: Callable[[Buffer], object], left: int
) -> None:
    """After that the buffer has the new memory, or none if it was closed.  The old memory is never shown again."""
    buffer, release = Buffer(SIZE, device), device.release

    def release_and_interrupt(ptr: Any) -> None:
        release(ptr)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(device, "release", release_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            call(buffer)

    assert (bool(left), left) == (buffer.ptr is not None, device.live_blocks)
    buffer.allocate()
    buffer.copy_from(patterned(3, cpu_allocator()))
    assert pattern(3, SIZE) == bytes_of(buffer)
    buffer.close()
    assert 0 == device.live_blocks
