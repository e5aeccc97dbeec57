"""`Arithmetic` on every device: right within the stated bounds, strict about what it takes, and small."""

from __future__ import annotations

import gc
import math
import threading
import tracemalloc
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import plain_arithmetic as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subjects import devices

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoArithmeticError
from syncedmem.runtime import (
    CPUDeviceAllocator,
    DeviceAllocator,
    DeviceType,
    SimulatedDeviceAllocator,
    SimulatedDeviceError,
    arithmetic_of,
)
from syncedmem.runtime.devices.host_arithmetic import HostArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES: dict[str, Any] = {name: np.dtype(name) for name in ("float16", "float32", "float64")}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64")
SIZES = [0, 1, 2, 7, 1023, 1024, 1025, 4099, 70_001]
LARGE = (1 << 20) + 77
"""Elements: enough for several threads and several pieces."""


PLACES: dict[str, DeviceAllocator] = {
    "host": CPUDeviceAllocator(),
    **{place.device_type.name.lower(): place for place in devices()},
}
if "opencl" in PLACES:
    PLACES["opencl-kernels"] = PLACES["opencl-mapped"] = PLACES.pop("opencl")


def elsewhere(_: object) -> bool:
    """In place of the question whether an OpenCL device is the processor."""
    return False


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An allocator of every kind; that of OpenCL computes by kernels, as on a GPU, and over mapped buffers."""
    if request.param == "opencl-kernels":
        monkeypatch.setattr("syncedmem.runtime.devices.opencl.is_processor", elsewhere)
    return PLACES[request.param]


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> Any:
    """An element type that has arithmetic."""
    return DTYPES[request.param]


def put(place: Any, values: Any) -> Any:
    """A copy of some values on a device."""
    there: Any = place.empty(values.nbytes).view(values.dtype)
    if place.device_type == DeviceType.CPU:
        there[:] = values
    elif values.size:
        there.set(values)
    return there


def got(array: Any) -> Any:
    """A copy on the host of values on a device."""
    return array.get() if hasattr(array, "get") else array.copy()


def numbers(dtype: Any, size: int, seed: int, exponent: float = 0.0) -> Any:
    """Numbers of both signs, up to some order of magnitude, with zeros among them."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(size) * 2.0**exponent * 2.0 ** -random.integers(0, 12, size)
    values[random.random(size) < 0.1] = 0
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def close(result: Any, expected: Any, bound: Any) -> bool:
    """Whether finite results are as accurate as promised, and results that are not finite are exact."""
    with np.errstate(all="ignore"):
        result, expected = plain.wide(result), plain.wide(expected)
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        return bool(np.all(same | (np.abs(result - expected) <= bound)))


def overflows(dtype: Any, expected: Any) -> Any:
    """Results as the type holds them: those beyond its range are infinite."""
    with np.errstate(all="ignore"):
        return np.asarray(expected).astype(np.float64).astype(dtype)


cases = st.tuples(
    st.sampled_from(SIZES), st.integers(0, 2**32), st.sampled_from([-130.0, -70.0, -14.0, 0.0, 10.0, 60.0])
)
alphas = st.sampled_from([1.0, -1.0, 0.0, -0.0, 0.5, -0.01, 3.7, 1e-3])


@settings(max_examples=40, deadline=None)
@given(case=cases, alpha=alphas)
def _axpy_and_scal(place: Any, dtype: Any, case: tuple[int, int, float], alpha: float) -> None:
    size, seed, exponent = case
    arithmetic = arithmetic_of(place)
    x, y = numbers(dtype, size, seed, exponent), numbers(dtype, size, seed + 1, exponent)
    on_device, target = put(place, x), put(place, y)

    arithmetic.axpy(alpha, on_device, target)
    expected, bound = plain.axpy(alpha, x, y)
    assert close(got(target), overflows(dtype, expected), bound)
    assert got(on_device).tobytes() == x.tobytes()

    arithmetic.scal(alpha, on_device)
    expected, bound = plain.scal(alpha, x)
    assert close(got(on_device), overflows(dtype, expected), bound)


