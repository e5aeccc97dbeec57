"""`Blob`: its shape, its two memories, and what it refuses."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import devices
from blob_views import HEADS, at_head, recorded, snapshot

from syncedmem import runtime
from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    ClosedMemoryError,
    InvalidArgumentError,
    InvalidIndexError,
    InvalidShapeError,
    NoDeviceError,
    SyncedHead,
    SyncedMemoryError,
)
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Blob: Any = runtime.Blob
PLACES: list[Any] = [None, *devices()]
NAMES = ["cpu", *(place.device_type.name.lower() for place in PLACES[1:])]
GPU, CPU, SYNCED, UNINITIALIZED = (
    SyncedHead.HEAD_AT_GPU,
    SyncedHead.HEAD_AT_CPU,
    SyncedHead.SYNCED,
    SyncedHead.UNINITIALIZED,
)


@pytest.fixture(params=PLACES, ids=NAMES)
def place(request: pytest.FixtureRequest) -> Any:
    """No device, and every device of this machine."""
    return request.param


@pytest.fixture
def blob(device: SimulatedDeviceAllocator) -> Any:
    """A blob of 2 x 3 x 4 x 5 that nobody has written."""
    return Blob(2, 3, 4, 5, device=device)


def heads(blob: Any) -> tuple[SyncedHead, SyncedHead]:
    """Where data and diff are."""
    return blob.data_memory.head, blob.diff_memory.head


def got(array: Any) -> Any:
    """What is on a device, or on the host."""
    return array.get() if hasattr(array, "get") else np.array(array)


# --- how one is made


def test_a_blob_has_a_shape_in_each_of_four_forms(place: Any) -> None:
    message = SimpleNamespace(dim=[2, 3, 4, 5])
    for arguments in ((2, 3, 4, 5), ((2, 3, 4, 5),), ([2, 3, 4, 5],), (message,), (np.array([2, 3, 4, 5]),)):
        blob = Blob(*arguments, device=place)
        assert ((2, 3, 4, 5), 120, 120, 4) == (blob.shape, blob.count, blob.capacity, blob.num_axes)
        assert (UNINITIALIZED, UNINITIALIZED) == heads(blob)
        assert (480, 480) == (blob.data_memory.size, blob.diff_memory.size)


@pytest.mark.parametrize("extents", [(6,), (2, 3), (1, 2, 3), (1, 1, 2, 1, 3), (np.int64(6),), (np.array(6),)])
def test_any_number_of_numbers_is_a_shape(extents: tuple[Any, ...]) -> None:
    """As in pycaffe; what follows a shape and is no integer is the type."""
    expected = tuple(map(int, extents))

    assert (expected, np.float32) == ((blob := Blob(*extents, device=None)).shape, blob.dtype)
    assert expected == Blob(device=None).reshape(*extents).shape
    for first in (extents[0], np.array(extents[:1])):
        blob = Blob(first, np.float64, device=None)
        assert (expected[:1], np.float64) == (blob.shape, blob.dtype)
    with pytest.raises(InvalidArgumentError, match=r"as one sequence of them, got \(2, 3, <class 'numpy.float64'>\)"):
        Blob(2, 3, np.float64)


def test_what_python_says_of_a_call_names_the_class() -> None:
    """Not the layer of it that a method is written in."""
    for call in ("reshape", "share_data", "data_at", "from_proto", "offset", "count_axes"):
        with pytest.raises(TypeError, match=rf"Blob\.{call}\(\) got an unexpected keyword argument"):
            getattr(Blob((2,), device=None), call)(nothing=1)


def test_a_blob_without_a_shape_is_not_one_without_axes(place: Any) -> None:
    """Caffe prints them as "(0)" and "(1)", and so do we; both have views."""
    empty, scalar = Blob(device=place), Blob((), device=place)

    assert (0, (), 0, "(0)", 1) == (empty.count, empty.shape, empty.num_axes, empty.shape_string, empty.num)
    assert (1, (), 0, "(1)", 1) == (scalar.count, scalar.shape, scalar.num_axes, scalar.shape_string, scalar.num)
    assert ((0,), ()) == (empty.mutable_cpu_data().shape, scalar.mutable_cpu_data().shape)
    assert 0 == empty.capacity
    if place is not None:
        assert ((0,), ()) == (empty.gpu_diff().shape, scalar.gpu_diff().shape)


def test_nothing_is_allocated_before_somebody_looks(device: SimulatedDeviceAllocator) -> None:
    blob, log = recorded(device, (4, 4))
    blob.reshape(3, 3, 3, 3)
    blob.share_diff(Blob(3, 3, 3, 3, device=blob.device))
    assert [] == log

    blob.cpu_data()
    assert ["host allocate", "host zero"] == log


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint32", "float16", "bfloat16"])
def test_every_type_on_every_device(place: Any, name: str) -> None:
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for blob in (Blob((2, 3), dtype, device=place), Blob((2, 3), dtype=name, device=place)):
        blob.mutable_cpu_data()[...] = 7
        array = blob.cpu_data() if place is None else blob.gpu_data()
        assert (dtype, (2, 3), 7.0) == (array.dtype, array.shape, float(got(array)[1, 2]))
        assert (dtype, 6 * dtype.itemsize) == (blob.dtype, blob.data_memory.size)


@pytest.mark.parametrize("dtype", ["int64", "bool", ">f4", "complex64", "nothing", object(), "float128", [("a", "f4")]])
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="dtype must be one of float32, float64, int32, uint32, float16"):
        Blob((2, 3), dtype=dtype, device=None)


def test_allocators_are_checked_as_a_memory_checks_them() -> None:
    with pytest.raises(
        InvalidArgumentError, match="shape must be given as integers, or as one sequence of them, got None"
    ):
        Blob(None)
    with pytest.raises(NoDeviceError, match="unknown device 'abacus'"):
        Blob((2,), device="abacus")
    with pytest.raises(InvalidArgumentError, match="host must be an allocator, or None"):
        Blob((2,), host=SimulatedDeviceAllocator())


# --- shape


def test_the_questions_about_axes() -> None:
    blob = Blob(2, 3, 4, 5, device=None)

    assert (2, 3, 4, 5) == (blob.num, blob.channels, blob.height, blob.width)
    assert (3, 1) == (blob.canonical_axis_index(-1), blob.canonical_axis_index(1))
    assert (120, 60, 12, 1) == (blob.count_axes(), blob.count_axes(1), blob.count_axes(1, 3), blob.count_axes(2, 2))
    assert ("2 3 4 5 (120)", 5) == (blob.shape_string, blob.legacy_shape(-1))
    assert (3, 2, 1, 1) == tuple(Blob((3, 2), device=None).legacy_shape(axis) for axis in range(4))


def test_an_offset_is_given_by_numbers_or_by_a_sequence() -> None:
    """Numbers may be one past the end of their axes, as pooling needs it; a sequence may not."""
    blob = Blob(2, 3, 4, 5, device=None)

    assert (60, 119, 120, 120) == (blob.offset(1), blob.offset(1, 2, 3, 4), blob.offset(2), blob.offset(1, 3))
    assert (0, 60, 119) == (blob.offset([]), blob.offset((1,)), blob.offset(np.array([1, 2, 3, 4])))
    for wrong in ((3,), (0, 4), (-1,), (0, -1), ([2],), ([0, 3],), ([0, 0, 0, 0, 0],), ([-1],)):
        with pytest.raises(InvalidIndexError):
            blob.offset(*wrong)
    for nonsense in ((), (0, 0, 0, 0, 0)):
        with pytest.raises(InvalidArgumentError, match="indices must be one to four integers, or a sequence"):
            blob.offset(*nonsense)


def test_elements_are_read_strictly_inside(place: Any) -> None:
    """Unlike in Caffe, whose data_at takes what offset takes, one past the end."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()[...] = [[0, 1, 2], [3, 4, 5]]
    blob.mutable_cpu_diff()[...] = 9
    if place is not None:
        blob.mutable_gpu_data()

    assert (5, 5, 3, 9) == (blob.data_at(1, 2), blob.data_at(iter([1, 2])), blob.data_at([1]), blob.diff_at(0, 0))
    assert type(blob.data_at(0)) is np.float32
    for wrong in ((2,), (0, 3), (1, 2, 1), ([2],), ([0, 3],)):
        with pytest.raises(InvalidIndexError):
            blob.data_at(*wrong)
    for empty in (Blob(device=place), Blob((2, 0), device=place)):
        for nothing in (0, list[int]()):
            with pytest.raises(InvalidIndexError):
                empty.data_at(nothing)


