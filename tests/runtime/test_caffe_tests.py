"""Caffe's own test cases of ``SyncedMemory`` and ``Blob``, translated line by line; each test has its case's name.

The files are ``src/caffe/test/test_syncedmem.cpp`` and ``test_blob.cpp``.  ``make test-caffe`` compares the names here
with those in the files.  Caffe runs the cases of blobs for float and double, and the arithmetic in both modes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import Mode, SyncedHead, using_mode
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.runtime.blobs.messages import message_types

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
MODES = pytest.mark.parametrize("mode", list(Mode))
EPSILON = 1e-6


# --- test_syncedmem.cpp


@pytest.fixture
def mem(device: SimulatedDeviceAllocator) -> SyncedMemory:
    return SyncedMemory(10, device=device)


def head(mem: SyncedMemory) -> SyncedHead:
    """Return the head, which a type checker does not take for the one that it was."""
    return mem.head


def caffe_memset(view: Any, value: int) -> None:
    view[:] = value


def caffe_gpu_memset(view: Any, value: int) -> None:
    view.set(np.full(view.nbytes, value, np.uint8))


def test_TestInitialization(mem: SyncedMemory, device: SimulatedDeviceAllocator) -> None:  # noqa: N802 -- Caffe's name
    assert head(mem) is SyncedHead.UNINITIALIZED
    assert mem.size == 10
    p_mem = SyncedMemory(10 * np.dtype("float32").itemsize, device=device)
    assert p_mem.size == 40
    p_mem.close()


def test_TestAllocationCPUGPU(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    assert mem.cpu_data() is not None
    assert mem.gpu_data() is not None
    assert mem.mutable_cpu_data() is not None
    assert mem.mutable_gpu_data() is not None


def test_TestAllocationCPU(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    assert mem.cpu_data() is not None
    assert mem.mutable_cpu_data() is not None


def test_TestAllocationGPU(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    assert mem.gpu_data() is not None
    assert mem.mutable_gpu_data() is not None


def test_TestCPUWrite(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    for value in (1, 2):  # "do another round"
        cpu_data = mem.mutable_cpu_data()
        assert head(mem) is SyncedHead.HEAD_AT_CPU
        caffe_memset(cpu_data, value)
        assert [*cpu_data] == [value] * 10


def test_TestGPURead(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    for value in (1, 2):  # "do another round"
        cpu_data = mem.mutable_cpu_data()
        assert head(mem) is SyncedHead.HEAD_AT_CPU
        caffe_memset(cpu_data, value)
        assert [*cpu_data] == [value] * 10
        gpu_data = mem.gpu_data()
        assert head(mem) is SyncedHead.SYNCED
        recovered_value = gpu_data.get()
        assert [*recovered_value] == [value] * 10


def test_TestGPUWrite(mem: SyncedMemory) -> None:  # noqa: N802 -- Caffe's name
    for value in (1, 2):
        gpu_data = mem.mutable_gpu_data()
        assert head(mem) is SyncedHead.HEAD_AT_GPU
        caffe_gpu_memset(gpu_data, value)
        cpu_data = mem.cpu_data()
        assert [*cpu_data] == [value] * 10
        assert head(mem) is SyncedHead.SYNCED


# --- test_blob.cpp: BlobSimpleTest


@pytest.fixture
def blob(dtype: str, device: SimulatedDeviceAllocator) -> Blob[Any]:
    return Blob(dtype=dtype, device=device)


@pytest.fixture
def blob_preshaped(dtype: str, device: SimulatedDeviceAllocator) -> Blob[Any]:
    return Blob(2, 3, 4, 5, dtype=dtype, device=device)


def shape_of(blob: Blob[Any]) -> tuple[int, ...]:
    return blob.num, blob.channels, blob.height, blob.width, blob.count


@DTYPES
def test_blob_TestInitialization(blob: Blob[Any], blob_preshaped: Blob[Any]) -> None:  # noqa: N802 -- Caffe's name
    assert shape_of(blob_preshaped) == (2, 3, 4, 5, 120)
    assert blob.num_axes == 0
    assert blob.count == 0


@DTYPES
def test_blob_TestPointersCPUGPU(blob_preshaped: Blob[Any]) -> None:  # noqa: N802 -- Caffe's name
    assert blob_preshaped.gpu_data() is not None
    assert blob_preshaped.cpu_data() is not None
    assert blob_preshaped.mutable_gpu_data() is not None
    assert blob_preshaped.mutable_cpu_data() is not None


@DTYPES
def test_blob_TestReshape(blob: Blob[Any]) -> None:  # noqa: N802 -- Caffe's name
    blob.reshape(2, 3, 4, 5)
    assert shape_of(blob) == (2, 3, 4, 5, 120)


@DTYPES
def test_blob_TestReshapeZero(blob: Blob[Any]) -> None:  # noqa: N802 -- Caffe's name
    blob.reshape((0, 5))
    assert blob.count == 0


@DTYPES
def test_blob_TestLegacyBlobProtoShapeEquals(blob: Blob[Any]) -> None:  # noqa: N802 -- Caffe's name
    _, proto_type = message_types()

    def legacy(num: int, channels: int, height: int, width: int) -> Any:
        return proto_type(num=num, channels=channels, height=height, width=width)

    blob.reshape((3, 2))
    assert blob.shape_equals(legacy(1, 1, 3, 2))
    assert not blob.shape_equals(legacy(0, 1, 3, 2))
    assert not blob.shape_equals(legacy(3, 1, 3, 2))
    blob.reshape((1, 3, 2))
    assert blob.shape_equals(legacy(1, 1, 3, 2))
    blob.reshape((2, 3, 2))
    assert not blob.shape_equals(legacy(1, 1, 3, 2))


# --- test_blob.cpp: BlobMathTest


@pytest.fixture
def math(mode: Mode, blob_preshaped: Blob[Any]) -> Iterator[Blob[Any]]:
    with using_mode(mode):
        yield blob_preshaped


def fill(blob: Blob[Any]) -> None:
    """Caffe's UniformFiller from -3 to 3."""
    blob.mutable_cpu_data()[:] = np.random.default_rng(0).uniform(-3, 3, blob.shape)


