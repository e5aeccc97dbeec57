"""What tests say to the stand-in for CUDA (tests/hostcuda): fail, wait, count.  Only where it is loaded."""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["FREES", "LAUNCH_FAILURE", "NO_MEMORY", "UNKNOWN", "HostCUDA", "hostcuda"]

NO_MEMORY, LAUNCH_FAILURE, UNKNOWN = 2, 719, 999
"""``cudaErrorMemoryAllocation``, ``cudaErrorLaunchFailure``, ``cudaErrorUnknown``."""

FREES = frozenset({"cudaFree", "cudaFreeHost", "cudaEventDestroy", "cudaStreamDestroy"})
"""Calls that CuPy makes in destructors: nobody can be told that one failed, and what it should have freed is lost."""

_KINDS = ("device blocks", "pinned blocks", "streams", "events")


class HostCUDA:
    """The library, as it is loaded in this process."""

    NAME = "hostcuda, not a GPU"

    def __init__(self) -> None:
        if "hostcuda_cupy" not in sys.modules:
            pytest.skip("needs the stand-in for CUDA: make test-hostcuda", allow_module_level=True)
        importlib.import_module("cupy")  # loads the library
        self._library = ctypes.CDLL("libcuda.so.1")
        self._library.hostcuda_call_name.restype = ctypes.c_char_p

    @property
    def calls(self) -> int:
        """How many calls there have been."""
        return int(self._library.hostcuda_calls())

    def most_blocks(self) -> int:
        """The most blocks of any launch since the last time this was asked."""
        return int(self._library.hostcuda_most_blocks())

    @contextmanager
    def recorded(self) -> Generator[list[str]]:
        """The names of the calls inside, once it is left."""
        names: list[str] = []
        first = self.calls
        yield names
        names.extend(self._library.hostcuda_call_name(number).decode() for number in range(first, self.calls))

    @contextmanager
    def failing(self, k: int, error: int = UNKNOWN, name: str = "*") -> Generator[None]:
        """Inside, the k-th call of a function fails; of any, if none is named."""
        self._library.hostcuda_fail(name.encode(), ctypes.c_long(k), error)
        try:
            yield
        finally:
            self._library.hostcuda_fail(b"*", ctypes.c_long(0), 0)

    @contextmanager
    def failing_operation(self, k: int, error: int = LAUNCH_FAILURE) -> Generator[None]:
        """Inside, the k-th queued operation fails, and then every call; afterwards that is forgotten."""
        self._library.hostcuda_fail_operation(ctypes.c_long(k), error)
        try:
            yield
        finally:
            self._library.hostcuda_fail_operation(ctypes.c_long(0), 0)
            self._library.hostcuda_recover()

    @contextmanager
    def lag(self, microseconds: int) -> Generator[None]:
        """Inside, so long is waited before each queued operation.  Those that still wait go on when it is left."""
        before = self._library.hostcuda_lag(ctypes.c_long(microseconds))
        try:
            yield
        finally:
            self._library.hostcuda_lag(ctypes.c_long(before))

    def live(self, kind: str) -> int:
        """How many there are: of device blocks, pinned blocks, streams, events, threads, or modules."""
        count = int(self._library.hostcuda_live(kind.encode()))
        assert count >= 0, kind
        return count

    def everything(self) -> dict[str, int]:
        """How many there are of what somebody has to give back."""
        gc.collect()
        return {kind: self.live(kind) for kind in _KINDS}


hostcuda = HostCUDA()