@pytest.mark.deep(quick=4)
def test_axpy_and_scal_stay_within_their_bounds(place: Any, dtype: Any) -> None:
    _axpy_and_scal(place, dtype)


@settings(max_examples=40, deadline=None)
@given(case=cases)
def _sums(place: Any, dtype: Any, case: tuple[int, int, float]) -> None:
    size, seed, exponent = case
    arithmetic = arithmetic_of(place)
    x, y = numbers(dtype, size, seed, exponent), numbers(dtype, size, seed + 1, exponent)
    on_device, other = put(place, x), put(place, y)

    for result, expected in (
        (arithmetic.asum(on_device), plain.asum(x)),
        (arithmetic.sumsq(on_device), plain.dot(x, x)),
        (arithmetic.dot(on_device, other), plain.dot(x, y)),
    ):
        assert type(result) is float
        assert close(result, *expected)


@pytest.mark.no_lag
@pytest.mark.parametrize("starts", [(0, 0), (1, 1), (1, 0), (2, 5)])
def test_rows_may_begin_and_end_anywhere(place: Any, dtype: Any, starts: tuple[int, int]) -> None:
    """A device that loads several elements at once touches none beside them, and leaves none of them out."""
    arithmetic, room = arithmetic_of(place), 3000
    for size in (1, 3, 8, 17, 130, 2050):
        x, y = numbers(dtype, room, size), numbers(dtype, room, size + 1)
        on_device, target = put(place, x), put(place, y)
        first, second = (slice(start, start + size) for start in starts)

        arithmetic.axpy(-0.75, on_device[first], target[second])
        expected, bound = plain.axpy(-0.75, x[first], y[second])
        changed = got(target)
        assert close(changed[second], overflows(dtype, expected), bound)
        changed[second] = y[second]
        assert changed.tobytes() == y.tobytes()
        for result, sums in (
            (arithmetic.asum(on_device[first]), plain.asum(x[first])),
            (arithmetic.sumsq(on_device[second]), plain.dot(x[second], x[second])),
            (arithmetic.dot(on_device[second], on_device[first]), plain.dot(x[second], x[first])),
        ):
            assert close(result, *sums)


@pytest.mark.deep(quick=4)
@pytest.mark.no_lag
def test_sums_stay_within_their_bounds(place: Any, dtype: Any) -> None:
    _sums(place, dtype)


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_goes_its_way(place: Any, dtype: Any, special: float) -> None:
    """One such element, in a full row or in the rest of one, appears in every sum, and in no element but its own."""
    arithmetic = arithmetic_of(place)
    for index in (5, 2050):
        x = numbers(dtype, 2051, 1)
        x[index] = special
        y = np.ones(2051, dtype)
        there, ones = put(place, x), put(place, y)

        assert close(arithmetic.asum(there), abs(special), 0)
        assert close(arithmetic.sumsq(there), abs(special), 0)
        assert close(arithmetic.dot(there, ones), special, 0)
        arithmetic.axpy(0.0, there, ones)
        expected = y.copy()
        expected[index] = math.nan
        assert close(got(ones), expected, 0)


@pytest.mark.parametrize("exponent", [-149, -140, -80, 64, 127])
def test_sums_of_float32_do_not_leave_the_range_that_float32_has(place: Any, exponent: int) -> None:
    """Squares of denormals, and of numbers whose squares are beyond ``float32``, are counted like all others."""
    x = np.full(5000, 2.0**exponent, np.float32)
    there = put(place, x)
    arithmetic = arithmetic_of(place)

    assert arithmetic.sumsq(there) == 5000 * 4.0**exponent
    assert arithmetic.asum(there) == 5000 * 2.0**exponent


