"""Memory that does not go back: how it is reported, and what is freed all the same."""

from __future__ import annotations

import gc
import warnings
import weakref
from contextlib import suppress
from typing import Any

import pytest
from subjects import SIZE, failing, filled

from syncedmem.model import DeviceError
from syncedmem.runtime import SimulatedDeviceAllocator, SyncedMemory


def test_what_cannot_be_undone_is_reported_as_leaked(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call fails with its own error; the leak is a ResourceWarning."""
    filled(memory)

    fail = failing(RuntimeError, "dead")

    monkeypatch.setattr(device, "memcpy", fail)
    monkeypatch.setattr(device, "release", fail)

    with (
        pytest.warns(ResourceWarning, match=f"{SIZE} bytes leaked on simulated:0: RuntimeError: dead"),
        pytest.raises(DeviceError),
    ):
        memory.gpu_data()


def test_a_block_that_is_gone_already_does_not_keep_a_memory_open(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may happen after a second interrupt, while the first one was handled."""
    blocks, allocate = list[Any](), device.allocate

    def note(byte_size: int) -> Any:
        blocks.append(allocate(byte_size))
        return blocks[-1]

    with monkeypatch.context() as patch:
        patch.setattr(device, "allocate", note)
        memory.gpu_data()
    device.release(blocks[0])
    memory.close()

    assert (memory.closed, device.live_blocks) == (True, 0)


def test_a_leak_is_a_note_on_the_error_where_warnings_are_errors(
    memory: SyncedMemory, device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call still fails with its own error, and a push that is stuck is still known."""
    filled(memory)

    fail = failing(RuntimeError, "dead")

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(device, "memcpy", fail)
        patch.setattr(device, "release", fail)
        with pytest.raises(DeviceError, match="copy_to_gpu failed") as caught:
            memory.gpu_data()

    assert ["48 bytes leaked on simulated:0: RuntimeError: dead"] == caught.value.__notes__
    assert memory.gpu_data().get().tolist() == [7] * SIZE


def test_an_error_on_the_way_out_keeps_nobody_alive(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that could not be given back is reported as text, not as an error that refers to the memory."""
    memory = filled(SyncedMemory(SIZE, device=device))

    fail = failing(RuntimeError, "dead")

    gc.disable()
    try:
        with monkeypatch.context() as patch, pytest.warns(ResourceWarning, match="leaked"):
            patch.setattr(device, "memcpy", fail)
            patch.setattr(device, "release", fail)
            with suppress(DeviceError):
                memory.gpu_data()
        watch = weakref.ref(memory)
        del memory
        assert watch() is None
    finally:
        gc.enable()


def test_a_finaliser_whose_host_side_is_stuck_frees_the_device_side(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stuck host side leaks; nothing else does."""
    memory = filled(SyncedMemory(SIZE, device=device))
    memory.gpu_data()

    monkeypatch.setattr(device.pinned_host(), "release", failing(RuntimeError, "dead"))
    with pytest.warns(ResourceWarning, match="leaked: release failed on pinned host memory"):
        del memory

    assert (device.live_blocks, device.pinned_host().live_blocks) == (0, 1)
