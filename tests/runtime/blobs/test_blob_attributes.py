"""A blob as an array: `blob.data` and `blob.diff`, NumPy's protocols, buffers and DLPack."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import CPU, GPU, ROW, SYNCED, UNINITIALIZED, Blob, each_device, on_both_sides
from blob_views import at_head, recorded, snapshot

from syncedmem.model import InvalidPointerError
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

place = each_device
blob = on_both_sides


@pytest.mark.parametrize("side", ["data", "diff"])
def test_reading_the_attribute_leaves_the_device_side_fresh(device: SimulatedDeviceAllocator, side: str) -> None:
    """In pycaffe reading makes it stale, and the next kernel has to wait for a copy (H10)."""
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
    """The device then sees the new numbers."""
    plain = SimpleNamespace(data=ROW.copy())
    write(plain)
    write(blob)

    assert CPU is blob.data_memory.head
    expected = np.broadcast_to(np.squeeze(plain.data), (2, 3))
    assert expected.tolist() == blob.gpu_data().get().tolist()


def test_operators_in_place(blob: Any) -> None:
    blob.diff = 1
    blob.data -= 0.5 * blob.diff
    weights = blob.data
    weights *= 2
    blob.diff += blob.data

    assert (ROW * 2 - 1).tolist() == blob.gpu_data().get().tolist()
    assert (ROW * 2).tolist() == blob.gpu_diff().get().tolist()
    assert isinstance(weights, LiveArray)


def test_assigning_what_is_there_already_moves_nothing(blob: Any) -> None:
    """The last step of ``blob.data -= step`` assigns the same array; the head has moved before."""
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


UNNOTICED: dict[str, Callable[[Any], object]] = {
    "fill": lambda array: array.fill(7),
    "sort": lambda array: array.sort(),
    "partition": lambda array: array.partition(1),
    "put": lambda array: array.put([0], [7]),
    "numpy.copyto": lambda array: np.copyto(array, 7),
    "numpy.place": lambda array: np.place(array, array < 9, [7]),
    "numpy.fill_diagonal": lambda array: np.fill_diagonal(array, 7),
    "numpy.take": lambda array: np.take(np.arange(9, dtype=np.float32), [[1, 2, 3], [4, 5, 6]], out=array, mode="clip"),
}


@pytest.mark.parametrize("name", UNNOTICED)
def test_who_writes_in_a_way_that_is_not_noticed_is_told_another(name: str, blob: Any) -> None:
    before, write = snapshot(blob), UNNOTICED[name]
    with pytest.raises(InvalidPointerError, match=f"{name} cannot use .*blob.mutable_cpu_data"):
        write(blob.data)

    assert before == snapshot(blob)
    write(blob.data.copy())
    write(blob.mutable_cpu_data())


def test_an_array_of_somebody_else_is_not_taken_for_the_blobs(blob: Any) -> None:
    """What cannot be written here is the other array, so the error is NumPy's own."""
    theirs = np.zeros((2, 3), np.float32)
    theirs.flags.writeable = False
    with pytest.raises(ValueError, match="read-only") as caught:
        np.copyto(theirs, blob.data)
    assert not isinstance(caught.value, InvalidPointerError)


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
def test_an_array_that_was_kept_does_not_mix_old_numbers_with_new(part: str, write: Callable[[Any], Any]) -> None:
    """The array has numbers from before the device wrote, and NumPy does not report that it is read."""
    blob: Any = Blob((2, 3), device="simulated", checked=False)  # a checked one would have poison there
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
    lambda blob, _: blob.reshape(100),
    lambda blob, other: blob.share_data(other),
    lambda blob, _: blob.reshape(4).shrink_to_fit(),
    lambda blob, other: blob.reshape(4).set_cpu_data(other.mutable_cpu_data()),
    lambda blob, other: blob.set_cpu_data(other.mutable_cpu_data()),
]
"""Calls after which the blob has another memory, or its memory other bytes."""


@pytest.mark.parametrize("leave", LEAVES)
def test_an_array_of_what_its_blob_has_left_refuses_to_write(blob: Any, leave: Callable[[Any, Any], Any]) -> None:
    """The numbers would be lost: nobody reads the data there any more."""
    old, other = blob.data, Blob((2, 3), device=blob.device)
    leave(blob, other)
    writes: list[Callable[[], Any]] = [lambda: old.__setitem__(..., 7), lambda: old.__iadd__(7)]
    for write in writes:
        with pytest.raises(InvalidPointerError):
            write()

    assert ROW.tolist() == old.tolist()
    assert not other.data.any()


