"""Blobs among other arrays: pycaffe's attributes, protocols, arrays of others, copies and pickles."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, assert_type, cast

import ml_dtypes
import numpy as np
import pytest
from benches import devices
from blob_views import HEADS, at_head, recorded, snapshot

from syncedmem import runtime
from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidShapeError,
    SyncedHead,
)
from syncedmem.runtime import (
    CPUDeviceAllocator,
    DeviceType,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
)
from syncedmem.runtime.blobs.live_array import LiveArray

if TYPE_CHECKING:
    from collections.abc import Callable


Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
PLACES: list[Any] = devices()
NAMES = [place.device_type.name.lower() for place in PLACES]
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=PLACES, ids=NAMES)
def place(request: pytest.FixtureRequest) -> Any:
    """Every device of this machine."""
    return request.param


@pytest.fixture
def blob(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 with data on both sides."""
    blob = Blob((2, 3), device=device)
    at_head(blob.data_memory, SYNCED, ROW)
    return blob


# --- data and diff, as in pycaffe


@pytest.mark.parametrize("side", ["data", "diff"])
def test_reading_the_attribute_leaves_the_device_side_fresh(device: SimulatedDeviceAllocator, side: str) -> None:
    """In pycaffe a look makes it stale, and the next kernel pays for a copy (H10)."""
    blob, log = recorded(device, (2, 3))
    memory = getattr(blob, f"{side}_memory")
    at_head(memory, GPU, ROW)
    log.clear()
    array = getattr(blob, side)
    found = [array.sum(), array[1].max(), float(np.dot(array[0], array[1])), (array + 1)[0, 0], array.tolist()]
    getattr(blob, f"gpu_{side}")()

    assert [15, 5, 14, 1, ROW.tolist()] == found
    assert (["host allocate", "down"], SYNCED) == (log, memory.head)
    assert ((2, 3), np.float32, False) == (array.shape, array.dtype, array.flags.writeable)


WRITES: list[Callable[[Any], None]] = [
    lambda blob: blob.data.__setitem__(..., 7),
    lambda blob: blob.data[1].__setitem__(slice(None), 7),
    lambda blob: blob.data.T[::-1].__setitem__((0, 1), 7),
    lambda blob: blob.data.__setitem__(blob.data > 2, 7),
    lambda blob: setattr(blob, "data", 7),
    lambda blob: setattr(blob, "data", np.full((1, 1, 2, 3), 7)),
    lambda blob: setattr(blob, "data", blob.data * 2),
    lambda blob: setattr(blob, "data", blob.data[::-1]),
    lambda blob: blob.data.__imul__(3),
    lambda blob: np.add(blob.data, blob.data, out=blob.data),
    lambda blob: np.add.at(blob.data, (0, 1), 5),
]


@pytest.mark.parametrize("write", WRITES)
def test_writing_through_the_attribute_makes_the_device_side_stale(blob: Any, write: Callable[[Any], None]) -> None:
    """And the device sees it."""
    plain = SimpleNamespace(data=ROW.copy())
    write(plain)
    write(blob)

    assert CPU is blob.data_memory.head
    expected = np.broadcast_to(np.squeeze(plain.data), (2, 3))
    assert expected.tolist() == blob.gpu_data().get().tolist()


def test_operators_in_place(blob: Any) -> None:
    """Of the attribute, and of a name for it."""
    blob.diff = 1
    blob.data -= 0.5 * blob.diff
    weights = blob.data
    weights *= 2
    blob.diff += blob.data

    assert (ROW * 2 - 1).tolist() == blob.gpu_data().get().tolist()
    assert (ROW * 2).tolist() == blob.gpu_diff().get().tolist()
    assert isinstance(weights, LiveArray)


def test_assigning_what_is_there_already_moves_nothing(blob: Any) -> None:
    """As the last step of ``blob.data -= step`` does, after which the head has moved anyway."""
    blob.data = blob.data
    assert SYNCED is blob.data_memory.head
    for other in (blob.data[:1], blob.data.reshape(3, 2).T, np.array(blob.data), Blob((2, 3), device=None).data):
        blob.gpu_data()
        blob.data = other
        assert CPU is blob.data_memory.head


