"""Where a blob computes and copies, on every device, and what is refused.

What that does to heads, and what is allocated and copied for it, the kit sees: it takes every cell
(``spec/blob/cells.py``).  It does not see who computes, nor in what order a copy asks for both; that is seen here.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import each_device
from blob_views import HEADS, at_head, recorded, snapshot
from subjects import failing

from syncedmem import runtime
from syncedmem.model import (
    ClosedMemoryError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidShapeError,
    Mode,
    NoArithmeticError,
    SyncedHead,
    using_mode,
)
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.runtime.blobs import arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
place = each_device

X = np.array([1, -2, 3, -4], np.float32)
Y = np.array([10, 20, 30, 40], np.float32)

SIDES = {CPU: "host", GPU: "device", SYNCED: "device"}
"""Of a head: who computes."""


@pytest.fixture(params=list(Mode))
def mode(request: pytest.FixtureRequest) -> Any:
    """Caffe's mode."""
    return request.param


def prepared(place: Any, data: SyncedHead, diff: SyncedHead) -> tuple[Any, list[str]]:
    """A blob with given heads, and an empty log."""
    blob, log = recorded(place, (2, 2))
    at_head(blob.data_memory, data, Y)
    at_head(blob.diff_memory, diff, X)
    del log[:]
    return blob, log


# --- norms and scales


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("side", ["data", "diff"])
def test_sums_are_taken_where_the_numbers_are(place: Any, mode: Mode, head: SyncedHead, side: str) -> None:
    """So is a scale, which alone moves a head; of numbers that were never written nobody does either."""
    blob, log = prepared(place, UNINITIALIZED, UNINITIALIZED)
    memory, there = getattr(blob, f"{side}_memory"), SIDES.get(head)
    at_head(memory, head, X)
    del log[:]
    with using_mode(mode):
        sums = [getattr(blob, f"{name}_{side}")() for name in ("asum", "sumsq")]
        found = memory.head
        getattr(blob, f"scale_{side}")(-0.5)

    assert (head, [10.0, 30.0] if there else [0.0, 0.0]) == (found, sums)
    assert ([f"{there} asum", f"{there} sumsq", f"{there} scal"] if there else []) == log
    if there:
        assert (X * np.float32(-0.5)).tolist() == getattr(blob, f"cpu_{side}")().ravel().tolist()


# --- what there is no arithmetic for


def test_a_type_that_the_device_lacks_is_refused_before_a_head_moves(device: SimulatedDeviceAllocator) -> None:
    """An example is float64 on an OpenCL device without it; on the host there is arithmetic for it."""
    blob, log = recorded(device, (4,), dtype=np.float64)
    at_head(blob.data_memory, SYNCED, X.astype(np.float64))
    lacking: Any = blob.device
    lacking.arithmetic = lambda: SimpleNamespace(types=("float32",))
    before = snapshot(blob)
    log.clear()
    for call in ("update", "asum_data"):
        with pytest.raises(NoArithmeticError) as refused:
            getattr(blob, call)()
        assert (call, "float64") == (refused.value.call, str(refused.value.dtype))
    assert ([], before) == (log, snapshot(blob))
    blob.mutable_cpu_data()
    assert 10.0 == blob.asum_data()


@pytest.mark.parametrize("wrong", ["no", None, 0, 2, -1, np.ones(2)], ids=str)
def test_a_flag_is_true_or_false(device: SimulatedDeviceAllocator, tmp_path: Path, wrong: Any) -> None:
    """NumPy's bools are accepted too."""
    blob, other = Blob((4,), device=device), Blob((4,), device=device)
    at_head(blob.data_memory, SYNCED, X)
    before = snapshot(blob)
    attempts: list[tuple[str, Callable[[], Any]]] = [
        ("copy_diff", lambda: blob.copy_from(other, copy_diff=wrong)),
        ("reshape", lambda: blob.copy_from(other, reshape=wrong)),
        ("reshape", lambda: blob.from_proto(b"", reshape=wrong)),
        ("write_diff", lambda: blob.to_proto(wrong)),
        ("write_diff", lambda: blob.save(tmp_path / "blob.npz", wrong)),
    ]
    for name, call in attempts:
        with pytest.raises(InvalidArgumentError) as refused:
            call()
        assert (name, True) == (refused.value.argument, refused.value.value is wrong)
    assert before == snapshot(blob)
    other.copy_from(blob, copy_diff=np.False_, reshape=np.True_)
    assert X.tolist() == other.data.tolist()


