"""Conversion of numbers to the element type of a blob, which never turns a number into another one.

NumPy casts arrays as C does: without an error, 2**40 as an ``int32`` is 0, NaN is -2147483648, and -1 as a ``uint32``
is 4294967295.  This module has one rule for all numbers that are assigned to a blob, made into one or read into one.
Floats are rounded, so a float that is too large becomes infinite.  Every other number that an element cannot hold is
refused.  NumPy rounds some numbers twice: ``float64`` on its way to ``bfloat16``, and numbers of Python, which become
``float64`` first.  So these may be one step beside the nearest element.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidValueError

from ..allocators.pointers import is_masked

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["PROTOCOLS", "are_numbers", "check_unmasked", "checked", "converted", "fill", "host_array"]

_EXACT = np.dtype(np.float32)
"""A type that holds all numbers of every type with smaller items.  Those, such as float16, may not reach 2**31."""

_BLOCK = 1 << 14
"""How many numbers are checked at once."""

_NOT_WHOLE = "it is not a whole number"
_NOT_FINITE = "it is not finite"

PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
"""The attributes by which NumPy recognises an array that is not its own."""


def host_array(values: Any) -> Array:
    """Any object as a NumPy array, without a copy if it has memory: by NumPy's own ways, otherwise by DLPack.

    NumPy's ways come first, because they respect read-only arrays; DLPack before version 1 cannot.
    """
    check_unmasked(values)
    if hasattr(values, "__dlpack__") and not any(hasattr(values, name) for name in PROTOCOLS):
        return np.from_dlpack(values)
    return np.asarray(values)


def check_unmasked(values: object) -> None:
    """Refuse a masked array, even one that masks nothing: NumPy would drop the mask without an error."""
    if is_masked(values):
        raise InvalidArgumentError("values", values, "numbers without a mask, such as filled() returns")


def are_numbers(array: Any) -> bool:
    """Whether the elements are real or complex numbers; Python objects count, because they may be numbers."""
    if array.dtype.kind == "O":
        return all(isinstance(value, Real | Decimal) for value in array.flat)
    return np.can_cast(array.dtype, np.float64, "same_kind") or array.dtype.kind == "c"


def converted(values: object, dtype: np.dtype[Any]) -> Array:
    """Values as an array of a type; an array of that type is returned as it is.

    Raises
    ------
    InvalidArgumentError
        If the values are no numbers.
    InvalidValueError
        If an element cannot hold one of them.
    """
    try:
        array = host_array(values)
    except InvalidArgumentError:
        raise
    except Exception as error:
        raise _no_numbers(values, dtype) from error
    if array.dtype == dtype:
        return array
    if not are_numbers(array):
        raise _no_numbers(values, dtype)
    real = checked(array, dtype)
    with np.errstate(all="ignore"):
        return real.astype(dtype, copy=False)


def fill(elements: Array, real: Array) -> None:
    """Write numbers to elements, rounded and broadcast as NumPy does it; `checked` has returned the numbers."""
    with np.errstate(all="ignore"):
        np.copyto(elements, real, casting="unsafe")


def checked(array: Array, dtype: np.dtype[Any], *, cut: bool = False) -> Array:
    """The real numbers in an array, after a check that elements of a type can hold them; not converted yet.

    Parameters
    ----------
    array : numpy.ndarray
        Its elements are numbers (`are_numbers`).
    dtype : numpy.dtype
        The type of the elements.
    cut : bool
        Whether fractions may be cut off, as C does it.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "O":
        return (_floats if dtype.kind not in "iub" else partial(_integers, cut=cut))(array, dtype)
    real = _reals(array, dtype)
    if dtype.kind in "iub" and not np.can_cast(real.dtype, dtype):
        _check_integers(array, real, dtype, cut=cut)
    return real


def _reals(array: Array, dtype: np.dtype[Any]) -> Array:
    """The real parts of numbers, after a check that their imaginary parts are zero."""
    if array.dtype.kind == "c":
        numbers = cast("Any", array)
        wrong = numbers.imag != 0
        if wrong.any():
            raise InvalidValueError(array.item(int(np.argmax(wrong))), dtype, "it has an imaginary part")
        return cast("Array", numbers.real)
    return array


def _floats(array: Array, dtype: np.dtype[Any]) -> Array:
    """Python objects that are numbers, such as integers of any length and fractions, as the nearest floats."""
    floats: Array = np.empty(array.size)
    for index, value in enumerate(array.flat):
        try:
            floats[index] = _float_of(value)
        except Exception as error:
            raise InvalidValueError(value, dtype, "it cannot be converted to a float") from error
    return floats.reshape(array.shape)


def _float_of(value: Any) -> float:
    """A number as the nearest float, infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _integers(array: Array, dtype: np.dtype[Any], *, cut: bool) -> Array:
    """Python objects that are numbers as integers of a type, exactly: 1 + 10**-30 is not 1."""
    least, most = _range_of(dtype)
    integers: Array = np.empty(array.size, dtype)
    for index, value in enumerate(array.flat):
        try:
            whole = int(value)
        except (ValueError, OverflowError) as error:  # NaN, infinite
            raise InvalidValueError(value, dtype, _NOT_FINITE) from error
        except Exception as error:
            raise InvalidValueError(value, dtype, "it cannot be converted to an integer") from error
        if not least <= whole <= most:
            raise InvalidValueError(value, dtype, f"it is not between {least} and {most}")
        if not cut and whole != value:
            raise InvalidValueError(value, dtype, _NOT_WHOLE)
        integers[index] = whole
    return integers.reshape(array.shape)


def _range_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest integer of a type; a boolean is 0 or 1."""
    if dtype.kind == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _check_integers(array: Array, real: Array, dtype: np.dtype[Any], *, cut: bool) -> None:
    """Check block by block, so that the intermediate arrays stay in the processor's cache."""
    least, most = _range_of(dtype)
    given, row = array.reshape(-1), real.reshape(-1)
    for start in range(0, row.size, _BLOCK):
        shown, piece = (array[start : start + _BLOCK] for array in (given, row))
        wide = piece.astype(_EXACT) if piece.dtype.itemsize < _EXACT.itemsize else piece
        with np.errstate(all="ignore"):
            whole = np.trunc(wide)
            # The bounds are powers of two, which floats hold exactly.  NaN is not between them.
            outside = ~((whole >= least) & (whole < most + 1))
            wrong = outside if cut else outside | (whole != wide)
        if wrong.any():
            first = int(np.argmax(wrong))
            reason = f"it is not between {least} and {most}" if outside[first] else _NOT_WHOLE
            raise _refused(shown.item(first), dtype, reason)


def _refused(number: Any, dtype: np.dtype[Any], reason: str) -> InvalidValueError:
    finite = not isinstance(number, float) or math.isfinite(number)
    return InvalidValueError(number, dtype, reason if finite else _NOT_FINITE)


def _no_numbers(values: object, dtype: np.dtype[Any]) -> InvalidArgumentError:
    return InvalidArgumentError("values", values, f"numbers, to be stored as {dtype}")
