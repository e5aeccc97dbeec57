"""A call on a blob that is refused has changed nothing: no head, no flag, no byte, and no allocator was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from blob_views import HEADS, at_head, recorded, snapshot

from syncedmem import runtime
from syncedmem.model import (
    ClosedMemoryError,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidShapeError,
    InvalidValueError,
    NoArithmeticError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.runtime import SimulatedDeviceAllocator

    Refusal = tuple[Callable[[Any], object], type[Exception]]

Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)
BFLOAT16: Any = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, so that a file that is written by mistake is not left in the repository."""
    monkeypatch.chdir(tmp_path)


def everything(blob: Any) -> tuple[object, ...]:
    """Everything that a blob has, with the flags of its memories."""
    flags = [(memory.own_cpu_data, memory.own_gpu_data) for memory in (blob.data_memory, blob.diff_memory)]
    return snapshot(blob), flags, repr(blob)


def check_refused(
    blob: Any,
    log: list[str],
    call: Callable[[Any], object],
    error: type[Exception] | tuple[type[Exception], ...],
    given: Any,
) -> None:
    """Check that a call is refused and nothing else happens."""
    before = everything(blob)
    log.clear()
    with pytest.raises(error):
        call(given)
    assert [] == log
    assert before == everything(blob)


PROTOCOLS: dict[str, Refusal] = {
    "dlpack without a version": (lambda blob: blob.__dlpack__(), BufferError),
    "dlpack of an old version": (lambda blob: blob.__dlpack__(max_version=(0, 8)), BufferError),
    "dlpack with a stream": (lambda blob: blob.__dlpack__(max_version=(1, 0), stream=5), BufferError),
    "dlpack elsewhere": (lambda blob: blob.__dlpack__(dl_device=(2, 0), max_version=(1, 0)), BufferError),
    "dlpack nowhere": (lambda blob: blob.__dlpack__(dl_device="x", max_version=(1, 0)), InvalidArgumentError),
    "dlpack on a number": (lambda blob: blob.__dlpack__(dl_device=5, max_version=(1, 0)), InvalidArgumentError),
    "dlpack of no version": (lambda blob: blob.__dlpack__(max_version="new"), TypeError),
    "dlpack, strange": (lambda blob: blob.__dlpack__(max_version=(1, 0), colour=7), TypeError),
    "dlpack, strange copy": (lambda blob: blob.__dlpack__(max_version=(1, 0), copy="x"), ValueError),
    "array without the copy it needs": (lambda blob: np.asarray(blob, np.float64, copy=False), ValueError),
    "array of no type": (lambda blob: blob.__array__("nonsense"), TypeError),
}
MESSAGES: dict[str, Refusal] = {
    "to no message": (lambda blob: blob.to_proto(proto=5), InvalidArgumentError),
    "to no message with a diff": (lambda blob: blob.to_proto(True, 5), InvalidArgumentError),
    "from no message": (lambda blob: blob.from_proto(5), InvalidArgumentError),
    "from a broken message": (lambda blob: blob.from_proto(b"\xff"), FileFormatError),
    "to a file of no kind": (lambda blob: blob.save("blob.txt"), InvalidArgumentError),
    "to no path": (lambda blob: blob.save(5), InvalidArgumentError),
    "to no folder": (lambda blob: blob.save("/no/such/folder/blob.npy"), FileAccessError),
    "to no folder, as an archive": (lambda blob: blob.save("/no/such/folder/blob.npz", True), FileAccessError),
    "to no folder, as a message": (lambda blob: blob.save("/no/such/folder/blob.binaryproto"), FileAccessError),
    "to a path that is none": (lambda blob: blob.save("a\0b.npy"), FileAccessError),
    "to a file without room for the diff": (lambda blob: blob.save("blob.npy", write_diff=True), FileFormatError),
}
CALLS: dict[str, Refusal] = {
    "values that do not fit": (lambda blob: setattr(blob, "data", np.ones(7)), InvalidShapeError),
    "values that are none": (lambda blob: setattr(blob, "data", None), InvalidArgumentError),
    "values that are not real": (lambda blob: setattr(blob, "diff", 1j), InvalidValueError),
    "a factor": (lambda blob: blob.scale_data("2"), InvalidArgumentError),
    "a sum of another shape": (lambda blob: blob + np.ones(7), ValueError),
    "a sum into another shape": (lambda blob: np.add(blob, 1, out=np.ones(7)), ValueError),
    "a sum with an array of the device": (lambda blob: blob + blob.device.empty(6), InvalidArgumentError),
    "a product of another shape": (lambda blob: blob @ np.ones(7), ValueError),
    "a sum along no axis": (lambda blob: np.add.reduce(blob, axis=7), ValueError),
    "a place of its own": (lambda blob: np.add.at(blob, 0, 1), ValueError),
}
ON_OTHERS: dict[str, tuple[Any, Callable[[Any], object], type[Exception]]] = {
    "integers in a message": (np.int32, lambda blob: blob.to_proto(), InvalidArgumentError),
    "integers as a message": (np.int32, lambda blob: blob.save("blob.binaryproto"), InvalidArgumentError),
    "integers that are too large": (np.int32, lambda blob: setattr(blob, "data", 2**40), InvalidValueError),
    "integers that are negative": (np.uint32, lambda blob: setattr(blob, "diff", -1), InvalidValueError),
    "a power of integers": (np.int32, lambda blob: blob**-1, ValueError),
    "integers from NaN": (
        np.int32,
        lambda blob: blob.from_proto(Blob.from_array([np.nan] * 6, device=None).to_proto()),
        InvalidValueError,
    ),
    "arithmetic on integers": (np.int32, lambda blob: blob.update(), NoArithmeticError),
    "bfloat16 in a file": (BFLOAT16, lambda blob: blob.save("blob.npy"), InvalidArgumentError),
    "bfloat16 in an archive": (BFLOAT16, lambda blob: blob.save("blob.npz", True), InvalidArgumentError),
    "bfloat16 in a message": (BFLOAT16, lambda blob: blob.to_proto(), InvalidArgumentError),
    "a blob as a buffer": (np.float32, memoryview, TypeError),
    "bfloat16 by DLPack": (BFLOAT16, lambda blob: blob.__dlpack__(max_version=(1, 0)), BufferError),
}


