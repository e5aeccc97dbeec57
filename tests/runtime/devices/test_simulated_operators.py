"""Operators and other work on arrays of the simulated device: what arrays of CuPy and of PyOpenCL can both."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_blocks import SIZE, allocated

from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    InvalidArgumentError,
    InvalidIndexError,
    InvalidPointerError,
    InvalidShapeError,
    SyncedMemoryError,
)
from syncedmem.runtime import (
    Blob,
    SimulatedArray,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
    SyncedMemory,
)

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
OF_ANY: Any = operator
"""The functions that take our arrays too, which their types do not say."""

NUMBERS = [0, 2, -1, 300, 1.5, True, np.float32(2), np.bool_(1), np.array(1.0), 2j, 10**30, float("nan")]
OTHERS: list[Callable[[Any], object]] = [
    lambda x: x // 2,
    lambda x: x % 2,
    lambda x: divmod(x, 2),
    lambda x: x @ x,
    np.sqrt,
    np.equal.reduce,
    np.add.reduce,
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
    x, y = (np.array(item, np.float32) for item in ([1, 2, 3, np.nan], [2, 2, 2, np.nan]))
    result = compare(there(device, x), there(device, y))

    assert (SimulatedArray, np.dtype(bool), (4,)) == (type(result), result.dtype, result.shape)
    assert compare(x, y).tolist() == result.get().tolist()


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
    """It has no order either."""
    array = there(device, [0, 1], np.int32)
    for other in (None, object(), device):
        assert [compare(0, 1)] * 2 == compare(array, other).get().tolist() == compare(other, array).get().tolist()
        with pytest.raises(InvalidArgumentError):
            _ = array < other


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


@pytest.mark.parametrize("use", OTHERS)
def test_other_operations_are_refused(device: SimulatedDeviceAllocator, use: Callable[..., Any]) -> None:
    array = there(device, [1, 2])
    with pytest.raises(InvalidArgumentError):
        use(array)

    assert [1, 2] == array.get().tolist()


@pytest.mark.parametrize("name", ["sum", "max", "mean", "item", "tolist", "dot", "flatten", "nonzero"])
def test_a_method_that_one_library_lacks_is_missing_and_says_why(device: SimulatedDeviceAllocator, name: str) -> None:
    array = there(device, [1, 2])

    assert not hasattr(array, name)
    with pytest.raises(AttributeError, match="PyOpenCL"):
        getattr(array, name)
    with pytest.raises(AttributeError, match=r"no attribute 'something'$"):
        _ = array.something


# --- arithmetic


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "x ** y": lambda x, y: x**y,
    "-x": lambda x, _: -x,
    "+x": lambda x, _: +x,
    "abs(x)": lambda x, _: abs(x),
    "x + 1": lambda x, _: x + 1,
    "1 - x": lambda x, _: 1 - x,
    "2 * x": lambda x, _: 2 * x,
    "1 / x": lambda x, _: 1 / x,
    "x ** 2": lambda x, _: x**2,
    "2 ** x": lambda x, _: 2**x,
    "x * 1.5": lambda x, _: x * 1.5,
    "x + 2j": lambda x, _: x + 2j,
    "masks": lambda x, y: ~((x > 1) & (y > 1) | (x == y) ^ (x < y)),
    "any": lambda x, y: (x > y).any(),
    "all": lambda x, y: (x > y).all(),
    "copy": lambda x, _: x.copy(),
    "astype": lambda x, _: x.astype(np.complex128),
    "integers": lambda x, y: (abs(x) / 1.7 - abs(y)).astype(np.int32),
    "T": lambda x, y: x.T + y,
    "twice T": lambda x, _: x.T.T,
    "copy of T": lambda x, _: x.T.copy(),
    "transpose": lambda x, _: x.transpose(),
    "ravel": lambda x, _: x.ravel(),
    "squeeze": lambda x, _: x[:1].squeeze(),
    "row": lambda x, _: x[1],
    "item": lambda x, _: x[1, 0],
    "last": lambda x, _: x[-1, ...],
    "new axis": lambda x, _: x[None],
    "some of a row": lambda x, _: x[1, 1:],
    "part of T": lambda x, _: x.T[:, :],
    "function": np.add,
    "comparing function": np.equal,
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": OF_ANY.iadd,
    "-=": OF_ANY.isub,
    "*=": OF_ANY.imul,
    "**=": OF_ANY.ipow,
    "+= 1": lambda x, _: OF_ANY.iadd(x, 1),
    "*= item": lambda x, y: OF_ANY.imul(x, y[0, 0]),
    "fill": lambda x, _: x.fill(3),
    "x[0] = 5": lambda x, _: OF_ANY.setitem(x, 0, 5),
    "x[0, 1] = 5": lambda x, _: OF_ANY.setitem(x, (0, 1), 5),
    "x[1:] = y[:1]": lambda x, y: OF_ANY.setitem(x, slice(1, None), y[:1]),
    "x[...] = y": lambda x, y: OF_ANY.setitem(x, ..., y),
    "x[...] = x.T": lambda x, _: OF_ANY.setitem(x, ..., x.T),
    "x.T[...] = y": lambda x, y: OF_ANY.setitem(x.T, ..., y),
    "x[1:] = x[:-1]": lambda x, _: OF_ANY.setitem(x, slice(1, None), x[:-1]),
    "x[0] += 1": lambda x, _: OF_ANY.setitem(x, 0, OF_ANY.iadd(x[0], 1)),
    "out": lambda x, y: np.multiply(x, y, out=x),
}
TYPES = [np.uint8, np.int32, np.float16, np.float32, np.float64, np.complex64]
TABLES = [[1, 2], [3, 4]], [[4, 2], [0, 1]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_results_are_those_of_numpy(device: SimulatedDeviceAllocator, name: str, dtype: Any) -> None:
    """New arrays are on the device, the operands keep their items, and items, shapes and types are NumPy's."""
    compute = ARITHMETIC[name]
    x, y = (np.array(table, dtype) for table in TABLES)
    first, second = there(device, x, dtype), there(device, y, dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(compute(x, y))
    result = compute(first, second)

    assert (SimulatedArray, expected.dtype, expected.shape) == (type(result), result.dtype, result.shape)
    np.testing.assert_array_equal(result.get(), expected)
    np.testing.assert_array_equal(first.get(), x)
    np.testing.assert_array_equal(second.get(), y)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", IN_PLACE)
def test_items_are_changed_in_place_as_numpy_changes_them(
    device: SimulatedDeviceAllocator, name: str, dtype: Any
) -> None:
    change = IN_PLACE[name]
    x, y = (np.array(table, dtype) for table in TABLES)
    first, second = there(device, x, dtype), there(device, y, dtype)
    change(x, y)
    change(first, second)

    np.testing.assert_array_equal(first.get(), x)
    np.testing.assert_array_equal(second.get(), y)


def test_an_operation_in_place_gives_the_same_array(device: SimulatedDeviceAllocator) -> None:
    array = kept = there(device, [1, 2])
    array /= 2

    assert (True, [0.5, 1]) == (array is kept, kept.get().tolist())


def test_rows_are_visited_in_order(device: SimulatedDeviceAllocator) -> None:
    rows = list(there(device, [[1, 2], [3, 4]]))

    assert [[1, 2], [3, 4]] == [row.get().tolist() for row in rows]
    with pytest.raises(InvalidArgumentError):
        list(rows[0][0])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (2, InvalidIndexError),
        (-3, InvalidIndexError),
        (10**30, InvalidIndexError),
        ((0, 2), InvalidIndexError),
        ((0, 0, 0), InvalidIndexError),
        ((..., ...), InvalidIndexError),
        (True, InvalidArgumentError),
        ([0], InvalidArgumentError),
        (1.0, InvalidArgumentError),
        ("0", InvalidArgumentError),
        (np.array([0, 1]), InvalidArgumentError),
        ((0, slice(None, None, 0)), InvalidArgumentError),
        ((0, slice("a")), InvalidArgumentError),
        ((slice(None), 0), InvalidPointerError),
        ((slice(None), slice(1)), InvalidPointerError),
        ((slice(None), slice(None, None, 2)), InvalidPointerError),
        (slice(None, None, -1), InvalidPointerError),
        ((slice(None, None, -1), slice(None)), InvalidPointerError),
    ],
)
def test_what_is_no_index_of_items_side_by_side_is_refused(
    device: SimulatedDeviceAllocator, key: Any, error: type[Exception]
) -> None:
    array = there(device, [[1, 2], [3, 4]])
    with pytest.raises(error):
        array[key]
    with pytest.raises(error):
        array[key] = 0
    assert [[1, 2], [3, 4]] == array.get().tolist()


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7, -1, -2, -4])
@pytest.mark.parametrize("extents", [(None, None), (0, 4), (0, 2), (1, 3), (3, 4), (2, 2), (-1, None)])
def test_a_step_is_taken_where_no_item_lies_between_the_others(
    device: SimulatedDeviceAllocator, step: int, extents: tuple[int | None, int | None]
) -> None:
    """However the index is written: with the first axis alone, with all axes, or with an ellipsis."""
    numbers = np.arange(12, dtype=np.float32).reshape(4, 3)
    part = slice(extents[0], extents[1], step)
    for plain in (numbers, numbers.reshape(-1)):
        array, expected = there(device, plain), plain[part]
        for key in (part, (part, ...), (part, slice(None))[: plain.ndim]):
            if not expected.flags.forc:
                with pytest.raises(InvalidPointerError):
                    array[key]
                continue
            assert (expected.shape, expected.tolist()) == (array[key].shape, array[key].get().tolist())
            assert expected.tobytes() == array[key].reshape(-1).view(np.uint8).get().tobytes()
            array[key] = 99
            changed = plain.copy()
            changed[key] = 99
            assert changed.tolist() == array.get().tolist()
            array.set(plain)


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], type[Exception]]] = {
    "host array": (lambda x, _: OF_ANY.setitem(x, ..., np.zeros(2, np.float32)), InvalidArgumentError),
    "list": (lambda x, _: OF_ANY.setitem(x, ..., [1, 2]), InvalidArgumentError),
    "text": (lambda x, _: OF_ANY.setitem(x, 0, "1"), InvalidArgumentError),
    "complex number": (lambda x, _: OF_ANY.setitem(x, 0, 2j), InvalidArgumentError),
    "None": (lambda x, _: x.fill(None), InvalidArgumentError),
    "shape": (lambda x, y: OF_ANY.setitem(x, ..., y[:1]), InvalidShapeError),
    "type": (lambda x, y: OF_ANY.setitem(x, ..., y.view(np.int32)), InvalidArgumentError),
    "shape in place": (lambda x, y: OF_ANY.iadd(x[:1], y), InvalidShapeError),
    "type in place": (lambda x, _: OF_ANY.iadd(x, 2j), InvalidArgumentError),
    "into the host": (lambda x, y: np.add(x, y, out=np.zeros(2, np.float32)), InvalidArgumentError),
    "host array in place": (lambda x, _: OF_ANY.iadd(x, np.ones(2, np.float32)), InvalidArgumentError),
    "another device": (lambda x, _: OF_ANY.iadd(x, there(SimulatedDeviceAllocator(1), [1, 2])), InvalidArgumentError),
    "read-only": (lambda x, _: OF_ANY.iadd(x.as_read_only(), 1), InvalidPointerError),
    "read-only item": (lambda x, _: OF_ANY.setitem(x.as_read_only(), 0, 1), InvalidPointerError),
    "read-only row": (lambda x, y: OF_ANY.setitem(x.as_read_only(), ..., y), InvalidPointerError),
    "read-only fill": (lambda x, _: x.as_read_only().fill(1), InvalidPointerError),
    "no type": (lambda x, _: x.astype("nothing"), InvalidArgumentError),
    "complex as real": (lambda x, _: x.view(np.complex64).astype(np.float32), InvalidArgumentError),
    "no number": (lambda x, _: x.astype("U3"), InvalidArgumentError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_is_refused_changes_nothing(device: SimulatedDeviceAllocator, name: str) -> None:
    change, error = REFUSED[name]
    x, y = there(device, [1, 2]), there(device, [3, 4])
    with pytest.raises(error):
        change(x, y)

    assert device.current_stream().done
    assert ([1, 2], [3, 4]) == (x.get().tolist(), y.get().tolist())


@pytest.mark.parametrize("value", [300, -1, float("nan"), 10**30])
def test_a_number_that_an_item_cannot_hold_is_refused(device: SimulatedDeviceAllocator, value: Any) -> None:
    array = there(device, [1, 2], np.uint8)
    with pytest.raises(InvalidArgumentError):
        array.fill(value)
    with pytest.raises(InvalidArgumentError):
        array[0] = value
    assert [1, 2] == array.get().tolist()


def test_a_transposed_array_says_so_and_is_no_row_of_bytes(device: SimulatedDeviceAllocator) -> None:
    table = there(device, [[1, 2, 3], [4, 5, 6]])
    turned = table.T

    assert ((4, 12), (False, True), (True, False)) == (turned.strides, tuple(turned.flags), tuple(table.flags))
    assert [[1, 4], [2, 5], [3, 6]] == turned.view(np.int32).view(np.float32).get().tolist()
    refusals: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: turned.reshape(6), InvalidShapeError),
        (lambda: turned.set(np.zeros((3, 2), np.float32)), InvalidPointerError),
        (lambda: device.adopt(turned, 24), ValueError),
        (lambda: turned.view(np.uint8), InvalidArgumentError),
        (lambda: Blob.from_array(turned, device=device), BufferMismatchError),
        (lambda: SyncedMemory(24, device=device).set_gpu_data(turned), BufferMismatchError),
    ]
    for use, error in refusals:
        with pytest.raises(error):
            use()
    assert [[1, 2, 3], [4, 5, 6]] == table.get().tolist()