def test_four_numbers_are_for_four_axes() -> None:
    blob = Blob((1, 2, 1, 2, 1), device=None)
    asks: list[Callable[[], object]] = [
        lambda: blob.num,
        lambda: blob.offset(0),
        lambda: blob.data_at(0),
        lambda: blob.legacy_shape(0),
    ]
    for ask in asks:
        with pytest.raises(InvalidShapeError, match="legacy accessors are for at most 4 axes"):
            ask()

    assert 3 == blob.offset([0, 1, 0, 1, 0])


# --- reshaping


def test_what_fits_stays_where_it_is(device: SimulatedDeviceAllocator) -> None:
    """No bytes are moved, no head changes, and what lay behind the smaller shape comes back."""
    for head in HEADS:
        blob = Blob((2, 6), device=device)
        at_head(blob.data_memory, head, np.arange(12, dtype=np.float32))
        before = snapshot(blob)
        for shape in ((3, 2), (0,), (), (2, 3, 2), (2, 6)):
            blob.reshape(shape)
            assert (shape, 12) == (blob.shape, blob.capacity)
            assert (head, UNINITIALIZED) == heads(blob)
        assert before == snapshot(blob)
        if head is not UNINITIALIZED:
            assert list(range(12)) == blob.cpu_data().ravel().tolist()


