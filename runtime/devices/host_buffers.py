"""Host memory that the caller hands in: which may be adopted, and the array that it is then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..allocators.pointers import MASKED, Adopted, check_adoptable_size, is_masked

if TYPE_CHECKING:
    from ..allocators.pointers import HostArray

__all__ = ["adopt_host", "foreign_array"]


def adopt_host(buffer: Any, byte_size: int) -> HostArray:
    """Somebody's host memory as a ``uint8`` array of `byte_size` elements, without a copy.

    Parameters
    ----------
    buffer : object
        A NumPy array, an object with the buffer protocol, or an array of another library on the host.
    byte_size : int
        In bytes.  If the buffer is longer, its first bytes are used.

    Returns
    -------
    array
        A view that keeps `buffer` alive.
    """
    if not isinstance(buffer, np.ndarray):
        flat = _flat_buffer(buffer)
        return flat[: check_adoptable_size(flat.size, byte_size)]
    array = cast("np.ndarray[Any, np.dtype[Any]]", buffer)
    flat = _flat_array(array)
    return np.asarray(cast("Any", Adopted(array, flat[: check_adoptable_size(flat.size, byte_size)])))


def foreign_array(buffer: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of another library that has no buffer protocol, such as PyTorch's, as one of NumPy's over its bytes."""
    if hasattr(buffer, "cpu_data"):
        raise ValueError("it is a memory itself; hand in what its mutable_cpu_data() returns")
    if hasattr(buffer, "__array_interface__"):
        return np.asarray(buffer)
    if not hasattr(buffer, "__dlpack__"):
        raise ValueError("it is not host memory (no buffer interface)")
    try:
        array = np.from_dlpack(buffer)
    except Exception as error:
        raise ValueError(f"it is not host memory that NumPy can use: {error}") from error
    if not array.flags.writeable and hasattr(buffer, "__array__"):  # NumPy before 2.2 takes every capsule for read-only
        again = np.asarray(buffer)
        return again if again.ctypes.data == array.ctypes.data else array
    return array


def _flat_array(buffer: np.ndarray[Any, np.dtype[Any]]) -> HostArray:
    if is_masked(buffer):
        raise ValueError(f"it is {MASKED}")
    _check_adoptable(buffer.flags.c_contiguous, not buffer.flags.writeable, buffer.dtype.hasobject)
    # asarray: a matrix cannot be flattened.
    return np.asarray(buffer).reshape(-1).view(np.uint8)


def _flat_buffer(buffer: Any) -> HostArray:
    try:
        view = memoryview(buffer)
    except (TypeError, BufferError):
        return _flat_array(foreign_array(buffer))
    _check_adoptable(view.c_contiguous, view.readonly, _holds_objects(view))
    return np.frombuffer(view, np.uint8)


def _holds_objects(view: memoryview) -> bool:
    """Whether there are Python objects in a buffer; its exporter knows this best."""
    owner: Any = view.obj
    if isinstance(owner, np.ndarray):
        return bool(cast("np.ndarray[Any, np.dtype[Any]]", owner).dtype.hasobject)
    # In a format string "O" means a Python object, except in the name of a field, which is between colons.
    return "O" in re.sub(":.*?:", "", view.format)


def _check_adoptable(contiguous: bool, read_only: bool, holds_objects: bool) -> None:
    if not contiguous:
        raise ValueError("it is not contiguous")
    if read_only:
        raise ValueError("it is read-only, and the device is copied back into it")
    if holds_objects:
        raise ValueError("it holds Python objects")