def test_rows_of_zeros_hide_no_row_of_small_numbers(place: Any) -> None:
    x = np.zeros(8192, np.float32)
    x[4096:5120] = 1e-30
    x[0] = 1

    assert close(arithmetic_of(place).dot(put(place, x), put(place, x)), *plain.dot(x, x))
    x[0] = 0
    assert close(arithmetic_of(place).sumsq(put(place, x)), *plain.dot(x, x))
    assert arithmetic_of(place).sumsq(put(place, np.zeros(8192, np.float32))) == 0


def test_float16_does_not_overflow_where_it_is_summed(place: Any) -> None:
    there = put(place, np.full(100_000, 2.0**15, np.float16))

    assert arithmetic_of(place).asum(there) == 100_000 * 2.0**15
    assert arithmetic_of(place).sumsq(there) == 100_000 * 2.0**30


@pytest.mark.deep
@pytest.mark.no_lag
def test_large_arrays_are_as_right_as_small_ones(place: Any, dtype: Any) -> None:
    arithmetic = arithmetic_of(place)
    x, y = numbers(dtype, LARGE, 1), numbers(dtype, LARGE, 2)
    there, target = put(place, x), put(place, y)

    assert close(arithmetic.asum(there), *plain.asum(x))
    assert close(arithmetic.sumsq(there), *plain.dot(x, x))
    assert close(arithmetic.dot(there, target), *plain.dot(x, y))
    for alpha in (-1.0, 0.3):
        before = got(target)
        arithmetic.axpy(alpha, there, target)
        assert close(got(target), *plain.axpy(alpha, x, before))
    arithmetic.scal(0.3, there)
    assert close(got(there), *plain.scal(0.3, x))
    arithmetic.copy(there, target)
    assert got(target).tobytes() == got(there).tobytes()


