"""`Kernels`: what the kernels of CUDA and of OpenCL have in common; only the libraries that compile them differ.

How an element is loaded and stored is text of the kernel, so one formula serves all types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ElementType", "Kernels"]


class ElementType(NamedTuple):
    """How kernels handle a type: what it is stored as, what it is computed in, and how to load and store it."""

    storage: str
    compute: str
    load: str
    store: str


class Kernels:
    """The kernels of a device for each operation and type, compiled when they are first needed.

    Two threads may compile the same kernel at once; this does no harm.

    Parameters
    ----------
    types : mapping of str to ElementType
    wide : str
        The type in which sums are computed.
    elementwise : callable
        ``elementwise(name, dtype, arrays, value)`` makes a kernel that takes ``alpha`` and some arrays, and writes
        `value` to the last array.
    reduction : callable
        ``reduction(name, dtype, arrays, term)`` makes a kernel that adds up `term` over all elements.
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
        """A factor, rounded to the type in which elements of `dtype` are computed."""
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