def overlapping(place: Any, kind: str, how: str) -> Any:
    """A blob of 1, 2, 3, 4 whose diff has some of the bytes of its data."""
    blob = Blob((4,), device=place)
    if how in {"data", "diff"}:
        blob.data = blob.diff = [1, 2, 3, 4]
        getattr(blob, f"set_{kind}_{how}")(getattr(blob, f"mutable_{kind}_{'diff' if how == 'data' else 'data'}")())
        return blob
    row: Any = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.float32).view(np.uint8)
    if kind == "gpu":
        row, host = place.empty(32), row
        row.set(host)
    getattr(blob, f"set_{kind}_data")(row[:16])
    getattr(blob, f"set_{kind}_diff")(row[8 if "part" in how else 0 :][:16])
    if "elsewhere" in how:  # what is computed on the other side is later copied back
        getattr(blob, f"{'gpu' if kind == 'cpu' else 'cpu'}_data")()
    return blob


@pytest.mark.parametrize("how", ["part", "whole", "part, elsewhere", "whole, elsewhere", "data", "diff"])
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_data_and_diff_that_overlap_are_not_subtracted(place: Any, kind: str, how: str) -> None:
    """In part or as a whole, adopted or the blob's own, and also where it computes on the other side."""
    blob = overlapping(place, kind, how)
    before = snapshot(blob)
    with pytest.raises(InvalidPointerError):
        blob.update()
    assert (before, [1, 2, 3, 4]) == (snapshot(blob), blob.cpu_data().tolist())

    if how != "data":  # then the diff owns the memory of both, and may not free it
        getattr(blob, f"set_{kind}_diff")(np.ones(4, np.float32) if kind == "cpu" else ones(place))
        blob.update()
        assert [0, 1, 2, 3] == blob.cpu_data().tolist()


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_what_was_subtracted_once_is_checked_again_when_a_side_is_another(place: Any, kind: str) -> None:
    """A subtraction that is as the last one is not checked again."""
    blob = Blob((4,), device=place, checked=False)
    blob.data, blob.diff = [8] * 4, [1] * 4
    if kind == "gpu":
        _ = blob.mutable_gpu_data(), blob.mutable_gpu_diff()
    blob.update()
    blob.update()
    assert [6] * 4 == list(blob.cpu_data())

    row: Any = np.arange(8, dtype=np.float32).view(np.uint8)
    blob.set_cpu_data(row[:16])
    blob.set_cpu_diff(row[8:24])
    if kind == "gpu":
        _ = blob.mutable_gpu_data(), blob.gpu_diff()
    before = snapshot(blob)
    with pytest.raises(InvalidPointerError):
        blob.update()
    assert before == snapshot(blob)

    adopted = np.ones(4, np.float32)
    blob.set_cpu_diff(np.ones(4, np.float32))
    blob.set_cpu_data(adopted)
    blob.update()
    blob.update()
    adopted.flags.writeable = False
    with pytest.raises(InvalidPointerError):
        blob.update()
    assert [-1] * 4 == list(adopted)
    blob.close()
    with pytest.raises(ClosedMemoryError):
        blob.update()


def ones(place: Any) -> Any:
    """Four ones on a device."""
    there = place.empty(16)
    there.set(np.ones(4, np.float32).view(np.uint8))
    return there


def test_an_error_of_the_device_library_is_one_of_the_family(device: SimulatedDeviceAllocator) -> None:
    blob, _ = recorded(device, (4,))
    at_head(blob.data_memory, GPU, Y)
    broken = failing(OSError, "out of order")
    there: Any = blob.device
    computing = SimpleNamespace(types=("float32",), asum=broken, axpy=broken, scal=broken)
    there.arithmetic = lambda: computing
    for name, arguments in (("update", ()), ("asum_data", ()), ("scale_data", (2,))):
        with pytest.raises(DeviceError) as told:
            getattr(blob, name)(*arguments)
        assert (name, "simulated:0") == (told.value.operation, told.value.where)
        assert isinstance(told.value.__cause__, OSError)

    assert Y.tolist() == blob.cpu_data().tolist()


# --- copy_from: by the mode


