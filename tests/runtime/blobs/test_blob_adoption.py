"""Buffers and arrays that a `Blob` adopts, converts or refuses, and whose memory a blob's is."""

from __future__ import annotations

import itertools
import sys
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from arrays_of_others import OnlyDLPack
from blob_fixtures import CPU, GPU, PLACES, ROW, SYNCED, Blob, each_device, each_place, untouched
from blob_views import at_head, snapshot
from loops import some

from syncedmem.model import BufferMismatchError, DeviceError, InvalidArgumentError, SyncedHead
from syncedmem.runtime import Adaptor, CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator, SimulatedDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

place = each_place
blob = untouched


@pytest.mark.parametrize("side", ["data", "diff"])
def test_a_buffer_is_let_go_when_another_takes_its_place(place: Any, side: str) -> None:
    blob = Blob((6,), device=place)
    first: Any = np.zeros(6, np.float32)
    getattr(blob, f"set_cpu_{side}")(first)
    getattr(blob, f"mutable_cpu_{side}")()
    getattr(blob, f"cpu_{side}")()
    kept = weakref.ref(first)
    del first
    assert kept() is not None
    getattr(blob, f"set_cpu_{side}")(np.ones(6, np.float32))

    assert kept() is None


WRONG_BUFFERS: dict[str, Callable[[Any], Any]] = {
    "not aligned": lambda _: memoryview(bytearray(32))[1:],
    "with gaps": lambda _: np.zeros(12, np.float32)[::2],
    "of another shape": lambda _: np.zeros((3, 2), np.float32),
    "a view of another shape": lambda _: np.zeros((3, 2), np.float32).data,
    "of another device": lambda _: SimulatedDeviceAllocator().empty(40),
    "not aligned, on the device": lambda blob: blob.device.empty(40)[1:29].view(np.float32),
    "of another type, on the device": lambda blob: blob.device.empty(40).view(np.int32),
}


@pytest.mark.parametrize("part", ["data", "diff"])
@pytest.mark.parametrize("wrong", WRONG_BUFFERS)
def test_a_buffer_that_is_refused_changes_nothing(blob: Any, wrong: str, part: str) -> None:
    """It holds whether new memory has to be made or not; the kit hands in other buffers (B49)."""
    for capacity in (6, 8):
        blob.reshape((capacity,)).shrink_to_fit().reshape((6,))
        at_head(blob.data_memory, SYNCED, np.arange(6, dtype=np.float32))
        before, buffer = snapshot(blob), WRONG_BUFFERS[wrong](blob)
        side = "cpu" if isinstance(buffer, (memoryview, np.ndarray)) else "gpu"
        with pytest.raises(BufferMismatchError) as refused:
            getattr(blob, f"set_{side}_{part}")(buffer)

        assert (f"set_{side}_{part}", True) == (refused.value.call, refused.value.buffer is buffer)
        assert before == snapshot(blob)


def test_bytes_are_adopted_as_elements(place: Any) -> None:
    """A buffer of bytes, or without a type, is accepted; a blob without elements accepts any address."""
    raw: Any
    for raw in (bytearray(24), memoryview(bytearray(24)), np.zeros(24, np.uint8), np.zeros(30, np.int8)):
        blob = Blob((2, 3), device=place)
        blob.set_cpu_data(raw)
        blob.mutable_cpu_data()[...] = 1
        assert [0, 0, 128, 63] == list(memoryview(raw).cast("B")[:4])
    empty = Blob(device=place)
    empty.set_cpu_data(memoryview(bytearray(8))[1:])
    assert CPU is empty.data_memory.head


# --- sharing


def test_a_blob_of_another_device_is_not_shared(blob: Any) -> None:
    before = snapshot(blob)
    for device, where in ((None, "not on the host"), (SimulatedDeviceAllocator(), "not on another simulated:0")):
        other = Blob((120,), device=device)
        for call in (blob.share_data, blob.share_diff):
            with pytest.raises(InvalidArgumentError, match=where) as refused:
                call(other)
            assert ("other", other) == (refused.value.argument, refused.value.value)

    assert before == snapshot(blob)


# --- nothing is freed that the blob, after the same call, goes on using (H5, H18)