def test_an_array_outlives_its_blob(device: SimulatedDeviceAllocator) -> None:
    """It can still be written to, because its numbers are nowhere else."""
    blob = Blob((2, 3), device=device)
    old, gone = blob.data, weakref.ref(blob)
    del blob
    gc.collect()
    old[...] = 7
    assert (None, 42) == (gone(), old.sum())


def test_an_array_outlives_a_reshape(blob: Any) -> None:
    """It keeps the memory that it shows, which the blob dropped when it grew (H10)."""
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


# --- protocols of arrays


def test_a_blob_becomes_an_array(blob: Any) -> None:
    """The array is a read-only view of the memory, or a copy."""
    view, own = np.asarray(blob), np.array(blob)
    other: Any = np.asarray(blob, np.float64)
    assert (False, True, ROW.tolist()) == (view.flags.writeable, np.shares_memory(view, blob.cpu_data()), own.tolist())
    assert (np.float64, ROW.tolist()) == (other.dtype, other.tolist())
    own[...] = 9
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(blob, np.float64, copy=False)

    assert SYNCED is blob.data_memory.head


def test_views_keep_the_memory_and_not_the_blob(device: SimulatedDeviceAllocator) -> None:
    """So a blob that grows leaves no view without memory; a blob itself gives no address (H10)."""
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    views = [np.asarray(blob), blob.cpu_data(), np.from_dlpack(blob), blob.data]
    blob.reshape((1000,)).data = 9
    gc.collect()

    assert [ROW.tolist()] * 4 == [view.tolist() for view in views]
    assert not hasattr(blob, "__array_interface__")
    assert not hasattr(blob, "__cuda_array_interface__")
    assert all(hasattr(blob.cpu_data(), name) for name in ("__array_interface__", "__dlpack__", "__array__"))


def test_views_have_buffers_and_a_blob_has_none(blob: Any) -> None:
    """From Python 3.12 on NumPy would take a blob's buffer in place of what its ``__array__`` says."""
    buffer: Any = memoryview(blob.cpu_data())
    assert ("f", (2, 3), True, ROW.tolist()) == (buffer.format, buffer.shape, buffer.readonly, buffer.tolist())
    assert memoryview(blob.mutable_cpu_data()).readonly is False
    with pytest.raises(TypeError):
        memoryview(blob)


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
    """A replacement for a capsule."""
    return "capsule", ptr, options


class OnGPU(SimulatedDeviceAllocator):
    """A device whose arrays support DLPack, as CuPy's do."""

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
    """The consumer's stream is passed on.  If the device's arrays do not support DLPack, the call is refused."""
    there = Blob((2, 3), device=OnGPU())
    with pytest.raises(BufferError, match="no stream is 0"):
        there.__dlpack__(dl_device=(2, 0), stream=0)
    for number, device in ((there, (2, 1)), (blob, (2, 0)), (Blob((2,), device=None), (2, 0))):
        with pytest.raises(BufferError, match=r"the data is not on the device \(2, [01]\) of DLPack"):
            number.__dlpack__(dl_device=device)
    assert (UNINITIALIZED, SYNCED) == (there.data_memory.head, blob.data_memory.head)
    name, view, options = there.__dlpack__(dl_device=(2, 0), stream=7, max_version=(1, 0), copy=None)
    assert ("capsule", (2, 3), {"stream": 7, "max_version": (1, 0)}) == (name, view.shape, options)


def test_a_view_of_what_a_pool_has_lent_again_is_somebody_elses() -> None:
    """A pool cannot keep old bytes.  ``blob.data`` keeps its memory, and refuses to write if it has other bytes."""
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
    """Other devices show old bytes.  This one raises, because over a pool they would be another owner's."""
    blob = Blob((2, 3), device=place)
    blob.data = ROW
    near, far = blob.cpu_data(), blob.gpu_data()
    del blob
    gc.collect()
    assert ROW.tolist() == near.tolist()
    if place.device_type == DeviceType.SIMULATED:
        with pytest.raises(SimulatedDeviceError, match=r"the block of 24 bytes .* the blob.* keep a reference to that"):
            far.get()
    else:
        assert ROW.tolist() == far.get().tolist()
