"""How a `Blob` is made, what its accessors give, and what its copies share."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from blob_fixtures import CPU, GPU, ROW, SYNCED, UNINITIALIZED, Blob, each_device, each_place
from blob_views import HEADS, at_head, snapshot

from syncedmem import runtime
from syncedmem.model import AllocationError, ClosedMemoryError, InvalidArgumentError, NoDeviceError, NotCopyableError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, StatisticsAllocator
from syncedmem.runtime.devices.host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.parametrize(
    "dtype", ["int16", "uint64", ">f4", "complex64", "nothing", object(), "float128", [("a", "f4")]]
)
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        Blob((2, 3), dtype=dtype, device=None)
    assert ("dtype", dtype) == (refused.value.argument, refused.value.value)


@pytest.mark.deep
def test_bfloat16_is_refused_with_what_to_install() -> None:
    """Without the package NumPy has no such type; after its import it has."""
    asked = "from syncedmem import Blob; Blob((2,), dtype='bfloat16', device=None)"
    program = f"import sys; sys.modules['ml_dtypes'] = None; {asked}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "bfloat16 (which needs ml_dtypes: pip install ml_dtypes, and import it), got 'bfloat16'" in done.stderr


def test_allocators_are_checked_as_a_memory_checks_them(device: SimulatedDeviceAllocator) -> None:
    with pytest.raises(NoDeviceError):
        Blob((2,), device="abacus")
    ours = CPUDeviceAllocator()
    for argument, options in (("host", {"host": device}), ("pinned", {"host": ours, "device": device})):
        with pytest.raises(InvalidArgumentError) as refused:
            Blob((2,), **options)
        assert argument == refused.value.argument
    with pytest.raises(InvalidArgumentError) as refused:
        Blob(None)
    assert ("shape", None) == (refused.value.argument, refused.value.value)


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

    assert (24 + 12, ours, ours) == (ours.statistics.current_bytes, copy.copy(theirs).host, copy.copy(theirs).pinned)
    assert (device.pinned_host(), cpu_allocator()) == (Blob(device=device).pinned, Blob(device=None).pinned)


# --- accessors


def test_an_accessor_waits_for_nothing_that_is_not_there(device: SimulatedDeviceAllocator) -> None:
    """During a push in flight the blob calls its memory each time, until nothing is left to do."""
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


def test_a_memory_that_was_closed_is_closed_for_its_blobs(place: Any) -> None:
    """It holds for the fast path too, which has stored a view of the memory."""
    blob = Blob((2, 3), device=place)
    blob.mutable_cpu_data()
    blob.mutable_cpu_data()
    blob.data_memory.close()
    for use in (blob.mutable_cpu_data, blob.update, blob.asum_data):
        with pytest.raises(ClosedMemoryError, match="this memory of 24 bytes is closed"):
            use()

    assert "[24 bytes, closed]" in repr(blob)
    assert [0] * 6 == blob.diff.ravel().tolist()


# --- copies and pickles


on_device = each_device


def test_a_shallow_copy_shares_and_a_deep_one_does_not(on_device: Any) -> None:
    """The deep copy copies elements on their fresh side, with the bytes beyond the shape."""
    for head in HEADS:
        blob = Blob((2, 3), device=on_device)
        at_head(blob.data_memory, head, ROW)
        at_head(blob.diff_memory, CPU, ROW + 1)
        blob.reshape((3,))
        shallow, deep = copy.copy(blob), copy.deepcopy(blob)
        assert (blob.data_memory, blob.diff_memory) == (shallow.data_memory, shallow.diff_memory)
        assert {SYNCED: GPU}.get(head, head) is deep.data_memory.head
        assert head is blob.data_memory.head
        for item in (shallow, deep):
            assert ((3,), np.float32, on_device, 6) == (item.shape, item.dtype, item.device, item.capacity)
            item.reshape((2, 3))
            assert (ROW + 1).tolist() == item.cpu_diff().tolist()
            if head is not UNINITIALIZED:
                assert ROW.tolist() == item.cpu_data().tolist()
        deep.data = 9
        assert 9 not in blob.data
    assert "(0)" == copy.deepcopy(copy.copy(Blob(device=on_device))).shape_string


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
def test_a_pickle_goes_through_the_host(on_device: Any, protocol: int) -> None:
    for head in HEADS:
        blob = Blob((2, 3), device=on_device)
        at_head(blob.data_memory, head, ROW)
        back = pickle.loads(pickle.dumps(blob, protocol))  # noqa: S301 -- our own
        found = back.data_memory.head, back.diff_memory.head, back.shape, back.dtype
        assert (UNINITIALIZED if head is UNINITIALIZED else CPU, UNINITIALIZED, (2, 3), np.float32) == found
        if head is not UNINITIALIZED:
            assert ROW.tolist() == back.gpu_data().get().tolist()


class Layered(runtime.Blob[Any]):
    """A derived blob, whose ``__init__`` has an argument of its own."""

    __slots__ = ("layers",)

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(*shape, **options)
        self.layers = [layer]


class Named(Layered):
    """A derived blob with attributes that are not slots."""

    def __init__(self, layer: str, *shape: Any, **options: Any) -> None:
        super().__init__(layer, *shape, **options)
        self.name, self.me = layer, self


def pickled(blob: Any) -> Any:
    """A blob after pickling and unpickling."""
    return pickle.loads(pickle.dumps(blob))  # noqa: S301 -- our own


COPIES: list[tuple[Callable[[Any], Any], bool]] = [(copy.copy, False), (copy.deepcopy, True), (pickled, True)]


@pytest.mark.parametrize(("copied", "deep"), COPIES)
def test_copies_of_a_derived_blob_keep_what_it_has_added(copied: Callable[[Any], Any], deep: bool) -> None:
    """Its ``__init__`` is not called, so it may need any arguments."""
    blob = Named("ip", (2, 3), device=None)
    blob.data = ROW
    other = copied(blob)
    assert (Named, "ip", ["ip"], ROW.tolist()) == (type(other), other.name, other.layers, other.data.tolist())
    assert (other.me is other, other.layers is not blob.layers) == (deep, deep)
    other.data[0, 0] = 7
    assert (0 if deep else 7) == blob.data[0, 0]


def test_a_memory_cannot_be_copied_beside_its_blob() -> None:
    blob = Blob((2, 3), device=None)
    with pytest.raises(NotCopyableError):
        copy.deepcopy([blob, blob.data_memory])


def test_what_is_pickled_without_a_device_or_a_shape_comes_back_so() -> None:
    empty = pickle.loads(pickle.dumps(Blob(dtype=np.int32, device=None)))  # noqa: S301 -- our own
    diffed = Blob((2, 3), ml_dtypes.bfloat16, device=None)
    diffed.diff = 7
    back = pickle.loads(pickle.dumps(diffed))  # noqa: S301 -- our own

    assert ("(0)", np.int32, None) == (empty.shape_string, empty.dtype, empty.device)
    assert (42.0, UNINITIALIZED, ml_dtypes.bfloat16) == (back.asum_diff(), back.data_memory.head, back.dtype)


def test_buffers_travel_beside_the_pickle(device: SimulatedDeviceAllocator) -> None:
    """With protocol 5 nothing is copied into the pickle itself."""
    blob = Blob((1000,), device=device)
    blob.data = 7
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(blob, 5, buffer_callback=buffers.append)

    assert (1, True) == (len(buffers), len(small) < 1000)
    assert 7000 == pickle.loads(small, buffers=buffers).asum_data()  # noqa: S301 -- our own


# --- bfloat16, which NumPy does not have


@pytest.mark.parametrize("head", HEADS)
def test_bfloat16_goes_everywhere_that_the_other_types_go(on_device: Any, head: Any) -> None:
    """NumPy does not have this type, so there is no buffer, no DLPack and no file of it."""
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    row = (ROW / 3).astype(dtype)
    blob = Blob((2, 3), dtype, device=on_device)
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


def test_bfloat16_of_others_is_adopted_and_converted(on_device: Any) -> None:
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    mine = ROW.astype(dtype)
    blob = Blob.from_array(mine, copy=False, device=on_device)
    blob.data[0, 0] = 9
    assert (9, dtype, False) == (mine[0, 0], blob.dtype, blob.data_memory.own_cpu_data)
    theirs = Blob((2, 3), dtype, device=on_device)
    theirs.data = ROW
    array = theirs.mutable_gpu_data()
    for there in (Blob.from_array(array, copy=number, device=on_device) for number in (False, True)):
        assert (dtype, GPU, ROW.tolist()) == (there.dtype, there.data_memory.head, there.data.tolist())
    for other in (np.float32, np.float64, np.int32):
        assert ROW.tolist() == Blob.from_array(array, dtype=other, device=on_device).data.tolist()
        assert ROW.tolist() == Blob.from_array(ROW.astype(other), dtype=dtype, device=on_device).data.tolist()
