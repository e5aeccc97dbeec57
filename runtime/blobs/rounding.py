"""Numbers that are rounded only once on their way to an element, although NumPy rounds some of them twice.

NumPy converts ``float64`` to ``bfloat16``, and ``longdouble`` to ``float16``, through a type between the two.  A number
that is rounded twice can end up one step beside the nearest element.  Here the first rounding is *to odd*: a number
between two others becomes the one whose last bit is set.  So the second rounding still sees on which side it was (Boldo
and Melquiond, *Emulation of FMA and correctly rounded sums*, 2008).  For this the type between has to be at least two
bits wider than the elements; all types here are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["float_of", "odd_float_of", "once"]

_HALF, _SINGLE, _DOUBLE = (np.dtype(it) for it in (np.float16, np.float32, np.float64))
_EXACT_INTEGERS = 1 << 53
"""Up to this number, float64 has all integers."""


def once(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers that NumPy rounds only once when it casts them to a type; most numbers are returned unchanged.

    Parameters
    ----------
    numbers : numpy.ndarray
        Integers, floats, or results of `odd_float_of`.
    dtype : numpy.dtype
        The type of the elements.
    """
    given = numbers.dtype
    if dtype == _HALF and given.kind == "f" and given.itemsize > _DOUBLE.itemsize:
        return _to_odd(numbers, _DOUBLE)
    if dtype.name != "bfloat16" or given.kind not in "iuf" or given.itemsize < _SINGLE.itemsize or given == _SINGLE:
        return numbers
    return _to_odd(_doubles(numbers), _SINGLE)


def _doubles(numbers: Array) -> Array:
    """Numbers as float64, rounded to odd if float64 does not have them."""
    if numbers.dtype.kind == "f":
        return _to_odd(numbers, _DOUBLE) if numbers.dtype.itemsize > _DOUBLE.itemsize else numbers.astype(_DOUBLE)
    doubles = numbers.astype(_DOUBLE)
    for index in np.flatnonzero(np.abs(doubles) >= _EXACT_INTEGERS):
        doubles.flat[index] = odd_float_of(int(numbers.flat[index]))
    return doubles


def _to_odd(numbers: Array, narrow: np.dtype[Any]) -> Array:
    """Floats as narrower floats, rounded to odd: between two of these, the one whose last bit is set."""
    with np.errstate(all="ignore"):
        nearest: Array = numbers.astype(narrow)
        even = nearest.view(f"i{narrow.itemsize}") % 2 == 0
        above, below = (even & it & np.isfinite(nearest) for it in (numbers > nearest, numbers < nearest))
        for wrong, end in ((above, np.inf), (below, -np.inf)):
            nearest[wrong] = np.nextafter(nearest[wrong], narrow.type(end))
    return nearest


def float_of(number: Any) -> float:
    """An integer of any length, a fraction or a decimal number, as a float; infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def odd_float_of(number: Any) -> float:
    """As `float_of`, but rounded to odd, for numbers that are rounded again."""
    nearest = float_of(number)
    if not math.isfinite(nearest) or number == nearest or np.float64(nearest).view(np.int64) % 2:
        return nearest
    return math.nextafter(nearest, math.inf if number > nearest else -math.inf)
