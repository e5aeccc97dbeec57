"""Arithmetic on vectors, where the vectors are: `Vectors`, and `vectors_of` an allocator.

What is needed is little: ``y += alpha x``, ``x *= alpha``, sums of magnitudes, squares and products, and a copy.
Each touches every element once and computes almost nothing with it, so the speed of the memory is the speed of the
operation, and whatever reads or writes memory once more than it must is wrong: ``np.abs(x).sum()`` writes a second
vector to sum it.  A device implements six short methods; what is checked before, and refused, is the same for
all and stands here.

**What is taken.**  One-dimensional contiguous arrays of the device's own kind, two of them of one type and one
length.  They may be the same array, but may not overlap in part, where the order of elements would matter.
Arithmetic is for ``float32``, ``float64``, and ``float16`` and ``bfloat16`` where the device has them.  Integers can
be copied and nothing else, as in Caffe.

**What holds.**  With *u* the unit roundoff (2**-53 in float64, 2**-24 in float32, 2**-11 in float16, 2**-8 in
bfloat16) and *t* the smallest positive number of the type, against exact arithmetic:

============================ ==============================================================
``axpy``                     ``3 u (|alpha x| + |y|) + t`` for each element
``scal``                     ``2 u |alpha x| + t`` for each element
``asum``, ``sumsq``, ``dot`` 2**-14 times the sum of the magnitudes of all terms; 2**-40 in
                             ``float64``, and one *t* for each term that is smaller than that
============================ ==============================================================

These are guarantees, for any data in any order; what is seen of sums is nearer to 1e-8 of ``float32``.  Sums are
Python floats and overflow where a float does, not where ``float32`` would.  *alpha* is first rounded to the type that
is computed in: ``float64`` for itself, ``float32`` for all others.  Infinities and NaN go their usual way, also
where BLAS looks away: ``0 * nan`` is NaN.  No warning is given of any of it, and NumPy's own settings change nothing.

**When.**  As for `DeviceAllocator.memcpy` without a stream: after what the device's current stream holds, and
finished on return.

**After an error** nothing has changed.  An interrupt (``KeyboardInterrupt``) that comes while ``axpy`` or ``scal`` is
at work is the exception: some elements are then done and others not, and nobody works on them any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoArithmeticError

if TYPE_CHECKING:
    from ..pointers import Pointer

__all__ = ["Vectors", "check_factor", "vectors_of"]

_ON_THE_HOST = (0, 1)
"""`DeviceType.UNKNOWN` and `DeviceType.CPU`; ``allocator``, which has the names, knows this module."""


class Vectors(ABC):
    """Vector operations on one device.  Every method raises what `check` raises.

    Attributes
    ----------
    where : str
        The device, as errors show it.
    types : tuple of str
        The names of the element types there is arithmetic for.
    """

    where: str
    types: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64")

    def axpy(self, alpha: SupportsFloat, x: Pointer, y: Pointer) -> None:
        """``y += alpha * x``."""
        factor = check_factor(alpha)
        self._check_two("axpy", x, y, write=True)
        if len(y):
            self._axpy(factor, x, y)

    def scal(self, alpha: SupportsFloat, x: Pointer) -> None:
        """``x *= alpha``."""
        factor = check_factor(alpha)
        self._check_one("scal", x, write=True)
        if len(x):
            self._scal(factor, x)

    def asum(self, x: Pointer) -> float:
        """The sum of the magnitudes of all elements: the L1 norm."""
        self._check_one("asum", x)
        return self._asum(x) if len(x) else 0.0

    def sumsq(self, x: Pointer) -> float:
        """The sum of the squares of all elements."""
        self._check_one("sumsq", x)
        return self._dot(x, x) if len(x) else 0.0

    def dot(self, x: Pointer, y: Pointer) -> float:
        """The sum of the products of the elements of two vectors."""
        self._check_two("dot", x, y)
        return self._dot(x, y) if len(x) else 0.0

    def copy(self, x: Pointer, y: Pointer) -> None:
        """Copy `x` to `y`; any type, bit for bit."""
        self._check_two("copy", x, y, write=True, arithmetic=False)
        if len(y) and not self._same(x, y):
            self._copy(x, y)

    def _check_one(self, call: str, x: Pointer, *, write: bool = False) -> None:
        """Look at a vector before anything is done.

        Raises
        ------
        InvalidPointerError
            If it is no contiguous row of this device, or is to be written and read-only.
        NoArithmeticError
            If there is no arithmetic for its elements.
        """
        self._check(x, "x", write=write)
        self._check_type(call, x)

    def _check_two(self, call: str, x: Pointer, y: Pointer, *, write: bool = False, arithmetic: bool = True) -> None:
        """The same for two; they must be of one type and length, and what is written apart from what is read."""
        self._check(x, "x", write=False)
        self._check(y, "y", write=write)
        if x.dtype != y.dtype or len(x) != len(y):
            theirs = f"{len(x)} of {x.dtype}"
            raise InvalidPointerError(self.where, y, f"y must have as many elements as x, of the same type: {theirs}")
        if arithmetic:
            self._check_type(call, x)
        if write and len(x) and self._overlap(x, y) and not self._same(x, y):
            raise InvalidPointerError(self.where, y, "x and y overlap, and are not the same")

    def _check_type(self, call: str, x: Pointer) -> None:
        if x.dtype.name not in self.types or not x.dtype.isnative:
            raise NoArithmeticError(call, x.dtype, self.types)

    @abstractmethod
    def _check(self, array: Pointer, argument: str, *, write: bool) -> None:
        """Refuse what is no contiguous row of this device with `InvalidPointerError`."""

    @abstractmethod
    def _overlap(self, x: Pointer, y: Pointer) -> bool:
        """Whether two vectors have bytes in common."""

    @abstractmethod
    def _same(self, x: Pointer, y: Pointer) -> bool:
        """Whether two vectors of one size have all bytes in common."""

    @abstractmethod
    def _axpy(self, alpha: float, x: Pointer, y: Pointer) -> None: ...

    @abstractmethod
    def _scal(self, alpha: float, x: Pointer) -> None: ...

    @abstractmethod
    def _asum(self, x: Pointer) -> float: ...

    @abstractmethod
    def _dot(self, x: Pointer, y: Pointer) -> float: ...

    @abstractmethod
    def _copy(self, x: Pointer, y: Pointer) -> None: ...


def vectors_of(allocator: object) -> Vectors:
    """The vector operations on an allocator's memory.

    An allocator of ours has `DeviceAllocator.vectors`; somebody else's may have it.  Without it, what calls itself
    an allocator of the host, or of nothing in particular, is taken for one of host memory, as a memory takes it.

    Raises
    ------
    InvalidArgumentError
        If it is no allocator, or is of a device and has none.
    """
    if isinstance(allocator, type) or not hasattr(allocator, "allocate"):
        raise InvalidArgumentError("allocator", allocator, "an allocator")
    if make := getattr(allocator, "vectors", None):
        return cast("Vectors", make())
    if getattr(allocator, "device_type", 0) not in _ON_THE_HOST:
        raise InvalidArgumentError("allocator", allocator, "an allocator of the host, or one with vectors()")
    from .host import host_vectors  # noqa: PLC0415 -- it implements what stands here

    return host_vectors()


def check_factor(alpha: Any, argument: str = "alpha") -> float:
    """What vectors are multiplied by, as a float.

    Parameters
    ----------
    alpha : number
    argument : str
        As errors name it.

    Raises
    ------
    InvalidArgumentError
        If it is no real number, or beyond a float's range.
    """
    expected = "a real number that a float can hold"
    if not hasattr(alpha, "__float__"):  # a string has none, and float() would read it
        raise InvalidArgumentError(argument, alpha, expected)
    try:
        return float(alpha)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(argument, alpha, expected) from error