NUMBERS = np.arange(8, dtype=np.float32)


def sides(place: Any) -> tuple[str, ...]:
    """The sides that a blob on this device has."""
    return ("cpu",) if place is None else ("cpu", "gpu")


def written(place: Any, side: str, capacity: int) -> Any:
    """A blob of six elements with numbers on one side, in memory that is larger."""
    blob = Blob((capacity,), device=place)
    for part in ("data", "diff"):
        setattr(blob, part, NUMBERS[:capacity])
        getattr(blob, f"mutable_{side}_{part}")()
    return blob.reshape((6,))


def test_the_memory_of_the_shape_is_not_adopted(place: Any) -> None:
    """Another number of axes frees that memory."""
    for side in some(sides(place)):
        blob, other, larger = (Blob(extent, dtype=np.int32, device=place) for extent in (1, 1, 2))
        extents = getattr(blob.shape_memory, f"mutable_{side}_data")()
        getattr(other, f"set_{side}_data")(extents)  # as any memory of somebody else's, which its caller keeps
        assert [1] == other.cpu_data().tolist()
        of_larger = getattr(larger.reshape((1,)).shape_memory, f"mutable_{side}_data")()
        refused: list[Callable[[], object]] = [
            lambda: getattr(blob, f"set_{side}_data")(extents),  # noqa: B023 -- called at once
            lambda: getattr(blob, f"set_{side}_diff")(extents),  # noqa: B023 -- as above
            lambda: blob.share_data(other),  # noqa: B023 -- as above
            lambda: getattr(larger, f"set_{side}_data")(of_larger),  # noqa: B023 -- as above
        ]
        before = snapshot(blob), snapshot(larger)
        for call in refused:
            with pytest.raises(BufferMismatchError):
                call()
        assert before == (snapshot(blob), snapshot(larger))


def test_a_diff_that_holds_the_data_is_not_given_up(place: Any) -> None:
    """The data has adopted the diff while both had the blob's size; then the blob became smaller."""
    for side in some(sides(place)):
        blob = written(place, side, 8).reshape((8,))
        getattr(blob, f"set_{side}_data")(getattr(blob, f"mutable_{side}_diff")())
        blob.reshape((6,))
        mine: Any = np.ones(6, np.float32) if side == "cpu" else place.empty(24)
        with pytest.raises(BufferMismatchError):
            getattr(blob, f"set_{side}_diff")(mine)

        assert NUMBERS[:6].tolist() == blob.data.tolist()


@pytest.mark.parametrize(("part", "other_part"), [("data", "diff"), ("diff", "data")])
def test_what_was_adopted_from_a_blob_is_not_shared_in_its_place(place: Any, part: str, other_part: str) -> None:
    """The other blob, or the other part, has adopted this blob's memory, which sharing would free."""
    for side in some(sides(place)):
        blob, other = written(place, side, 8), Blob((6,), device=place)
        getattr(other, f"set_{side}_{part}")(getattr(blob, f"mutable_{side}_{part}")())
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError):
            getattr(blob, f"share_{part}")(other)
        assert before == snapshot(blob)

        blob, other = written(place, side, 6), Blob((6,), device=place)
        getattr(blob, f"set_{side}_{other_part}")(getattr(blob, f"mutable_{side}_{part}")())
        getattr(blob, f"share_{part}")(blob)  # gives nothing up
        with pytest.raises(BufferMismatchError):
            getattr(blob, f"share_{part}")(other)
        assert NUMBERS[:6].tolist() == getattr(blob, other_part).tolist()


def test_an_allocator_that_cannot_compare_fails_the_call_and_nothing_else() -> None:
    class Confused(Adaptor):
        def overlaps(self, first: Any, second: Any) -> bool:
            raise RuntimeError(f"which was it, {len(first)} or {len(second)}?")

    blob = Blob((8,), host=Confused(CPUDeviceAllocator()), device=None)
    blob.data = NUMBERS
    blob.reshape((6,))
    with pytest.raises(
        DeviceError, match=r"comparing two buffers failed on .*: RuntimeError: which was it, 24 or 32\?"
    ):
        blob.set_cpu_data(np.ones(6, np.float32))

    assert (8, SyncedHead.HEAD_AT_CPU) == (blob.capacity, blob.data_memory.head)
    assert NUMBERS[:6].tolist() == blob.data.tolist()


