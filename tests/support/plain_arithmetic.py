"""Arithmetic written for clarity and not for speed: tests compare the fast functions with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
SUMS = {"float64": 2.0**-40, "float32": 2.0**-14, "float16": 2.0**-14, "bfloat16": 2.0**-14}
"""The relative errors of sums that the text in runtime/allocators/arithmetic.py promises."""


def wide(x: Any) -> Any:
    """Return the same numbers with at least eleven more digits."""
    return np.asarray(x).astype(np.float64).astype(np.longdouble)


def factor(alpha: float, dtype: str) -> Any:
    """Return alpha in the precision of the computation."""
    with np.errstate(all="ignore"):
        return np.longdouble(alpha if dtype == "float64" else float(np.float32(alpha)))


def axpy(alpha: float, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the new elements of `y` in higher precision, and the largest error that a result may have."""
    name = x.dtype.name
    with np.errstate(all="ignore"):
        product = factor(alpha, name) * wide(x)
        bound = 3 * ROUNDOFF[name] * (np.abs(product) + np.abs(wide(y))) + SMALLEST[name]
        return wide(y) + product, bound


def scal(alpha: float, x: Any) -> tuple[Any, Any]:
    """Return the same for ``x *= alpha``."""
    name = x.dtype.name
    with np.errstate(all="ignore"):
        product = factor(alpha, name) * wide(x)
        return product, 2 * ROUNDOFF[name] * np.abs(product) + SMALLEST[name]


def dot(x: Any, y: Any) -> tuple[float, float]:
    """Return a sum of products, and the largest error that a result may have."""
    with np.errstate(all="ignore"):
        return _sum(wide(x) * wide(y), x.dtype.name)


def asum(x: Any) -> tuple[float, float]:
    """Return the same for a sum of magnitudes."""
    return _sum(np.abs(wide(x)), x.dtype.name)


def _sum(terms: Any, name: str) -> tuple[float, float]:
    if not np.isfinite(terms).all():
        with np.errstate(all="ignore"):
            return float(np.sum(terms)), 0.0
    small = np.count_nonzero(np.abs(terms) < 2.0**-1000)
    bound = SUMS[name] * math.fsum(np.abs(terms).astype(np.float64)) + (small * 2.0**-1074 if name == "float64" else 0)
    return float(np.sum(terms)), float(bound)
