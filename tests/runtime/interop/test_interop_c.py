"""Memory by two functions of C, both ways: those of libc, and those that PyTorch takes."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from interop_fixtures import SIZE, address_of, unlimited
from threads import run_in_threads

from syncedmem import interop
from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError, InvalidSizeError, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from pathlib import Path

cpu = unlimited
LIBC = "libc.so.6"


def compiled(folder: Path, source: str) -> str:
    """A compiled shared library."""
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


@pytest.mark.deep
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


@pytest.mark.deep
def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    """The error comes at once, and is one line."""
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
    """C calls them by their addresses, also after the object that had them is gone."""
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
    """The stream is given by its address, as in CUDA."""
    try:
        cuda: Any = importlib.import_module("syncedmem.runtime.devices.cuda")
    except NoDeviceError as error:
        pytest.skip(str(error))
    waited: list[int] = []
    runtime = SimpleNamespace(streamSynchronize=waited.append)
    monkeypatch.setattr(cuda, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    monkeypatch.setattr(CPUDeviceAllocator, "device_type", DeviceType.CUDA)
    monkeypatch.setattr(Exporter, "_start", staticmethod(address_of))
    cpu = CPUDeviceAllocator()
    ours = interop.torch.as_resource(cpu)
    for stream in (0x70, None):
        ours.deallocate(ours.allocate(SIZE, 0, stream), SIZE, 0, stream)

    assert ([0x70, 0], 0) == (waited, cpu.live_blocks)


@pytest.mark.deep
def test_a_round_trip_through_c_is_the_same_memory(cpu: CPUDeviceAllocator, tmp_path: Path) -> None:
    """Our memory is exported as theirs, and that again as ours."""
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

    run_in_threads(*[work] * 4)

    assert 0 == cpu.live_blocks
