"""Arrays of others become blobs: adopted, converted and copied, or refused."""

from __future__ import annotations

import sys
import weakref
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from arrays_of_others import OnlyDLPack
from blob_fixtures import GPU, PLACES, ROW, SYNCED, Blob, each_device
from blob_views import at_head

from syncedmem.model import BufferMismatchError, InvalidArgumentError
from syncedmem.runtime import DeviceType, SimulatedDeviceAllocator

place = each_device


class Foreign:
    """An array of a library that supports some protocols."""

    def __init__(self, array: Any, **attributes: Any) -> None:
        self._array = array
        vars(self).update(attributes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(self._array, Exception):
            raise self._array
        return np.array(self._array, dtype, copy=copy)


class Tensor(Foreign):
    """An array like PyTorch's on the processor."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_an_array_is_adopted_without_a_copy(place: Any) -> None:
    """It holds for NumPy's own arrays, and for writeable ones that show NumPy their memory."""
    for wrap in (np.asarray, Foreign, Tensor):
        mine: Any = ROW.copy()
        blob = Blob.from_array(wrap(mine), copy=False, device=place)
        blob.data[0, 0] = 9
        assert ((2, 3), np.float32, 9, False) == (blob.shape, blob.dtype, mine[0, 0], blob.data_memory.own_cpu_data)
        blob.mutable_gpu_data().set(ROW + 1)
        blob.cpu_data()
        assert (ROW + 1).tolist() == mine.tolist()
    kept = weakref.ref(mine)
    del mine, wrap
    assert kept() is not None


def jax_array() -> Any:
    """An array that must not be written to, like JAX's."""
    array = ROW.copy()
    array.flags.writeable = False
    return Tensor(array)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (jax_array(), "it is read-only"),
        (np.repeat(ROW, 2, axis=1)[:, ::2], "it is not contiguous"),
        (ROW.astype(">f4"), "its elements are >f4, and float32 are needed"),
        (np.frombuffer(bytearray(b"0") + ROW.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3), "multiple of 4"),
    ],
)
def test_what_cannot_be_adopted_is_copied_or_refused(place: Any, array: Any, reason: str) -> None:
    blob = Blob.from_array(array, device=place)
    assert (ROW.tolist(), np.float32, True) == (blob.cpu_data().tolist(), blob.dtype, blob.data_memory.own_cpu_data)
    blob.data = 0
    assert ROW.tolist() == np.asarray(array).tolist()
    with pytest.raises(BufferMismatchError, match=reason):
        Blob.from_array(array, copy=False, device=place)


def test_an_array_is_converted_and_copied_when_asked(place: Any) -> None:
    mine = ROW.astype(np.float64)
    for blob in (Blob.from_array(mine, dtype="float32", device=place), Blob.from_array(mine, copy=True, device=place)):
        assert (ROW.tolist(), True) == (blob.cpu_data().tolist(), blob.data_memory.own_cpu_data)
    with pytest.raises(BufferMismatchError, match="its elements are float64, and float32 are needed"):
        Blob.from_array(mine, dtype=np.float32, copy=False, device=place)
    with pytest.raises(
        InvalidArgumentError, match=r"dtype must be given, as one of .*, to convert .* type int64, got N"
    ):
        Blob.from_array(np.arange(3), device=place)
    assert [0, 1, 2] == Blob.from_array(np.arange(3), dtype=np.int32, device=place).cpu_data().tolist()
    assert [[1.0, 2.0]] == Blob.from_array([[1.0, 2.0]], device=place).cpu_data().tolist()
    assert (0, (0, 3)) == (Blob.from_array(ROW[:0], device=place).count, Blob.from_array(ROW[:0]).shape)


