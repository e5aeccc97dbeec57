"""Our memory lent by its address: alignment, wrong deallocations, and what is waited for."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from interop_fixtures import SIZE, Heap, address_of, unlimited

from syncedmem.model import InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.allocators import GuardingAllocator, StatisticsAllocator, ThreadSafeAllocator, TrackingAllocator
from syncedmem.runtime.allocators.pool import PoolAllocator
from syncedmem.runtime.interop.foreign import ForeignHostAllocator
from syncedmem.runtime.interop.lender import Lender
from syncedmem.runtime.interop.source import Source

cpu = unlimited


class Fussy(CPUDeviceAllocator):
    """Host memory whose release can be made to fail."""

    failing: BaseException | None = None

    def release(self, ptr: Any) -> None:
        if self.failing:
            raise self.failing
        super().release(ptr)


def test_a_lender_hands_out_the_addresses_of_live_blocks(cpu: CPUDeviceAllocator) -> None:
    lender = Lender(cpu)
    address = lender.allocate(SIZE)
    assert (1, 1, address, SIZE) == (
        len(lender),
        cpu.live_blocks,
        address_of(lender.lent(address)),
        len(lender.lent(address)),
    )
    lender.deallocate(address, SIZE)

    assert (0, 0, 0) == (len(lender), cpu.live_blocks, lender.ordinal)


@pytest.mark.parametrize("alignment", [1, 16, 64, 256, 4096])
def test_every_address_is_aligned(alignment: int) -> None:
    """Whatever the allocator below gives: here addresses that are never a multiple of more than eight."""
    below = ForeignHostAllocator(Source("a heap", Heap(shift=8).take))
    lender = Lender(below, alignment=alignment)
    addresses = [lender.allocate(size) for size in (1, 100, SIZE)]

    assert [0] * 3 == [address % alignment for address in addresses]
    for address, size in zip(addresses, (1, 100, SIZE), strict=True):
        assert (size, address) == (len(lender.lent(address)), address_of(lender.lent(address)))
        lender.deallocate(address, size)
    assert 0 == below.live_blocks


def test_an_allocator_that_is_aligned_already_is_asked_once_for_what_is_needed(cpu: CPUDeviceAllocator) -> None:
    lender = Lender(cpu, alignment=64)
    address = lender.allocate(SIZE)

    assert SIZE == len(lender.lent(address))
    lender.deallocate(address)


@pytest.mark.parametrize(
    "adaptor", [GuardingAllocator, PoolAllocator, StatisticsAllocator, ThreadSafeAllocator, TrackingAllocator]
)
def test_adaptors_go_between_their_memory_and_ours(adaptor: Any, heap: Heap, foreign: ForeignHostAllocator) -> None:
    """Foreign memory below, an adaptor of ours over it, and all of it lent again."""
    stack = adaptor(foreign)
    lender = Lender(stack, alignment=256)
    address = lender.allocate(SIZE)
    ctypes.memset(address, 7, SIZE)
    assert (0, True) == (address % 256, (lender.lent(address) == 7).all())
    lender.deallocate(address, SIZE)
    if hasattr(stack, "close"):
        stack.close()
    del lender, stack
    gc.collect()

    assert (0, {}) == (foreign.live_blocks, heap.blocks)


def test_zero_bytes_are_at_address_zero(cpu: CPUDeviceAllocator) -> None:
    lender = Lender(cpu)
    assert 0 == lender.allocate(0)
    lender.deallocate(0)
    lender.deallocate(0, 0)
    lender.give_back(0, 0)

    assert 0 == cpu.live_blocks


def test_a_wrong_deallocation_is_refused_and_changes_nothing(cpu: CPUDeviceAllocator) -> None:
    """Foreign, of another size, or twice."""
    lender = Lender(cpu)
    address = lender.allocate(SIZE)
    with pytest.raises(InvalidPointerError, match=f"'{address + 1:#x}': no block is lent at this address"):
        lender.deallocate(address + 1)
    with pytest.raises(InvalidPointerError, match="it has 1000 bytes, not 999"):
        lender.deallocate(address, 999)
    with pytest.raises(InvalidPointerError, match="no block is lent"):
        lender.lent(address + 1)
    assert (1, 1) == (len(lender), cpu.live_blocks)
    lender.deallocate(address)
    with pytest.raises(InvalidPointerError, match="no block is lent at this address"):
        lender.deallocate(address)

    assert 0 == cpu.live_blocks


def test_a_release_that_fails_leaves_the_block_lent() -> None:
    fussy = Fussy()
    lender = Lender(fussy)
    address = lender.allocate(SIZE)
    fussy.failing = RuntimeError("not now")
    with pytest.raises(RuntimeError, match="not now"):
        lender.deallocate(address)
    fussy.failing = None
    lender.deallocate(address)

    assert (0, 0) == (len(lender), fussy.live_blocks)


def test_of_two_threads_that_give_the_same_block_back_one_does(cpu: CPUDeviceAllocator) -> None:
    """The second one comes between the look-up and the removal."""

    class Racing(dict[int, Any]):
        def pop(self, key: int, default: Any = None) -> Any:
            super().pop(key)
            return super().pop(key, default)

    lender = Lender(cpu)
    address = lender.allocate(SIZE)
    lender._blocks = Racing(lender._blocks)  # pyright: ignore[reportPrivateUsage] -- to plant the race
    with pytest.raises(InvalidPointerError, match="no block is lent"):
        lender.deallocate(address)

    assert 1 == cpu.live_blocks


@pytest.mark.parametrize("error", [RuntimeError("not now"), KeyboardInterrupt()])
def test_giving_back_never_raises(error: BaseException, printed: list[BaseException | None]) -> None:
    """Not even an interrupt: C++ would end the process, or the next call fail with a SystemError."""
    fussy = Fussy()
    lender = Lender(fussy)
    address = lender.allocate(SIZE)
    fussy.failing = error
    lender.give_back(address)
    lender.give_back(address + 1)

    assert error is printed[0]
    assert isinstance(printed[1], InvalidPointerError)


def test_nothing_is_given_back_when_python_goes(cpu: CPUDeviceAllocator) -> None:
    lender = Lender(cpu)
    address = lender.allocate(SIZE)
    lender._is_over = lambda: True  # pyright: ignore[reportPrivateUsage] -- what sys.is_finalizing says then
    lender.give_back(address)
    assert 1 == len(lender)


@pytest.mark.parametrize(("kind", "waits"), [(DeviceType.CUDA, 1), (DeviceType.CPU, 0)])
def test_work_on_device_memory_is_waited_for(
    kind: DeviceType, waits: int, monkeypatch: pytest.MonkeyPatch, printed: list[BaseException | None]
) -> None:
    """Before it is given back; if that fails, it is not given back."""
    monkeypatch.setattr(CPUDeviceAllocator, "device_type", kind)
    cpu = CPUDeviceAllocator()
    lender = Lender(cpu)
    monkeypatch.setattr(lender, "_start", address_of)
    calls: list[int] = []

    def fail(_: int) -> None:
        raise RuntimeError("the stream is lost")

    first, second = lender.allocate(SIZE), lender.allocate(SIZE)
    lender.give_back(first, SIZE, lambda _: calls.append(cpu.live_blocks))
    lender.give_back(0, 0, fail)
    assert [2] * waits == calls
    lender.give_back(second, SIZE, fail)
    assert waits == cpu.live_blocks == len(printed)


def test_the_address_of_device_memory_is_that_of_its_pointer(cpu: CPUDeviceAllocator) -> None:
    """As CuPy's arrays say it."""
    lender = Lender(cpu)
    lender.on_device = True
    assert 4096 == lender._start(SimpleNamespace(data=SimpleNamespace(ptr=4096)))  # pyright: ignore[reportPrivateUsage] -- no GPU here


@pytest.mark.parametrize("allocator", [None, "cpu", CPUDeviceAllocator, SimulatedDeviceAllocator(), object()])
def test_only_memory_with_addresses_can_be_lent(allocator: object) -> None:
    with pytest.raises(InvalidArgumentError, match="an allocator of memory with addresses, on the host or on CUDA"):
        Lender(allocator)
    with pytest.raises(InvalidArgumentError, match="with addresses, on the host, got"):
        Lender(allocator, host_only=True)


def test_a_loan_is_given_back_when_it_goes_or_before(cpu: CPUDeviceAllocator) -> None:
    lender = Lender(cpu)
    first, second = lender.loan(SIZE), lender.loan(SIZE)
    assert (SIZE, 2) == (first.size, cpu.live_blocks)
    first.give_back()
    first.give_back()
    assert 1 == cpu.live_blocks
    del second

    assert 0 == cpu.live_blocks
