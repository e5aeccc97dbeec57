"""Allocators of tensors, in the shapes of PyTorch: correct ones, and ones with a seeded bug."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_MOST = 1 << 40


class Storage:
    """The shape of PyTorch's ``UntypedStorage``."""

    def __init__(self, size: int) -> None:
        if size > _MOST:
            raise RuntimeError("the allocator cannot allocate memory")
        self._size = size
        self._memory = ctypes.create_string_buffer(max(size, 1))

    def nbytes(self) -> int:
        return self._size

    def data_ptr(self) -> int:
        return ctypes.addressof(self._memory) if self._size else 0


class Tensor:
    """The shape of a PyTorch tensor of bytes with one dimension."""

    def __init__(self, storage: Storage, size: int) -> None:
        self._storage = storage
        self._size = size

    def untyped_storage(self) -> Storage:
        return self._storage

    def data_ptr(self) -> int:
        return self._storage.data_ptr()


def empty(size: int) -> Tensor:
    """The shape of ``torch.empty(size, dtype=torch.uint8)``."""
    return Tensor(Storage(size), size)


def cut(size: int) -> Tensor:
    """A tensor whose storage has a byte too few, from a size that is rounded down."""
    return Tensor(Storage(size & ~1), size)


class Cached:
    """An allocator that hands out the last storage again, while a tensor still has it."""

    def __init__(self) -> None:
        self._last = Storage(64)

    def __call__(self, size: int) -> Tensor:
        if size != self._last.nbytes():
            self._last = Storage(size)
        return Tensor(self._last, size)


class DeviceTensor:
    """A tensor whose address the host cannot read; bytes go through a tensor of the host."""

    def __init__(self, array: Any, address: int) -> None:
        self._array = array
        self._address = address

    def untyped_storage(self) -> Any:
        return self

    def nbytes(self) -> int:
        return int(self._array.nbytes)

    def data_ptr(self) -> int:
        return self._address

    def cpu(self) -> DeviceTensor:
        return DeviceTensor(self._array.copy(), 0)

    def numpy(self) -> Any:
        return self._array

    def narrow(self, dimension: int, start: int, length: int) -> DeviceTensor:
        assert (dimension, start) == (0, 0)
        return DeviceTensor(self._array[:length], self._address)

    def copy_(self, other: DeviceTensor) -> None:
        self._array[:] = other.numpy()


class Device:
    """A device with addresses that nothing on the host has."""

    def __init__(self) -> None:
        self._next = 4096

    def __call__(self, size: int) -> DeviceTensor:
        if size > _MOST:
            raise RuntimeError("out of memory")
        address, self._next = self._next, self._next + size
        return DeviceTensor(np.empty(size, np.uint8), address if size else 0)
