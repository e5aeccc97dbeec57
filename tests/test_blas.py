"""The ``asum`` of the BLAS that NumPy has loaded: found, tried out, and done without where it is not good enough."""

from __future__ import annotations

import ctypes
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.runtime.vectors import blas

if TYPE_CHECKING:
    from collections.abc import Callable

FLOAT32 = np.dtype(np.float32)


def elements(count: int, address: int) -> Any:
    """The numbers at an address."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def faultless(count: int, address: int, _: int) -> float:
    return float(np.abs(elements(count, address)).sum(dtype=np.float64))


def signed(count: int, address: int, _: int) -> float:
    return float(elements(count, address).sum(dtype=np.float64))


def even(count: int, address: int, _: int) -> float:
    return faultless(count & ~1, address, 1)


def deaf(special: float) -> Callable[[int, int, int], float]:
    def summed(count: int, address: int, _: int) -> float:
        total = faultless(count, address, 1)
        return 1.0 if np.array_equal(total, special, equal_nan=True) else total

    return summed


def one_by_one(count: int, address: int, _: int) -> float:
    return float(np.add.accumulate(np.abs(elements(count, address)))[-1])


def test_a_faultless_function_is_trusted() -> None:
    assert blas.trusted(faultless, FLOAT32)


@pytest.mark.parametrize("wrong", [signed, even, deaf(math.nan), deaf(math.inf), one_by_one])
def test_a_wrong_function_is_not(wrong: Any) -> None:
    """It sums signs too, drops the odd end, loses NaN or infinity, or keeps a single sum that large numbers swallow."""
    assert not blas.trusted(wrong, FLOAT32)


def test_what_is_found_and_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_its_end(*_: int) -> float:
        return 1.0

    def opened(_: object) -> SimpleNamespace:
        return SimpleNamespace(cblas_sasum=without_its_end)

    monkeypatch.setattr(ctypes, "CDLL", opened)
    assert blas.magnitudes() == {}


def test_where_there_is_no_such_library_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert blas.magnitudes() == {}


def test_what_is_found_here_sums_magnitudes() -> None:
    for dtype, summed in blas.magnitudes().items():
        x = np.array([1, -2, 3], dtype)
        assert summed(3, x.ctypes.data, 1) == 6
