"""Arithmetic where the elements are: `Arithmetic`, and `arithmetic_of` an allocator.

Little is needed: ``y += alpha x``, ``x *= alpha``, sums of magnitudes, squares and products, and a copy.  Each
operation touches every element once and computes almost nothing with it, so it is as fast as the memory.  A device
implements six short methods with the arithmetic of its own library: NumPy, CuPy or PyOpenCL.  The checks of the
arguments are the same for all devices, and are in this module.

**Operands.**  An operand is a one-dimensional contiguous array of the device's own kind.  Two operands have the same
type and the same length.  They may be the same array.  They may not overlap in part, because then the order of the
elements would matter.  There is arithmetic for ``float32`` and ``float64``, and for ``float16`` and ``bfloat16`` if the
device has them.  Integers can only be copied, as in Caffe.

**Accuracy.**  *u* is the unit roundoff (2**-53 in float64, 2**-24 in float32, 2**-11 in float16, 2**-8 in bfloat16),
and *t* is the smallest positive number of the type.  Compared with exact arithmetic, the error is at most:

============================ ==============================================================
``axpy``                     ``3 u (|alpha x| + |y|) + t`` for each element
``scal``                     ``2 u |alpha x| + t`` for each element
``asum``, ``sumsq``, ``dot`` 2**-40 times the sum of the magnitudes of all terms in
                             ``float64``, 2**-14 times in all other types, and one *t* for
                             each term that is smaller than that
============================ ==============================================================

Sums are Python floats, and the host's do not depend on the number of threads.  They overflow where a Python float does,
not where ``float32`` would.  *alpha* is first rounded to the type of the computation: ``float64`` for ``float64``, and
``float32`` for all other types.  Infinities and NaN follow the rules of IEEE 754: ``0 * nan`` is NaN.  None of this
gives a warning, and NumPy's own error settings change nothing.

**Order.**  As for `DeviceAllocator.memcpy` without a stream: an operation runs after all work on the device's current
stream, and has finished when it returns.

**After an error** nothing has changed.  There is one exception: an interrupt (``KeyboardInterrupt``) may come while
``axpy`` or ``scal`` is running.  Then some elements are already changed and others are not, and nothing is running any
more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoArithmeticError
from syncedmem.model.interface import DeviceType, is_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

__all__ = ["OF_DEVICES", "Arithmetic", "arithmetic_of", "check_factor", "check_type"]

_NAMES = {np.dtype(name): name for name in ("float16", "float32", "float64")}
"""The names of the usual types: NumPy makes a name anew each time that it is asked for."""


class Arithmetic(ABC):
    """Arithmetic on the memory of one device.

    Operands are checked as the module says.  Every method raises `InvalidPointerError` or `NoArithmeticError` if an
    operand is refused, and has then changed nothing.

    Attributes
    ----------
    where : str
        The device, as errors show it.
    types : tuple of str
        The names of the element types that have arithmetic.
    on_host : bool
        Whether the host computes, with memory that it can map.
    """

    where: str
    on_host: bool = False
    types: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64")

    def axpy(self, alpha: SupportsFloat, x: Pointer, y: Pointer) -> None:
        """``y += alpha * x``; raises `InvalidArgumentError` if `alpha` is no real number."""
        factor = check_factor(alpha)
        self._check_two("axpy", x, y, write=True)
        self.axpy_rows(factor, x, y)

    def axpy_rows(self, alpha: float, x: Pointer, y: Pointer) -> None:
        """As `axpy`, and nothing is checked: for rows that `axpy` has taken before, and that have not changed."""
        if len(y):
            self._each("axpy", alpha, x, y)

    def scal(self, alpha: SupportsFloat, x: Pointer) -> None:
        """``x *= alpha``; raises `InvalidArgumentError` if `alpha` is no real number."""
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
        """Copy the elements of `x` to `y`, bit for bit; they may be of any type, integers too."""
        self._check_two("copy", x, y, write=True, arithmetic=False)
        if len(y) and not self._same(x, y):
            self._copy(x, y)

    def _check_one(self, call: str, x: Pointer, *, write: bool = False) -> None:
        """Check an array before anything is done with it.

        Raises
        ------
        InvalidPointerError
            If it is not a contiguous row of elements on this device, or is read-only and would be written.
        NoArithmeticError
            If there is no arithmetic for its elements.
        """
        self._check(x, "x", write=write)
        check_type(call, x.dtype, self.types)

    def _check_two(self, call: str, x: Pointer, y: Pointer, *, write: bool = False, arithmetic: bool = True) -> None:
        """Check two arrays: each as above, of one type and length, and without a partial overlap if `y` is written."""
        self._check(x, "x", write=False)
        self._check(y, "y", write=write)
        if x.dtype != y.dtype or len(x) != len(y):
            theirs = f"{len(x)} of {x.dtype}"
            raise InvalidPointerError(self.where, y, f"y must have as many elements as x, of the same type: {theirs}")
        if arithmetic:
            check_type(call, x.dtype, self.types)
        if write and len(x) and self._overlap(x, y) and not self._same(x, y):
            raise InvalidPointerError(self.where, y, "x and y overlap, and are not the same")

    @abstractmethod
    def _check(self, array: Pointer, argument: str, *, write: bool) -> None:
        """Raise `InvalidPointerError` if `array` is not a contiguous row of elements on this device."""

    @abstractmethod
    def _overlap(self, x: Pointer, y: Pointer) -> bool:
        """Whether two arrays have bytes in common."""

    @abstractmethod
    def _same(self, x: Pointer, y: Pointer) -> bool:
        """Whether two arrays of one size have all bytes in common."""

    @abstractmethod
    def _each(self, name: str, alpha: float, *arrays: Pointer) -> None:
        """Do ``axpy`` or ``scal``; the last array is the one that is written."""

    @abstractmethod
    def _total(self, name: str, *arrays: Pointer) -> float:
        """The result of ``asum`` or ``dot``."""

    @abstractmethod
    def _copy(self, x: Pointer, y: Pointer) -> None:
        """Copy the bytes of `x` to `y`."""


OF_DEVICES: dict[DeviceType, Callable[[], Arithmetic]] = {}
"""For each kind of device, the arithmetic for an allocator that has none itself; each device registers its own here."""


def arithmetic_of(allocator: object) -> Arithmetic:
    """The arithmetic on an allocator's memory.

    Our allocators have `DeviceAllocator.arithmetic`; somebody else's allocator may have it too.  If an allocator of
    host memory does not have it, it gets the host's arithmetic.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is no allocator, or is an allocator of a device and has no arithmetic.
    """
    if isinstance(allocator, type) or not hasattr(allocator, "allocate"):
        raise InvalidArgumentError("allocator", allocator, "an allocator")
    if make := getattr(allocator, "arithmetic", None):
        arithmetic: Arithmetic = make()
        return arithmetic
    if not is_host(allocator):
        raise InvalidArgumentError("allocator", allocator, "an allocator of the host, or one with arithmetic()")
    return OF_DEVICES[DeviceType.CPU]()


def check_type(call: str, dtype: np.dtype[Any], types: tuple[str, ...]) -> None:
    """Refuse a type of elements that is none of those that have arithmetic."""
    if (_NAMES.get(dtype) or (dtype.name if dtype.isnative else "")) not in types:
        raise NoArithmeticError(call, dtype, types)


def check_factor(alpha: Any, argument: str = "alpha") -> float:
    """The factor by which elements are multiplied, as a float.

    Parameters
    ----------
    alpha : number
    argument : str
        The name of the argument in errors.
    """
    expected = "a real number that a float can hold"
    if not hasattr(alpha, "__float__"):  # a string has no __float__, but float() would accept it
        raise InvalidArgumentError(argument, alpha, expected)
    try:
        return float(alpha)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(argument, alpha, expected) from error