@pytest.mark.deep
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_number_of_threads_changes_no_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no thread can be started, as while the interpreter ends."""
    arithmetic = HostArithmetic()
    x, y = (numbers(DTYPES[name], 70_001, seed) for seed in (1, 2))
    monkeypatch.setattr("os.sched_getaffinity", many_processors)

    def results() -> list[Any]:
        target = y.copy()
        arithmetic.axpy(0.3, x, target)
        arithmetic.scal(0.7, target)
        return [arithmetic.asum(x), arithmetic.sumsq(x), arithmetic.dot(x, y), target.tobytes()]

    alone = results()
    monkeypatch.setattr("syncedmem.runtime.devices.host_arithmetic._SHARE", 1 << 13)
    assert alone == results()
    monkeypatch.setattr("threading.Thread.start", fail_to_start)
    assert alone == results()


def test_an_error_in_a_thread_is_raised_where_the_sum_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    vecdot = np.vecdot

    def short_of_memory(*rows: Any, **named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room in the thread")
        return vecdot(*rows, **named)

    monkeypatch.setattr("os.sched_getaffinity", many_processors)
    monkeypatch.setattr("syncedmem.runtime.devices.host_arithmetic._SHARE", 1 << 13)
    monkeypatch.setattr("numpy.vecdot", short_of_memory)
    with pytest.raises(MemoryError, match="in the thread"):
        HostArithmetic().asum(np.ones(1 << 15, np.float32))


def many_processors(_: int) -> set[int]:
    """In place of the processors of this machine."""
    return {*range(64)}


def fail_to_start(_: object) -> None:
    """In place of starting a thread."""
    raise RuntimeError("can't create new thread at interpreter shutdown")


def test_a_hundred_million_ones_are_a_hundred_million() -> None:
    """A count in ``float32`` would stop at 16,777,216."""
    ones = np.ones(10**8, np.float32)

    assert HostArithmetic().asum(ones) == 1e8
    assert HostArithmetic().sumsq(ones) == 1e8


@pytest.mark.parametrize("name", DTYPES)
def test_the_host_needs_less_than_a_mebibyte_more(name: str) -> None:
    arithmetic = HostArithmetic()
    x, y = np.ones(1 << 23, DTYPES[name]), np.full(1 << 23, 2.0**-70 if name == "float32" else 1, DTYPES[name])
    arithmetic.asum(x)
    for call in (
        lambda: arithmetic.axpy(-1.0, x, y),
        lambda: arithmetic.axpy(0.5, x, y),
        lambda: arithmetic.scal(0.5, x),
        lambda: arithmetic.asum(x),
        lambda: arithmetic.sumsq(y),
        lambda: arithmetic.dot(x, y),
        lambda: arithmetic.copy(x, y),
    ):
        gc.collect()
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_copied_and_nothing_else(place: Any, name: str) -> None:
    arithmetic = arithmetic_of(place)
    x, y = put(place, np.arange(9, dtype=name)), put(place, np.zeros(9, name))
    calls = {"axpy": (1.0, x, y), "scal": (1.0, x), "asum": (x,), "sumsq": (x,), "dot": (x, y)}
    for call, arguments in calls.items():
        with pytest.raises(NoArithmeticError) as refused:
            getattr(arithmetic, call)(*arguments)
        assert (call, name) == (refused.value.call, str(refused.value.dtype))
    assert got(y).tolist() == [0] * 9
    arithmetic.copy(x, y)
    assert got(y).tolist() == list(range(9))


def check_refused(place: Any, wrong: Any) -> None:
    """No call takes it, as the only operand or as one of two, and the other one stays as it is."""
    arithmetic, good = arithmetic_of(place), put(place, np.ones(4, np.float32))
    calls: dict[str, tuple[Any, ...]] = {"axpy": (1.0, good, wrong), "dot": (good, wrong), "copy": (wrong, good)}
    for call, arguments in calls.items():
        with pytest.raises(InvalidPointerError):
            getattr(arithmetic, call)(*arguments)
    assert [1] * 4 == got(good).tolist()


@pytest.mark.parametrize("other", [np.ones(5, np.float32), np.ones(4, np.float64)], ids=["length", "type"])
def test_two_operands_must_have_one_length_and_one_type(place: Any, other: Any) -> None:
    there = put(place, other)
    check_refused(place, there)

    assert got(there).tolist() == other.tolist()


def test_only_aligned_rows_in_memory_of_the_device_are_operands(place: Any) -> None:
    """The arrays of the host are no rows of numbers, and not of another device."""
    other = SimulatedDeviceAllocator() if isinstance(place, CPUDeviceAllocator) else CPUDeviceAllocator()
    wrong: list[Any] = [
        *(put(other, np.ones(4, np.float32)), None, [1.0]),
        put(place, np.zeros(64, np.uint8))[1:17].view(np.float32),
        *(np.ones((2, 2), np.float32), np.ones(8, np.float32)[::2], np.array([None])),
    ]
    for operand in wrong:
        check_refused(place, operand)
        with pytest.raises(InvalidPointerError):
            arithmetic_of(place).asum(operand)


def test_two_operands_may_be_the_same_and_may_not_overlap_in_part(place: Any) -> None:
    arithmetic = arithmetic_of(place)
    x = put(place, np.arange(10, dtype=np.float32))
    overlapping: list[Callable[[], None]] = [
        lambda: arithmetic.axpy(1.0, x[:8], x[2:]),
        lambda: arithmetic.copy(x[:8], x[2:]),
    ]
    for run in overlapping:
        with pytest.raises(InvalidPointerError):
            run()
    assert got(x).tolist() == list(range(10))

    assert arithmetic.dot(x[:8], x[2:]) == float(sum(i * (i + 2) for i in range(8)))
    arithmetic.axpy(1.0, x[:5], x[5:])
    arithmetic.axpy(-1.0, x[:5], x[:5])
    arithmetic.copy(x[5:], x[5:])
    arithmetic.copy(x, x)
    assert got(x).tolist() == [0, 0, 0, 0, 0, 5, 7, 9, 11, 13]


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        *((2, 2), (np.float16(2), 2), (np.int8(2), 2), (True + 1, 2), (-1e300, -math.inf)),
        *((wrong, None) for wrong in ("2", None, 2j, np.ones(3), 10**400)),
    ],
    ids=str,
)
def test_alpha_is_a_real_number_that_a_float_can_hold(place: Any, alpha: Any, expected: float | None) -> None:
    """Beyond the range of float32 it is infinite; anything else is refused."""
    x, arithmetic = put(place, np.ones(4, np.float32)), arithmetic_of(place)
    if expected is not None:
        arithmetic.scal(alpha, x)
        assert got(x).tolist() == [expected] * 4
        return
    runs: list[Callable[[], None]] = [lambda: arithmetic.scal(alpha, x), lambda: arithmetic.axpy(alpha, x, x)]
    for run in runs:
        with pytest.raises(InvalidArgumentError) as refused:
            run()
        assert ("alpha", True) == (refused.value.argument, refused.value.value is alpha)
    assert got(x).tolist() == [1] * 4


def test_read_only_arrays_are_read_only() -> None:
    host, simulated = np.ones(4, np.float32), SimulatedDeviceAllocator()
    host.flags.writeable = False
    for place, x in (
        (CPUDeviceAllocator(), host),
        (simulated, put(simulated, np.ones(4, np.float32)).as_read_only()),
    ):
        with pytest.raises(InvalidPointerError, match="x is read-only"):
            arithmetic_of(place).scal(2.0, x)
        assert arithmetic_of(place).asum(x) == 4


def test_numpy_settings_neither_stop_nor_warn() -> None:
    """It holds for the threads that compute large arrays too."""
    x = np.full(LARGE, 1e38, np.float32)
    with np.errstate(all="raise"):
        HostArithmetic().scal(1e30, x)
        assert HostArithmetic().asum(x) == math.inf
        assert math.isnan(HostArithmetic().dot(x, np.zeros_like(x)))


def test_foreign_byte_order_is_refused() -> None:
    with pytest.raises(NoArithmeticError):
        HostArithmetic().asum(np.ones(4, ">f4"))


def test_a_simulated_device_computes_after_what_was_queued_and_not_with_freed_memory() -> None:
    device = SimulatedDeviceAllocator()
    block: Any = device.allocate(16)
    x, stream = block.view(np.float32), device.stream()
    x.set(np.full(4, 5, np.float32), stream)
    device.order_after(device.record(stream))
    assert arithmetic_of(device).asum(x) == 20

    device.release(block)
    with pytest.raises(SimulatedDeviceError):
        arithmetic_of(device).asum(x)


def test_no_array_lives_longer_for_having_been_worked_on() -> None:
    x = np.ones(LARGE, np.float32)
    gone = weakref.ref(x)
    HostArithmetic().axpy(0.5, x, x)
    HostArithmetic().asum(x)
    del x

    assert gone() is None


def test_an_allocator_of_somebody_else_is_taken_for_what_it_says() -> None:
    """An allocator that does not say that it is the host's is not taken for one; a memory does not accept it either."""
    allocator = SimpleNamespace(allocate=None)
    others = [SimpleNamespace(allocate=None, device_type=kind) for kind in (0, 4)]
    for wrong in (None, "cpu", CPUDeviceAllocator, allocator, *others):
        with pytest.raises(InvalidArgumentError) as refused:
            arithmetic_of(wrong)
        assert ("allocator", wrong) == (refused.value.argument, refused.value.value)
    with pytest.raises(InvalidArgumentError):
        DeviceAllocator.arithmetic(CPUDeviceAllocator())
    foreign: Any = SimpleNamespace(allocate=None, device_type=1)
    assert isinstance(arithmetic_of(foreign), HostArithmetic)
    foreign.device_type = 4
    foreign.arithmetic = HostArithmetic
    assert isinstance(arithmetic_of(foreign), HostArithmetic)