def test_an_operation_with_several_results_writes_those_that_are_asked_for(blob: Any) -> None:
    divmod_: Any = np.divmod
    first, second = divmod_(blob.data, 2, out=(blob.data, None))

    assert [[0, 0, 1], [1, 2, 2]] == blob.gpu_data().get().tolist() == first.tolist()
    assert ([[0, 1, 0], [1, 0, 1]], np.ndarray) == (second.tolist(), type(second))
    mine = np.zeros((2, 3), np.float32)
    divmod_(blob.data, 1, out=(blob.data, mine))
    divmod_(blob.data + 0.5, 1, out=(blob.data, mine))
    assert ([[0, 0, 1], [1, 2, 2]], [[0.5] * 3] * 2) == (blob.data.tolist(), mine.tolist())


def test_what_does_not_fit_is_refused_before_a_head_moves(blob: Any) -> None:
    before = snapshot(blob)
    attempts: list[tuple[Any, type[Exception], str]] = [
        (np.ones(7), InvalidShapeError, r"the shape \(7,\) cannot be used: values of it do not fit into \(2, 3\)"),
        (np.ones((2, 2, 3)), InvalidShapeError, "do not fit"),
        ("seven", InvalidArgumentError, "values must be numbers, to be stored as float32, got 'seven'"),
        ([[1], [2, 3]], InvalidArgumentError, "values must be numbers"),
        (object(), InvalidArgumentError, "values must be numbers"),
    ]
    for values, error, reason in attempts:
        with pytest.raises(error, match=reason):
            blob.data = values
        with pytest.raises(error):
            blob.data[...] = values
    with pytest.raises(IndexError):
        blob.data[2] = 7
    with pytest.raises(ValueError, match="read-only"):
        blob.data.fill(7)

    assert before == snapshot(blob)


def test_an_array_of_a_memory_that_has_other_bytes_refuses_to_write(blob: Any) -> None:
    """It would write into a buffer that nobody looks at any more."""
    old = blob.data
    mine = np.zeros((2, 3), np.float32)
    blob.set_cpu_data(mine)
    reason = r"has other bytes by now; take blob\.data or blob\.diff again"
    with pytest.raises(InvalidPointerError, match=reason):
        old[0] = 7
    with pytest.raises(InvalidPointerError, match=reason):
        old += 7

    assert not mine.any()
    assert ROW.tolist() == old.tolist()


KEPT_WRITES: list[Callable[[Any], Any]] = [
    lambda kept: kept.__setitem__((0, 0), kept[0, 0] + 1),
    lambda kept: kept.__setitem__(..., kept * 2),
    lambda kept: kept.T[1:].__setitem__(0, 7),
    lambda kept: kept.__iadd__(1),
    lambda kept: np.add(kept, 1, out=kept[:]),
    lambda kept: np.add.at(kept, (0, 0), 1),
]


@pytest.mark.parametrize("write", KEPT_WRITES)
@pytest.mark.parametrize("part", ["data", "diff"])
def test_an_array_that_was_kept_does_not_mix_old_numbers_with_new(
    blob: Any, part: str, write: Callable[[Any], Any]
) -> None:
    """What it is computed from is of before the device wrote, and NumPy does not say that it was read."""
    setattr(blob, part, ROW)
    kept = getattr(blob, part)
    getattr(blob, f"mutable_gpu_{part}")().set(np.full((2, 3), 50, np.float32))
    with pytest.raises(InvalidPointerError, match="the device has newer numbers by now; take blob"):
        write(kept)
    assert (GPU, ROW.tolist()) == (getattr(blob, f"{part}_memory").head, kept.tolist())
    getattr(blob, part)[0, 0] += 1
    write(kept)

    assert 51 <= getattr(blob, part)[0, 0]


LEAVES: list[Callable[[Any, Any], Any]] = [
    lambda blob, other: blob.reshape(100) and other,
    lambda blob, other: blob.share_data(other),
    lambda blob, other: blob.reshape(4).shrink_to_fit() and other,
    lambda blob, other: blob.reshape(4).set_cpu_data(other.mutable_cpu_data()),
]


@pytest.mark.parametrize("leave", LEAVES)
def test_an_array_of_a_memory_that_its_blob_has_left_refuses_to_write(
    blob: Any, leave: Callable[[Any, Any], Any]
) -> None:
    """The numbers would be lost: nobody looks for the blob's data there any more."""
    old = blob.data
    leave(blob, Blob((2, 3), device=blob.device))
    writes: list[Callable[[], Any]] = [lambda: old.__setitem__(..., 7), lambda: old.__iadd__(1)]
    for write in writes:
        with pytest.raises(InvalidPointerError, match="its blob has another memory by now; take blob"):
            write()

    assert ROW.tolist() == old.tolist()


