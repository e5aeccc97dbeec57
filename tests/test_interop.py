"""Memory by address, both ways: what the adapters of every library share, and those that need only C."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem import interop
from syncedmem.model import (
    AllocationError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidSizeError,
    NoDeviceError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.runtime import Buffer, CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.adaptors import (
    GuardingAllocator,
    StatisticsAllocator,
    ThreadSafeAllocator,
    TrackingAllocator,
)
from syncedmem.runtime.interop.foreign import ForeignHostAllocator, Source, allocator_over
from syncedmem.runtime.interop.lender import Lender
from syncedmem.runtime.pool import PoolAllocator

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1000
LIBC = "libc.so.6"


class Heap:
    """Somebody's allocator: integers out, integers back, and a note of both."""

    def __init__(self, shift: int = 0) -> None:
        self.blocks: dict[int, Any] = {}
        self.returned: list[int] = []
        self._shift = shift

    def take(self, size: int) -> tuple[int, Callable[[], object]]:
        memory = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(memory) // 128) * 128 + self._shift
        self.blocks[address] = memory
        return address, lambda: self.give(address)

    def give(self, address: int) -> None:
        self.returned.append(address)
        del self.blocks[address]


class Fussy(CPUDeviceAllocator):
    """Host memory whose release can be made to fail."""

    failing: BaseException | None = None

    def release(self, ptr: Any) -> None:
        if self.failing:
            raise self.failing
        super().release(ptr)


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def foreign(heap: Heap) -> ForeignHostAllocator:
    return ForeignHostAllocator(Source("a heap", heap.take))


@pytest.fixture
def cpu() -> CPUDeviceAllocator:
    return CPUDeviceAllocator()


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


# --- the front door


@pytest.mark.parametrize("name", interop.__all__)
def test_every_module_has_the_same_two_functions(name: str) -> None:
    """One scheme for all; the libraries that are not installed say how to install them."""
    try:
        module = getattr(interop, name)
    except NoDeviceError as error:
        pytest.skip(str(error))

    assert module is importlib.import_module(f"syncedmem.runtime.interop.{name}")
    assert callable(module.from_resource)
    assert callable(module.as_resource)


def test_both_doors_list_the_same_modules() -> None:
    """The front door and the room; and each has its section in the documentation."""
    assert importlib.import_module("syncedmem.runtime.interop").__all__ == interop.__all__
    folder = Path(__file__).parents[1]
    assert set(interop.__all__) <= {path.stem for path in (folder / "runtime" / "interop").glob("*.py")}
    page = (folder / "docs" / "interop.md").read_text(encoding="utf-8")
    assert [] == [name for name in interop.__all__ if f"\n| `{name}` |" not in page]


def test_an_unknown_library_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'umf'"):
        _ = interop.umf


def test_importing_the_front_door_imports_no_library() -> None:
    program = "import sys; from syncedmem import interop; print({'rmm', 'cupy', 'numba', 'warp'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "set()\n" == done.stdout


@pytest.mark.parametrize(
    ("name", "library", "hint"),
    [
        ("rmm", "rmm.mr", r"^RMM is needed here: pip install 'syncedmem\[rmm\]'"),
        ("cuda_core", "cuda.core", r"^cuda.core is needed here: pip install 'syncedmem\[cuda-core\]'"),
        ("numba", "numba.cuda", r"^Numba for CUDA is needed here: pip install 'syncedmem\[numba\]'"),
        ("warp", "warp", r"^Warp is needed here: pip install 'syncedmem\[warp\]'"),
    ],
)
def test_a_library_that_is_missing_is_named(
    name: str, library: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"syncedmem.runtime.interop.{name}", raising=False)
    monkeypatch.delitem(vars(importlib.import_module("syncedmem.runtime.interop")), name, raising=False)

    with pytest.raises(NoDeviceError, match=hint):
        getattr(interop, name)


# --- ours from theirs


