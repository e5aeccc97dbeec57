"""`Buffer`: what it says and refuses, wrapped memory, and failures on the way; its kit checks the rest (F01 to F20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, failing

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    DeviceError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.devices.host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable


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


def test_copies_that_are_over_are_forgotten(device: SimulatedDeviceAllocator) -> None:
    """Otherwise a buffer that is read again and again would keep all of them."""
    stream, source, target = device.stream(), holding(4, cpu_allocator()), Buffer(SIZE, device)
    for _ in range(3):
        target.copy_from(source, stream=stream)
        stream.synchronize()
    target.copy_from(source, stream=stream)

    assert (1, 1) == (len(source._finaliser.flights), len(target._finaliser.flights))  # pyright: ignore[reportPrivateUsage] -- the lists


def test_between_host_buffers_a_stream_has_no_meaning() -> None:
    source, target = holding(8, cpu_allocator()), holding(0, cpu_allocator())
    target.copy_from(source, stream=object())

    assert [8] * SIZE == shown(target)


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


def test_a_copy_that_cannot_be_queued_leaves_nothing_to_wait_for(device: SimulatedDeviceAllocator) -> None:
    """To wait would be a copy of nothing, which fails here too."""
    source, target = holding(1, cpu_allocator()), Buffer(SIZE, device)
    device.fail_at(1, "memcpy")
    with pytest.raises(SyncedMemoryError, match="told to fail"):
        target.copy_from(source, stream=device.stream())
    device.fail_at(1, "memcpy")
    target.close()

    assert device.live_blocks == 0


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
        with (
            pytest.warns(ResourceWarning, match="their release was interrupted"),
            pytest.raises(KeyboardInterrupt),
        ):
            call(buffer)

    assert (bool(left), left) == (buffer.ptr is not None, device.live_blocks)
    buffer.allocate()
    buffer.copy_from(holding(3, cpu_allocator()))
    assert [3] * SIZE == shown(buffer)
    buffer.close()
    assert 0 == device.live_blocks
