"""Blobs on a real GPU: what no other device can show.

Without CuPy or without a GPU all of it is skipped.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays_of_others import Interface, OnlyDLPack
from blob_views import HEADS

from syncedmem import runtime
from syncedmem.model import BufferMismatchError, Mode, NoDeviceError, using_mode

try:
    import syncedmem.runtime.devices.cuda as cuda_module

    cuda_module.CUDADeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no GPU here: {error}", allow_module_level=True)

cupy: Any = cuda_module.cupy
Blob: Any = runtime.Blob
CUDADeviceAllocator: Any = cuda_module.CUDADeviceAllocator
GPUS: int = cupy.cuda.runtime.getDeviceCount()
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=[False, True], ids=["malloc", "pool"])
def device(request: pytest.FixtureRequest) -> Any:
    """The first GPU, with memory from CUDA directly, and from CuPy's pools."""
    return CUDADeviceAllocator(pool=request.param)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "uint32"])
def test_views_are_cupys_own_in_type_and_shape(device: Any, name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    blob = Blob((2, 3), dtype, device=device)
    blob.data = ROW
    view = blob.gpu_data()

    assert isinstance(view, cupy.ndarray)
    assert ((2, 3), dtype, ROW.tolist()) == (view.shape, view.dtype, view.get().astype(np.float32).tolist())
    assert view.data.ptr == blob.data_memory.gpu_data().data.ptr
    if dtype.kind not in "iu":
        blob.diff = 1
        blob.mutable_gpu_data()
        blob.update()
        assert ((ROW - 1).tolist(), 11.0) == (blob.data.astype(np.float32).tolist(), blob.asum_data())


def test_kernels_of_cupy_write_where_a_blob_looks(device: Any) -> None:
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    array = blob.mutable_gpu_data()
    array *= 2
    assert (GPU, (ROW * 2).tolist()) == (blob.data_memory.head, blob.data.tolist())
    assert cupy.asnumpy(blob.gpu_shape()).tolist() == [2, 3]


def test_update_comes_after_what_the_current_stream_holds(device: Any) -> None:
    """A kernel that was launched before it writes the gradients."""
    blob = Blob((1 << 20,), device=device)
    blob.data[...] = 3
    blob.gpu_data()
    with device.stream():
        gradients = blob.mutable_gpu_diff()
        for _ in range(8):
            gradients += 0.25
        blob.update()

    assert {1.0} == set(blob.data.tolist())


def test_cupys_arrays_are_adopted(device: Any) -> None:
    mine = cupy.asarray(ROW)
    blob = Blob.from_array(mine, copy=False, device=device)
    assert (GPU, mine.data.ptr) == (blob.data_memory.head, blob.gpu_data().data.ptr)
    blob.scale_data(2)
    assert (ROW * 2).tolist() == mine.get().tolist()
    copied = Blob.from_array(mine.T, device=device)
    assert ((3, 2), (ROW * 2).T.tolist()) == (copied.shape, copied.data.tolist())
    with pytest.raises(BufferMismatchError, match="it is not contiguous"):
        Blob.from_array(mine.T, copy=False, device=device)
    wide = Blob.from_array(mine, dtype=np.float64, device=device)
    assert (np.float64, (ROW * 2).tolist()) == (wide.dtype, wide.data.tolist())


def test_arrays_of_other_libraries_are_adopted_by_protocol(device: Any) -> None:
    mine = cupy.asarray(ROW)
    for theirs in (Interface(mine), OnlyDLPack(mine)):
        blob = Blob.from_array(theirs, copy=False, device=device)
        assert mine.data.ptr == blob.gpu_data().data.ptr
    forbidden = Interface(mine, data=(mine.data.ptr, True))
    copied = Blob.from_array(forbidden, device=device)
    copied.scale_data(2)
    assert ROW.tolist() == mine.get().tolist()
    with pytest.raises(BufferMismatchError, match="it is read-only"):
        Blob.from_array(forbidden, copy=False, device=device)


def test_dlpack_hands_out_the_device_side(device: Any) -> None:
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    taken = cupy.from_dlpack(blob.gpu_data())
    assert taken.data.ptr == blob.gpu_data().data.ptr
    assert SYNCED is blob.data_memory.head
    capsule = blob.__dlpack__(dl_device=(2, 0), stream=cupy.cuda.get_current_stream().ptr or 1)
    assert "dltensor" in repr(capsule)
    assert (1, 0) == blob.__dlpack_device__()


@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
def test_copies_between_two_gpus_go_through_the_host() -> None:
    one, two = (Blob((2, 3), device=CUDADeviceAllocator(ordinal)) for ordinal in (0, 1))
    one.data = ROW
    one.mutable_gpu_data()
    with using_mode(Mode.GPU):
        two.copy_from(one)

    assert GPU is two.data_memory.head
    assert ROW.tolist() == two.data.tolist()  # which copies down