def test_an_array_outlives_its_blob(device: SimulatedDeviceAllocator) -> None:
    """And can be written to, because nobody looks for its numbers anywhere else."""
    blob = Blob((2, 3), device=device)
    old, gone = blob.data, weakref.ref(blob)
    del blob
    gc.collect()
    old[...] = 7
    assert (None, 42) == (gone(), old.sum())


def test_an_array_outlives_a_reshape(blob: Any) -> None:
    """It keeps the memory that it looks at, which the blob has left when it grew (H10)."""
    old, memory = blob.data, weakref.ref(blob.data_memory)
    blob.reshape((100,)).data = 1
    assert (ROW.tolist(), 100) == (old.tolist(), blob.asum_data())
    small = blob.reshape((4,)).data
    small[...] = 2
    blob.data = small[::-1]
    del old

    assert (None, 104) == (memory(), blob.reshape((100,)).asum_data())


def test_copies_and_results_are_ordinary_arrays(blob: Any) -> None:
    for array in (blob.data.copy(), blob.data.astype(np.float64), blob.data[[1, 0]]):
        assert (None, True) == (getattr(array, "memory", None), array.flags.writeable)
        array[...] = 9
        np.add(array, 1, out=array)
        np.add.at(array, (0, 0), 1)
        assert (11, 10) == (array[0, 0], array[1, 2])
    back = pickle.loads(pickle.dumps(blob.data))  # noqa: S301 -- our own

    assert (np.ndarray, np.ndarray, np.float32) == (type(back), type(blob.data - 1), type(blob.data[0, 0]))
    assert (ROW.tolist(), SYNCED) == (back.tolist(), blob.data_memory.head)
    assert type(copy.deepcopy(blob.data)) in (np.ndarray, LiveArray)


def test_no_elements_are_written_without_harm(place: Any) -> None:
    empty = Blob((2, 0), device=place)
    empty.data[...] = 7
    empty.data = np.ones(())
    empty.data += 1

    assert ((2, 0), 0.0) == (empty.data.shape, empty.asum_data())


# --- protocols


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


# --- arrays of others