def test_work_waits_for_its_turn(device: SimulatedDeviceAllocator) -> None:
    """Everything that computes or writes is queued on the current stream; the host waits at `get`."""
    x, stream = there(device, [1, 2]), device.stream()
    with device.on(stream):
        x += 1
        x[0] = 7
        x.fill(3)
        x *= x.copy()
        wrong = x != 9
        assert not stream.done
    assert [1, 2] == x.get().tolist()  # it has not happened yet: another stream has to wait
    assert wrong.get().any()
    with device.on(stream):
        assert [9, 9] == x.get().tolist()
        assert not wrong.get().any()


def test_freed_memory_is_neither_read_nor_changed(device: SimulatedDeviceAllocator) -> None:
    block, other = allocated(device, 1), allocated(device, 1)
    device.release(block)
    uses: list[Callable[[], object]] = [
        lambda: block + 1,
        lambda: block == 1,
        lambda: block == other,
        lambda: other == block,
        lambda: OF_ANY.iadd(block, 1),
        lambda: block.fill(0),
        lambda: OF_ANY.setitem(block, 0, 0),
        block.copy,
        block.any,
    ]
    for use in uses:
        with pytest.raises(SimulatedDeviceError):
            use()
    assert device.current_stream().done


def test_results_that_do_not_fit_are_refused() -> None:
    device = SimulatedDeviceAllocator(capacity=2 * SIZE)
    block = allocated(device, 1)
    first = block + 1
    for use in (lambda: block + 1, lambda: block == 1, block.copy):
        with pytest.raises(AllocationError):
            use()
    assert [2] * SIZE == first.get().tolist()


# --- truth and hash


def test_one_item_alone_has_a_truth_value(device: SimulatedDeviceAllocator) -> None:
    """No array has a hash; one is found in a list, because Python asks first whether it is the same object."""
    first, second = there(device, [1, 2]), there(device, [1, 2])
    assert [True, False, True, False] == [bool(there(device, number)) for number in (1, 0, [[2]], [0])]
    assert first in [first, second]
    unclear: list[Callable[[], object]] = [
        *(lambda values=values: bool(there(device, values)) for values in ([1, 1], [], [[1], [1]])),
        lambda: [first].index(second),
    ]
    for use in unclear:
        with pytest.raises(ValueError, match="truth") as refused:
            use()
        assert isinstance(refused.value, SyncedMemoryError)
    with pytest.raises(TypeError):
        hash(first)


# --- as work of the device


def test_queued_comparisons_keep_their_bytes(device: SimulatedDeviceAllocator) -> None:
    """As on real devices, memory that is freed after the work was queued is there when its turn comes."""
    block = allocated(device, 3)
    result = block == 3
    device.release(block)

    assert result.get().all()
    device.check()


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
