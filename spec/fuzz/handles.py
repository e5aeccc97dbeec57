"""The handles that allocators return: whether they are null, their address and size, and how their bytes are reached.

A handle is an address, or an object of one of many libraries, which is recognised by its attributes.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["address_of", "is_null", "size_of", "through_handle"]


def is_null(handle: Any) -> bool:
    """Whether a result is a null pointer."""
    return handle is None or (isinstance(handle, int) and not handle)


def address_of(handle: Any) -> int:
    """The address that a handle reports; 0 if it reports none."""
    if isinstance(handle, int):
        return handle
    interface: Any = getattr(handle, "__array_interface__", None) or getattr(handle, "__cuda_array_interface__", None)
    if interface is not None:
        return int(interface["data"][0])
    for name in ("ptr", "handle", "device_pointer", "data_ptr"):
        place: Any = getattr(handle, name, None)
        if name == "data_ptr" and callable(place):  # PyTorch's tensors and storages
            place = place()
        if hasattr(place, "__index__"):
            return operator.index(place)
    return 0


def size_of(handle: Any) -> int | None:
    """The number of bytes that a handle reports; None if it reports none."""
    if isinstance(handle, int):
        return None
    storage: Any = getattr(handle, "untyped_storage", None)
    if callable(storage):  # a tensor of PyTorch has the bytes of its storage
        return int(cast("Any", storage()).nbytes())
    return next((size for name in ("nbytes", "size") if isinstance(size := getattr(handle, name, None), int)), None)


def _get(handle: Any, size: int) -> bytes:
    return bytes(handle.get()[:size])


def _set(handle: Any, data: bytes) -> None:
    part = handle[: len(data)]
    host = part.get()  # devices accept only arrays of their own shape and type, such as this one
    memoryview(host).cast("B")[:] = data
    part.set(host)


def _copy_to_host(handle: Any, size: int) -> bytes:
    host = ctypes.create_string_buffer(size)
    handle.copy_to_host(ctypes.c_void_p(ctypes.addressof(host)), size)
    return host.raw


def _copy_from_host(handle: Any, data: bytes) -> None:
    handle.copy_from_host(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _tensor_get(handle: Any, size: int) -> bytes:
    return bytes(handle.cpu().numpy()[:size])


def _tensor_set(handle: Any, data: bytes) -> None:
    part = handle.narrow(0, 0, len(data))  # a tensor of the device, of one dimension
    host = part.cpu()
    memoryview(host.numpy()).cast("B")[:] = data
    part.copy_(host)


def _buffer_get(handle: Any, size: int) -> bytes:
    return bytes(memoryview(handle).cast("B")[:size])


def _buffer_set(handle: Any, data: bytes) -> None:
    memoryview(handle).cast("B")[: len(data)] = data


_THROUGH: tuple[tuple[tuple[str, ...], Callable[[Any, int], bytes], Callable[[Any, bytes], object]], ...] = (
    (("get", "set"), _get, _set),
    (("copy_to_host", "copy_from_host"), _copy_to_host, _copy_from_host),
    (("untyped_storage",), _tensor_get, _tensor_set),
)
"""The methods by which a kind of handle is recognised, and the functions that read and write its bytes."""


def through_handle(handle: Any) -> tuple[Callable[[Any, int], bytes], Callable[[Any, bytes], object]] | None:
    """Functions that read and write the bytes of a handle like this one; None if the handle has none."""
    for methods, read, write in _THROUGH:
        if all(callable(getattr(handle, name, None)) for name in methods):
            return read, write
    library = sys.modules.get(type(handle).__module__.partition(".")[0])
    if hasattr(library, "enqueue_copy") and callable(getattr(handle, "get_info", None)):
        return _opencl(library, handle)
    try:
        writeable = not memoryview(handle).readonly
    except TypeError:
        return None
    return (_buffer_get, _buffer_set) if writeable else None


def _opencl(library: Any, handle: Any) -> tuple[Callable[[Any, int], bytes], Callable[[Any, bytes], object]]:
    """Functions for a buffer of OpenCL, with a queue of its own context."""
    queue = library.CommandQueue(handle.get_info(library.mem_info.CONTEXT))

    def read(buffer: Any, size: int) -> bytes:
        host = bytearray(size)
        library.enqueue_copy(queue, host, buffer)
        return bytes(host)

    def write(buffer: Any, data: bytes) -> None:
        library.enqueue_copy(queue, buffer, data)

    return read, write
