"""`HostArithmetic`: SciPy's BLAS for ``float32`` and ``float64``, NumPy for halves.

BLAS works with several threads, and reads each element once.  It does three things otherwise than `Arithmetic`
promises, so this module corrects them:

- BLAS sums ``float32`` in ``float32``.  So BLAS gets pieces of the array, and their sums are added in ``float64``.  If
  the sum of a piece is out of the range of ``float32``, NumPy computes it again in ``float64``.
- BLAS does nothing if ``alpha == 0``, although ``0 * nan`` is NaN.  So NumPy does that case.
- BLAS counts elements in 32 bits.  So BLAS gets at most 2**30 elements at once.

Halves (``float16``, ``bfloat16``) are widened a block at a time, in the processor's cache: to ``float32`` for `scal`
and `axpy`, and to ``float64`` for sums.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model.interface import Pointer

    Row = np.ndarray[tuple[int], np.dtype[Any]]

__all__ = ["HostArithmetic", "host_arithmetic"]

_MOST = 1 << 30
"""How many elements BLAS gets at most in one call."""

_PIECE = 1 << 24
"""How many elements BLAS sums at once: enough for its threads, and few enough that ``float32`` can count them."""

_BLOCK = 1 << 15
"""How many halves are widened at once."""

_ACCURATE = 2.0**-80
"""If the sum of a piece is at least this large, the products below 2**-126 that ``float32`` lost do not matter."""

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


class HostArithmetic(Arithmetic):
    """Arithmetic on NumPy arrays; for ``bfloat16`` the type has to be that of the package ``ml_dtypes``."""

    where = "the host"

    def _check(self, array: Pointer, argument: str, *, write: bool) -> None:
        if not isinstance(array, np.ndarray):
            raise InvalidPointerError(self.where, array, f"{argument} is not host memory")
        row = cast("Row", array)
        if row.ndim != 1 or not row.flags.c_contiguous or not row.flags.aligned or row.dtype.hasobject:
            raise InvalidPointerError(self.where, row, f"{argument} is not a contiguous, aligned row of numbers")
        if write and not row.flags.writeable:
            raise InvalidPointerError(self.where, row, f"{argument} is read-only")

    def _overlap(self, x: Row, y: Row) -> bool:
        return np.may_share_memory(x, y)

    def _same(self, x: Row, y: Row) -> bool:
        return x.ctypes.data == y.ctypes.data

    def _each(self, name: str, alpha: float, *rows: Row) -> None:
        wide = _wide(rows[0])
        if alpha and wide == rows[0].dtype:
            blas = _blas(name, wide)
            for parts in _cut(_MOST, *rows):
                blas(**dict(zip("xy", parts, strict=False)), a=alpha)
            return
        with np.errstate(all="ignore"):
            factor = wide.type(alpha)
            for part, *others in _cut(_BLOCK, *rows):
                product = np.multiply(part, factor, dtype=wide)
                for target in others:
                    np.add(target, product, out=target, dtype=wide, casting="unsafe")
                if not others:
                    np.copyto(part, product, casting="unsafe")

    def _total(self, name: str, *rows: Row) -> float:
        slow = _magnitudes if name == "asum" else _products
        if _wide(rows[0]) != rows[0].dtype:
            return _summed(slow, *rows)
        blas, narrow = _blas(name, rows[0].dtype), name == "dot" and rows[0].dtype == np.float32

        def piece(*parts: Row) -> float:
            found = float(blas(*parts))
            lost = narrow and abs(found) < _ACCURATE and parts[0].any()
            return found if math.isfinite(found) and not lost else _summed(slow, *parts)

        return sum(piece(*parts) for parts in _cut(_PIECE, *rows))

    def _copy(self, x: Row, y: Row) -> None:
        np.copyto(y.view(np.uint8), x.view(np.uint8))


@cache
def host_arithmetic() -> HostArithmetic:
    """The arithmetic on all host memory; one object."""
    return HostArithmetic()


@cache
def _blas(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A function of SciPy's BLAS; SciPy is loaded when it is first needed."""
    function: Callable[..., Any] = getattr(import_module("scipy.linalg.blas"), _LETTERS[dtype] + name)
    return function


def _wide(x: Row) -> np.dtype[Any]:
    """The type in which elements of `x` are computed."""
    return x.dtype if x.dtype in _LETTERS else np.dtype(np.float32)


def _cut(length: int, *rows: Row) -> Iterator[tuple[Row, ...]]:
    """Rows of the same size, cut into parts of a length."""
    return (tuple(row[start : start + length] for row in rows) for start in range(0, rows[0].size, length))


def _summed(part: Callable[..., Any], *rows: Row) -> float:
    """A sum over all parts of some rows, in ``float64``."""
    with np.errstate(all="ignore"):
        return float(sum(part(*widened) for widened in _cut(_BLOCK, *rows)))


def _magnitudes(x: Row) -> Any:
    return np.abs(x.astype(np.float64)).sum()


def _products(x: Row, y: Row) -> Any:
    return np.dot(x.astype(np.float64), y.astype(np.float64))
