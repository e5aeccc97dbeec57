"""Allocators of arrays and tensors, in the shapes of PyTorch and gt4py: correct ones, and ones with a seeded bug."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
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


@dataclass
class Buffer:
    """The shape of gt4py's ``TensorBuffer``."""

    buffer: Any
    ndarray: Any


class Buffers:
    """The shape of gt4py's ``BufferAllocator``: the first element is aligned, and rows are padded."""

    padding = True
    aligned = True

    def allocate(  # noqa: PLR0913, PLR0917 -- as gt4py has it
        self,
        shape: tuple[int, ...],
        dtype: Any,
        device_id: int,
        layout_map: tuple[int, ...],
        byte_alignment: int,
        aligned_index: tuple[int, ...] | None = None,
    ) -> Buffer:
        """Allocate an array whose dimensions are in memory in the order of the layout."""
        assert (device_id, aligned_index) == (0, None)
        if math.prod(shape) > _MOST:
            raise MemoryError(shape)
        order = [layout_map.index(it) for it in range(len(shape))]
        padded = list(shape)
        padded[order[-1]] = -(-shape[order[-1]] // byte_alignment) * byte_alignment
        strides = [1] * len(shape)
        for outer, inner in zip(reversed(order[:-1]), reversed(order[1:]), strict=True):
            strides[outer] = strides[inner] * (padded if self.padding else shape)[inner]
        buffer = np.empty(math.prod(padded) + byte_alignment, dtype)
        start = -buffer.ctypes.data % byte_alignment if self.aligned else 0
        return Buffer(buffer, np.lib.stride_tricks.as_strided(buffer[start:], shape, self.strides(strides)))

    def strides(self, strides: list[int]) -> tuple[int, ...]:
        """The strides of the array."""
        return tuple(strides)


class Crooked(Buffers):
    """The first byte of the buffer is taken for the first element."""

    aligned = False


class Overlapping(Buffers):
    """The rows of an array share their last element with the next row."""

    def strides(self, strides: list[int]) -> tuple[int, ...]:
        """The strides of the array."""
        return tuple(max(it - 1, 1) for it in strides)


class Twice(Buffers):
    """A buffer is handed out again while an array still has it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], Buffer] = {}

    def allocate(  # noqa: PLR0913, PLR0917 -- as gt4py has it
        self,
        shape: tuple[int, ...],
        dtype: Any,
        device_id: int,
        layout_map: tuple[int, ...],
        byte_alignment: int,
        aligned_index: tuple[int, ...] | None = None,
    ) -> Buffer:
        """Allocate an array."""
        made = super().allocate(shape, dtype, device_id, layout_map, byte_alignment, aligned_index)
        return self._kept.setdefault(shape, made)