REFUSED = {name: (np.float32, *protocol) for name, protocol in (PROTOCOLS | MESSAGES | CALLS).items()} | ON_OTHERS


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_changes_nothing(device: SimulatedDeviceAllocator, head: Any, name: str) -> None:
    dtype, call, error = REFUSED[name]
    blob, log = recorded(device, (2, 3), dtype=dtype)
    at_head(blob.data_memory, head, ROW.astype(dtype))
    at_head(blob.diff_memory, head, ROW.astype(dtype) + dtype(1))
    check_refused(blob, log, call, error, blob)


def frozen() -> Any:
    """An array that must not be written to."""
    array = np.zeros((2, 3), np.float32)
    array.flags.writeable = False
    return array


add: Any = np.add
ONES = np.ones((2, 3), np.int64)
IN_PLACE: dict[str, Refusal] = {
    "of another shape": (lambda array: array.__iadd__(np.ones(7)), ValueError),
    "of a larger shape": (lambda array: array.__iadd__(np.ones((2, 2, 3))), InvalidShapeError),
    "of another kind": (lambda array: array.__iadd__(1j), TypeError),
    "of no kind": (lambda array: array.__iadd__("x"), TypeError),
    "of no known kind": (lambda array: array.__imul__(object()), TypeError),
    "by a cast that is forbidden": (lambda array: add(array, 1.5, out=array, casting="no", dtype="f8"), TypeError),
    "at no such place": (lambda array: add.at(array, (9, 0), 1), IndexError),
    "at a place of another shape": (lambda array: add.at(array, [0, 1], np.ones((5, 5))), ValueError),
    "of a sum that is another": (lambda array: add.reduce(np.ones((4, 3)), axis=0, out=array), ValueError),
    "of a product that is another": (lambda array: np.matmul(np.eye(3), np.ones((3, 3)), out=array), ValueError),
    "where nobody knows": (lambda array: add(array, 1, out=array, where=np.ones(7, bool)), ValueError),
    "with an array of the device": (lambda array: array.__iadd__(array.blob().device.empty(6)), InvalidArgumentError),
    "of powers of integers": (lambda array: np.power(ONES, -1, out=array), ValueError),
    "and into what is frozen": (lambda array: np.divmod(array, 2, out=(array, frozen())), InvalidPointerError),
    "items of another shape": (lambda array: array.__setitem__(0, np.ones(7)), InvalidShapeError),
    "items that are none": (lambda array: array.__setitem__((0, 0), None), InvalidArgumentError),
    "no items": (lambda array: array.__setitem__(7, 0), IndexError),
}


