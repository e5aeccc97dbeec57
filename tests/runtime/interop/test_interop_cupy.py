"""The adapter of CuPy, against CuPy itself, as far as it goes without a GPU."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from interop_fixtures import SIZE, Limited, check_allocator, library, limited

from syncedmem.model import InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import DeviceType, SimulatedDeviceAllocator

cpu = limited


@pytest.fixture
def cupy() -> Any:
    return library("cupy")


def test_cupy_pointers_give_their_memory_back_when_they_go(cupy: Any, cpu: Limited) -> None:
    allocate = cupy.as_resource(cpu)
    pointer = allocate(SIZE)
    later = pointer + 10
    assert (1, SIZE, 0, pointer.ptr + 10) == (cpu.live_blocks, pointer.mem.size, pointer.mem.device_id, later.ptr)
    del pointer, allocate
    assert 1 == cpu.live_blocks
    del later

    assert 0 == cpu.live_blocks


def test_cupy_takes_our_allocator_for_its_own(cupy: Any, cpu: Limited) -> None:
    """Without a GPU the test can only set the allocator and read it again."""
    allocate = cupy.as_resource(cpu)
    with cupy.cupy.cuda.using_allocator(allocate):
        assert allocate is cupy.cupy.cuda.get_allocator()


def test_cupys_pinned_memory_is_ours(cupy: Any, cpu: Limited) -> None:
    """Such memory is a buffer, and CuPy itself returns it."""
    allocate = cupy.as_pinned_resource(cpu)
    cupy.cupy.cuda.set_pinned_memory_allocator(allocate)
    try:
        pinned = cupy.cupy.cuda.alloc_pinned_memory(SIZE)
    finally:
        cupy.cupy.cuda.set_pinned_memory_allocator()
    view = np.frombuffer(pinned, np.uint8)
    view[:] = 7
    assert (SIZE, 1) == (len(view), cpu.live_blocks)
    del view, pinned
    gc.collect()
    assert 0 == cpu.live_blocks
    with pytest.raises(InvalidArgumentError, match="on the host, got"):
        cupy.as_pinned_resource(SimulatedDeviceAllocator())


def test_an_allocator_of_cupy_is_ours(cupy: Any, cpu: Limited) -> None:
    """It may be a function, a pool, or pinned memory."""

    class Pool:
        malloc = staticmethod(cupy.as_resource(cpu))

    for theirs in (cupy.as_resource(cpu), Pool(), cupy.as_pinned_resource(cpu)):
        check_allocator(cupy.from_resource(theirs, device=None), cpu)
        gc.collect()
        assert 0 == cpu.live_blocks


def test_the_functions_for_cupy_know_their_device(
    cupy: Any, cpu: Limited, monkeypatch: pytest.MonkeyPatch, printed: list[BaseException | None]
) -> None:
    given: list[Any] = []

    def made(*functions: Any) -> list[Any]:
        given.append(functions)
        return given

    monkeypatch.setattr(cupy.cupy.cuda, "PythonFunctionAllocator", made)
    assert given is cupy.as_function_allocator(cpu)
    malloc, free = given[0]
    address = malloc(SIZE, 1)  # host memory is on every device
    free(address, 1)
    free(address, 1)
    assert (0, [InvalidPointerError]) == (cpu.live_blocks, [type(error) for error in printed])
    monkeypatch.setattr(Limited, "device_type", DeviceType.CUDA)
    cupy.as_function_allocator(cpu)
    with pytest.raises(InvalidArgumentError, match=r"device must be 0, where the memory is, got 1"):
        given[1][0](SIZE, 1)
