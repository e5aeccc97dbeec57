"""Numbers keep their value on their way into a blob, up to the rounding of floats, or are refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from syncedmem import runtime
from syncedmem.model import InvalidArgumentError, InvalidValueError
from syncedmem.runtime.blobs.conversion import converted

if TYPE_CHECKING:
    from pathlib import Path

Blob: Any = runtime.Blob
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = tuple(map(np.dtype, ("int32", "uint32", "int64", "uint8", "bool")))
INFO: Any = cast("Any", ml_dtypes).finfo
ROUNDED_ONCE = (*map(np.dtype, ("float16", "float32", "float64")),)
FLOATS = (*ROUNDED_ONCE, BFLOAT16)
GIVEN = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "f2", "f4", "f8", ">f8", "c8", "c16")


def exact(number: Any) -> Fraction | None:
    """A number as a fraction; None if it is not finite, or not real."""
    if isinstance(number, complex):
        return None if number.imag else exact(number.real)
    return Fraction(number) if math.isfinite(number) else None


def fits(number: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an integer of a type can hold a number."""
    value = exact(number)
    least, most = ends(dtype)
    return value is not None and value.denominator == 1 and least <= value <= most


def ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest number of a type of integers, or of booleans."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


@given(
    st.sampled_from(GIVEN).flatmap(
        lambda kind: arrays_of.arrays(kind, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    ),
    st.sampled_from(INTEGERS),
)
def test_integers_are_the_numbers_that_were_given_or_none_at_all(array: Any, dtype: np.dtype[Any]) -> None:
    """Each number is checked with exact arithmetic; the error shows the first wrong one."""
    wrong = [number for number in array.reshape(-1).tolist() if not fits(number, dtype)]
    if not wrong:
        result = converted(array, dtype)
        assert (dtype, array.shape) == (result.dtype, result.shape)
        assert [exact(number) for number in array.reshape(-1).tolist()] == result.reshape(-1).tolist()
        return
    with pytest.raises(InvalidValueError) as caught:
        converted(array, dtype)
    first = wrong if array.dtype.kind == "c" else wrong[:1]  # imaginary parts are looked at before the rest
    assert repr(caught.value.value) in map(repr, first)
    assert caught.value.dtype == dtype


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i8", "u8", "g", BFLOAT16])
def test_the_ends_of_integers_are_exact(dtype: np.dtype[Any], kind: Any) -> None:
    """The largest integers are not exact in float32, and 65504 is the largest float16."""
    least, most = ends(dtype)
    with np.errstate(all="ignore"):
        for number in (least, least - 1, most, most + 1, 65504, 2**40, -1, 0):
            value = np.array(np.float64(number)).astype(kind) if np.dtype(kind).kind not in "iu" else None
            if value is None:
                if not (np.iinfo(kind).min <= number <= np.iinfo(kind).max):
                    continue
                value = np.array(number, kind)
            if fits(value.item() if kind != "g" else float(value), dtype):
                assert value == converted(value, dtype)
            else:
                with pytest.raises(InvalidValueError):
                    converted(value, dtype)


def rounded(number: Fraction, dtype: np.dtype[Any]) -> float:
    """The nearest element, computed with integers as IEEE 754 says; for a tie the even one."""
    info = INFO(dtype)
    if not number:
        return 0.0
    exponent = abs(number.numerator).bit_length() - number.denominator.bit_length()
    exponent -= abs(number) < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    nearest = round(number / step) * step
    if abs(nearest) > Fraction(float(info.max)):
        return math.inf if nearest > 0 else -math.inf
    return float(nearest)


@given(
    st.sampled_from(("?", "i4", "u4", "i8", "u8", "f2", "f4", "f8")).flatmap(lambda kind: arrays_of.arrays(kind, 3)),
    st.sampled_from(ROUNDED_ONCE),
)
def test_floats_are_rounded_once(array: Any, dtype: np.dtype[Any]) -> None:
    """A double that is too large becomes infinite, as in IEEE 754 and in Caffe."""
    found = converted(array, dtype)
    assert dtype == found.dtype
    for number, element in zip(array.tolist(), found.astype(np.float64).tolist(), strict=True):
        value = exact(number)
        assert str(number if value is None else rounded(value, dtype)) in (str(element), str(abs(element)))


@given(st.lists(st.one_of(st.integers(), st.fractions(), st.decimals(allow_nan=False)), min_size=1, max_size=4))
def test_objects_are_numbers_too(numbers: list[Any]) -> None:
    """They are integers of any length, fractions and decimals, and become floats of Python first."""
    objects = np.array([None, *numbers], object)[1:]
    doubles = [rounded(Fraction(number), FLOATS[2]) if math.isfinite(number) else float(number) for number in numbers]
    for dtype in ROUNDED_ONCE:
        expected = [rounded(Fraction(double), dtype) if math.isfinite(double) else double for double in doubles]
        assert expected == converted(objects, dtype).astype(np.float64).tolist()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_what_is_too_large_becomes_infinite(dtype: np.dtype[Any]) -> None:
    for number in (10**400, Fraction(10**400), Decimal("1e400"), 1e300 * 1e300):
        for value in (number, -number):
            assert (math.inf if value > 0 else -math.inf) == float(converted(np.array(value, object), dtype)[()])
    assert math.isnan(converted([Decimal("nan")], dtype)[0])


@pytest.mark.parametrize(
    ("dtype", "values", "wrong", "reason"),
    [
        ("int32", 2**40, 2**40, "not between"),
        ("int32", [1, math.nan, 2**40], math.nan, "not finite"),
        ("int32", [1, 2.5], 2.5, "whole number"),
        ("uint32", -1, -1, "not between"),
        ("float32", 1j, 1j, "imaginary"),
        ("float32", [1, complex(0, math.nan)], complex(0, math.nan), "imaginary"),
        ("int32", [10**20, 1 + Fraction(1, 10**30)], 10**20, "not between"),
        ("int32", [1 + Fraction(1, 10**30)], 1 + Fraction(1, 10**30), "whole number"),
        ("int64", [2**63, Fraction(1)], 2**63, "not between"),
        ("uint8", 256, 256, "not between"),
        ("bool", 2, 2, "not between"),
        ("bool", 0.5, 0.5, "whole number"),
        ("float32", Decimal("sNaN"), Decimal("sNaN"), "converted"),
    ],
)
def test_a_number_that_is_refused_is_shown(dtype: str, values: Any, wrong: Any, reason: str) -> None:
    """It is the same on every way into a blob."""
    blob = Blob((3,), dtype=dtype, device=None)
    blob.data[...] = 1
    array = blob.data
    ways: list[Any] = [
        lambda: setattr(blob, "data", values),
        lambda: array.__setitem__(..., values),
        lambda: Blob.from_array(np.asarray(values), dtype=dtype, device=None),
    ]
    for way in ways:
        with pytest.raises(InvalidValueError) as refused:
            way()
        assert (repr(wrong), dtype) == (repr(refused.value.value), str(refused.value.dtype))
        assert reason in refused.value.reason
    assert [1] * 3 == blob.data.tolist()


def test_long_integers_keep_their_value() -> None:
    """No float is on the way, although one of the numbers is a fraction."""
    values = [2**63 - 1, -(2**63), Fraction(2**53 + 1), Decimal(2**60 + 1), True]

    assert values == converted(np.array(values, object), np.dtype(np.int64)).tolist()


@pytest.mark.parametrize(
    "values", ["7", b"7", None, ["5", "6", "7"], np.datetime64("2020-01-01"), np.ones(3, "m8[s]"), np.ones(3, "V4"),
               np.ones(3, [("a", "f4")]), [1, None, 2], [object()], {1: 2}, [[1], [2, 3]]],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_what_is_no_number_is_refused(dtype: str, values: Any) -> None:
    """NumPy converts some strings to numbers, and None to NaN."""
    blob = Blob((3,), dtype=dtype, device=None)
    for use in (lambda: setattr(blob, "data", values), lambda: blob.data.__setitem__(..., values)):
        with pytest.raises(InvalidArgumentError) as refused:
            use()
        assert "values" == refused.value.argument


@pytest.mark.parametrize("mask", [False, [True, False]])
def test_a_mask_is_not_dropped_in_silence(tmp_path: Path, mask: Any) -> None:
    blob = Blob((2,), device=None)
    masked: Any = np.ma.array([1, 999], np.float32, mask=mask)

    def subtract() -> None:
        blob.data -= masked

    ways: list[Any] = [
        subtract,
        lambda: setattr(blob, "data", masked),
        lambda: blob.data.__setitem__(..., masked),
        lambda: np.subtract(1, masked, out=blob.data),
        lambda: np.add.at(blob.data, [0, 1], masked),
        lambda: Blob.from_array(masked, device=None),
        lambda: runtime.save_npy(tmp_path / "masked.npy", masked),
        lambda: runtime.save_npz(tmp_path / "masked.npz", masked.filled(0), masked),
    ]
    for way in ways:
        with pytest.raises(InvalidArgumentError, match=r"without a mask.*, got MaskedArray of shape \(2,\)"):
            way()
    assert ([], 0) == (list(tmp_path.iterdir()), blob.asum_data())
    assert mask == (blob.diff + masked).mask.tolist()  # a result that is not the blob's keeps the mask
    blob.data = masked.filled(3)
    assert blob.data[1] in {3, 999}


@pytest.mark.parametrize("small", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4])
def test_numbers_of_small_types_are_numbers(small: Any) -> None:
    """These are the types that ml_dtypes adds to NumPy."""
    for dtype in (*INTEGERS[:-1], *FLOATS):
        assert [1, 2, 3] == converted(np.array([1, 2, 3], small), dtype).tolist()
    if small is not ml_dtypes.int4:
        with pytest.raises(InvalidValueError):
            converted(np.array([1, 0.5], small), INTEGERS[0])


def test_many_numbers_are_all_looked_at() -> None:
    """It holds wherever the wrong number is, and for any memory layout; the error shows the first wrong one."""
    for wrong in (0, 16383, 16384, 99_999):
        many = np.zeros((100_000, 2))
        many[wrong, 1] = wrong + 0.5
        many[-1, 1] = 2**40
        with pytest.raises(InvalidValueError) as caught:
            converted(many[:, 1], INTEGERS[0])
        assert (2**40 if wrong == 99_999 else wrong + 0.5) == caught.value.value
    assert not converted(np.zeros((100_000, 2))[:, 1], INTEGERS[0]).any()


def test_an_array_of_the_type_is_not_copied() -> None:
    """Its numbers are not checked either."""
    for dtype in (*INTEGERS, *FLOATS):
        array = np.ones(3, dtype)
        assert array is converted(array, dtype)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".binaryproto"])
def test_numbers_in_files_keep_their_values(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"blob{suffix}"
    for number in (2.0**40, math.nan, 1.5):
        Blob.from_array(np.array([1, number]), device=None).save(path)
        with pytest.raises(InvalidValueError) as refused:
            Blob.load(path, dtype=np.int32, device=None)
        assert str(number) == str(refused.value.value)
    Blob.from_array(np.array([1.0, -7.0]), device=None).save(path)

    assert [1, -7] == Blob.load(path, dtype=np.int32, device=None).data.tolist()


def test_numbers_in_messages_are_cut_as_c_cuts_them() -> None:
    """Caffe does so (blob.cpp:466).  Numbers for which C does not define the result are refused."""
    blob = Blob((3,), np.int32, device=None)
    blob.from_proto(Blob.from_array([1.5, -2.5, -2147483648.5], device=None).to_proto())
    assert [1, -2, -2147483648] == blob.data.tolist()
    for number in (2.0**31, math.inf):
        with pytest.raises(InvalidValueError):
            blob.from_proto(Blob.from_array([number], device=None).to_proto())
    assert [1, -2, -2147483648] == blob.data.tolist()