def touch(blob: Blob[Any], part: str, mode: Mode) -> None:
    """Do a mutable access on the current device, so that the computation is done on that device."""
    getattr(blob, f"mutable_{mode.name.lower()}_{part}")()


def near(value: float, tolerance: float | None = None) -> Any:
    return pytest.approx(value, abs=EPSILON * (value if tolerance is None else tolerance))


@DTYPES
@MODES
def test_blob_TestSumOfSquares(math: Blob[Any], mode: Mode) -> None:  # noqa: N802 -- Caffe's name
    assert math.sumsq_data() == 0
    assert math.sumsq_diff() == 0
    fill(math)
    data = math.cpu_data().copy()
    expected_sumsq = float((data.astype("float64") ** 2).sum())
    touch(math, "data", mode)
    assert math.sumsq_data() == near(expected_sumsq)
    assert math.sumsq_diff() == 0
    math.mutable_cpu_diff()[:] = 7 * data
    touch(math, "diff", mode)
    assert math.sumsq_data() == near(expected_sumsq)
    assert math.sumsq_diff() == near(expected_sumsq * 7 * 7)


@DTYPES
@MODES
def test_blob_TestAsum(math: Blob[Any], mode: Mode) -> None:  # noqa: N802 -- Caffe's name
    assert math.asum_data() == 0
    assert math.asum_diff() == 0
    fill(math)
    data = math.cpu_data().copy()
    expected_asum = float(np.abs(data.astype("float64")).sum())
    touch(math, "data", mode)
    assert math.asum_data() == near(expected_asum)
    assert math.asum_diff() == 0
    math.mutable_cpu_diff()[:] = 7 * data
    touch(math, "diff", mode)
    assert math.asum_data() == near(expected_asum)
    assert math.asum_diff() == near(expected_asum * 7)


@DTYPES
@MODES
def test_blob_TestScaleData(math: Blob[Any], mode: Mode) -> None:  # noqa: N802 -- Caffe's name
    assert math.asum_data() == 0
    assert math.asum_diff() == 0
    fill(math)
    asum_before_scale = math.asum_data()
    touch(math, "data", mode)
    math.scale_data(3)
    assert math.asum_data() == near(asum_before_scale * 3)
    assert math.asum_diff() == 0
    math.mutable_cpu_diff()[:] = 7 * math.cpu_data()
    assert math.asum_data() == near(asum_before_scale * 3)
    assert math.asum_diff() == near(asum_before_scale * 3 * 7)
    touch(math, "diff", mode)
    math.scale_diff(3)
    assert math.asum_data() == near(asum_before_scale * 3)
    assert math.asum_diff() == near(asum_before_scale * 3 * 7 * 3)
