"""Blobs by the protocols of arrays: NumPy's, buffers and DLPack; and how long a view is of use."""

from __future__ import annotations

import gc
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from blob_fixtures import ROW, SYNCED, UNINITIALIZED, Blob, each_device, on_both_sides

from syncedmem.model import InvalidPointerError
from syncedmem.runtime import (
    CPUDeviceAllocator,
    DeviceType,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
)

place = each_device
blob = on_both_sides


def test_a_blob_becomes_an_array(blob: Any) -> None:
    """Read-only over the memory, or a copy."""
    view, own = np.asarray(blob), np.array(blob)
    other: Any = np.asarray(blob, np.float64)
    assert (False, True, ROW.tolist()) == (view.flags.writeable, np.shares_memory(view, blob.cpu_data()), own.tolist())
    assert (np.float64, ROW.tolist()) == (other.dtype, other.tolist())
    own[...] = 9
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(blob, np.float64, copy=False)

    assert SYNCED is blob.data_memory.head


def test_views_keep_the_memory_and_not_the_blob(device: SimulatedDeviceAllocator) -> None:
    """So a blob that grows leaves nothing dangling; a blob itself hands out no address (H10)."""
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    views = [np.asarray(blob), blob.cpu_data(), np.from_dlpack(blob), np.asarray(blob.__buffer__(0)), blob.data]
    blob.reshape((1000,)).data = 9
    gc.collect()

    assert [ROW.tolist()] * 5 == [view.tolist() for view in views]
    assert not hasattr(blob, "__array_interface__")
    assert not hasattr(blob, "__cuda_array_interface__")
    assert all(hasattr(blob.cpu_data(), name) for name in ("__array_interface__", "__dlpack__", "__array__"))


def test_a_buffer_is_read_only_and_what_has_no_format_is_refused(blob: Any) -> None:
    """Python asks classes written in Python for a buffer from 3.12 on."""
    buffer = blob.__buffer__(0)
    assert ("f", (2, 3), True, ROW.tolist()) == (buffer.format, buffer.shape, buffer.readonly, buffer.tolist())
    assert memoryview(blob.mutable_cpu_data()).readonly is False
    with pytest.raises(ValueError, match="cannot include dtype"):
        Blob((2,), ml_dtypes.bfloat16, device=None).__buffer__(0)


def test_dlpack_hands_out_the_host_side_read_only(blob: Any) -> None:
    array = np.from_dlpack(blob)
    assert ((1, 0), False, ROW.tolist()) == (blob.__dlpack_device__(), array.flags.writeable, array.tolist())
    assert np.shares_memory(array, blob.cpu_data())
    assert np.from_dlpack(blob, copy=True).flags.writeable
    assert ROW.tolist() == np.from_dlpack(blob, device="cpu").tolist()
    with pytest.raises(BufferError, match="readonly"):
        blob.__dlpack__()  # a consumer that does not know of versions cannot be told
    assert np.from_dlpack(blob.mutable_cpu_data()).flags.writeable


def capsule(ptr: Any, **options: Any) -> tuple[str, Any, dict[str, Any]]:
    """What stands for a capsule."""
    return "capsule", ptr, options


class OnGPU(SimulatedDeviceAllocator):
    """A device whose arrays speak DLPack, as CuPy's do."""

    def viewer(self, ptr: Any) -> Any:
        if ptr.ndim == 1:
            return super().viewer(ptr)
        return lambda: SimpleNamespace(__dlpack__=partial(capsule, ptr))

    def empty(self, byte_size: int) -> Any:
        def asked(**options: Any) -> None:
            if options.get("stream") == 0:
                raise BufferError("no stream is 0")

        def view(dtype: object) -> Any:
            return dtype and speaking

        speaking = SimpleNamespace(__dlpack_device__=lambda: (2, 0), __dlpack__=asked, view=view)
        return super().empty(byte_size) if byte_size else speaking


def test_dlpack_hands_out_the_device_side_to_who_asks_for_it(blob: Any) -> None:
    """With the stream of the consumer; where the device's arrays have no DLPack, it is refused."""
    there = Blob((2, 3), device=OnGPU())
    with pytest.raises(BufferError, match="no stream is 0"):
        there.__dlpack__(dl_device=(2, 0), stream=0)
    for it, device in ((there, (2, 1)), (blob, (2, 0)), (Blob((2,), device=None), (2, 0))):
        with pytest.raises(BufferError, match=r"the data is not on the device \(2, [01]\) of DLPack"):
            it.__dlpack__(dl_device=device)
    assert (UNINITIALIZED, SYNCED) == (there.data_memory.head, blob.data_memory.head)
    name, view, options = there.__dlpack__(dl_device=(2, 0), stream=7, max_version=(1, 0), copy=None)
    assert ("capsule", (2, 3), {"stream": 7, "max_version": (1, 0)}) == (name, view.shape, options)


def test_a_view_of_what_a_pool_has_lent_again_is_somebody_elses() -> None:
    """No pool can keep old bytes; ``blob.data`` alone keeps its memory, and refuses to write when that has others."""
    with PoolAllocator(CPUDeviceAllocator()) as pool:
        blob = Blob((2, 3), host=pool, device=None)
        view, kept = blob.mutable_cpu_data(), blob.data
        blob.set_cpu_data(np.zeros((2, 3), np.float32))
        other = Blob((2, 3), host=pool, device=None)
        other.data = ROW
        assert ROW.tolist() == view.tolist()
        with pytest.raises(InvalidPointerError, match="other bytes by now"):
            kept[...] = 7
        assert ROW.tolist() == other.data.tolist()
        other.data_memory.close()


def test_a_view_of_the_simulated_device_is_of_no_use_when_its_memory_is_freed(place: Any) -> None:
    """Elsewhere it shows old bytes; here whoever still looks is told, because over a pool they would be another's."""
    blob = Blob((2, 3), device=place)
    blob.data = ROW
    near, far = blob.cpu_data(), blob.gpu_data()
    del blob
    gc.collect()
    assert ROW.tolist() == near.tolist()
    if place.device_type == DeviceType.SIMULATED:
        with pytest.raises(SimulatedDeviceError, match=r"use of the block of 24 bytes at .* after it was freed"):
            far.get()
    else:
        assert ROW.tolist() == far.get().tolist()
