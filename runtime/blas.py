"""The one vector operation of BLAS that NumPy has loaded and does not offer: ``asum``.

``np.abs(x)`` has to be written down before it can be summed.  The BLAS that NumPy is linked to sums magnitudes as it
reads them, but no function of NumPy's calls it, so it is looked up in the library itself.  That is nobody's promise:
names differ from build to build, and how many partial sums it keeps, from processor to processor.  So what is found
is tried out before it is trusted, and where nothing is found, or found wanting, callers do without.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Row = np.ndarray[tuple[int], np.dtype[Any]]
    Sum = Callable[[Row], float]

__all__ = ["BLOCK", "magnitudes", "trusted"]

BLOCK = 1 << 16
"""The most elements that are summed at once.  From 100,000 OpenBLAS starts threads of its own."""

_LOST = 1024
"""The most elements that may go into one partial sum, as `host_vectors` promises."""

_NAMES = ("scipy_cblas_{}asum64_", "cblas_{}asum64_", "cblas_{}asum")
_KINDS = {np.dtype(np.float32): ("s", ctypes.c_float), np.dtype(np.float64): ("d", ctypes.c_double)}


def magnitudes() -> dict[np.dtype[Any], Sum]:
    """Functions that sum the magnitudes of at most `BLOCK` elements, by type; none for a type that has none."""
    path = importlib.import_module("numpy._core._multiarray_umath").__file__
    try:
        library = ctypes.CDLL(path)  # loaded already, so this only looks it up
    except OSError:
        return {}
    found = {dtype: _bound(library, *kind) for dtype, kind in _KINDS.items()}
    return {dtype: function for dtype, function in found.items() if function and trusted(function, dtype)}


def _bound(library: Any, letter: str, result: Any) -> Sum | None:
    for name in _NAMES:
        if function := getattr(library, name.format(letter), None):
            function.restype = result
            # Counts are small, so in a register they are the same in 32 bits and in 64.
            function.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
            return lambda x: float(function(x.size, x.ctypes.data, 1))
    return None


def trusted(function: Sum, dtype: np.dtype[Any]) -> bool:
    """Whether a function sums magnitudes, lets nothing unusual pass, and keeps enough partial sums.

    An element that is large enough swallows every 1 that is added to the same partial sum: what is missing in the
    end is how many there were.
    """
    x = np.ones(BLOCK, dtype)
    x[1::2] = -1
    if function(x) != BLOCK or function(x[:7]) != 7:  # noqa: PLR2004 -- an odd number
        return False
    for special in (np.nan, np.inf, -np.inf):
        x[BLOCK // 2] = special
        if not np.array_equal(function(x), abs(special), equal_nan=True):
            return False
    x[BLOCK // 2] = 1
    x[0] = large = 2.0 ** np.finfo(dtype).nmant * 2
    return large + BLOCK - 1 - function(x) <= _LOST
