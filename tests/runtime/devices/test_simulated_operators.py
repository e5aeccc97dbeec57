"""Operators on arrays of the simulated device: comparisons, item by item, as CuPy makes them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import SIZE, allocated, row

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidShapeError, SyncedMemoryError
from syncedmem.runtime import MemcpyKind, SimulatedArray, SimulatedDeviceAllocator, SimulatedDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

COMPARISONS: list[Callable[[Any, Any], Any]] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
NUMBERS = [0, 2, -1, 300, 1.5, True, np.float32(2), np.bool_(1), np.array(1.0), 2j, 10**30, float("nan")]
OTHERS: list[Callable[[Any], object]] = [
    lambda x: x + 1,
    lambda x: -x,
    lambda x: 2 * x,
    lambda x: divmod(x, 2),
    lambda x: x @ x,
    np.sqrt,
    np.equal.reduce,
    lambda x: np.equal(x, 1, out=np.empty(2, bool)),
    lambda x: np.equal(x, 1, where=np.array([True, False])),
]


def there(device: SimulatedDeviceAllocator, values: Any, dtype: Any = np.float32) -> SimulatedArray:
    """Put numbers on the device."""
    host = np.array(values, dtype)
    array = device.empty(host.nbytes).view(host.dtype).reshape(host.shape)
    array.set(host)
    return array


@pytest.mark.parametrize("compare", COMPARISONS)
def test_arrays_are_compared_item_by_item(device: SimulatedDeviceAllocator, compare: Callable[..., Any]) -> None:
    """The result is an array of the device, and NumPy's function for the operator does the same."""
    x, y = (np.array(it, np.float32) for it in ([1, 2, 3, np.nan], [2, 2, 2, np.nan]))
    result = compare(there(device, x), there(device, y))

    assert (SimulatedArray, np.dtype(bool), (4,)) == (type(result), result.dtype, result.shape)
    assert compare(x, y).tolist() == result.get().tolist()


def test_functions_of_numpy_do_what_operators_do(device: SimulatedDeviceAllocator) -> None:
    first, second = there(device, [1, 2]), there(device, [1, 3])
    equal: Any = np.equal(first, second)

    assert (SimulatedArray, [True, False]) == (type(equal), equal.get().tolist())


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64])
def test_arrays_are_compared_with_numbers_on_both_sides(
    device: SimulatedDeviceAllocator, compare: Callable[..., Any], dtype: Any
) -> None:
    host = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    array = there(device, host, dtype)
    for number in NUMBERS:
        plain = number.item() if isinstance(number, np.ndarray) else number
        with np.errstate(all="ignore"):
            expected = compare(host, plain).tolist(), compare(plain, host).tolist()
        assert expected == (compare(array, number).get().tolist(), compare(number, array).get().tolist())


def test_shapes_are_broadcast(device: SimulatedDeviceAllocator) -> None:
    table, line, one = there(device, [[1, 2], [3, 4]]), there(device, [1, 4]), there(device, 3)

    assert [[True, False], [False, True]] == (table == line).get().tolist()
    assert [[False, False], [True, True]] == (one <= table).get().tolist()
    assert ((0, 2), ()) == ((table[2:] == line).shape, (one == one.reshape(())).shape)
    for other in (there(device, [1, 2, 3]), table.reshape(4)):
        with pytest.raises(InvalidShapeError):
            _ = table == other


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_what_is_equal_to_itself_alone_is_equal_to_no_item(
    device: SimulatedDeviceAllocator, compare: Callable[..., Any]
) -> None:
    array = there(device, [0, 1], np.int32)
    for other in (None, object(), device):
        assert [compare(0, 1)] * 2 == compare(array, other).get().tolist() == compare(other, array).get().tolist()


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("other", ["host", "another device", "list", "text", "tuple", "bytes", "too large"])
def test_what_is_no_number_and_no_array_of_the_device_is_refused(
    device: SimulatedDeviceAllocator, compare: Callable[..., Any], other: str
) -> None:
    """Nothing is queued then, and nothing allocated."""
    array = there(device, [1, 2])
    others = {
        "host": np.array([1, 2], np.float32),
        "another device": there(SimulatedDeviceAllocator(1), [1, 2]),
        "list": [1, 2],
        "text": "1",
        "tuple": (1, 2),
        "bytes": b"12",
        "too large": 10**400,
    }
    for first, second in ((array, others[other]), (others[other], array)):
        with pytest.raises(InvalidArgumentError):
            compare(first, second)
    assert device.current_stream().done


