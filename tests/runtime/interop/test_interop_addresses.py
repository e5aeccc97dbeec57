"""Memory by its address: allocators over addresses of others, and ours exported."""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
import weakref
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Heap, address_of, unlimited
from subjects import failing

from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    NoDeviceError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.runtime.interop.exporter import Exporter
from syncedmem.runtime.interop.foreign import ForeignHostAllocator, allocator_over
from syncedmem.runtime.interop.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable


def test_foreign_memory_is_an_array_over_its_address(foreign: ForeignHostAllocator, heap: Heap) -> None:
    block: Any = foreign.allocate(SIZE)
    (address,) = heap.blocks

    assert ((SIZE,), np.uint8, True, address) == (block.shape, block.dtype, block.flags.writeable, address_of(block))
    block[:] = 7
    assert bytes([7]) * SIZE == ctypes.string_at(address, SIZE)
    assert "a heap" == foreign.name
    foreign.release(block)


def test_foreign_memory_goes_back_once_when_nobody_looks_at_it(foreign: ForeignHostAllocator, heap: Heap) -> None:
    """A view keeps its bytes, as with every allocator, and the allocator keeps blocks that are not released."""
    block: Any = foreign.allocate(SIZE)
    (address,) = heap.blocks
    view = block[10:20]
    foreign.release(block)
    with pytest.raises(InvalidPointerError, match=r"a heap cannot use .* not a live block"):
        foreign.release(block)
    del block
    assert [] == heap.returned
    del view
    assert [address] == heap.returned

    kept = address_of(foreign.allocate(SIZE))
    gc.collect()
    assert kept in heap.blocks
    assert 1 == foreign.live_blocks


def test_what_an_allocator_leaves_goes_back_with_it(heap: Heap) -> None:
    foreign = ForeignHostAllocator(Source("a heap", heap.take))
    address = address_of(foreign.allocate(SIZE))
    del foreign
    gc.collect()

    assert [address] == heap.returned


def throw(error: BaseException) -> None:
    raise error


def raising(error: BaseException) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        raise error

    return take


def answering(answer: Any) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        return answer

    return take


@pytest.mark.parametrize(
    ("take", "kind", "values", "cause"),
    [
        (raising(MemoryError("full")), AllocationError, {"where": "theirs", "byte_size": SIZE}, "full"),
        (raising(LookupError("none")), AllocationError, {"where": "theirs", "byte_size": SIZE}, "none"),
        (raising(AllocationError("ours", 5)), AllocationError, {"where": "ours", "byte_size": 5}, "ours"),
        (raising(OSError("broken")), DeviceError, {"where": "theirs", "operation": "allocate"}, "OSError: broken"),
        (answering((0, print)), AllocationError, {"where": "theirs", "byte_size": SIZE}, "null"),
        (answering((None, print)), AllocationError, {"where": "theirs", "byte_size": SIZE}, "null"),
        (answering(5), DeviceError, {"where": "theirs", "operation": "allocate"}, "TypeError"),
    ],
)
def test_what_a_library_raises_is_of_the_family(
    take: Any, kind: type[SyncedMemoryError], values: dict[str, Any], cause: str
) -> None:
    foreign = ForeignHostAllocator(Source("theirs", take, lambda error: isinstance(error, LookupError)))
    with pytest.raises(SyncedMemoryError, match=cause) as caught:
        foreign.allocate(SIZE)

    assert (kind, values) == (caught.type, {name: getattr(caught.value, name) for name in values})
    assert 0 == foreign.live_blocks


def test_a_deallocation_that_fails_is_printed(printed: list[BaseException | None]) -> None:
    """It happens in a finaliser, where nobody can catch it."""
    memory, failure = ctypes.create_string_buffer(SIZE), RuntimeError("no thanks")
    foreign = ForeignHostAllocator(Source("theirs", lambda _: (ctypes.addressof(memory), partial(throw, failure))))
    foreign.release(foreign.allocate(SIZE))

    (error,) = printed
    assert isinstance(error, ReleaseError)
    assert ("deallocate", "theirs", failure) == (error.operation, error.where, error.__cause__)


