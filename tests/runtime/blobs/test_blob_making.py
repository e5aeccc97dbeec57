"""How a `Blob` is made, of what types and where, and what it says that it is, to type checkers too."""

from __future__ import annotations

import subprocess
import sys
from copy import copy
from typing import Any

import numpy as np
import pytest
from blob_fixtures import Blob, each_place

from syncedmem.model import InvalidArgumentError, NoDeviceError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, StatisticsAllocator
from syncedmem.runtime.devices.host import cpu_allocator

place = each_place


@pytest.mark.parametrize("extents", [(6,), (2, 3), (1, 2, 3), (1, 1, 2, 1, 3), (np.int64(6),), (np.array(6),)])
def test_any_number_of_numbers_is_a_shape(extents: tuple[Any, ...]) -> None:
    """As in pycaffe; an argument after a shape that is no integer is the type."""
    expected = tuple(map(int, extents))

    assert (expected, np.float32) == ((blob := Blob(*extents, device=None)).shape, blob.dtype)
    assert expected == Blob(device=None).reshape(*extents).shape
    for first in (extents[0], np.array(extents[:1])):
        blob = Blob(first, np.float64, device=None)
        assert (expected[:1], np.float64) == (blob.shape, blob.dtype)
    with pytest.raises(InvalidArgumentError, match=r"as one sequence of them, got \(2, 3, <class 'numpy.float64'>\)"):
        Blob(2, 3, np.float64)


def test_a_blob_without_a_shape_is_not_one_without_axes(place: Any) -> None:
    """Caffe prints them as "(0)" and "(1)", and so do we; both have views."""
    empty, scalar = Blob(device=place), Blob((), device=place)

    assert (0, (), 0, "(0)", 1) == (empty.count, empty.shape, empty.num_axes, empty.shape_string, empty.num)
    assert (1, (), 0, "(1)", 1) == (scalar.count, scalar.shape, scalar.num_axes, scalar.shape_string, scalar.num)
    assert ((0,), ()) == (empty.mutable_cpu_data().shape, scalar.mutable_cpu_data().shape)
    assert 0 == empty.capacity
    if place is not None:
        assert ((0,), ()) == (empty.gpu_diff().shape, scalar.gpu_diff().shape)


@pytest.mark.parametrize("dtype", ["int64", "bool", ">f4", "complex64", "nothing", object(), "float128", [("a", "f4")]])
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="dtype must be one of float32, float64, int32, uint32, float16"):
        Blob((2, 3), dtype=dtype, device=None)


@pytest.mark.deep
def test_bfloat16_is_refused_with_what_to_install() -> None:
    """Without the package NumPy has no such type; after its import it has."""
    asked = "from syncedmem import Blob; Blob((2,), dtype='bfloat16', device=None)"
    program = f"import sys; sys.modules['ml_dtypes'] = None; {asked}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "bfloat16 (which needs ml_dtypes: pip install ml_dtypes, and import it), got 'bfloat16'" in done.stderr


def test_allocators_are_checked_as_a_memory_checks_them() -> None:
    with pytest.raises(
        InvalidArgumentError, match="shape must be given as integers, or as one sequence of them, got None"
    ):
        Blob(None)
    with pytest.raises(NoDeviceError, match="unknown device 'abacus'"):
        Blob((2,), device="abacus")
    with pytest.raises(InvalidArgumentError, match="host must be an allocator, or None"):
        Blob((2,), host=SimulatedDeviceAllocator())


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0, 3)])
def test_a_blob_has_bytes_and_axes_as_its_arrays_have(shape: tuple[int, ...]) -> None:
    blob = Blob(shape, np.float64, device="simulated")
    for array in (blob.cpu_data(), blob.gpu_data(), blob.cpu_diff(), blob.data):
        assert (array.nbytes, array.ndim) == (blob.nbytes, blob.ndim)

    assert (0, 0) == (Blob(device=None).nbytes, Blob(device=None).ndim)


def test_blobs_say_where_their_host_memory_comes_from(device: SimulatedDeviceAllocator) -> None:
    """In either mode; a file and an array of others become blobs with the same memory, and so does a copy."""
    ours = StatisticsAllocator(CPUDeviceAllocator())
    blob = Blob((2, 3), host=ours, pinned=ours, device=device)
    theirs = Blob.from_array(np.ones(3, np.float32), copy=True, host=ours, pinned=ours, device=device)
    blob.cpu_data()

    assert (24 + 12, ours, ours) == (ours.statistics.current_bytes, copy(theirs).host, copy(theirs).pinned)
    assert (device.pinned_host(), cpu_allocator()) == (Blob(device=device).pinned, Blob(device=None).pinned)
    with pytest.raises(InvalidArgumentError, match="pinned must be an allocator, because there is a host="):
        Blob((2, 3), host=ours, device=device)