def test_an_order_of_objects_without_one_is_refused(device: SimulatedDeviceAllocator) -> None:
    with pytest.raises(InvalidArgumentError):
        _ = there(device, [1]) < None


@pytest.mark.parametrize("use", OTHERS)
def test_other_operations_are_refused(device: SimulatedDeviceAllocator, use: Callable[..., Any]) -> None:
    array = there(device, [1, 2])
    with pytest.raises(InvalidArgumentError):
        use(array)

    assert [1, 2] == array.get().tolist()


def test_an_operation_in_place_is_refused(device: SimulatedDeviceAllocator) -> None:
    array = kept = there(device, [1, 2])
    with pytest.raises(InvalidArgumentError):
        array += 1

    assert (True, [1, 2]) == (array is kept, kept.get().tolist())


# --- truth and hash


def test_one_item_alone_has_a_truth_value(device: SimulatedDeviceAllocator) -> None:
    assert [True, False, True, False] == [bool(there(device, it)) for it in (1, 0, [[2]], [0])]
    for array in (there(device, [1, 1]), there(device, []), there(device, [[1], [1]])):
        with pytest.raises(ValueError, match="truth") as refused:
            bool(array)
        assert isinstance(refused.value, SyncedMemoryError)


def test_an_array_has_no_hash(device: SimulatedDeviceAllocator) -> None:
    with pytest.raises(TypeError):
        hash(there(device, [1]))


def test_an_array_is_found_in_a_list_as_itself(device: SimulatedDeviceAllocator) -> None:
    """Python asks first whether it is the same object."""
    first, second = there(device, [1, 2]), there(device, [1, 2])

    assert first in [first, second]
    with pytest.raises(ValueError, match="truth"):
        [first].index(second)


# --- as work of the device


def test_a_comparison_is_queued_on_the_current_stream(device: SimulatedDeviceAllocator) -> None:
    """It comes after what is queued there, and another stream has to wait for it."""
    block, stream, other = allocated(device, 0), device.stream(), device.stream()
    with device.on(stream):
        device.memcpy(row(7), block, SIZE, MemcpyKind.CPU2CUDA, stream)
        result = block != 7
        assert not stream.done
        with device.on(other):
            assert result.get().any()  # it has not happened yet
        assert not result.get().any()


def test_memory_that_was_freed_is_not_compared(device: SimulatedDeviceAllocator) -> None:
    first, second = allocated(device, 1), allocated(device, 1)
    device.release(first)
    for x, y in ((first, second), (second, first), (first, 1)):
        with pytest.raises(SimulatedDeviceError):
            _ = x == y
    assert device.current_stream().done


def test_queued_comparisons_keep_their_bytes(device: SimulatedDeviceAllocator) -> None:
    """As on real devices, memory that is freed after the work was queued is there when its turn comes."""
    block = allocated(device, 3)
    result = block == 3
    device.release(block)

    assert result.get().all()
    device.check()


def test_a_result_needs_room() -> None:
    small = SimulatedDeviceAllocator(capacity=SIZE + 4)
    block = allocated(small, 1)
    part = block[:4] == 1
    with pytest.raises(AllocationError):
        _ = block == 1

    assert part.get().all()


def test_a_read_only_array_is_compared(device: SimulatedDeviceAllocator) -> None:
    result = device.read_only(allocated(device, 1)) == 1
    result.set(np.zeros(SIZE, bool))

    assert not result.get().any()


def test_a_scheduler_changes_no_result() -> None:
    for seed in range(5):
        device = SimulatedDeviceAllocator(seed=seed)
        block = allocated(device, 5)
        stream = device.stream()
        with device.on(stream):
            assert (block == 5).get().all()
            assert not (block > 5).get().any()
