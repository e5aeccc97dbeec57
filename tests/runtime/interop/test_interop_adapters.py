"""What the adapters of all GPU libraries refuse, and where they take foreign memory to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop_fixtures import Limited, library, limited

from syncedmem.model import InvalidArgumentError, NoDeviceError
from syncedmem.runtime import DeviceType, SimulatedDeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Callable

cpu = limited
LIBRARIES = ("rmm", "cupy", "numba", "cuda_core", "warp", "pyopencl")


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("theirs", [None, 7, Limited])
def test_what_is_no_source_of_memory_is_refused(name: str, theirs: object) -> None:
    queue = () if name != "pyopencl" else (None,)
    with pytest.raises(
        InvalidArgumentError, match=r"^theirs must be an? .*of (RMM|CuPy|Numba|cuda\.core|Warp|PyOpenCL)"
    ):
        library(name).from_resource(theirs, *queue)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("allocator", [None, 7, Limited, SimulatedDeviceAllocator()])
def test_an_allocator_without_addresses_is_refused(name: str, allocator: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^allocator must be an allocator of memory with addresses"):
        library(name).as_resource(allocator)


@pytest.mark.parametrize("name", ["rmm", "numba", "cupy", "warp"])
def test_device_memory_is_assumed_and_needs_a_device(name: str, cpu: Limited) -> None:
    """So nobody reads device memory from the host by accident."""
    module = library(name)
    theirs = module.as_resource(cpu)
    if name == "numba":
        theirs = theirs(context=None)
    if name == "warp":
        del theirs.memory_kind
    try:
        assert DeviceType.CUDA is module.from_resource(theirs).device_type
    except NoDeviceError as error:
        assert "CUDA" in str(error)  # noqa: PT017 -- whether it is raised depends on the machine


REQUESTS: dict[str, Callable[[Any, int], Any]] = {
    "rmm": lambda theirs, size: theirs.allocate(size),
    "cupy": lambda theirs, size: theirs(size).ptr,
    "numba": lambda theirs, size: theirs(context=None).memalloc(size).device_pointer,
    "cuda_core": lambda theirs, size: theirs.allocate(size, stream=None).handle,
    "warp": lambda theirs, size: theirs.allocate(size),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_library_sees_a_lack_of_room_and_zero_bytes(name: str, cpu: Limited) -> None:
    """Zero bytes are at address zero, and our allocator is not asked for them."""
    theirs = library(name).as_resource(cpu)
    with pytest.raises(MemoryError, match="the limit"):
        REQUESTS[name](theirs, 1 << 27)
    assert 0 == int(REQUESTS[name](theirs, 0))

    assert ([1 << 27], 0) == (cpu.asked, cpu.live_blocks)