def test_foreign_memory_is_an_array_over_its_address(foreign: ForeignHostAllocator, heap: Heap) -> None:
    block: Any = foreign.allocate(SIZE)
    (address,) = heap.blocks

    assert ((SIZE,), np.uint8, True, address) == (block.shape, block.dtype, block.flags.writeable, address_of(block))
    block[:] = 7
    assert bytes([7]) * SIZE == ctypes.string_at(address, SIZE)
    assert "a heap" == foreign.name
    foreign.release(block)


def test_foreign_memory_goes_back_once_when_nobody_looks_at_it(foreign: ForeignHostAllocator, heap: Heap) -> None:
    """A view keeps its bytes, as with every allocator; and the allocator keeps what is not released."""
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


def test_nothing_goes_back_when_the_process_ends() -> None:
    """Arrays are still looked at then, and libraries may be gone: neither theirs nor ours is given back."""
    program = """
import ctypes
from syncedmem.runtime import CPUDeviceAllocator
from syncedmem.runtime.interop.foreign import ForeignHostAllocator, Source
from syncedmem.runtime.interop.lender import Lender
class Noisy(CPUDeviceAllocator):
    def release(self, ptr):
        print("released")
memory = ctypes.create_string_buffer(1000)
foreign = ForeignHostAllocator(Source("a heap", lambda size: (ctypes.addressof(memory), lambda: print("given back"))))
block, loan = foreign.allocate(1000), Lender(Noisy()).loan(1000)
ctypes.pythonapi.Py_IncRef(ctypes.py_object((block, loan)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_zero_bytes_are_not_asked_for(foreign: ForeignHostAllocator, heap: Heap) -> None:
    assert foreign.allocate(0) is None
    foreign.release(None)
    assert {} == heap.blocks
    with pytest.raises(InvalidSizeError):
        foreign.allocate(-1)


def test_a_foreign_allocator_serves_a_memory_and_a_buffer(foreign: ForeignHostAllocator, heap: Heap) -> None:
    """Everything that an allocator of host memory is for."""
    with SyncedMemory(SIZE, host=foreign, device=None) as memory:
        memory.mutable_cpu_data()[:] = 7
        assert 7 == memory.cpu_data()[SIZE - 1]
        assert 1 == len(heap.blocks)
    with Buffer(SIZE, foreign) as buffer:
        foreign.memset_zero(buffer.ptr, SIZE)
        assert not buffer.ptr.any()
    del buffer, memory
    gc.collect()

    assert {} == heap.blocks
    assert 2 == len(heap.returned)


def raising(error: BaseException) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        raise error

    return take


def answering(answer: Any) -> Callable[[int], Any]:
    def take(_size: int) -> Any:
        return answer

    return take


@pytest.mark.parametrize(
    ("take", "kind", "message"),
    [
        (raising(MemoryError("full")), AllocationError, "cannot allocate 1000 bytes on theirs: full"),
        (raising(LookupError("none")), AllocationError, "cannot allocate 1000 bytes on theirs: none"),
        (raising(AllocationError("ours", 5)), AllocationError, "cannot allocate 5 bytes on ours"),
        (raising(OSError("broken")), DeviceError, "allocate failed on theirs: OSError: broken"),
        (answering((0, print)), AllocationError, "cannot allocate 1000 bytes on theirs: the address is null"),
        (answering((None, print)), AllocationError, "cannot allocate 1000 bytes on theirs: the address is null"),
        (answering(5), DeviceError, "allocate failed on theirs: TypeError"),
    ],
)
def test_what_a_library_raises_is_of_the_family(take: Any, kind: type[SyncedMemoryError], message: str) -> None:
    foreign = ForeignHostAllocator(Source("theirs", take, (MemoryError, LookupError)))
    with pytest.raises(SyncedMemoryError, match=message) as caught:
        foreign.allocate(SIZE)

    assert kind is caught.type
    assert 0 == foreign.live_blocks


def test_a_deallocation_that_fails_is_printed(printed: list[BaseException | None]) -> None:
    """It happens in a finaliser, where nobody can catch it."""

    def take(size: int) -> tuple[int, Callable[[], object]]:
        memory = ctypes.create_string_buffer(size)

        def give() -> None:
            raise RuntimeError(f"no thanks, {len(memory)} are enough")

        return ctypes.addressof(memory), give

    foreign = ForeignHostAllocator(Source("theirs", take))
    foreign.release(foreign.allocate(SIZE))

    (error,) = printed
    assert isinstance(error, ReleaseError)
    assert "deallocate failed on theirs: RuntimeError: no thanks, 1000 are enough" == str(error)


def test_device_memory_needs_a_device(heap: Heap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CuPy a foreign address on a GPU is no use to anybody."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    for module in ("cuda", "interop.foreign_cuda"):
        monkeypatch.delitem(sys.modules, f"syncedmem.runtime.{module}", raising=False)
    with pytest.raises(NoDeviceError, match="CUDA needs CuPy, which is not installed"):
        allocator_over(Source("a heap", heap.take), 0)


# --- theirs from ours


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

    def fail() -> None:
        raise RuntimeError("the stream is lost")

    first, second = lender.allocate(SIZE), lender.allocate(SIZE)
    lender.give_back(first, SIZE, lambda: calls.append(cpu.live_blocks))
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


# --- C


def compiled(folder: Path, source: str) -> str:
    """A shared library."""
    (folder / "lib.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "lib.so", folder / "lib.c"], check=True)
    return str(folder / "lib.so")


TORCH = """
#include <stdlib.h>
#include <sys/types.h>
long calls[4];
void *my_alloc(ssize_t size, int device, void *stream) {
    calls[0] = size; calls[1] = device; calls[2] = (long)stream; calls[3] += 1;
    return size > 1 << 20 ? NULL : malloc(size);
}
void my_free(void *ptr, ssize_t size, int device, void *stream) {
    calls[0] = -size; calls[1] = device; calls[2] = (long)stream; calls[3] -= 1;
    free(ptr);
}
"""


def test_malloc_of_libc_is_an_allocator() -> None:
    libc = interop.malloc.from_resource(LIBC)
    block: Any = libc.allocate(SIZE)
    block[:] = 7
    libc.release(block)

    assert f"malloc() of {LIBC}" == libc.name
    with pytest.raises(AllocationError, match="the address is null"):
        libc.allocate(1 << 62)


def test_the_functions_for_torch_get_size_device_and_stream(tmp_path: Path) -> None:
    library = ctypes.CDLL(compiled(tmp_path, TORCH))
    calls = (ctypes.c_long * 4).in_dll(library, "calls")
    theirs = interop.torch.from_resource(library, "my_alloc", "my_free", device=None, stream=0x70)
    block: Any = theirs.allocate(SIZE)
    block[:] = 7
    assert f"my_alloc() of {tmp_path / 'lib.so'}" == theirs.name
    assert [SIZE, 0, 0x70, 1] == [*calls]
    theirs.release(block)
    del block
    assert [-SIZE, 0, 0x70, 0] == [*calls]
    with pytest.raises(AllocationError, match="the address is null"):
        theirs.allocate(1 << 21)


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    """It is found out at once, and in one line."""
    library = compiled(tmp_path, TORCH)
    with pytest.raises(
        InvalidArgumentError, match=r"^library must be a shared library that can be loaded \(.*\), got '/no"
    ):
        interop.malloc.from_resource("/no/such.so")
    with pytest.raises(InvalidArgumentError, match=r"^function must be a function of .*lib.so, got 'alloc'$"):
        interop.torch.from_resource(library, device=None)
    with pytest.raises(InvalidArgumentError, match=r"^function must be .*, got 7$"):
        interop.malloc.from_resource(LIBC, "malloc", 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] -- a careless caller


def test_our_memory_as_two_functions_of_c(cpu: CPUDeviceAllocator, printed: list[BaseException | None]) -> None:
    """Called by address, as C does, and after the object that held them has gone."""
    first, second = interop.malloc.as_resource(cpu).addresses
    gc.collect()
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(first)
    deallocate = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(second)
    address = allocate(SIZE)
    assert (0, 1) == (address % 16, cpu.live_blocks)
    ctypes.memset(address, 7, SIZE)
    deallocate(address)
    deallocate(None)
    assert (0, None, None) == (cpu.live_blocks, allocate(0), allocate(1 << 62))
    assert [] == printed
    deallocate(address)
    assert isinstance(printed[0], InvalidPointerError)


def test_our_memory_as_the_functions_of_torch(cpu: CPUDeviceAllocator, printed: list[BaseException | None]) -> None:
    ours = interop.torch.as_resource(cpu)
    address = ours.allocate(SIZE, 0, None)
    assert 1 == cpu.live_blocks
    ours.deallocate(address, SIZE - 1, 0, None)
    assert (1, "it has 1000 bytes, not 999") == (cpu.live_blocks, str(printed[0])[-26:])
    ours.deallocate(address, SIZE, 0, 0x70)
    assert (0, None, None) == (cpu.live_blocks, ours.allocate(0, 0, None), ours.allocate(1 << 62, 0, None))
    ours.deallocate(None, 0, 0, None)
    assert ours.allocate(-1, 0, None) is None  # and why is printed
    assert isinstance(printed[1], InvalidSizeError)


def test_torch_gets_nothing_on_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CPUDeviceAllocator, "device_type", DeviceType.CUDA)
    ours = interop.torch.as_resource(CPUDeviceAllocator())

    assert ours.allocate(SIZE, 1, None) is None


def test_device_memory_of_torch_waits_for_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its address, as CUDA knows it."""
    try:
        cuda: Any = importlib.import_module("syncedmem.runtime.cuda")
    except NoDeviceError as error:
        pytest.skip(str(error))
    waited: list[int] = []
    runtime = SimpleNamespace(streamSynchronize=waited.append)
    monkeypatch.setattr(cuda, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    monkeypatch.setattr(CPUDeviceAllocator, "device_type", DeviceType.CUDA)
    monkeypatch.setattr(Lender, "_start", staticmethod(address_of))
    cpu = CPUDeviceAllocator()
    ours = interop.torch.as_resource(cpu)
    for stream in (0x70, None):
        ours.deallocate(ours.allocate(SIZE, 0, stream), SIZE, 0, stream)

    assert ([0x70, 0], 0) == (waited, cpu.live_blocks)


def test_a_round_trip_through_c_is_the_same_memory(cpu: CPUDeviceAllocator, tmp_path: Path) -> None:
    """Ours as theirs, and theirs as ours again."""
    source = """
void *(*a)(unsigned long); void (*d)(void *);
void *alloc(unsigned long size) { return a(size); }
void dealloc(void *ptr) { d(ptr); }
"""
    library = ctypes.CDLL(compiled(tmp_path, source))
    for name, address in zip("ad", interop.malloc.as_resource(cpu).addresses, strict=True):
        ctypes.c_void_p.in_dll(library, name).value = address
    again = interop.malloc.from_resource(library, "alloc", "dealloc")
    block: Any = again.allocate(SIZE)
    block[:] = 7
    assert 1 == cpu.live_blocks
    again.release(block)
    del block

    assert 0 == cpu.live_blocks


def test_threads_share_the_functions_of_c(cpu: CPUDeviceAllocator) -> None:
    ours = interop.malloc.as_resource(cpu)

    def work() -> None:
        for _ in range(200):
            ours.deallocate(ours.allocate(SIZE))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 0 == cpu.live_blocks