def test_memory_of_the_device_becomes_the_device_side(place: Any) -> None:
    """It is adopted or copied on the device; for another type it goes through the host."""
    theirs: Any = place.empty(24)
    theirs.set(ROW.reshape(-1).view(np.uint8))
    array = theirs.view(np.float32).reshape(2, 3)
    adopted = Blob.from_array(array, copy=False, device=place)
    own = Blob.from_array(array, copy=True, device=place)
    wide = Blob.from_array(array, dtype=np.float64, device=place)
    assert ((GPU, False), (GPU, True)) == tuple(
        (it.data_memory.head, it.data_memory.own_gpu_data) for it in (adopted, own)
    )
    for blob in (adopted, own, wide):
        assert ROW.tolist() == blob.cpu_data().tolist()
    adopted.mutable_gpu_data().set(ROW + 1)

    assert (ROW + 1).tolist() == array.get().tolist()
    assert ROW.tolist() == own.data.tolist()
    with pytest.raises(BufferMismatchError, match="it is on a device, and this blob has none"):
        Blob.from_array(array, device=None)
    for dtype in (None, np.float64):
        with pytest.raises(BufferMismatchError, match="it is not memory of simulated:1"):
            Blob.from_array(array, dtype=dtype, device=SimulatedDeviceAllocator(1))


def test_a_view_of_the_device_that_is_read_only_is_copied(device: SimulatedDeviceAllocator) -> None:
    source = Blob((2, 3), device=device)
    at_head(source.data_memory, GPU, ROW)
    array = source.gpu_data()
    blob = Blob.from_array(array, device=device)
    assert (ROW.tolist(), True) == (blob.cpu_data().tolist(), blob.data_memory.own_gpu_data)
    with pytest.raises(BufferMismatchError, match=r"^from_array cannot adopt .*read-only.*; it would need a copy$"):
        Blob.from_array(array, copy=False, device=device)


def test_arrays_of_gpus_are_seen_by_what_they_say(device: SimulatedDeviceAllocator) -> None:
    """Their attributes tell; without a CUDA device they cannot be taken."""
    interface = {"data": (4096, False), "shape": (2, 3), "typestr": "<f4", "version": 3}
    for array in (
        Foreign(None, __dlpack_device__=lambda: (2, 0)),
        Foreign(None, __cuda_array_interface__=interface, shape=(2, 3), dtype=np.float32),
    ):
        for there, reason in ((None, "it is on a device, and this blob has none"), (device, "it is not memory of sim")):
            for copied in (True, False, None):
                with pytest.raises(BufferMismatchError, match=reason):
                    Blob.from_array(array, copy=copied, device=there)


def test_an_array_that_speaks_nothing_but_dlpack_is_taken(place: Any) -> None:
    """DLPack without versions cannot say whether an array may be written, so such an array is copied."""
    mine = ROW.copy()
    blob = Blob.from_array(OnlyDLPack(mine), copy=False, device=place)
    blob.data[0, 0] = 9
    assert (9, False) == (mine[0, 0], blob.data_memory.own_cpu_data)
    old = Blob.from_array(OnlyDLPack(mine, old=True), device=place)
    assert (mine.tolist(), True) == (old.data.tolist(), old.data_memory.own_cpu_data)
    with pytest.raises(BufferMismatchError, match="read-only"):
        Blob.from_array(OnlyDLPack(mine, old=True), copy=False, device=place)
    blob.data = OnlyDLPack(ROW)
    assert ROW.tolist() == mine.tolist()


