"""`HostVectors`: vector operations on host memory, with NumPy, blockwise.

A vector is worked on in *pieces*, by the threads of `workers` if there are enough of them, and a piece in *blocks*.
What has to be written down on the way, such as the magnitudes that are to be summed, is written into a workspace of
one block that stays in the processor's own cache, so memory sees each element once.

Sums are wide where it counts and nowhere else.  The elements of a row of 1024 are summed by BLAS in their own type,
which reads ``float32`` as fast as it comes; rows, blocks and pieces are summed in ``float64``.  A row that has left
the range in which ``float32`` is accurate shows it: its sum is not finite, or so small that terms may have been lost
below.  Then its block is summed once more, in ``float64``.

A sum does not depend on the number of threads in anything but its last bits, and not at all on who was faster.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidPointerError

from .blas import BLOCK, magnitudes
from .operations import Vectors
from .workers import crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..pointers import Pointer
    from .blas import Magnitudes

    Row = np.ndarray[tuple[int], np.dtype[Any]]
    Step = Callable[[Row, slice], float]

__all__ = ["HostVectors", "host_vectors"]

_ROW = 1024
"""Elements that are summed in their own type: 1024 roundings are the bound that ``vectors`` states."""

_LARGE = 1 << 20
"""Bytes from which a second thread pays."""

_PIECE = 1 << 22
_WORKSPACE = 1 << 19
"""In bytes: what is handed to a thread at once; and the workspaces of all threads together."""

_SMALL = 1 << 14
"""Elements that are one block, whatever is written down."""

_FEW = 4096
"""Elements that are widened at once.  OpenBLAS starts threads of its own from 10,000."""

_ACCURATE = 2.0**-100
"""What 1024 products of ``float32`` may lose below 2**-149 is nothing beside a sum of this magnitude."""

_ONES = {dtype: np.ones(_ROW, dtype) for dtype in (np.dtype(np.float32), np.dtype(np.float64))}


class HostVectors(Vectors):
    """Vector operations on NumPy arrays; of ``bfloat16`` those whose type the package ``ml_dtypes`` has made."""

    where = "the host"

    def __init__(self, *, blas: bool = True) -> None:
        self._magnitudes = magnitudes() if blas else {}

    def _check(self, array: Pointer, argument: str, *, write: bool) -> None:
        if not isinstance(array, np.ndarray):
            raise InvalidPointerError(self.where, array, f"{argument} is not host memory")
        vector = cast("Row", array)
        if vector.ndim != 1 or not vector.flags.c_contiguous or not vector.flags.aligned or vector.dtype.hasobject:
            raise InvalidPointerError(self.where, vector, f"{argument} is not a contiguous, aligned row of numbers")
        if write and not vector.flags.writeable:
            raise InvalidPointerError(self.where, vector, f"{argument} is read-only")

    def _overlap(self, x: Row, y: Row) -> bool:
        return np.may_share_memory(x, y)

    def _same(self, x: Row, y: Row) -> bool:
        return x.ctypes.data == y.ctypes.data

    def _axpy(self, alpha: float, x: Row, y: Row) -> None:
        wide = _wide(x)
        factor = _typed(alpha, wide)
        plain: Any = {1.0: np.add, -1.0: np.subtract}.get(alpha)

        def directly(_: Row, s: slice) -> float:
            plain(y[s], x[s], out=y[s], dtype=wide, casting="unsafe")
            return 0.0

        def multiplied(product: Row, s: slice) -> float:
            np.multiply(x[s], factor, out=product, dtype=wide)
            np.add(y[s], product, out=y[s], dtype=wide, casting="unsafe")
            return 0.0

        _work(y, multiplied if plain is None else directly, written=plain is None)

    def _scal(self, alpha: float, x: Row) -> None:
        wide = _wide(x)
        factor = _typed(alpha, wide)

        def step(_: Row, s: slice) -> float:
            np.multiply(x[s], factor, out=x[s], dtype=wide, casting="unsafe")
            return 0.0

        _work(x, step)

    def _asum(self, x: Row) -> float:
        wide = _wide(x)
        summed = self._magnitudes.get(x.dtype)
        if summed is not None:
            return _work(x, lambda _, s: _checked(_sum_at(summed, x[s]), x[s]))

        def step(block: Row, s: slice) -> float:
            return _sum(np.absolute(x[s], out=block, dtype=wide))

        return _work(x, step, written=1)

    def _dot(self, x: Row, y: Row) -> float:
        def directly(_: Row, s: slice) -> float:
            return _sum_of_products(x[s], y[s])

        def widened(both: Row, s: slice) -> float:
            first, second = both.reshape(2, -1)
            np.copyto(first, x[s])
            np.copyto(second, y[s])
            return _sum_of_products(first, second)

        return _work(x, directly) if _wide(x) == x.dtype else _work(x, widened, written=2)

    def _copy(self, x: Row, y: Row) -> None:
        source, target = x.view(np.uint8), y.view(np.uint8)

        def step(_: Row, s: slice) -> float:
            np.copyto(target[s], source[s])
            return 0.0

        _work(target, step)


@cache
def host_vectors() -> HostVectors:
    """The vector operations that all host memory shares."""
    return HostVectors()


def _wide(x: Row) -> np.dtype[Any]:
    """The type that is computed in."""
    return x.dtype if x.dtype in _ONES else np.dtype(np.float32)


def _typed(alpha: float, wide: np.dtype[Any]) -> Any:
    with np.errstate(all="ignore"):
        return wide.type(alpha)


def _work(x: Row, step: Step, *, written: int = 0) -> float:
    """Do a step for every block of a vector, and add up what the steps return.

    A step is given a workspace with room for its block, as many times as `written` says, and the block.
    """
    size, wide, itemsize = x.size, _wide(x), x.dtype.itemsize
    if size <= _SMALL:
        with np.errstate(all="ignore"):
            return step(np.empty(size * written, wide), slice(0, size))
    team = crew().size if x.nbytes >= _LARGE else 1
    piece = _PIECE // itemsize
    block = min(_WORKSPACE // team // wide.itemsize // written if written else piece, size)
    workspaces = [np.empty(block * written, wide) for _ in range(team)]
    sums = np.zeros(-(-size // piece))

    def work(workspace: Row, numbers: Iterator[int]) -> None:
        with np.errstate(all="ignore"):  # here, because each thread has settings of its own
            for number in numbers:
                for start in range(number * piece, min((number + 1) * piece, size), block):
                    stop = min(start + block, (number + 1) * piece, size)
                    sums[number] += step(workspace[: (stop - start) * written], slice(start, stop))

    if team == 1:
        work(workspaces[0], iter(range(len(sums))))
    else:
        crew().share(range(len(sums)), [partial(work, workspace) for workspace in workspaces])
    with np.errstate(all="ignore"):
        return float(np.add.reduce(sums))


def _sum(x: Row) -> float:
    """The sum of a block of magnitudes."""
    full = x.size - x.size % _ROW
    rows = np.vecdot(x[:full].reshape(-1, _ROW), _ONES[x.dtype])
    total = float(np.add.reduce(rows, dtype=np.float64)) + float(np.add.reduce(x[full:], dtype=np.float64))
    return _checked(total, x)


def _sum_at(summed: Magnitudes, x: Row) -> float:
    """The same by a function that is handed addresses."""
    begin, itemsize = x.ctypes.data, x.dtype.itemsize
    return sum(summed(min(BLOCK, x.size - start), begin + start * itemsize, 1) for start in range(0, x.size, BLOCK))


def _checked(total: float, x: Row) -> float:
    """A sum of magnitudes, once more and wider if it is not finite."""
    if math.isfinite(total):
        return total
    return float(sum(np.add.reduce(np.absolute(few, dtype=np.float64)) for few in _cut(x, _FEW)))


def _sum_of_products(x: Row, y: Row) -> float:
    """The sum of the products of two blocks."""
    full = x.size - x.size % _ROW
    left, right = x[:full].reshape(-1, _ROW), y[:full].reshape(-1, _ROW)
    rows = np.vecdot(left, right)
    total = float(np.add.reduce(rows, dtype=np.float64))
    if not math.isfinite(total) or _lost(rows, left):
        return _wide_sum_of_products(x, y)
    return total + _wide_sum_of_products(x[full:], y[full:])


def _lost(rows: Row, left: np.ndarray[tuple[int, int], np.dtype[Any]]) -> bool:
    """Whether terms too small for ``float32`` may be missing in sums of rows.  In ``float64`` nothing is wider."""
    if rows.dtype != np.float32 or np.absolute(rows).min(initial=np.inf) >= _ACCURATE:
        return False
    # Rows of zeros are frequent, in gradients say, and miss nothing.
    small = np.absolute(rows) < _ACCURATE
    return bool(np.any(small & (np.maximum.reduce(left.view(np.uint32), axis=1) != 0)))


def _wide_sum_of_products(x: Row, y: Row) -> float:
    pairs = zip(_cut(x, _FEW), _cut(y, _FEW), strict=True)
    return float(sum(np.dot(left.astype(np.float64), right.astype(np.float64)) for left, right in pairs))


def _cut(x: Row, length: int) -> Iterator[Row]:
    return (x[start : start + length] for start in range(0, x.size, length))
