"""`Kernels`: what the kernels of CUDA and of OpenCL have in common; only the libraries that compile them differ.

How an element is loaded and stored is text of the kernel, so one formula serves all types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

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
        self._made: dict[tuple[str, np.dtype[Any]], Any] = {}

    def get(self, name: str, dtype: np.dtype[Any]) -> Any:
        """The kernel of ``axpy``, ``scal``, ``asum``, ``dot`` or ``sumsq`` for a type."""
        kernel = self._made.get((name, dtype))
        if kernel is None:
            # A type makes its name anew each time that it is asked for.
            kernel = self._made[name, dtype] = self._make(name, dtype.name)
        return kernel

    def _make(self, name: str, dtype: str) -> Any:
        x, y = (self._types[dtype].load.format(array) for array in "xy")
        wide = self._wide
        if name == "axpy":
            return self._elementwise(name, dtype, ("x", "y"), f"{y} + alpha * {x}")
        if name == "scal":
            return self._elementwise(name, dtype, ("x",), f"alpha * {x}")
        if name == "dot":
            return self._reduction(name, dtype, ("x", "y"), f"({wide})({x}) * ({wide})({y})")
        if name == "sumsq":
            return self._reduction(name, dtype, ("x",), f"({wide})({x}) * ({wide})({x})")
        return self._reduction(name, dtype, ("x",), f"fabs(({wide})({x}))")