@pytest.mark.parametrize(
    "array",
    ["abc", b"1234", None, object(), [None, 1], ["1"], {1: 2}, np.array(["2020"], "M8[Y]"), np.ones(2, "m8[s]"),
     np.ones(2, [("a", "f4")]), np.ones(2, "V4"), np.array([1, "a"], object), [[1], [2, 3]]],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_what_has_no_numbers_is_no_array(array: Any, dtype: Any) -> None:
    """There is one clear error, not one of NumPy's many."""
    with pytest.raises(
        BufferMismatchError, match=r"from_array cannot adopt .*: (its elements .* no numbers|ValueError)"
    ):
        Blob.from_array(array, dtype=dtype, device=None)


def test_what_is_no_array_has_no_memory_to_adopt() -> None:
    lists: list[Any] = [[1.5], (1.5,), 3.0, np.float32(3), [[]]]
    for values in lists:
        assert np.asarray(values).tolist() == Blob.from_array(values, device=None).data.tolist()
        with pytest.raises(BufferMismatchError, match="it is no array, so it has no memory that could be used"):
            Blob.from_array(values, copy=False, device=None)
    buffer = bytearray(4)
    with pytest.raises(BufferMismatchError, match="its elements are uint8"):
        Blob.from_array(buffer, dtype=np.float32, copy=False, device=None)
    for wrong in ("x", 1, 0.5, [True]):
        with pytest.raises(InvalidArgumentError, match="copy must be True, False or None, got"):
            Blob.from_array(ROW, copy=wrong, device=None)
    assert Blob.from_array(ROW.copy(), copy=np.True_, device=None).data_memory.own_cpu_data


def test_a_type_that_blobs_do_not_have_is_converted_when_that_is_said() -> None:
    """The new type is not guessed: integers have no arithmetic, and floats are not exact."""
    arrays: list[Any] = [[1, 2], np.array([1, 2]), [True, False], np.array([1 + 0j, 2]), [2**70], np.ones(2, np.uint8)]
    for array in arrays:
        with pytest.raises(
            InvalidArgumentError, match=r"dtype must be given, as one of float32, .*, to convert elements"
        ):
            Blob.from_array(array, device=None)
        assert np.array_equal(array, Blob.from_array(array, dtype=np.float64, device=None).data)


def test_an_array_of_opencl_has_to_be_contiguous() -> None:
    """PyOpenCL itself copies no other arrays."""
    place = next((it for it in PLACES if it.device_type == DeviceType.OPENCL), None)
    if place is None:
        pytest.skip("no OpenCL device here")
    array = place.empty(24).view(np.float32).reshape(2, 3).T
    with pytest.raises(BufferMismatchError, match="it is not contiguous, and PyOpenCL cannot copy it then"):
        Blob.from_array(array, device=place)


def test_what_is_no_array_says_why() -> None:
    for array, reason in ((Foreign(RuntimeError("requires grad")), "requires grad"), ([[1], [2, 3]], "ValueError")):
        with pytest.raises(BufferMismatchError, match=f"from_array cannot adopt .*{reason}"):
            Blob.from_array(array, device=None)
    with pytest.raises(BufferMismatchError, match="has no attribute 'shape'"):
        Blob.from_array(SimpleNamespace(base_data=7), device=SimulatedDeviceAllocator())
    with pytest.raises(BufferMismatchError, match="ZeroDivisionError"):
        Blob.from_array(Foreign(None, __dlpack_device__=lambda: 1 // 0), device=None)
    broken = Foreign(BufferMismatchError("from_array", None, "as it says"))
    with pytest.raises(BufferMismatchError, match="from_array cannot adopt None: as it says"):
        Blob.from_array(broken, device=None)


class GPU0(SimulatedDeviceAllocator):
    """A device that says it is CUDA's."""

    device_type = DeviceType.CUDA


def test_on_cuda_an_array_becomes_one_of_cupys_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that knows CuPy converts it; here that is a stand-in, and the array is the simulated device's."""
    device = GPU0()
    there: Any = device.empty(24)
    asked: list[object] = []

    def imported(array: object) -> Any:
        asked.append(array)
        return there.view(np.float32).reshape(2, 3)

    monkeypatch.setitem(sys.modules, "syncedmem.runtime.devices.cuda", cast("Any", SimpleNamespace(imported=imported)))
    tensor = Foreign(None, __dlpack_device__=lambda: (2, 0))
    blob = Blob.from_array(tensor, copy=False, device=device)

    assert ([tensor], (2, 3), GPU, False) == (asked, blob.shape, blob.data_memory.head, blob.data_memory.own_gpu_data)
    interface = {"data": (4096, True), "shape": (2, 3), "typestr": "<f4", "version": 3}
    jax = Foreign(None, __cuda_array_interface__=interface)
    with pytest.raises(BufferMismatchError, match="it is read-only, and the host is copied into it"):
        Blob.from_array(jax, copy=False, device=device)


def test_a_view_to_read_is_adopted_where_arrays_have_no_such_form(place: Any) -> None:
    exporter, blob = Blob((2, 3), device=place), Blob((2, 3), device=place)
    exporter.data = ROW
    if place.device_type == DeviceType.SIMULATED:
        with pytest.raises(BufferMismatchError, match="read-only"):
            blob.set_gpu_data(exporter.gpu_data())
        return
    blob.set_gpu_data(exporter.gpu_data())
    blob.scale_data(5)
    assert (SYNCED, ROW.tolist()) == (exporter.data_memory.head, exporter.data.tolist())
    assert (ROW * 5).tolist() == exporter.gpu_data().get().tolist()
