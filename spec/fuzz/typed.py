"""Allocators of arrays: ``allocate(shape, dtype, device_id, layout_map, byte_alignment)``, as gt4py has them.

A request for bytes becomes one for an array of bytes: with one dimension if the size is odd, else with two, in the
order of C or of Fortran.  Contents are written and read through the array, so its shape and its strides are tested too.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

from .capabilities import Capabilities
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["from_typed", "is_typed"]

_NEEDED = {"shape", "dtype", "byte_alignment"}


def is_typed(subject: Any) -> bool:
    """Whether an object allocates arrays by shape, type and alignment."""
    return set(_names(getattr(subject, "allocate", None))) >= _NEEDED


def _names(function: Any) -> list[str]:
    if not callable(function):
        return []
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # written in another language
        return []


def from_typed(subject: Any) -> Target:
    """The target for such an object; its arrays are freed when they are dropped."""
    allocate: Callable[..., Any] = subject.allocate
    known, dtype = _names(allocate), _bytes_type()

    def take(size: int, alignment: int = 1) -> _Array:
        shape, layout = _shape(size)
        offered = {"shape": shape, "dtype": dtype, "byte_alignment": alignment, "device_id": 0, "layout_map": layout}
        return _Array(allocate(**{name: offered[name] for name in known if name in offered}))

    return Target(
        kind="allocate with a shape",
        subject=subject,
        capabilities=Capabilities(host_readable=False),
        take=take,
        give=lambda handle, _: handle.drop(),
        take_aligned=take,
        read=_read,
        write=_write,
    )


def _shape(size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape for a number of bytes, and the order of its dimensions in memory."""
    if size % 2:
        return (size,), (0,)
    return (2, size // 2), ((0, 1) if size % 4 else (1, 0))


def _bytes_type() -> Any:
    """The type of an element: gt4py has its own description of types."""
    numpy: Any = importlib.import_module("numpy")
    gt4py: Any = sys.modules.get("gt4py._core.definitions")
    return numpy.dtype("uint8") if gt4py is None else gt4py.dtype(numpy.uint8)


def _read(handle: _Array, size: int) -> bytes:
    return b"".join(row.tobytes() for row in _rows(handle, size))


def _write(handle: _Array, data: bytes) -> None:
    library: Any = sys.modules[type(handle.ndarray).__module__.partition(".")[0]]  # NumPy or CuPy
    written = 0
    for row in _rows(handle, len(data)):
        row[...] = library.frombuffer(data[written : written + len(row)], dtype="uint8")
        written += len(row)


def _rows(handle: _Array, size: int) -> list[Any]:
    """The first bytes of an array, row by row: of a large block only some are written and read."""
    array = handle.ndarray
    rows = array if array.ndim > 1 else array[None]
    starts = range(0, size, max(rows.shape[1], 1))
    return [row[: size - start] for row, start in zip(rows, starts, strict=False)]


class _Array:
    """Holds the only reference to an array."""

    def __init__(self, held: Any) -> None:
        self._held = held

    @property
    def ndarray(self) -> Any:
        """The array itself."""
        return getattr(self._held, "ndarray", self._held)

    @property
    def ptr(self) -> int:
        """The address of its first element."""
        array = self.ndarray
        interface: Any = getattr(array, "__array_interface__", None) or array.__cuda_array_interface__
        return int(interface["data"][0])

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return int(self.ndarray.nbytes)

    def drop(self) -> None:
        """Drop it."""
        self._held = None
