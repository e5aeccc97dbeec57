"""`Kernels`: what the kernels of CUDA and of OpenCL have in common, which is all but how each library makes them.

How an element is loaded and stored is text, so that one formula serves all types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ElementType", "Kernels"]


class ElementType(NamedTuple):
    """How kernels see a type: as what it is stored, in what it is computed, and how to get there and back."""

    storage: str
    compute: str
    load: str
    store: str


class Kernels:
    """The kernels of a device for each operation and type, made when they are first needed.

    Two threads may make one twice, which is no harm.

    Parameters
    ----------
    types : mapping of str to ElementType
    wide : str
        What sums are computed in.
    elementwise : callable
        ``elementwise(name, dtype, arrays, value)`` makes a kernel that takes ``alpha`` and some arrays, and writes a
        value to the last of them.
    reduction : callable
        ``reduction(name, dtype, arrays, term)`` makes one that adds up a term of each element.
    """

    def __init__(
        self,
        types: Mapping[str, ElementType],
        wide: str,
        elementwise: Callable[[str, str, tuple[str, ...], str], Any],
        reduction: Callable[[str, str, tuple[str, ...], str], Any],
    ) -> None:
        self._types = types
        self._wide = wide
        self._elementwise = elementwise
        self._reduction = reduction
        self._made: dict[tuple[str, str], Any] = {}

    def factor(self, alpha: float, dtype: str) -> Any:
        """A factor, rounded to what elements of a type are computed in."""
        with np.errstate(all="ignore"):
            return np.dtype(self._types[dtype].compute).type(alpha)

    def get(self, name: str, dtype: str) -> Any:
        """The kernel of ``axpy``, ``scal``, ``asum`` or ``dot`` for a type."""
        if (name, dtype) not in self._made:
            x, y = (self._types[dtype].load.format(array) for array in "xy")
            wide = self._wide
            if name in ("axpy", "scal"):
                make, value = self._elementwise, f"{y} + alpha * {x}" if name == "axpy" else f"alpha * {x}"
            else:
                make, value = (
                    self._reduction,
                    f"({wide})({x}) * ({wide})({y})" if name == "dot" else f"fabs(({wide})({x}))",
                )
            self._made[name, dtype] = make(name, dtype, ("x", "y") if name in ("axpy", "dot") else ("x",), value)
        return self._made[name, dtype]
