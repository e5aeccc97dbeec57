"""The adapter of Numba, against Numba itself, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from interop_fixtures import SIZE, Limited, check_allocator, library, limited

from syncedmem.model import AllocationError, DeviceError, NoDeviceError, WrongDeviceError
from syncedmem.runtime import DeviceType

cpu = limited


@pytest.fixture
def numba() -> Any:
    return library("numba")


def test_numba_takes_our_class_for_its_own(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba checks the version of the interface."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    monkeypatch.setattr(driver, "_memory_manager", None)  # afterwards it is what it was
    manager: Any = numba.as_resource(cpu)
    numba.cuda.set_memory_manager(manager)

    assert manager is driver._memory_manager


def test_numba_pointers_give_their_memory_back_when_they_go_or_before(numba: Any, cpu: Limited) -> None:
    manager: Any = numba.as_resource(cpu)(context=None)
    manager.initialize()
    first, second = manager.memalloc(SIZE), manager.memalloc(SIZE)
    assert (SIZE, 2) == (first.size, cpu.live_blocks)
    ctypes.memset(int(first.device_pointer), 7, SIZE)
    first.free()
    assert 1 == cpu.live_blocks
    del second
    assert 0 == cpu.live_blocks


def test_numba_defers_and_resets(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deferred block is given back later; after a reset nothing is given back twice."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    # The driver makes it, which is not here.
    monkeypatch.setattr(driver, "_logger", driver.make_logger(), raising=False)
    manager: Any = numba.as_resource(cpu)(context=None)
    pointer, kept = manager.memalloc(SIZE), manager.memalloc(SIZE)
    with manager.defer_cleanup():
        del pointer
        gc.collect()
        assert 2 == cpu.live_blocks
    manager.reset()
    assert 0 == cpu.live_blocks
    del kept
    gc.collect()

    assert 0 == cpu.live_blocks


def test_numba_is_told_what_our_allocators_do_not_do(numba: Any, cpu: Limited) -> None:
    manager: Any = numba.as_resource(cpu)(context=None)
    with pytest.raises(NotImplementedError, match="does not say how much memory is free"):
        manager.get_memory_info()
    with pytest.raises(NotImplementedError, match="not shared between processes"):
        manager.get_ipc_handle(manager.memalloc(SIZE))


def test_numbas_context_of_another_device_is_refused(numba: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        class device:  # noqa: N801 -- Numba's name
            id = 1

    numba.as_resource(cpu)(context=Context).initialize()  # host memory is on every device
    monkeypatch.setattr(Limited, "device_type", DeviceType.CUDA)
    manager: Any = numba.as_resource(cpu)(context=Context)
    with pytest.raises(WrongDeviceError, match="lives on device 0, but device 1 is current"):
        manager.initialize()
    Context.device.id = 0
    manager.initialize()


def test_a_manager_of_numba_is_our_allocator(numba: Any, cpu: Limited) -> None:
    """Its pointers may be freed, or count their owners."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    plain: Any = numba.as_resource(cpu)(context=None)

    class Counting:
        """As Numba's own manager: it keeps the pointers, and returns owners that only refer to them."""

        def __init__(self) -> None:
            self.pointers: list[Any] = []

        def memalloc(self, size: int) -> Any:
            block = numba.as_resource(cpu).exporter.export(size)
            pointer = numba.bindings.CUdeviceptr(block.ptr)
            self.pointers.append(driver.AutoFreePointer(None, pointer, size, finalizer=block.give_back))
            return self.pointers[-1].own()

    for manager in (plain, Counting()):
        check_allocator(numba.from_resource(manager, device=None), cpu)
        gc.collect()
        assert 0 == cpu.live_blocks


def test_a_full_device_of_numba_is_an_allocation_error(numba: Any) -> None:
    """Numba's error is no ``MemoryError``; its other errors do not mean a full device."""
    driver: Any = importlib.import_module("numba.cuda.cudadrv.driver")
    codes = numba.bindings.CUresult

    class Failing:
        def __init__(self, code: Any) -> None:
            self.code = code

        def memalloc(self, _: int) -> Any:
            raise driver.CudaAPIError(self.code, "cuMemAlloc")

    for code in (codes.CUDA_ERROR_OUT_OF_MEMORY, 2):
        with pytest.raises(AllocationError, match=r"cannot allocate 1000 bytes on Numba's Failing: .*cuMemAlloc"):
            numba.from_resource(Failing(code), device=None).allocate(SIZE)
    with pytest.raises(DeviceError, match="allocate failed on Numba's Failing: CudaAPIError"):
        numba.from_resource(Failing(codes.CUDA_ERROR_LAUNCH_FAILED), device=None).allocate(SIZE)


@pytest.mark.deep
def test_the_simulator_of_numba_says_what_it_lacks(numba: Any) -> None:
    del numba
    program = "from syncedmem.interop import numba"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"NUMBA_ENABLE_CUDASIM": "1"}
    )

    assert done.stderr.endswith("Numba's simulator has no memory managers: unset NUMBA_ENABLE_CUDASIM\n")


def test_a_numba_without_managers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's simulator is such a one."""
    monkeypatch.setitem(sys.modules, "numba.cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace())
    monkeypatch.delitem(sys.modules, "syncedmem.runtime.interop.numba", raising=False)
    with pytest.raises(NoDeviceError, match="unset NUMBA_ENABLE_CUDASIM"):
        importlib.import_module("syncedmem.runtime.interop.numba")
