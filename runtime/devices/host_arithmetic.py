"""`HostArithmetic`: NumPy in blocks that stay in the processor's cache, in a few threads where there is much to do.

NumPy has no ``y += alpha x`` and no sum of magnitudes that read each element once.  So a block of the product or of the
magnitudes is made, which stays in the cache, and is added from there.

A sum is made of rows of `_ROW` elements, each by `numpy.vecdot` in the type of the elements, and the sums of all rows
are added in ``float64``.  A row of ``float32`` whose sum is out of range, or so small that products may have been lost,
is added again in ``float64``.  So a result is the same with any number of threads.

Halves (``float16``, ``bfloat16``) are widened a block at a time: to ``float32`` for `scal` and `axpy`, and to
``float64`` for sums.
"""

from __future__ import annotations

import math
import os
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidPointerError

from ..allocators.arithmetic import Arithmetic
from ..allocators.pointers import MASKED, is_masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model.interface import Pointer

    Row = np.ndarray[tuple[int], np.dtype[Any]]

__all__ = ["HostArithmetic", "host_arithmetic"]

_ROW = 1 << 12
"""How many elements are summed in their own type: few enough that four partial sums keep the bound of ``float32``."""

_BLOCK = 1 << 18
"""How many bytes a block has: enough that calls cost little, and few enough for the second cache."""

_SHARE = 1 << 21
"""How many elements a thread has at least, so that starting it is a small part of its work."""

_THREADS = 2
"""How many threads there are at most; what is computed here is bound by the memory, which few threads fill."""

_ACCURATE = 2.0**-80
"""If the sum of a row is at least this large, the products below 2**-126 that ``float32`` lost do not matter."""

_FULL = (np.dtype(np.float32), np.dtype(np.float64))
"""The types that are computed in themselves."""