def test_what_grows_gets_new_memory_and_forgets_the_old(device: SimulatedDeviceAllocator) -> None:
    """Data and diff alike; who shared the old memory keeps it, and it goes when nobody has it."""
    blob, other = Blob((2, 3), device=device), Blob((6,), device=device)
    other.share_data(blob)
    blob.mutable_cpu_data()[...] = 7
    kept, lost = blob.data_memory, weakref.ref(blob.diff_memory)
    blob.reshape(7, 1, 1, 1)

    assert (7, 28, UNINITIALIZED, UNINITIALIZED) == (blob.capacity, blob.data_memory.size, *heads(blob))
    assert other.data_memory is kept
    assert [7] * 6 == other.cpu_data().tolist()
    assert lost() is None


def test_reshaping_returns_the_blob_and_takes_the_shape_of_another(blob: Any) -> None:
    assert blob.reshape((5,)) is blob
    assert blob.reshape_like(Blob((2, 2), device=None)) is blob
    assert (2, 2) == blob.shape
    with pytest.raises(InvalidArgumentError, match="other must be a Blob, got 7"):
        blob.reshape_like(7)


@pytest.mark.parametrize(
    ("shape", "error", "reason"),
    [
        (((1,) * 33,), InvalidShapeError, "at most 32 axes"),
        (((7, 8, -1, 9),), InvalidShapeError, "an extent cannot be negative, as -1 is"),
        ((7, 8, -1, 9), InvalidShapeError, "cannot be negative"),
        (((2**40, 2**40),), InvalidShapeError, "more than"),
        (((2, 2.0),), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        (("23",), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        (
            (2.5, 3),
            InvalidArgumentError,
            r"shape must be given as integers, or as one sequence of them, got \(2.5, 3\)",
        ),
        (((2, 3), 4), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((True, 3), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got True"),
        ((), InvalidArgumentError, r"shape must be given as integers, or as one sequence of them, got \(\)"),
        (({2, 3},), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got {2, 3}"),
        (({2: 3},), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((np.array(2.0),), InvalidArgumentError, "shape must be given as integers, or as one sequence of them"),
        ((None,), InvalidArgumentError, "shape must be given as integers, or as one sequence of them, got None"),
    ],
)
def test_a_shape_that_is_refused_changes_nothing(
    blob: Any, shape: Any, error: type[SyncedMemoryError], reason: str
) -> None:
    """Caffe leaves the first extents behind (H4)."""
    at_head(blob.data_memory, SYNCED, np.arange(120, dtype=np.float32))
    before = snapshot(blob)
    with pytest.raises(error, match=reason):
        blob.reshape(*shape)

    assert before == snapshot(blob)


def test_counts_are_wider_than_an_int(place: Any) -> None:
    """2**32 elements and an extent of as many are shapes like others; nobody allocates them here (H15)."""
    blob = Blob((2**16, 2**16), device=place)

    assert (2**32, 2**32, 2**34) == (blob.count, blob.capacity, blob.data_memory.size)
    assert (2**32 + 3,) == blob.reshape(SimpleNamespace(dim=[2**32 + 3])).shape
    assert 2**40 == Blob((0, 2**20, 2**20), device=place).count_axes(1)


def test_what_has_no_elements_has_arrays_all_the_same(place: Any) -> None:
    """Extents that NumPy refuses next to a zero are refused when they are given, and not when somebody looks."""
    blob = Blob((0, 2**60), device=place)
    assert ((0, 2**60), (0, 2**60)) == (blob.data.shape, np.asarray(blob).shape)
    if place is not None:
        assert (0, 2**60) == blob.mutable_gpu_data().shape
    for shape in ((0, 2**70), (0, 2**40, 2**40)):
        with pytest.raises(InvalidShapeError, match="but for extents of zero"):
            blob.reshape(shape)
    assert (0, 2**60) == blob.shape


def test_what_no_array_shows_moves_no_head(place: Any, tmp_path: Path) -> None:
    """Caffe has this shape, and NumPy no arrays of it."""
    blob = Blob((0, 2**31 - 1, 2**31 - 1), device=place)
    looks: list[Callable[[], Any]] = [
        lambda: blob.data,
        lambda: np.asarray(blob),
        blob.mutable_cpu_diff,
        lambda: setattr(blob, "diff", blob.diff),
        lambda: blob.save(tmp_path / "blob.npy"),
        *([] if place is None else [blob.gpu_data, blob.mutable_gpu_diff]),
    ]
    for look in looks:
        with pytest.raises(InvalidShapeError, match=r"no arrays of it: its other extents make \d+ bytes, more than"):
            look()
    assert (UNINITIALIZED, UNINITIALIZED) == (blob.data_memory.head, blob.diff_memory.head)
    assert blob.copy_from(Blob(blob.shape, device=place)) is None


def test_shrinking_gives_back_what_is_behind_the_shape(place: Any) -> None:
    """The elements stay, where they were fresh (H16)."""
    for head in HEADS if place is not None else (UNINITIALIZED, CPU):
        blob = Blob((8,), device=place)
        at_head(blob.data_memory, head, np.arange(8, dtype=np.float32))
        assert blob.reshape((3,)).shrink_to_fit() is blob
        assert (3, 12, 12) == (blob.capacity, blob.data_memory.size, blob.diff_memory.size)
        assert {SYNCED: GPU}.get(head, head) is blob.data_memory.head
        assert UNINITIALIZED is blob.diff_memory.head
        if head is not UNINITIALIZED:
            assert [0, 1, 2] == blob.cpu_data().tolist()
        memory = blob.data_memory
        assert blob.shrink_to_fit().data_memory is memory


def test_a_blob_that_cannot_shrink_is_as_it_was(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((8,), device=device)
    at_head(blob.data_memory, GPU, np.arange(8, dtype=np.float32))
    at_head(blob.diff_memory, GPU, np.arange(8, dtype=np.float32))
    blob.reshape((3,))
    before = snapshot(blob)
    device.fail_at(2, "allocate")
    with pytest.raises(AllocationError, match="told to fail"):
        blob.shrink_to_fit()

    assert before == snapshot(blob)


# --- the shape on the device


def test_kernels_see_the_shape(place: Any) -> None:
    blob = Blob((2, 3, 4), device=place)
    if place is None:
        with pytest.raises(NoDeviceError):
            blob.gpu_shape()
        return
    assert [2, 3, 4] == got(blob.gpu_shape()).tolist()
    assert np.int32 == blob.gpu_shape().dtype
    assert [] == got(blob.reshape(()).gpu_shape()).tolist()
    assert [5, 6] == got(blob.reshape((5, 6)).gpu_shape()).tolist()


def test_the_shape_is_copied_again_only_if_it_has_changed(device: SimulatedDeviceAllocator) -> None:
    """Caffe copies it again after every Reshape, also to the same shape."""
    blob, log = recorded(device, (2, 3))
    blob.gpu_shape()
    assert ["host allocate", "host zero", "device allocate", "up"] == log
    del log[:]
    memory = blob.shape_memory
    blob.gpu_shape()
    blob.reshape((2, 3)).gpu_shape()
    assert [] == log
    blob.reshape((3, 2)).gpu_shape()

    assert ["up"] == log
    assert (memory, 8, SYNCED) == (blob.shape_memory, memory.size, memory.head)
    assert blob.reshape((6,)).shape_memory is not memory


def test_kernels_are_handed_no_shape_that_there_is_not(device: SimulatedDeviceAllocator) -> None:
    """The second fits into 64 bits, which kernels do not read."""
    with pytest.raises(InvalidShapeError, match="this blob was never given one"):
        Blob(device=device).gpu_shape()
    blob = Blob((2**31, 0), device=device)
    with pytest.raises(InvalidShapeError, match="extents of at most 2147483647"):
        blob.gpu_shape()

    assert [2**31 - 1] == got(blob.reshape((2**31 - 1,)).gpu_shape()).tolist()


# --- access


def test_the_eight_accessors_move_the_heads_of_their_memories(device: SimulatedDeviceAllocator) -> None:
    for side in ("data", "diff"):
        blob = Blob((2, 3), device=device)
        memory, other = (blob.data_memory, blob.diff_memory)[:: 1 if side == "data" else -1]
        near = getattr(blob, f"mutable_cpu_{side}")()
        near[...] = [[0, 1, 2], [3, 4, 5]]
        assert CPU is memory.head
        far = getattr(blob, f"gpu_{side}")()
        assert (SYNCED, (2, 3), np.float32) == (memory.head, far.shape, far.dtype)
        getattr(blob, f"mutable_gpu_{side}")().set(far.get() * 2)
        assert GPU is memory.head
        near = getattr(blob, f"cpu_{side}")()
        assert (SYNCED, [[0, 2, 4], [6, 8, 10]], False) == (memory.head, near.tolist(), near.flags.writeable)
        assert UNINITIALIZED is other.head


def test_views_are_fresh_and_over_the_memory(place: Any) -> None:
    """Also when nothing has to be done; and they follow the shape, adoption and sharing."""
    blob, other = Blob((2, 3), device=place), Blob((6,), device=place)
    first, second = blob.mutable_cpu_data(), blob.mutable_cpu_data()
    first[0, 1] = 7
    assert (second[0, 1], (2, 3)) == (7, blob.cpu_data().shape)
    assert (3, 2) == blob.reshape((3, 2)).cpu_data().shape

    mine = np.arange(6, dtype=np.float32)
    blob.set_cpu_data(mine)
    assert np.shares_memory(mine, blob.cpu_data())
    assert np.shares_memory(mine, blob.mutable_cpu_data())
    other.mutable_cpu_data()[...] = 9
    blob.share_data(other)
    assert [[9, 9]] * 3 == blob.cpu_data().tolist()
    if place is not None:
        assert [[9, 9]] * 3 == got(blob.gpu_data()).tolist()
        blob.mutable_gpu_data().set(np.ones((3, 2), np.float32))
        assert [1] * 6 == other.cpu_data().tolist()
        assert [1] * 6 == got(other.gpu_data()).tolist()


def test_an_accessor_waits_for_nothing_that_is_not_there(device: SimulatedDeviceAllocator) -> None:
    """A push in flight: the blob asks its memory each time, until nothing is left to do."""
    blob = Blob((2, 3), device=device)
    blob.mutable_cpu_data()[...] = 7
    stream = blob.data_memory.device
    assert stream is device
    queue = device.stream()
    blob.data_memory.async_gpu_push(stream=queue)
    first = blob.gpu_data()
    blob.mutable_cpu_data()[...] = 8

    assert [7] * 6 == first.get().ravel().tolist()
    assert [8] * 6 == blob.gpu_data().get().ravel().tolist()


# --- adoption


def test_adoption_of_the_right_size_is_seen_by_all_sharers(place: Any) -> None:
    """The memory itself is redirected, as in Caffe (H20)."""
    blob, other = Blob((2, 3), device=place), Blob((6,), device=place)
    other.share_data(blob)
    mine = np.arange(6, dtype=np.float32)
    memory = blob.data_memory
    blob.set_cpu_data(mine)
    blob.mutable_cpu_data()[0, 0] = 9

    assert (9, 9, memory) == (mine[0], other.cpu_data()[0], blob.data_memory)
    assert UNINITIALIZED is blob.diff_memory.head


def test_adoption_of_another_size_brings_new_memory_and_its_capacity(place: Any) -> None:
    """The diff is lost and sharing ends, as in Caffe; nothing can be written past the end, as it can there (H2)."""
    blob, other = Blob((100,), device=place), Blob((100,), device=place)
    other.share_data(blob)
    at_head(blob.diff_memory, CPU, np.ones(100, np.float32))
    mine = np.arange(10, dtype=np.float32)
    blob.reshape((10,)).set_cpu_data(mine)

    assert (10, 40, 40) == (blob.capacity, blob.data_memory.size, blob.diff_memory.size)
    assert UNINITIALIZED is blob.diff_memory.head
    assert 400 == other.data_memory.size
    blob.reshape((100,))
    blob.mutable_cpu_diff()[99] = 7
    assert (400, UNINITIALIZED) == (blob.diff_memory.size, blob.data_memory.head)
    assert list(range(10)) == mine.tolist()


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


def test_a_diff_is_adopted_alone(place: Any) -> None:
    """Whether its memory has the right size or not: the data stays."""
    for size, capacity in ((6, 6), (8, 6)):
        blob = Blob((size,), device=place)
        at_head(blob.data_memory, CPU, np.full(size, 7, np.float32))
        mine = np.arange(6, dtype=np.float32)
        memory = blob.data_memory
        blob.reshape((6,)).set_cpu_diff(mine)
        blob.update()

        assert [7, 6, 5, 4, 3, 2] == blob.cpu_data().tolist()
        assert (memory, capacity, 24) == (blob.data_memory, blob.capacity, blob.diff_memory.size)
        blob.reshape((8,)).mutable_cpu_diff()[7] = 1
        assert (32, 32, False) == (blob.data_memory.size, blob.diff_memory.size, blob.data_memory is memory)


def test_device_memory_is_adopted(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((2, 3), device=device)
    mine: Any = device.empty(24)
    blob.set_gpu_data(mine.view(np.float32).reshape(3, 2))
    blob.mutable_cpu_data()[...] = 7
    blob.gpu_data()
    blob.set_gpu_diff(blob.device.empty(24) if blob.device else None)

    assert [7] * 6 == mine.view(np.float32).get().tolist()
    assert (GPU, False) == (blob.diff_memory.head, blob.diff_memory.own_gpu_data)


@pytest.mark.parametrize("call", ["set_cpu_data", "set_cpu_diff"])
@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (np.zeros(5, np.float32), "it has 20 bytes, and 24 are needed"),
        (np.zeros(6, np.float64), "its elements are float64, and float32 are needed"),
        (np.zeros(6, np.int32).data, "its elements are int32, and float32 are needed"),
        (memoryview(bytearray(32))[1:], "it does not start at a multiple of 4 bytes, as float32 must"),
        (np.zeros(12, np.float32)[::2], "it is not contiguous"),
        (b"0123456789" * 3, "it is read-only"),
        (None, "a buffer is needed"),
        (7, "it is not host memory"),
    ],
)
def test_a_buffer_that_is_refused_changes_nothing(blob: Any, call: str, buffer: Any, reason: str) -> None:
    """Whether there is new memory to make or not."""
    for capacity in (6, 8):
        blob.reshape((capacity,)).shrink_to_fit().reshape((6,))
        at_head(blob.data_memory, SYNCED, np.arange(6, dtype=np.float32))
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError, match=f"{call} cannot adopt .*{reason}"):
            getattr(blob, call)(buffer)

        assert before == snapshot(blob)


@pytest.mark.parametrize("call", ["set_gpu_data", "set_gpu_diff"])
def test_a_device_buffer_that_is_refused_changes_nothing(blob: Any, call: str) -> None:
    blob.reshape((6,))
    there: Any = SimulatedDeviceAllocator().empty(40)
    ours: Any = blob.device.empty(40)
    for buffer, reason in (
        (there, "memory of another device"),
        (ours[:20], "it has 20 bytes"),
        (ours[1:29].view(np.float32), "does not start at a multiple of 4 bytes"),
        (ours.view(np.int32), "its elements are int32"),
        (np.zeros(6, np.float32), "it is not memory of simulated:0"),
    ):
        before = snapshot(blob)
        with pytest.raises(BufferMismatchError, match=f"{call} cannot adopt .*{reason}"):
            getattr(blob, call)(buffer)
        assert before == snapshot(blob)
    with pytest.raises(NoDeviceError, match=f"{call}: cannot use a GPU"):
        getattr(Blob((2,), device=None), call)(ours)


def test_bytes_are_adopted_as_elements(place: Any) -> None:
    """What has no type of its own, or bytes; and a blob without elements takes what starts anywhere."""
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


def test_a_shared_memory_is_one_memory(place: Any) -> None:
    """Whatever is done through either, in any shape of as many elements."""
    for side in ("data", "diff"):
        one, two = Blob((2, 3), device=place), Blob((6,), device=place)
        getattr(one, f"mutable_cpu_{side}")()[...] = 7
        old = weakref.ref(getattr(two, f"{side}_memory"))
        getattr(two, f"share_{side}")(one)

        assert old() is None
        assert getattr(one, f"{side}_memory") is getattr(two, f"{side}_memory")
        assert ([7] * 6, (6,)) == (getattr(two, f"cpu_{side}")().tolist(), two.shape)
        other = "diff" if side == "data" else "data"
        assert getattr(one, f"{other}_memory") is not getattr(two, f"{other}_memory")
        memory = getattr(two, f"{side}_memory")
        getattr(two, f"share_{side}")(two)
        assert getattr(two, f"{side}_memory") is memory


def test_the_capacity_follows_sharing(place: Any) -> None:
    """In Caffe the old one stays, and what grows back into it writes past the end of the other's memory (H1)."""
    one, two = Blob((100,), device=place), Blob((10,), device=place)
    one.reshape((10,)).share_data(two)
    assert 10 == one.capacity
    one.reshape((100,))
    one.mutable_cpu_data()[99] = 7

    assert (400, 40) == (one.data_memory.size, two.data_memory.size)
    assert one.data_memory is not two.data_memory


def test_what_cannot_be_shared_is_refused(blob: Any) -> None:
    device: Any = blob.device
    cases: list[tuple[Any, type[Exception], str]] = [
        (Blob((119,), device=device), InvalidShapeError, "119 elements cannot be shared by 120"),
        (Blob((120,), np.float64, device=device), InvalidArgumentError, "a blob of float32"),
        (Blob((120,), device=None), InvalidArgumentError, "a blob on simulated:0, as this one is, and not on the host"),
        (Blob((120,), device=SimulatedDeviceAllocator()), InvalidArgumentError, "and not on another simulated:0"),
        (7, InvalidArgumentError, "other must be a Blob, got 7"),
    ]
    before = snapshot(blob)
    for other, error, reason in cases:
        for call in (blob.share_data, blob.share_diff):
            with pytest.raises(error, match=reason):
                call(other)

    assert before == snapshot(blob)


# --- what it is


def test_a_blob_says_what_it_is(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((2, 3), host=CPUDeviceAllocator(), device=device)
    blob.set_cpu_data(np.zeros(6, np.float32))
    blob.gpu_data()

    assert (
        "<Blob 2 3 (6) float32, data [24 bytes, SYNCED, host external, simulated:0 owned], "
        "diff [24 bytes, UNINITIALIZED, host none, simulated:0 none]>"
    ) == repr(blob)
    assert (device, "<Blob (0) int32, ") == (blob.device, repr(Blob(dtype=np.int32, device=None))[:17])


def test_every_accessor_has_a_short_way(place: Any) -> None:
    """Asked again with nothing to do, it shows the same bytes by another array object."""
    blob = Blob((2, 3), device=place)
    names = ["mutable_cpu_data", "cpu_data"] + ["mutable_gpu_data", "gpu_data"] * (place is not None)
    for name in names:
        first, second, third = (getattr(blob, name)() for _ in range(3))
        assert (first is not second, second is not third, (2, 3)) == (True, True, third.shape)
        if "mutable_cpu" in name:
            first[...] = 7
        elif "mutable" in name:
            first.set(np.full((2, 3), 8, np.float32))
        assert got(third).tolist() == got(first).tolist()

    assert ([[8] * 3] * 2 if place is not None else [[7] * 3] * 2) == blob.cpu_data().tolist()


def test_adoption_drops_what_only_the_other_side_held(device: SimulatedDeviceAllocator) -> None:
    """As in Caffe: what is set is the newest, and what was newer before is gone (H8)."""
    blob = Blob((2,), device=device)
    at_head(blob.data_memory, GPU, np.array([1, 2], np.float32))
    blob.set_cpu_data(np.array([3, 4], np.float32))
    assert (CPU, [3, 4]) == (blob.data_memory.head, blob.gpu_data().get().tolist())

    blob.mutable_cpu_data()[...] = 5
    there: Any = device.empty(8)
    there.set(np.array([6, 7], np.float32).view(np.uint8))
    blob.set_gpu_data(there)
    assert (GPU, [6, 7]) == (blob.data_memory.head, blob.cpu_data().tolist())


@pytest.mark.parametrize("call", ["gpu_data", "mutable_gpu_data", "cpu_data", "mutable_cpu_data"])
def test_the_short_way_is_left_when_there_is_something_to_do(device: SimulatedDeviceAllocator, call: str) -> None:
    """The other side is written in between, through this blob or the memory."""
    for others in ("blob", "memory"):
        blob = Blob((2, 3), device=device)
        view = getattr(blob, call)
        view()
        view()
        if "gpu" in call:
            (blob.mutable_cpu_data() if others == "blob" else blob.data_memory.mutable_cpu_data())[...] = 0x40
        else:
            there = blob.mutable_gpu_data() if others == "blob" else blob.data_memory.mutable_gpu_data()
            there.set(np.full(there.shape, 0x40, there.dtype))
        assert (64.0 if others == "blob" else 3.0039215087890625) == got(view())[1, 2]


def test_a_memory_that_was_closed_is_closed_for_its_blobs(place: Any) -> None:
    """Also for the short way, which remembers a view of it."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()
    blob.mutable_cpu_data()
    blob.data_memory.close()
    for use in (blob.mutable_cpu_data, blob.update, blob.asum_data):
        with pytest.raises(ClosedMemoryError, match="this memory of 24 bytes is closed"):
            use()

    assert "[24 bytes, closed]" in repr(blob)
    assert [0] * 6 == blob.diff.ravel().tolist()
