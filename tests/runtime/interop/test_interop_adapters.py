"""What the adapters of all GPU libraries refuse, and where they take foreign memory to be."""

from __future__ import annotations

import pytest
from interop_fixtures import Limited, library, limited

from syncedmem.model import InvalidArgumentError, NoDeviceError
from syncedmem.runtime import DeviceType, SimulatedDeviceAllocator

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
    """Nobody reads device memory from the host by accident."""
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