@pytest.mark.parametrize("head", [CPU, GPU, SYNCED])
@pytest.mark.parametrize("name", IN_PLACE)
def test_operations_in_place_that_are_refused_change_nothing(
    device: SimulatedDeviceAllocator, head: Any, name: str
) -> None:
    blob, log = recorded(device, (2, 3))
    blob.data = ROW
    array: Any = blob.data
    if head is not CPU:
        blob.gpu_data()
    if head is GPU:
        blob.mutable_gpu_data()
    call, error = IN_PLACE[name]
    # With newer numbers on the device the array is out of date, whatever else is wrong.
    check_refused(blob, log, call, (error, InvalidPointerError) if head is GPU else error, array)
    assert head is blob.data_memory.head


def test_an_array_of_bytes_that_are_gone_moves_no_head(device: SimulatedDeviceAllocator) -> None:
    """It holds also if the memory has no host side any more, or is closed."""
    blob, log = recorded(device, (2, 3))
    blob.data = ROW
    array: Any = blob.data
    blob.data_memory.set_cpu_data(np.zeros(24, np.uint8))
    blob.mutable_gpu_data()
    calls: list[Callable[[Any], object]] = [
        lambda array: array.__setitem__(0, 7),
        lambda array: array.__iadd__(7),
        lambda array: add.at(array, (0, 0), 7),
    ]
    for call in calls:
        check_refused(blob, log, call, InvalidPointerError, array)
    blob.data_memory.close()
    with pytest.raises(ClosedMemoryError):
        array[0] = 7


def test_a_file_that_is_refused_stays_as_it_was(device: SimulatedDeviceAllocator, tmp_path: Path) -> None:
    path = tmp_path / "blob.npy"
    path.write_bytes(b"before")
    blob, log = recorded(device, (2, 3))
    at_head(blob.data_memory, GPU, ROW)
    check_refused(blob, log, lambda blob: blob.save(path, write_diff=True), FileFormatError, blob)
    folder = tmp_path / "folder.npy"
    folder.mkdir()
    check_refused(blob, log, lambda blob: blob.save(folder), FileAccessError, blob)

    assert b"before" == path.read_bytes()
    assert [folder, path] == sorted(tmp_path.iterdir(), reverse=True)


def test_a_message_that_would_be_too_long_moves_no_head(
    device: SimulatedDeviceAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncedmem.runtime.blobs.messages.MOST_BYTES", 1024 + 40)
    blob, log = recorded(device, (2, 3))
    at_head(blob.data_memory, GPU, ROW)
    blob.to_proto()
    blob.mutable_gpu_data()
    check_refused(blob, log, lambda blob: blob.to_proto(write_diff=True), FileFormatError, blob)


def test_integers_whose_powers_are_refused_stay_as_they_were(device: SimulatedDeviceAllocator) -> None:
    blob, log = recorded(device, (3,), dtype=np.int32)
    blob.data = [1, 2, 3]
    blob.gpu_data()
    array: Any = blob.data
    check_refused(blob, log, lambda array: array.__ipow__(-1), ValueError, array)
    array += 1

    assert ([2, 3, 4], CPU) == (array.tolist(), blob.data_memory.head)
