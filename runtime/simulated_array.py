"""`SimulatedArray`: what users of the simulated device hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidPointerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pointers import HostArray
    from .simulated_block import Block
    from .simulation import SimulatedStream, Space

__all__ = ["BYTES", "SimulatedArray"]

BYTES = np.dtype(np.uint8)
"""What allocators hand out rows of."""

_NUMBERS = "biufc"
"""The kinds of types that arrays of other devices have too: truth values, integers, floating and complex numbers."""


class SimulatedArray:
    """Memory of a simulated device: a row of items, reached only through `get` and `set`.

    Allocators hand out rows of bytes, ``uint8``; `view` gives them another type.  It takes what ``cupy.ndarray`` and
    ``pyopencl.array.Array`` both take, and like the first it refuses to become a NumPy array by accident.
    """

    __slots__ = ("__weakref__", "_block", "_dtype", "_nbytes", "_offset", "_read_only", "_space")

    ndim = 1

    def __init__(  # noqa: PLR0913 -- where the bytes are, and how they are looked at
        self,
        space: Space,
        block: Block,
        offset: int,
        nbytes: int,
        dtype: np.dtype[Any] = BYTES,
        read_only: bool = False,
    ) -> None:
        self._space = space
        self._block = block
        self._offset = offset
        self._nbytes = nbytes
        self._dtype = dtype
        self._read_only = read_only

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the items."""
        return self._dtype

    @property
    def size(self) -> int:
        """The length in items."""
        return self._nbytes // self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self._nbytes

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

    def get(self) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """A copy of the items on the host, after everything the default stream holds."""
        with self._space.entered():
            self._space.default_stream.synchronize()
            return self.raw(self._nbytes).copy().view(self._dtype)

    def set(self, data: Any, stream: SimulatedStream | None = None) -> None:
        """Write items from the host here, at once or on a stream.

        Parameters
        ----------
        data : numpy.ndarray
            C-contiguous, with the shape and the type of this array: ``array.view(np.float32).set(floats)``.
        stream : SimulatedStream or None

        Raises
        ------
        InvalidArgumentError
            If `data` is anything else, or `stream` is none of this device.
        InvalidPointerError
            If this view is read-only.
        """
        if self._read_only:
            reason = "this view is read-only; mutable_gpu_data() gives a writeable one"
            raise InvalidPointerError(f"simulated:{self.ordinal}", self, reason)
        source = self._source(data)
        if stream is not None:
            self._space.check_stream(stream)
        with self._space.entered():
            self._space.now(stream, lambda: np.copyto(self.raw(self._nbytes), source))

    def _source(self, data: object) -> HostArray:
        """The bytes of what `set` takes.

        CuPy refuses another type or shape, PyOpenCL what is not contiguous, and both what is no array.
        """
        expected = f"a C-contiguous numpy.ndarray of shape {self.shape} and type {self._dtype}"
        if not isinstance(data, np.ndarray):
            raise InvalidArgumentError("data", data, expected)
        array = cast("np.ndarray[Any, np.dtype[Any]]", data)
        if (array.dtype, array.shape) != (self._dtype, self.shape) or not array.flags.c_contiguous:
            raise InvalidArgumentError("data", array, expected)
        return np.asarray(array).view(np.uint8)  # asarray: a masked array is more than its items

    def view(self, dtype: Any = None) -> Self:
        """A new array object over the same bytes.

        Parameters
        ----------
        dtype : type of numbers, or None
            What the bytes are looked at as; None for what they are looked at as here.

        Raises
        ------
        InvalidArgumentError
            If it is no type of numbers, or these bytes are no whole number of them.
        """
        kind = self._dtype if dtype is None else self._kind(dtype)
        return type(self)(self._space, self._block, self._offset, self._nbytes, kind, read_only=self._read_only)

    def _kind(self, dtype: Any) -> np.dtype[Any]:
        """The type of numbers that an argument of `view` names."""
        expected = f"a type of numbers, of which {self._nbytes} bytes are a whole number"
        try:
            kind: np.dtype[Any] = np.dtype(dtype)
        except Exception as error:
            raise InvalidArgumentError("dtype", dtype, expected) from error
        if kind.kind not in _NUMBERS or self._nbytes % kind.itemsize:
            raise InvalidArgumentError("dtype", dtype, expected)
        return kind

    def viewer(self) -> Callable[[], Self]:
        """What `view` does without a type, ready to be done often."""
        # No argument by name: that would take longer each time.
        return partial(type(self), self._space, self._block, self._offset, self._nbytes, self._dtype, self._read_only)

    def as_read_only(self) -> Self:
        """A new array object over the same bytes that cannot be written through."""
        return type(self)(self._space, self._block, self._offset, self._nbytes, self._dtype, read_only=True)

    def raw(self, nbytes: int) -> HostArray:
        """The first bytes themselves; for the device, not for its users."""
        return self._block.bytes(self._offset, nbytes)

    def shares(self, other: SimulatedArray) -> bool:
        """Whether two arrays have bytes in common."""
        start, stop = max(self._offset, other._offset), min(self._offset + self.nbytes, other._offset + other.nbytes)
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
        item = self._dtype.itemsize
        offset, nbytes = self._offset + start * item, max(stop - start, 0) * item
        return type(self)(self._space, self._block, offset, nbytes, self._dtype, read_only=self._read_only)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError("memory of a simulated device is not host memory; use .get()")

    def __repr__(self) -> str:
        items = "bytes" if self._dtype == BYTES else self._dtype.name
        kind = ", read-only" if self._read_only else ""
        return f"<SimulatedArray {self.size} {items} at {self.ptr:#x} on device {self.ordinal}{kind}>"