def copied(mode: Mode, source: SyncedHead, target: SyncedHead) -> list[str]:
    """The log of a copy: the target is brought to the side of the mode, then the source, then bytes are copied."""
    log: list[str] = []
    side, there = ("device", CPU) if mode is Mode.GPU else ("host", GPU)
    for head in (target, source):
        if head is UNINITIALIZED:
            log += [f"{side} allocate", f"{side} zero"]
        elif head is there:
            log += [f"{side} allocate", "up" if side == "device" else "down"]
    return [*log, "across" if side == "device" else "host copy"]


@pytest.mark.parametrize("side", ["data", "diff"])
@pytest.mark.parametrize(("source", "target"), list(itertools.product(HEADS, HEADS)))
def test_copies_are_made_where_the_mode_says(
    place: Any, mode: Mode, source: SyncedHead, target: SyncedHead, side: str
) -> None:
    one, log = recorded(place, (2, 2))
    two = Blob((2, 2), host=one.host, pinned=one.pinned, device=one.device)
    at_head(getattr(one, f"{side}_memory"), source, X)
    at_head(getattr(two, f"{side}_memory"), target, Y)
    del log[:]
    with using_mode(mode):
        two.copy_from(one, copy_diff=side == "diff")

    assert copied(mode, source, target) == log
    for item in (one, two):
        expected = X * 0 if source is UNINITIALIZED else X
        assert expected.tolist() == getattr(item, f"cpu_{side}")().ravel().tolist()


def test_a_copy_of_itself_moves_the_head_and_no_bytes(place: Any, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds also for a blob that shares the memory; the function for overlapping buffers is not called."""
    blob, log = prepared(place, SYNCED, UNINITIALIZED)
    there: Any = blob.device
    monkeypatch.setattr(there, "overlaps", None)
    monkeypatch.setattr(arithmetic, "arithmetic_of", None)
    monkeypatch.setattr(np, "may_share_memory", None)
    sharer = Blob((2, 2), host=blob.host, pinned=blob.pinned, device=blob.device)
    sharer.share_data(blob)
    for source in (blob, sharer):
        with using_mode(mode):
            blob.copy_from(source)
        assert (GPU if mode is Mode.GPU else CPU) is blob.data_memory.head

    assert [] == log
    assert Y.tolist() == blob.cpu_data().ravel().tolist()


def test_copies_between_devices_go_through_the_host(place: Any, mode: Mode) -> None:
    """One of the two blobs may have no device."""
    other = SimulatedDeviceAllocator(1)
    for source, target in itertools.product((place, other, None), (place, other, None)):
        one, two = Blob((4,), device=source), Blob((4,), device=target)
        at_head(one.data_memory, CPU, X)
        if source is not None:
            one.mutable_gpu_data()
        with using_mode(mode):
            two.copy_from(one)
        assert X.tolist() == two.cpu_data().tolist()
        assert X.tolist() == one.cpu_data().tolist()


def test_adopted_buffers_that_overlap_are_copied_right(place: Any, mode: Mode) -> None:
    """No device copies such buffers in one step; some write wrong bytes."""
    one, two = Blob((4,), device=place), Blob((4,), device=place)
    if mode is Mode.GPU:
        row: Any = place.empty(24)
        row.set(np.arange(6, dtype=np.float32).view(np.uint8))
        one.set_gpu_data(row)
        two.set_gpu_data(row[8:])
    else:
        near = np.arange(6, dtype=np.float32)
        one.set_cpu_data(near)
        two.set_cpu_data(near[2:])
    with using_mode(mode):
        two.copy_from(one)

    assert [0, 1, 2, 3] == two.cpu_data().tolist()


def test_a_blob_without_a_shape_is_not_copied(device: SimulatedDeviceAllocator) -> None:
    blob = Blob((2, 3), device=device)
    before = snapshot(blob)
    for reshape in (False, True):
        with pytest.raises(InvalidShapeError):
            blob.copy_from(Blob(device=device), reshape=reshape)

    assert before == snapshot(blob)


def test_the_host_of_a_memory_computes(device: SimulatedDeviceAllocator) -> None:
    """It holds for a shared memory too, which keeps the allocators it was made with."""
    mine, log = recorded(device, (4,))
    theirs = Blob((4,), host=CPUDeviceAllocator(), pinned=mine.pinned, device=mine.device)
    at_head(theirs.data_memory, CPU, X)
    mine.share_data(theirs)
    log.clear()

    assert (10.0, []) == (mine.asum_data(), log)