def test_an_exporter_may_be_freed_through_a_sharer(device: SimulatedDeviceAllocator) -> None:
    """The sharer cannot know who has adopted its memory; the blob itself refuses."""
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


# --- arrays of others


on_device = each_device


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


def test_an_array_is_adopted_without_a_copy(on_device: Any) -> None:
    """It holds for NumPy's own arrays, and for writeable ones that show NumPy their memory."""
    for wrap in (np.asarray, Foreign, Tensor):
        mine: Any = ROW.copy()
        blob = Blob.from_array(wrap(mine), copy=False, device=on_device)
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
    "array",
    [
        jax_array(),
        np.repeat(ROW, 2, axis=1)[:, ::2],
        ROW.astype(">f4"),
        np.frombuffer(bytearray(b"0") + ROW.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3),
    ],
    ids=["read-only", "with gaps", "of another byte order", "not aligned"],
)
def test_what_cannot_be_adopted_is_copied_or_refused(on_device: Any, array: Any) -> None:
    blob = Blob.from_array(array, device=on_device)
    assert (ROW.tolist(), np.float32, True) == (blob.cpu_data().tolist(), blob.dtype, blob.data_memory.own_cpu_data)
    blob.data = 0
    assert ROW.tolist() == np.asarray(array).tolist()
    with pytest.raises(BufferMismatchError):
        Blob.from_array(array, copy=False, device=on_device)


def test_an_array_is_converted_and_copied_when_asked(on_device: Any) -> None:
    mine = ROW.astype(np.float64)
    for blob in (
        Blob.from_array(mine, dtype="float32", device=on_device),
        Blob.from_array(mine, copy=True, device=on_device),
    ):
        assert (ROW.tolist(), True) == (blob.cpu_data().tolist(), blob.data_memory.own_cpu_data)
    with pytest.raises(BufferMismatchError, match="its elements are float64, and float32 are needed"):
        Blob.from_array(mine, dtype=np.float32, copy=False, device=on_device)
    with pytest.raises(
        InvalidArgumentError, match=r"dtype must be given, as one of .*, to convert .* type int16, got N"
    ):
        Blob.from_array(np.arange(3, dtype=np.int16), device=on_device)
    assert [0, 1, 2] == Blob.from_array(np.arange(3), dtype=np.int32, device=on_device).cpu_data().tolist()
    assert [[1.0, 2.0]] == Blob.from_array([[1.0, 2.0]], device=on_device).cpu_data().tolist()
    assert (0, (0, 3)) == (Blob.from_array(ROW[:0], device=on_device).count, Blob.from_array(ROW[:0]).shape)


