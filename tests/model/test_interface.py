"""The contract of allocators, and a host allocator has to say that it is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loops import some
from subjects import devices

from syncedmem.model import InvalidArgumentError
from syncedmem.model.interface import (
    DEVICE_CALLS,
    HOST_CALLS,
    OPERATIONS,
    DeviceArray,
    DeviceType,
    MemcpyKind,
    calls_of,
    is_host,
)
from syncedmem.runtime import Adaptor, CPUDeviceAllocator, DeviceAllocator, SimulatedDeviceAllocator, SyncedMemory


def test_directions_are_put_together_from_their_ends() -> None:
    for kind in MemcpyKind:
        assert kind is MemcpyKind.between(from_device=kind.from_device, to_device=kind.to_device)


def test_the_lists_of_calls_are_those_of_the_protocols() -> None:
    """A host allocator needs fewer calls than a device allocator. All of ours have more than a memory needs."""
    assert {"device_type", "allocate", "release", "memset_zero", "adopt", "overlaps"} == HOST_CALLS
    assert set(OPERATIONS) | HOST_CALLS < DEVICE_CALLS
    assert {name for name in dir(DeviceAllocator) if not name.startswith("_")} == DEVICE_CALLS | {
        "arithmetic", "current_stream", "is_pageable", "on", "peek", "poison", "settled", "watch_idle"
    }  # fmt: skip
    assert frozenset() == calls_of(CPUDeviceAllocator) - DEVICE_CALLS


def test_arrays_of_every_device_are_device_arrays() -> None:
    for device in some(devices()):
        array: DeviceArray = device.empty(16)
        array.set(np.arange(16, dtype=np.uint8))

        assert all(hasattr(array, name) for name in calls_of(DeviceArray))
        assert (16, 16, 1, np.uint8) == (len(array), array.nbytes, array.ndim, array.dtype)
        assert [4, 5] == array[4:6].view().get().tolist()


class Mute:
    """An allocator that forwards to another one, but has no `device_type` unless one is given."""

    def __init__(self, inner: Any, **said: Any) -> None:
        self.inner = inner
        vars(self).update(said)

    def __getattr__(self, name: str) -> Any:
        if name == "device_type":
            raise AttributeError(name)
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("host", "found"),
    [
        (Mute(CPUDeviceAllocator()), "missing"),
        (Mute(SimulatedDeviceAllocator(), device_type=DeviceType.UNKNOWN), "0"),
        (Mute(SimulatedDeviceAllocator(), device_type=DeviceType.CUDA), "2"),
        (Adaptor(Mute(SimulatedDeviceAllocator())), "0"),  # type: ignore[arg-type] # it has no allocator class
        (SimulatedDeviceAllocator(), "4"),
    ],
)
def test_what_does_not_say_that_it_is_the_host_is_refused_as_one(host: Any, found: str) -> None:
    """An allocator for an unknown device is not used as a host: its memory may not be readable here."""
    with pytest.raises(InvalidArgumentError, match=f"host must be .* has to be DeviceType.CPU, and is {found}; memory"):
        SyncedMemory(8, host=host)
    assert not is_host(host)


def test_directions_have_names_without_cuda() -> None:
    """They are aliases of KuiperLLama's names, and errors still show KuiperLLama's names."""
    plain = [MemcpyKind.HOST_TO_HOST, MemcpyKind.HOST_TO_DEVICE, MemcpyKind.DEVICE_TO_HOST, MemcpyKind.DEVICE_TO_DEVICE]

    assert [*MemcpyKind] == plain
    assert ["CPU2CPU", "CPU2CUDA", "CUDA2CPU", "CUDA2CUDA"] == [kind.name for kind in plain]
    for kind in plain:
        source, target = ("DEVICE" if there else "HOST" for there in (kind.from_device, kind.to_device))
        assert MemcpyKind[f"{source}_TO_{target}"] is kind


def test_what_says_that_it_is_the_host_is_taken_for_it() -> None:
    host: Any = Mute(CPUDeviceAllocator(), device_type=1)
    with SyncedMemory(8, host=host, pinned=host) as memory:
        assert is_host(host)
        assert [0] * 8 == memory.cpu_data().tolist()