def test_device_memory_needs_a_device(heap: Heap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CuPy, an address on a GPU cannot be used."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    for module in ("devices.cuda", "interop.foreign_cuda"):
        monkeypatch.delitem(sys.modules, f"syncedmem.runtime.{module}", raising=False)
    with pytest.raises(NoDeviceError, match="CUDA needs CuPy, which is not installed"):
        allocator_over(Source("a heap", heap.take), 0)


cpu = unlimited


class Fussy(CPUDeviceAllocator):
    """Host memory whose release can be made to fail."""

    failing: BaseException | None = None

    def release(self, ptr: Any) -> None:
        if self.failing:
            raise self.failing
        super().release(ptr)


def test_an_exporter_hands_out_the_addresses_of_live_blocks() -> None:
    """Zero bytes are at address zero.  A release that fails leaves the block exported."""
    fussy = Fussy()
    exporter = Exporter(fussy)
    assert 0 == exporter.allocate(0)
    for give in (exporter.deallocate, exporter.give_back):
        give(0)
        give(0, 0)
    assert (0, 0) == (exporter.ordinal, fussy.live_blocks)

    address = exporter.allocate(SIZE)
    array = exporter.array_at(address)
    assert (1, 1, address, SIZE) == (len(exporter), fussy.live_blocks, address_of(array), len(array))
    fussy.failing = RuntimeError("not now")
    with pytest.raises(RuntimeError, match="not now"):
        exporter.deallocate(address, SIZE)
    fussy.failing = None
    exporter.deallocate(address, SIZE)
    assert (0, 0) == (len(exporter), fussy.live_blocks)


@pytest.mark.parametrize("alignment", [1, 16, 64, 256, 4096])
def test_every_address_is_aligned(alignment: int) -> None:
    """It holds for every allocator below; this one gives addresses that are multiples of eight and no more."""
    below = ForeignHostAllocator(Source("a heap", Heap(shift=8).take))
    exporter = Exporter(below, alignment=alignment)
    addresses = [exporter.allocate(size) for size in (1, 100, SIZE)]

    assert [0] * 3 == [address % alignment for address in addresses]
    for address, size in zip(addresses, (1, 100, SIZE), strict=True):
        assert (size, address) == (len(exporter.array_at(address)), address_of(exporter.array_at(address)))
        exporter.deallocate(address, size)
    assert 0 == below.live_blocks


def test_a_block_that_is_not_aligned_is_not_lost_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes back before a larger one is taken.  If that fails or is interrupted, it is tried again."""
    below = ForeignHostAllocator(Source("a heap", Heap(shift=8).take))
    exporter, release, errors = Exporter(below, alignment=16), below.release, list[BaseException]()

    def fussy(ptr: Any) -> None:
        if errors:
            raise errors.pop()
        release(ptr)

    monkeypatch.setattr(below, "release", fussy)
    errors.append(RuntimeError("not now"))
    with pytest.raises(RuntimeError, match="not now"):
        exporter.allocate(SIZE)
    assert 0 == below.live_blocks
    errors.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        exporter.allocate(SIZE)
    assert 0 == below.live_blocks


def test_a_wrong_deallocation_is_refused_and_changes_nothing(cpu: CPUDeviceAllocator) -> None:
    """The block is foreign, of another size, or given back twice."""
    exporter = Exporter(cpu)
    address = exporter.allocate(SIZE)
    for use, *arguments in (
        (exporter.deallocate, address + 1),
        (exporter.deallocate, address, 999),
        (exporter.array_at, address + 1),
    ):
        with pytest.raises(InvalidPointerError) as refused:
            use(*arguments)
        assert hex(arguments[0]) == refused.value.pointer
    assert (1, 1) == (len(exporter), cpu.live_blocks)
    exporter.deallocate(address)
    with pytest.raises(InvalidPointerError):
        exporter.deallocate(address)

    assert 0 == cpu.live_blocks


def test_of_two_threads_that_give_the_same_block_back_one_does(cpu: CPUDeviceAllocator) -> None:
    """The second thread comes between the look-up and the removal."""

    class Racing(dict[int, Any]):
        def __getitem__(self, key: int) -> Any:
            found = super().__getitem__(key)
            del self[key]
            return found

    exporter = Exporter(cpu)
    address = exporter.allocate(SIZE)
    exporter._blocks = Racing(exporter._blocks)  # pyright: ignore[reportPrivateUsage] -- to cause the race
    with pytest.raises(InvalidPointerError, match="no block is exported"):
        exporter.deallocate(address)

    assert 1 == cpu.live_blocks


@pytest.mark.parametrize("error", [RuntimeError("not now"), KeyboardInterrupt()])
def test_giving_back_never_raises(error: BaseException, printed: list[BaseException | None]) -> None:
    """Not even an interrupt is raised: C++ would end the process, or the next call would fail with a SystemError."""
    fussy = Fussy()
    exporter = Exporter(fussy)
    address = exporter.allocate(SIZE)
    fussy.failing = error
    exporter.give_back(address)
    exporter.give_back(address + 1)

    assert error is printed[0]
    assert isinstance(printed[1], InvalidPointerError)


def test_what_a_library_gives_back_wrongly_is_not_lost(printed: list[BaseException | None]) -> None:
    """So no warning says that it is: with the right size the library may give it back yet."""
    exporter = Exporter(CPUDeviceAllocator())
    address = exporter.allocate(SIZE)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exporter.give_back(address, SIZE + 1)
    exporter.give_back(address, SIZE)

    assert ([InvalidPointerError], [], 0) == ([type(item) for item in printed], told, len(exporter))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyboardInterrupt(), "leaked on cpu:0: KeyboardInterrupt"),
        (OSError("no"), "leaked on cpu:0: OSError: no"),
    ],
)
def test_what_could_not_be_given_back_is_told_with_its_size(
    error: BaseException, text: str, printed: list[BaseException | None]
) -> None:
    """Nobody gives it back again."""
    fussy = Fussy()
    block = Exporter(fussy).export(SIZE)
    fussy.failing = error
    with pytest.warns(ResourceWarning, match=f"^{SIZE} bytes {text}"):
        del block

    assert [error] == printed


def test_an_error_that_is_printed_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback has the frames of the call, and in a cycle they would keep their objects."""
    monkeypatch.setattr(sys, "unraisablehook", print)
    exporter = Exporter(CPUDeviceAllocator())
    gone = weakref.ref(exporter)
    gc.disable()
    try:
        exporter.give_back(1)
        del exporter
        assert gone() is None
    finally:
        gc.enable()


def test_nothing_is_given_back_when_python_goes(cpu: CPUDeviceAllocator) -> None:
    exporter = Exporter(cpu)
    address = exporter.allocate(SIZE)
    exporter._is_over = lambda: True  # pyright: ignore[reportPrivateUsage] -- what sys.is_finalizing says then
    exporter.give_back(address)
    assert 1 == len(exporter)


@pytest.mark.parametrize(("kind", "waits"), [(DeviceType.CUDA, 1), (DeviceType.CPU, 0)])
def test_work_on_device_memory_is_waited_for(
    kind: DeviceType, waits: int, monkeypatch: pytest.MonkeyPatch, printed: list[BaseException | None]
) -> None:
    """The wait comes before the release; if it fails, the block is not released."""
    monkeypatch.setattr(CPUDeviceAllocator, "device_type", kind)
    cpu = CPUDeviceAllocator()
    exporter = Exporter(cpu)
    monkeypatch.setattr(exporter, "_start", address_of)
    calls: list[int] = []

    fail = failing(RuntimeError, "the stream is lost")

    first, second = exporter.allocate(SIZE), exporter.allocate(SIZE)
    exporter.give_back(first, SIZE, lambda _: calls.append(cpu.live_blocks))
    exporter.give_back(0, 0, fail)
    assert [2] * waits == calls
    exporter.give_back(second, SIZE, fail)
    assert waits == cpu.live_blocks == len(printed)


def test_the_address_of_device_memory_is_that_of_its_pointer(cpu: CPUDeviceAllocator) -> None:
    """CuPy's arrays tell their address so."""
    exporter = Exporter(cpu)
    exporter.on_device = True
    assert 4096 == exporter._start(SimpleNamespace(data=SimpleNamespace(ptr=4096)))  # pyright: ignore[reportPrivateUsage] -- no GPU here


@pytest.mark.parametrize("host_only", [False, True])
@pytest.mark.parametrize("allocator", [None, "cpu", CPUDeviceAllocator, SimulatedDeviceAllocator(), object()])
def test_only_memory_with_addresses_can_be_exported(allocator: object, host_only: bool) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        Exporter(allocator, host_only=host_only)

    assert ("allocator", allocator) == (refused.value.argument, refused.value.value)


def test_a_block_is_given_back_when_it_goes_or_before(cpu: CPUDeviceAllocator) -> None:
    exporter = Exporter(cpu)
    first, second = exporter.export(SIZE), exporter.export(SIZE)
    assert (SIZE, 2) == (first.size, cpu.live_blocks)
    first.give_back()
    first.give_back()
    assert 1 == cpu.live_blocks
    del second

    assert 0 == cpu.live_blocks
