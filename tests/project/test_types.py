"""The types that type checkers infer for the public names.

`make types` checks this file.  An error that is expected is ignored on its line.  If mypy or pyright finds no error
there, the check fails.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true, reportUnusedImport=false

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import syncedmem
from syncedmem import Blob, Buffer, CPUDeviceAllocator, PoolAllocator, StatisticsAllocator, SyncedMemory
from syncedmem.model.interface import DeviceArray, Stream
from syncedmem.runtime.allocators.arguments import ReadOnlyArray
from syncedmem.runtime.allocators.pointers import HostArray


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Blub'"):
        from syncedmem import Blub  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(ImportError, match="cannot import name 'PoolAlocator'"):
        from syncedmem import PoolAlocator  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(ImportError, match="cannot import name 'rrm'"):
        from syncedmem.interop import rrm  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(AttributeError, match="has no attribute 'Blub'"):
        _ = syncedmem.Blub  # type: ignore[attr-defined]


# --- the elements of a blob


def test_the_elements_of_a_blob_are_float32_unless_it_is_said() -> None:
    blob = Blob((2, 3), device=None)

    assert_type(blob, Blob[np.float32])
    assert_type(Blob(device=None), Blob[np.float32])
    assert_type(Blob(2, 3, 4, 5, device=None), Blob[np.float32])
    assert_type(blob.data, NDArray[np.float32])
    assert_type(blob.diff, NDArray[np.float32])
    assert_type(blob.cpu_data(), ReadOnlyArray[Any, np.dtype[np.float32]])
    assert_type(blob.dtype, np.dtype[np.float32])
    assert np.dtype(np.float32) == blob.dtype == blob.data.dtype


def test_the_elements_of_a_blob_are_those_that_a_text_names() -> None:
    assert_type(Blob((2, 3), "float32", device=None), Blob[np.float32])
    assert_type(Blob((2, 3), "float64", device=None), Blob[np.float64])
    assert_type(Blob((2, 3), "int32", device=None), Blob[Any])
    wide = Blob(dtype="float64", device=None)
    assert_type(wide, Blob[np.float64])
    assert_type(Blob((2, 3), "float64", device=None).data, NDArray[np.float64])
    assert np.float64 == wide.dtype


def test_the_elements_of_a_blob_are_those_of_a_type() -> None:
    assert_type(Blob((2, 3), np.float64, device=None), Blob[np.float64])
    assert_type(Blob((2, 3), np.dtype(np.int32), device=None), Blob[np.int32])
    assert_type(Blob(2, 3, 4, 5, dtype=np.int32, device=None).data_at(0), np.int32)
    small = Blob([2, 3], dtype=np.float16, device=None)
    assert_type(small, Blob[np.float16])
    assert np.float16 == small.dtype


def test_the_elements_of_a_blob_are_any_where_the_type_is_not_known() -> None:
    name = str("float64")  # noqa: UP018 -- of which a type checker knows no more
    blob = Blob((2, 3), name, device=None)
    assert_type(blob, Blob[Any])
    assert_type(Blob((2, 3), dtype=name, device=None), Blob[Any])
    assert np.float64 == blob.dtype


def test_the_elements_of_a_blob_are_those_of_the_array() -> None:
    array = np.zeros(3, np.float64)
    blob = Blob.from_array(array, device=None)

    assert_type(blob, Blob[np.float64])
    assert_type(Blob.from_array(np.zeros(3, np.int32), copy=True, device=None).data, NDArray[np.int32])
    assert_type(Blob.from_array(np.zeros(3, np.int64), device=None), Blob[np.int64])
    assert_type(Blob.from_array(array, dtype=np.float32, device=None), Blob[np.float32])
    assert_type(Blob.from_array([1.0, 2.0], device=None), Blob[Any])
    assert_type(Blob.from_array(array, dtype="float32", device=None), Blob[Any])
    assert np.float64 == blob.dtype


def test_the_elements_of_a_blob_are_any_for_an_array_that_no_blob_takes() -> None:
    """The type checker infers ``Any``, and the call is refused when it runs."""
    with pytest.raises(syncedmem.InvalidArgumentError, match="float32, float64"):
        assert_type(Blob.from_array(np.zeros(3, np.int8), device=None), Blob[Any])


def test_a_shape_is_no_text() -> None:
    with pytest.raises(syncedmem.InvalidArgumentError, match="shape must be"):
        Blob("23", device=None)  # type: ignore[arg-type]
    with pytest.raises(syncedmem.InvalidArgumentError, match="shape must be"):
        Blob(2, 3, device=None).reshape("23")  # type: ignore[arg-type]


# --- what is refused when it is checked, and when it runs


def test_what_is_read_is_not_written() -> None:
    memory, blob = SyncedMemory(4, device=None), Blob((4,), device=None)
    with pytest.raises(ValueError, match="read-only"):
        memory.cpu_data()[0] = 1  # type: ignore[index, assignment]
    with pytest.raises(ValueError, match="read-only"):
        blob.cpu_data()[0] = 1  # type: ignore[index, assignment]
    with pytest.raises(ValueError, match="read-only"):
        blob.cpu_diff()[...] = 1.0  # type: ignore[index, assignment]
    memory.mutable_cpu_data()[0] = 1
    blob.mutable_cpu_data()[0] = 1


def test_what_is_no_memory_is_not_adopted() -> None:
    memory, blob = SyncedMemory(4), Blob((4,))
    with pytest.raises(syncedmem.BufferMismatchError):
        memory.set_cpu_data(3)  # type: ignore[arg-type]
    with pytest.raises(syncedmem.BufferMismatchError):
        memory.set_cpu_data("abcd")  # type: ignore[arg-type]
    with pytest.raises(syncedmem.BufferMismatchError):
        memory.set_gpu_data(b"abcd")  # type: ignore[arg-type]
    with pytest.raises(syncedmem.BufferMismatchError):
        blob.set_cpu_data([1.0, 2.0, 3.0, 4.0])  # type: ignore[arg-type]
    with pytest.raises(syncedmem.BufferMismatchError):
        blob.set_gpu_diff(None)  # type: ignore[arg-type]
    memory.set_cpu_data(np.zeros(4, np.uint8))
    memory.set_cpu_data(bytearray(4))
    other = SyncedMemory(4)
    memory.set_gpu_data(other.mutable_gpu_data())
    blob.set_cpu_diff(np.zeros(4, np.float32))


def test_numbers_are_assigned_to_the_elements_and_no_text() -> None:
    blob = Blob((2, 2), device=None)
    with pytest.raises(syncedmem.InvalidArgumentError):
        blob.data = "abc"  # type: ignore[assignment]
    with pytest.raises(syncedmem.InvalidArgumentError):
        blob.diff = None  # type: ignore[assignment]
    blob.data = 1
    blob.data = [[1, 2], [3, 4.5]]
    blob.data = np.zeros(2)
    blob.data -= blob.diff
    assert [[0, 0], [0, 0]] == blob.data.tolist()


# --- arrays of devices, streams, and what an adaptor has


def test_arrays_of_devices_have_a_type() -> None:
    memory, blob = SyncedMemory(8, device="simulated"), Blob((2,), device="simulated")

    assert_type(memory.gpu_data(), DeviceArray)
    assert_type(memory.mutable_gpu_data(), DeviceArray)
    assert_type(blob.gpu_data(), DeviceArray)
    assert_type(blob.mutable_gpu_data(), DeviceArray)
    assert_type(blob.gpu_diff(), DeviceArray)
    assert_type(blob.mutable_gpu_diff(), DeviceArray)
    assert_type(blob.gpu_shape(), DeviceArray)
    view = memory.gpu_data()[2:6].view(np.uint16).reshape(1, 2)
    assert_type(view, DeviceArray)
    assert ((1, 2), 2, 2, 4) == (view.shape, view.ndim, view.size, view.nbytes)
    with pytest.raises(AttributeError, match="'gte'"):
        view.gte()  # type: ignore[attr-defined]


def test_the_memory_of_a_buffer_has_a_type() -> None:
    buffer = Buffer(8, CPUDeviceAllocator())

    assert_type(buffer.ptr, HostArray | DeviceArray | None)
    assert isinstance(buffer.ptr, np.ndarray)
    assert_type(buffer.ptr, HostArray)


def test_a_stream_is_of_a_kind_that_only_its_device_knows() -> None:
    device = syncedmem.named_device("simulated")
    stream = device.stream()

    assert_type(stream, Stream)
    assert device.record(stream).done
    memory = SyncedMemory(4)
    memory.mutable_cpu_data()
    for wrong in (None, 3):
        with pytest.raises(syncedmem.InvalidArgumentError):
            memory.async_gpu_push(stream=wrong)  # type: ignore[arg-type]


def test_a_misspelt_name_of_an_adaptor_is_an_error() -> None:
    pool = PoolAllocator(CPUDeviceAllocator())
    statistics = StatisticsAllocator(pool)

    assert_type(pool.idle_bytes, int)
    with pytest.raises(AttributeError, match="idle_bytess"):
        _ = statistics.idle_bytess  # type: ignore[attr-defined]
    assert 0 == statistics.idle_bytes  # type: ignore[attr-defined]
