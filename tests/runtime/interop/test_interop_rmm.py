"""The adapter of RMM, against RMM itself, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from interop_fixtures import SIZE, Limited, address_of, check_allocator, library, limited

from syncedmem.model import InvalidPointerError
from syncedmem.runtime import Buffer, DeviceType
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

cpu = limited


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