def test_memory_of_the_device_becomes_the_device_side(on_device: Any) -> None:
    """It is adopted or copied on the device; for another type it goes through the host."""
    theirs: Any = on_device.empty(24)
    theirs.set(ROW.reshape(-1).view(np.uint8))
    array = theirs.view(np.float32).reshape(2, 3)
    adopted = Blob.from_array(array, copy=False, device=on_device)
    own = Blob.from_array(array, copy=True, device=on_device)
    wide = Blob.from_array(array, dtype=np.float64, device=on_device)
    assert ((GPU, False), (GPU, True)) == tuple(
        (item.data_memory.head, item.data_memory.own_gpu_data) for item in (adopted, own)
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
    arrays = (
        Foreign(ROW, __dlpack_device__=lambda: (2, 0)),
        Foreign(ROW, __cuda_array_interface__=interface, shape=(2, 3), dtype=np.float32),
    )
    for array, there, copied in itertools.product(arrays, (None, device), (True, False, None)):
        with pytest.raises(BufferMismatchError) as refused:
            Blob.from_array(array, copy=copied, device=there)
        assert array is refused.value.buffer
        assert ("has none" if there is None else "not memory of simulated:0") in refused.value.reason


def test_an_array_that_speaks_nothing_but_dlpack_is_taken(on_device: Any) -> None:
    """DLPack without versions cannot say whether an array may be written, so such an array is copied."""
    mine = ROW.copy()
    blob = Blob.from_array(OnlyDLPack(mine), copy=False, device=on_device)
    blob.data[0, 0] = 9
    assert (9, False) == (mine[0, 0], blob.data_memory.own_cpu_data)
    old = Blob.from_array(OnlyDLPack(mine, old=True), device=on_device)
    assert (mine.tolist(), True) == (old.data.tolist(), old.data_memory.own_cpu_data)
    with pytest.raises(BufferMismatchError, match="read-only"):
        Blob.from_array(OnlyDLPack(mine, old=True), copy=False, device=on_device)
    blob.data = OnlyDLPack(ROW)
    assert ROW.tolist() == mine.tolist()


NO_ARRAYS: list[tuple[Any, Any]] = [
    *((array, dtype) for dtype in (None, "float32") for array in (
        *("abc", b"1234", None, object(), [None, 1], ["1"], {1: 2}, [[1], [2, 3]]),
        *(np.array(["2020"], "M8[Y]"), np.ones(2, "m8[s]"), np.ones(2, [("a", "f4")]), np.ones(2, "V4")),
        np.array([1, "a"], object),
    )),
]  # fmt: skip
"""Things without numbers, and types that they are to have."""
FAILING: dict[str, Any] = {
    "requires grad": Foreign(RuntimeError("requires grad")),
    "as it says": Foreign(BufferMismatchError("from_array", None, "as it says")),
    "ZeroDivisionError": Foreign(None, __dlpack_device__=lambda: 1 // 0),
    "'shape'": SimpleNamespace(base_data=7),
}
"""Things that fail when they are asked for their numbers, and what the error shows of that."""


@pytest.mark.parametrize(("array", "dtype"), NO_ARRAYS)
def test_what_has_no_numbers_is_no_array(array: Any, dtype: Any) -> None:
    """There is one error, not one of NumPy's many."""
    with pytest.raises(BufferMismatchError) as refused:
        Blob.from_array(array, dtype=dtype, device=None)

    assert "from_array" == refused.value.call


@pytest.mark.parametrize("shown", FAILING)
def test_what_fails_when_it_is_asked_is_no_array(device: SimulatedDeviceAllocator, shown: str) -> None:
    with pytest.raises(BufferMismatchError, match=shown):
        Blob.from_array(FAILING[shown], device=device)


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


@pytest.mark.parametrize(
    "array", [np.array([1, 2], np.int16), np.array([1 + 0j, 2]), [2**70], np.ones(2, np.uint64)], ids=str
)
def test_a_type_that_blobs_do_not_have_is_converted_when_that_is_said(array: Any) -> None:
    """The new type is not guessed: integers have no arithmetic, and floats are not exact."""
    with pytest.raises(InvalidArgumentError) as refused:
        Blob.from_array(array, device=None)
    assert "dtype" == refused.value.argument
    assert np.array_equal(array, Blob.from_array(array, dtype=np.float64, device=None).data)


def test_an_array_of_opencl_has_to_be_contiguous() -> None:
    """PyOpenCL itself copies no other arrays."""
    on_device = next((place for place in PLACES if place.device_type == DeviceType.OPENCL), None)
    if on_device is None:
        pytest.skip("no OpenCL device here")
    array = on_device.empty(24).view(np.float32).reshape(2, 3).T
    with pytest.raises(BufferMismatchError, match="it is not contiguous"):
        Blob.from_array(array, device=on_device)


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


def test_a_view_to_read_is_adopted_where_arrays_have_no_such_form(on_device: Any) -> None:
    exporter, blob = Blob((2, 3), device=on_device), Blob((2, 3), device=on_device)
    exporter.data = ROW
    if on_device.device_type == DeviceType.SIMULATED:
        with pytest.raises(BufferMismatchError, match="read-only"):
            blob.set_gpu_data(exporter.gpu_data())
        return
    blob.set_gpu_data(exporter.gpu_data())
    blob.scale_data(5)
    assert (SYNCED, ROW.tolist()) == (exporter.data_memory.head, exporter.data.tolist())
    assert (ROW * 5).tolist() == exporter.gpu_data().get().tolist()