class HostArithmetic(Arithmetic):
    """Arithmetic on NumPy arrays; for ``bfloat16`` the type has to be that of the package ``ml_dtypes``."""

    where = "the host"

    def _check(self, array: Pointer, argument: str, *, write: bool) -> None:
        row: Any = array
        if not isinstance(array, np.ndarray):
            raise InvalidPointerError(self.where, array, f"{argument} is not host memory")
        if type(row) is not np.ndarray and is_masked(row):
            raise InvalidPointerError(self.where, row, f"{argument} is {MASKED}")
        if row.ndim != 1 or not row.flags.c_contiguous or not row.flags.aligned or row.dtype.hasobject:
            raise InvalidPointerError(self.where, row, f"{argument} is not a contiguous, aligned row of numbers")
        if write and not row.flags.writeable:
            raise InvalidPointerError(self.where, row, f"{argument} is read-only")

    def _overlap(self, x: Row, y: Row) -> bool:
        return np.may_share_memory(x, y)

    def _same(self, x: Row, y: Row) -> bool:
        return x.ctypes.data == y.ctypes.data

    def _each(self, name: str, alpha: float, *rows: Row) -> None:
        dtype = _wide(rows[0])
        with np.errstate(all="ignore"):
            factor = dtype.type(alpha)
            _share_out(_scale if name == "scal" else _add_product, dtype, factor, *rows)

    def _total(self, name: str, *rows: Row) -> float:
        dtype = rows[0].dtype
        with np.errstate(all="ignore"):
            if dtype not in _FULL:
                return float(sum(_sum_wide(*parts) for parts in _cut(_BLOCK // 8, *rows)))
            sums = np.empty(-(-rows[0].size // _ROW), dtype)
            _share_out(_sum_magnitudes if name == "asum" else _sum_products, dtype, sums, *rows)
            return _total_of(sums, *rows)

    def _copy(self, x: Row, y: Row) -> None:
        np.copyto(y.view(np.uint8), x.view(np.uint8))


@cache
def host_arithmetic() -> HostArithmetic:
    """The arithmetic on all host memory; one object."""
    return HostArithmetic()


def _wide(x: Row) -> np.dtype[Any]:
    """The type in which elements of `x` are computed."""
    return x.dtype if x.dtype in _FULL else np.dtype(np.float32)


def _cut(length: int, *rows: Row) -> Iterator[tuple[Row, ...]]:
    """Rows of the same size, cut into parts of a length."""
    return (tuple(row[start : start + length] for row in rows) for start in range(0, rows[0].size, length))


def _scale(factor: Any, part: slice, _block: Row, x: Row) -> None:
    target = x[part]
    np.multiply(target, factor, out=target, dtype=factor.dtype, casting="unsafe")


def _add_product(factor: Any, part: slice, block: Row, x: Row, y: Row) -> None:
    """Add ``factor * x`` to `y`; the product of some elements stands in `block`."""
    if abs(factor) == 1 and x.dtype == factor.dtype:
        (np.add if factor > 0 else np.subtract)(y[part], x[part], out=y[part])
        return
    for some, target in _cut(block.size, x[part], y[part]):
        product = np.multiply(some, factor, out=block[: some.size], dtype=factor.dtype)
        np.add(target, product, out=target, dtype=factor.dtype, casting="unsafe")


def _sum_products(sums: Row, part: slice, _block: Row, x: Row, y: Row) -> None:
    _sum_rows(sums[part.start // _ROW :], x[part], y[part])


def _sum_magnitudes(sums: Row, part: slice, block: Row, x: Row) -> None:
    """Sum magnitudes as products with one, which NumPy adds faster."""
    for start in range(part.start, part.stop, block.size):
        some = x[start : min(start + block.size, part.stop)]
        _sum_rows(sums[start // _ROW :], np.abs(some, out=block[: some.size]), _ones(x.dtype))


def _sum_rows(sums: Row, x: Row, y: Row) -> None:
    """Write the sum of each `_ROW` products, the last of those that remain; `y` may be one row for all."""
    whole, rest = divmod(x.size, _ROW)
    left, right = (row[: whole * _ROW].reshape(-1, _ROW) for row in (x, y))
    np.vecdot(left, right, out=sums[:whole])
    if rest:
        sums[whole] = np.vecdot(x[-rest:], y[-rest:])


@cache
def _ones(dtype: np.dtype[Any]) -> Row:
    return np.ones(_ROW, dtype)


def _total_of(sums: Row, *rows: Row) -> float:
    """Add the sums of all rows in ``float64``, after those that ``float32`` may have got wrong were made again."""
    total = sums.astype(np.float64, copy=False)
    products = len(rows) > 1
    if sums.dtype == np.float32 and (products or not math.isfinite(total.sum())):
        for number in np.flatnonzero(~np.isfinite(total) | (products & (np.abs(total) < _ACCURATE))):
            parts = [row[number * _ROW : (number + 1) * _ROW] for row in rows]
            if parts[0].any():
                total[number] = _sum_wide(*parts)
    return float(total.sum())


def _sum_wide(x: Row, y: Row | None = None) -> Any:
    """The sum of magnitudes or of products, in ``float64``; not by BLAS, which may have threads of its own."""
    terms = x.astype(np.float64)
    if y is None:
        np.abs(terms, out=terms)
    else:
        np.multiply(terms, y, out=terms, dtype=np.float64)
    return terms.sum()


def _share_out(work: Callable[..., None], dtype: np.dtype[Any], value: Any, *rows: Row) -> None:
    """Call ``work(value, part, block, *rows)`` for all elements, in threads if there are many.

    `part` is a slice that begins at a multiple of `_ROW`, and `block` memory for what is in between.  When this returns
    or raises, no thread is running any more.  An error of a thread is raised here.
    """
    size = rows[0].size
    block = min(size, _BLOCK // dtype.itemsize)
    if size < 2 * _SHARE:
        work(value, slice(0, size), np.empty(block, dtype), *rows)
        return
    share = -(-size // (min(_THREADS, size // _SHARE, len(os.sched_getaffinity(0))) * _ROW)) * _ROW
    parts = [slice(start, min(start + share, size)) for start in range(0, size, share)]
    blocks = np.empty((len(parts), block), dtype)

    def work_on(number: int) -> None:
        with np.errstate(all="ignore"):  # a thread has settings of its own
            work(value, parts[number], blocks[number], *rows)

    failures: list[BaseException] = []

    def work_aside(number: int) -> None:
        try:
            work_on(number)
        except BaseException as error:  # noqa: BLE001 -- raised again where somebody hears of it
            failures.append(error)

    threads: list[Thread] = []
    try:
        for number in range(1, len(parts)):
            thread = Thread(target=work_aside, args=(number,))
            try:
                thread.start()
            except RuntimeError:  # no thread can be started, for example while the interpreter ends
                work_on(number)
            else:
                threads.append(thread)
        work_on(0)
    finally:
        for thread in threads:
            thread.join()
    if failures:
        del failures[1:]
        raise failures.pop()  # an error that stayed in the list would make a cycle with its traceback
