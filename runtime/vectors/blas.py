"""The one vector operation of BLAS that NumPy has loaded and does not offer: ``asum``.

``np.abs(x)`` has to be written down before it can be summed.  The BLAS that NumPy is linked to sums magnitudes as it
reads them, but no function of NumPy's calls it, so it is looked up in the library itself.  That is nobody's promise:
names differ from build to build, and how many partial sums it keeps, from processor to processor.  So what is found
is tried out before it is trusted, and where nothing is found, or found wanting, callers do without.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Magnitudes = Callable[[int, int, int], float]
    """What BLAS takes: how many elements, the address of the first, and 1 for every one of them."""

__all__ = ["BLOCK", "magnitudes", "trusted"]

BLOCK = 1 << 16
"""The most elements that are summed at once.  From 100,000 OpenBLAS starts threads of its own."""

_LOST = 1024
"""The most elements that may go into one partial sum, as `host_vectors` promises."""

_NAMES = ("scipy_cblas_{}asum64_", "cblas_{}asum64_", "cblas_{}asum")
_KINDS: dict[np.dtype[Any], tuple[str, Any]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}


def magnitudes() -> dict[np.dtype[Any], Magnitudes]:
    """Functions that sum the magnitudes of at most `BLOCK` elements, by type; none for a type that has none."""
    path = importlib.import_module("numpy._core._multiarray_umath").__file__
    try:
        library = ctypes.CDLL(path)  # loaded already, so this only looks it up
    except OSError:
        return {}
    found = {dtype: _bound(library, *kind) for dtype, kind in _KINDS.items()}
    return {dtype: function for dtype, function in found.items() if function and trusted(function, dtype)}


def _bound(library: Any, letter: str, result: Any) -> Magnitudes | None:
    for name in _NAMES:
        if function := getattr(library, name.format(letter), None):
            function.restype = result
            # Counts are small, so in a register they are the same in 32 bits and in 64.
            function.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
            return cast("Magnitudes", function)
    return None


def trusted(function: Magnitudes, dtype: np.dtype[Any]) -> bool:
    """Whether a function sums magnitudes, lets nothing unusual pass, and keeps enough partial sums.

    An element that is large enough swallows every 1 that is added to the same partial sum: what is missing in the
    end is how many there were.
    """
    x = np.ones(BLOCK, dtype)
    x[1::2] = -1
    at = x.ctypes.data
    if function(BLOCK, at, 1) != BLOCK or function(7, at, 1) != 7:  # noqa: PLR2004 -- an odd number
        return False
    for special in (np.nan, np.inf, -np.inf):
        x[BLOCK // 2] = special
        if not np.array_equal(function(BLOCK, at, 1), abs(special), equal_nan=True):
            return False
    x[BLOCK // 2] = 1
    x[0] = large = 2.0 ** np.finfo(dtype).nmant * 2
    return large + BLOCK - 1 - function(BLOCK, at, 1) <= _LOST
