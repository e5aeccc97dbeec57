"""`SimulatedArray`: what users of the simulated device hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pointers import HostArray
    from .simulated_block import Block
    from .simulation import SimulatedStream, Space

__all__ = ["SimulatedArray"]


class SimulatedArray:
    """Bytes on a simulated device: one-dimensional, ``uint8``, reached only through `get` and `set`.

    Like ``cupy.ndarray`` it refuses to become a NumPy array by accident.
    """

    __slots__ = ("__weakref__", "_block", "_offset", "_read_only", "_size", "_space")

    dtype = np.dtype(np.uint8)
    ndim = 1

    def __init__(self, space: Space, block: Block, offset: int, size: int, *, read_only: bool = False) -> None:
        self._space = space
        self._block = block
        self._offset = offset
        self._read_only = read_only
        self._size = size

    @property
    def size(self) -> int:
        """The length in elements, which are bytes."""
        return self._size

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._size

    @property
    def shape(self) -> tuple[int]:
        """The length as a shape."""
        return (self.size,)

    @property
    def ptr(self) -> int:
        """The pretended address."""
        return self._block.address + self._offset

    @property
    def ordinal(self) -> int:
        """The device the bytes are on."""
        return self._space.ordinal

    @property
    def read_only(self) -> bool:
        """Whether `set` is refused."""
        return self._read_only

    def get(self) -> HostArray:
        """A copy of the bytes on the host, after everything the default stream holds."""
        with self._space.entered():
            self._space.default_stream.synchronize()
            return self.raw(self.size).copy()

    def set(self, data: Any, stream: SimulatedStream | None = None) -> None:
        """Write host bytes here, at once or on a stream.

        Parameters
        ----------
        data : buffer
            Contiguous, exactly as many bytes as this array has.
        stream : SimulatedStream or None

        Raises
        ------
        ValueError
            If this view is read-only, or `data` is not contiguous or has another length.
        InvalidArgumentError
            If `stream` is none of this device.
        """
        if self._read_only:
            raise ValueError("this view is read-only; mutable_gpu_data() gives a writeable one")
        source = np.frombuffer(data, np.uint8)
        if source.size != self.size:
            raise ValueError(f"cannot set {self.size} bytes from {source.size}")
        if stream is not None:
            self._space.check_stream(stream)
        with self._space.entered():
            self._space.now(stream, lambda: np.copyto(self.raw(self.size), source))

    def view(self) -> Self:
        """A new array object over the same bytes."""
        return self.viewer()()

    def viewer(self) -> Callable[[], Self]:
        """What `view` does, ready to be done often."""
        kind, read_only = type(self), self._read_only
        return partial(kind, self._space, self._block, self._offset, self._size, read_only=read_only)

    def as_read_only(self) -> Self:
        """A new array object over the same bytes that cannot be written through."""
        return type(self)(self._space, self._block, self._offset, self._size, read_only=True)

    def raw(self, size: int) -> HostArray:
        """The first bytes themselves; for the device, not for its users."""
        return self._block.bytes(self._offset, size)

    def shares(self, other: SimulatedArray) -> bool:
        """Whether two arrays have bytes in common."""
        start, stop = max(self._offset, other._offset), min(self._offset + self.size, other._offset + other.size)
        return self._block is other._block and start < stop

    def belongs_to(self, space: Space) -> bool:
        """Whether the bytes are in that memory space."""
        return self._space is space

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: slice) -> Self:
        if not isinstance(key, slice):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise TypeError("a simulated array is sliced, not indexed; use .get()")
        start, stop, step = key.indices(self.size)
        if step != 1:
            raise ValueError("a simulated array is contiguous; slice it with step 1")
        return type(self)(
            self._space, self._block, self._offset + start, max(stop - start, 0), read_only=self._read_only
        )

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError("memory of a simulated device is not host memory; use .get()")

    def __repr__(self) -> str:
        kind = ", read-only" if self._read_only else ""
        return f"<SimulatedArray {self.size} bytes at {self.ptr:#x} on device {self.ordinal}{kind}>"
