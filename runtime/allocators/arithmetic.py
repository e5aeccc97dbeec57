"""Arithmetic where the elements are: `Arithmetic`, and `arithmetic_of` an allocator.

What is needed is little: ``y += alpha x``, ``x *= alpha``, sums of magnitudes, squares and products, and a copy.
Each touches every element once and computes almost nothing with it, so the speed of the memory is the speed of the
operation.  A device implements six short methods, with the arithmetic of its own library: SciPy's BLAS, CuPy, PyOpenCL.
What is checked before, and refused, is the same for all and stands here.

**Operands.**  One-dimensional contiguous arrays of the device's own kind, two of them of one type and one length.
They may be the same array, but may not overlap in part, where the order of elements would matter.  Arithmetic is for
``float32``, ``float64``, and ``float16`` and ``bfloat16`` where the device has them.  Integers can be copied and
nothing else, as in Caffe.

**Accuracy.**  With *u* the unit roundoff (2**-53 in float64, 2**-24 in float32, 2**-11 in float16, 2**-8 in bfloat16)
and *t* the smallest positive number of the type, against exact arithmetic:

============================ ==============================================================
``axpy``                     ``3 u (|alpha x| + |y|) + t`` for each element
``scal``                     ``2 u |alpha x| + t`` for each element
``asum``, ``sumsq``, ``dot`` 2**-40 times the sum of the magnitudes of all terms in
                             ``float64``, 2**-14 times in all other types, and one *t* for
                             each term that is smaller than that
============================ ==============================================================

Sums of ``float32`` on the host are BLAS's own, piece by piece, and BLAS has as many partial sums as the processor's
vectors have elements.  Where a few elements are many orders of magnitude larger than all others, the error may be
larger than 2**-14.  Sums are Python floats and overflow where a float does, not where ``float32`` would.  *alpha* is
first rounded to the type that is computed in: ``float64`` for itself, ``float32`` for all others.  Infinities and NaN
go their usual way, also where BLAS looks away: ``0 * nan`` is NaN.  No warning is given of any of it, and NumPy's own
settings change nothing.

**Order.**  As for `DeviceAllocator.memcpy` without a stream: after what the device's current stream holds, and
finished on return.

**After an error** nothing has changed.  An interrupt (``KeyboardInterrupt``) that comes while ``axpy`` or ``scal`` is
at work is the exception: some elements are then done and others not, and nobody works on them any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoArithmeticError
from syncedmem.model.interface import DeviceType, is_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

__all__ = ["OF_DEVICES", "Arithmetic", "arithmetic_of", "check_factor"]


class Arithmetic(ABC):
    """Arithmetic on the memory of one device.  Every method raises what `_check_two` raises.

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
            self._each("axpy", factor, x, y)

    def scal(self, alpha: SupportsFloat, x: Pointer) -> None:
        """``x *= alpha``."""
        factor = check_factor(alpha)
        self._check_one("scal", x, write=True)
        if len(x):
            self._each("scal", factor, x)

    def asum(self, x: Pointer) -> float:
        """The sum of the magnitudes of all elements: the L1 norm."""
        self._check_one("asum", x)
        return self._total("asum", x) if len(x) else 0.0

    def sumsq(self, x: Pointer) -> float:
        """The sum of the squares of all elements."""
        self._check_one("sumsq", x)
        return self._total("dot", x, x) if len(x) else 0.0

    def dot(self, x: Pointer, y: Pointer) -> float:
        """The sum of the products of the elements of two arrays."""
        self._check_two("dot", x, y)
        return self._total("dot", x, y) if len(x) else 0.0

    def copy(self, x: Pointer, y: Pointer) -> None:
        """Copy `x` to `y`; any type, bit for bit."""
        self._check_two("copy", x, y, write=True, arithmetic=False)
        if len(y) and not self._same(x, y):
            self._copy(x, y)

    def _check_one(self, call: str, x: Pointer, *, write: bool = False) -> None:
        """Look at an array before anything is done.

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
        """Whether two arrays have bytes in common."""

    @abstractmethod
    def _same(self, x: Pointer, y: Pointer) -> bool:
        """Whether two arrays of one size have all bytes in common."""

    @abstractmethod
    def _each(self, name: str, alpha: float, *arrays: Pointer) -> None:
        """Do ``axpy`` or ``scal``; the last array is written."""

    @abstractmethod
    def _total(self, name: str, *arrays: Pointer) -> float:
        """The result of ``asum`` or ``dot``."""

    @abstractmethod
    def _copy(self, x: Pointer, y: Pointer) -> None:
        """Copy bytes."""


OF_DEVICES: dict[DeviceType, Callable[[], Arithmetic]] = {}
"""The arithmetic of memory whose allocator brings none, by where it is: filled in by the device itself."""


def arithmetic_of(allocator: object) -> Arithmetic:
    """The arithmetic on an allocator's memory.

    An allocator of ours has `DeviceAllocator.arithmetic`; somebody else's may have it.  Without it, an allocator of
    host memory has the host's.

    Raises
    ------
    InvalidArgumentError
        If it is no allocator, or is of a device and has none.
    """
    if isinstance(allocator, type) or not hasattr(allocator, "allocate"):
        raise InvalidArgumentError("allocator", allocator, "an allocator")
    if make := getattr(allocator, "arithmetic", None):
        return cast("Arithmetic", make())
    if not is_host(allocator):
        raise InvalidArgumentError("allocator", allocator, "an allocator of the host, or one with arithmetic()")
    return OF_DEVICES[DeviceType.CPU]()


def check_factor(alpha: Any, argument: str = "alpha") -> float:
    """What elements are multiplied by, as a float.

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
