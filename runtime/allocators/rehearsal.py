"""Asks NumPy what it would do, before anything is computed, copied or queued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["rehearse"]


def rehearse(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """The result of an element-wise function for operands of the same types, without their elements.

    It has the type of the real result.  What NumPy cannot compute with these types it refuses here.
    """
    with np.errstate(all="ignore"):
        return function(*map(_emptied, operands), **options)


def _emptied(operand: Any) -> Any:
    """An array without the elements of an operand; a number as it is, because Python's have no type of NumPy."""
    dtype: object = getattr(operand, "dtype", None)
    if isinstance(dtype, np.dtype):  # also of an array of a device, and of a blob: their elements stay where they are
        return np.empty(0, operand.dtype)
    return operand if np.ndim(operand) == 0 else np.empty(0, np.asarray(operand).dtype)