class Foreign:
    """An array of a library that speaks some protocols."""

    def __init__(self, array: Any, **attributes: Any) -> None:
        self._array = array
        vars(self).update(attributes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(self._array, Exception):
            raise self._array
        return np.array(self._array, dtype, copy=copy)


class Tensor(Foreign):
    """As PyTorch's on the processor."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_an_array_is_adopted_without_a_copy(place: Any) -> None:
    """NumPy's own, and those of libraries that show NumPy their memory, writeable."""
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
    """What must not be written to."""
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
    """Adopted, or copied there; converted through the host."""
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
    with pytest.raises(BufferMismatchError, match="read-only"):
        Blob.from_array(array, copy=False, device=device)


def test_arrays_of_gpus_are_seen_by_what_they_say(device: SimulatedDeviceAllocator) -> None:
    """Without a CUDA device they cannot be taken."""
    interface = {"data": (4096, False), "shape": (2, 3), "typestr": "<f4", "version": 3}
    for array in (
        Foreign(None, __dlpack_device__=lambda: (2, 0)),
        Foreign(None, __cuda_array_interface__=interface, shape=(2, 3), dtype=np.float32),
    ):
        for there, reason in ((None, "it is on a device, and this blob has none"), (device, "it is not memory of sim")):
            for copied in (True, False, None):
                with pytest.raises(BufferMismatchError, match=reason):
                    Blob.from_array(array, copy=copied, device=there)


class OnlyDLPack:
    """An array that speaks nothing else, of the version or before there were any."""

    def __init__(self, array: Any, *, old: bool = False) -> None:
        self._array = array
        self._old = old

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self._old and options.pop("max_version", None):
            raise TypeError("max_version")
        return self._array.__dlpack__(**options)


def test_an_array_that_speaks_nothing_but_dlpack_is_taken(place: Any) -> None:
    """Before DLPack's first version nobody could say whether it may be written, so it is copied."""
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
    """In one clear error, and not one of NumPy's many."""
    with pytest.raises(
        BufferMismatchError, match=r"from_array cannot adopt .*: (its elements .* no numbers|ValueError)"
    ):
        Blob.from_array(array, dtype=dtype, device=None)


def test_what_is_no_array_has_no_memory_to_adopt() -> None:
    lists: list[Any] = [[1.5], (1.5,), 3.0, np.float32(3), [[]]]
    for values in lists:
        assert np.asarray(values).tolist() == Blob.from_array(values, device=None).data.tolist()
        with pytest.raises(BufferMismatchError, match="it is no array, so there is no memory that could be used"):
            Blob.from_array(values, copy=False, device=None)
    buffer = bytearray(4)
    with pytest.raises(BufferMismatchError, match="its elements are uint8"):
        Blob.from_array(buffer, dtype=np.float32, copy=False, device=None)
    for wrong in ("x", 1, 0.5, [True]):
        with pytest.raises(InvalidArgumentError, match="copy must be True, False or None, got"):
            Blob.from_array(ROW, copy=wrong, device=None)
    assert Blob.from_array(ROW.copy(), copy=np.True_, device=None).data_memory.own_cpu_data


def test_a_type_that_blobs_do_not_have_is_converted_when_that_is_said() -> None:
    """Which one it should be is not guessed: integers have no arithmetic, and floats are not exact."""
    arrays: list[Any] = [[1, 2], np.array([1, 2]), [True, False], np.array([1 + 0j, 2]), [2**70], np.ones(2, np.uint8)]
    for array in arrays:
        with pytest.raises(
            InvalidArgumentError, match=r"dtype must be given, as one of float32, .*, to convert elements"
        ):
            Blob.from_array(array, device=None)
        assert np.array_equal(array, Blob.from_array(array, dtype=np.float64, device=None).data)


def test_an_array_of_opencl_has_to_be_contiguous() -> None:
    """PyOpenCL itself copies no other."""
    place = next((it for it in PLACES if it.device_type == DeviceType.OPENCL), None)
    if place is None:
        pytest.skip("no OpenCL device here")
    array = place.empty(24).view(np.float32).reshape(2, 3).T
    with pytest.raises(BufferMismatchError, match="it is not contiguous, and PyOpenCL does not make it so"):
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


# --- copies and pickles


def test_a_shallow_copy_shares_and_a_deep_one_does_not(place: Any) -> None:
    """The elements are copied where they are fresh, and what lies behind the shape with them."""
    for head in HEADS:
        blob = Blob((2, 3), device=place)
        at_head(blob.data_memory, head, ROW)
        at_head(blob.diff_memory, CPU, ROW + 1)
        blob.reshape((3,))
        shallow, deep = copy.copy(blob), copy.deepcopy(blob)
        assert (blob.data_memory, blob.diff_memory) == (shallow.data_memory, shallow.diff_memory)
        assert {SYNCED: GPU}.get(head, head) is deep.data_memory.head
        assert head is blob.data_memory.head
        for it in (shallow, deep):
            assert ((3,), np.float32, place, 6) == (it.shape, it.dtype, it.device, it.capacity)
            it.reshape((2, 3))
            assert (ROW + 1).tolist() == it.cpu_diff().tolist()
            if head is not UNINITIALIZED:
                assert ROW.tolist() == it.cpu_data().tolist()
        deep.data = 9
        assert 9 not in blob.data
    assert "(0)" == copy.deepcopy(copy.copy(Blob(device=place))).shape_string


def test_blobs_that_share_are_deeply_copied_as_such(device: SimulatedDeviceAllocator) -> None:
    one, two = Blob((2, 3), device=device), Blob((6,), device=device)
    two.share_data(one)
    one.data = ROW
    first, second = copy.deepcopy([one, two])
    second.data[0] = 9

    assert first.data_memory is second.data_memory
    assert first.diff_memory is not second.diff_memory
    assert (9, 0) == (first.data[0, 0], one.data[0, 0])


def test_a_deep_copy_that_fails_leaves_nothing_behind(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((2, 3), device=device)
    at_head(blob.data_memory, GPU, ROW)
    blocks, before = device.live_blocks, snapshot(blob)
    device.fail_at(1, "allocate")
    with pytest.raises(AllocationError):
        copy.deepcopy(blob)
    gc.collect()

    assert (blocks, before) == (device.live_blocks, snapshot(blob))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_goes_through_the_host(place: Any, protocol: int) -> None:
    for head in HEADS:
        blob = Blob((2, 3), device=place)
        at_head(blob.data_memory, head, ROW)
        back = pickle.loads(pickle.dumps(blob, protocol))  # noqa: S301 -- our own
        found = back.data_memory.head, back.diff_memory.head, back.shape, back.dtype
        assert (UNINITIALIZED if head is UNINITIALIZED else CPU, UNINITIALIZED, (2, 3), np.float32) == found
        if head is not UNINITIALIZED:
            assert ROW.tolist() == back.gpu_data().get().tolist()


class Layered(runtime.Blob[Any]):
    """A blob that somebody has derived, with an argument of their own."""

    __slots__ = ("layers",)

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(*shape, **options)
        self.layers = [layer]


class Named(Layered):
    """With attributes beside the slots."""

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(layer, *shape, **options)
        self.name, self.me = layer, self


def pickled(blob: Any) -> Any:
    """What comes back."""
    return pickle.loads(pickle.dumps(blob))  # noqa: S301 -- our own


COPIES: list[tuple[Callable[[Any], Any], bool]] = [(copy.copy, False), (copy.deepcopy, True), (pickled, True)]


@pytest.mark.parametrize(("copied", "deep"), COPIES)
def test_copies_of_a_derived_blob_keep_what_it_has_added(copied: Callable[[Any], Any], deep: bool) -> None:
    """Its ``__init__`` is not called, so it may need what it likes."""
    blob = Named("ip", (2, 3), device=None)
    blob.data = ROW
    other = copied(blob)
    assert (Named, "ip", ["ip"], ROW.tolist()) == (type(other), other.name, other.layers, other.data.tolist())
    assert (other.me is other, other.layers is not blob.layers) == (deep, deep)
    other.data[0, 0] = 7
    assert (0 if deep else 7) == blob.data[0, 0]


def test_what_is_pickled_without_a_device_or_a_shape_comes_back_so() -> None:
    empty = pickle.loads(pickle.dumps(Blob(dtype=np.int32, device=None)))  # noqa: S301 -- our own
    diffed = Blob((2, 3), ml_dtypes.bfloat16, device=None)
    diffed.diff = 7
    back = pickle.loads(pickle.dumps(diffed))  # noqa: S301 -- our own

    assert ("(0)", np.int32, None) == (empty.shape_string, empty.dtype, empty.device)
    assert (42.0, UNINITIALIZED, ml_dtypes.bfloat16) == (back.asum_diff(), back.data_memory.head, back.dtype)


def test_buffers_travel_beside_the_pickle(device: SimulatedDeviceAllocator) -> None:
    """Protocol 5: nothing is copied into the pickle itself."""
    blob = Blob((1000,), device=device)
    blob.data = 7
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(blob, 5, buffer_callback=buffers.append)

    assert (1, True) == (len(buffers), len(small) < 1000)
    assert 7000 == pickle.loads(small, buffers=buffers).asum_data()  # noqa: S301 -- our own


def test_the_type_of_the_elements_is_known_to_type_checkers() -> None:
    """Checked by mypy and pyright, not when this runs."""
    plain, wide = runtime.Blob((2,), device=None), runtime.Blob((2,), np.float64, device=None)
    assert_type(plain, runtime.Blob[np.float32])
    assert_type(wide.cpu_data(), np.ndarray[tuple[Any, ...], np.dtype[np.float64]])
    assert_type(runtime.Blob(2, 3, 4, 5, dtype=np.int32, device=None).data_at(0), np.int32)
    assert_type(runtime.Blob((2,), dtype="float32", device=None), runtime.Blob[Any])
    assert_type(runtime.Blob.from_array(ROW, device=None), runtime.Blob[Any])

    assert SyncedHead.HEAD_AT_CPU is wide.data_memory.head


class GPU0(SimulatedDeviceAllocator):
    """A device that says it is CUDA's."""

    device_type = DeviceType.CUDA


def test_on_cuda_an_array_becomes_one_of_cupys_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the module that knows CuPy; here it is a stand-in, and the array the simulated device's own."""
    device = GPU0()
    there: Any = device.empty(24)
    asked: list[object] = []

    def imported(array: object) -> Any:
        asked.append(array)
        return there.view(np.float32).reshape(2, 3)

    monkeypatch.setitem(sys.modules, "syncedmem.runtime.cuda", cast("Any", SimpleNamespace(imported=imported)))
    tensor = Foreign(None, __dlpack_device__=lambda: (2, 0))
    blob = Blob.from_array(tensor, copy=False, device=device)

    assert ([tensor], (2, 3), GPU, False) == (asked, blob.shape, blob.data_memory.head, blob.data_memory.own_gpu_data)
    interface = {"data": (4096, True), "shape": (2, 3), "typestr": "<f4", "version": 3}
    jax = Foreign(None, __cuda_array_interface__=interface)
    with pytest.raises(BufferMismatchError, match="it is read-only, and the host is copied into it"):
        Blob.from_array(jax, copy=False, device=device)


@pytest.mark.parametrize("head", HEADS)
def test_bfloat16_goes_everywhere_that_the_other_types_go(place: Any, head: Any) -> None:
    """NumPy does not have it, so there is no buffer, no DLPack and no file of it."""
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    row = (ROW / 3).astype(dtype)
    blob = Blob((2, 3), dtype, device=place)
    at_head(blob.data_memory, head, row)
    at_head(blob.diff_memory, head, row + row)
    data, diff = (row * 0, row * 0) if head is UNINITIALIZED else (row, row + row)
    for copied in (copy.deepcopy(blob), pickle.loads(pickle.dumps(blob))):  # noqa: S301 -- our own
        assert (dtype, data.tolist(), diff.tolist()) == (copied.dtype, copied.data.tolist(), copied.diff.tolist())
    assert data.tolist() == blob.gpu_data().get().tolist() == np.asarray(blob).tolist()
    assert diff.astype(np.float64).sum() == blob.asum_diff()
    blob.data[0] = 7
    blob.diff *= 2
    blob.mutable_gpu_diff()
    data[0], twice = 7, diff * dtype.type(2)
    blob.gpu_data()
    blob.update()
    blob.scale_data(0.5)

    assert ((data - twice) * dtype.type(0.5)).tolist() == blob.data.tolist()
    assert twice.tolist() == blob.diff.tolist()


def test_bfloat16_of_others_is_adopted_and_converted(place: Any) -> None:
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    mine = ROW.astype(dtype)
    blob = Blob.from_array(mine, copy=False, device=place)
    blob.data[0, 0] = 9
    assert (9, dtype, False) == (mine[0, 0], blob.dtype, blob.data_memory.own_cpu_data)
    theirs = Blob((2, 3), dtype, device=place)
    theirs.data = ROW
    array = theirs.mutable_gpu_data()
    for there in (Blob.from_array(array, copy=it, device=place) for it in (False, True)):
        assert (dtype, GPU, ROW.tolist()) == (there.dtype, there.data_memory.head, there.data.tolist())
    for other in (np.float32, np.float64, np.int32):
        assert ROW.tolist() == Blob.from_array(array, dtype=other, device=place).data.tolist()
        assert ROW.tolist() == Blob.from_array(ROW.astype(other), dtype=dtype, device=place).data.tolist()


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


def test_a_lender_may_be_freed_through_a_sharer(device: SimulatedDeviceAllocator) -> None:
    """Which cannot know who has borrowed; the blob itself refuses."""
    blob, sharer = Blob((2, 3), device=device), Blob((2, 3), device=device)
    blob.set_gpu_data(blob.mutable_gpu_diff())
    sharer.share_diff(blob)
    mine = device.allocate(24)
    with pytest.raises(BufferMismatchError, match="lies in this blob's own memory, which would be freed"):
        blob.set_gpu_diff(mine)
    sharer.set_gpu_diff(mine)
    with pytest.raises(SimulatedDeviceError, match="after it was freed"):
        blob.cpu_data()
    sharer.set_gpu_diff(device.allocate(24))
    device.release(mine)


def test_a_view_to_read_is_adopted_where_arrays_have_no_such_form(place: Any) -> None:
    lender, blob = Blob((2, 3), device=place), Blob((2, 3), device=place)
    lender.data = ROW
    if place.device_type == DeviceType.SIMULATED:
        with pytest.raises(BufferMismatchError, match="read-only"):
            blob.set_gpu_data(lender.gpu_data())
        return
    blob.set_gpu_data(lender.gpu_data())
    blob.scale_data(5)
    assert (SYNCED, ROW.tolist()) == (lender.data_memory.head, lender.data.tolist())
    assert (ROW * 5).tolist() == lender.gpu_data().get().tolist()


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
