"""DLPack: capsules over the sides of a memory, for the array libraries of others."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import InvalidArgumentError, NoCapsuleError
from syncedmem.model.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..allocators.base import DeviceAllocator

__all__ = ["HOST", "capsule", "device_of", "nothing"]

HOST = (1, 0)
"""DLPack's pair for host memory: ``kDLCPU``, and a number."""


def nothing(dtype: Any) -> NDArray[Any]:
    """An array without elements, but otherwise as one for reading: NumPy refuses for both the same."""
    array: NDArray[Any] = np.empty(0, dtype)
    array.flags.writeable = False
    return array


def device_of(device: DeviceAllocator | None) -> tuple[int, int]:
    """DLPack's pair for memory of a device; that of the host if its arrays cannot be exported."""
    array: Any = None if device is None else device.empty(0)
    if not hasattr(array, "__dlpack_device__"):
        return HOST
    kind, number = array.__dlpack_device__()
    return int(kind), int(number)


def capsule(
    dtype: Any,
    device: DeviceAllocator | None,
    there: Any,
    options: dict[str, Any],
    sides: tuple[Callable[[], Any], Callable[[], Any]],
) -> Any:
    """A capsule over one of two sides.

    Whatever is refused is refused before a side is asked for, so no head has moved then.

    Parameters
    ----------
    dtype : numpy.dtype
    device : DeviceAllocator or None
    there : (int, int)
        DLPack's pair for the host, or for the device.
    options : dict
        ``stream``, ``max_version`` and ``copy``, for NumPy or the library of the device; those that are None are as if
        they were not there.
    sides : (callable, callable)
        They return the host side and the device side, to read.

    Raises
    ------
    InvalidArgumentError
        If `there` is no pair of integers.
    BufferError
        If there is no side on that device (`NoCapsuleError`), or it cannot be exported in that way.
    """
    wanted = {name: value for name, value in options.items() if value is not None}
    if _pair(there) == HOST:
        if "stream" in wanted:
            stream = wanted["stream"]
            raise NoCapsuleError("stream", stream, f"there are no streams on the host, and stream is {shown(stream)}")
        nothing(dtype).__dlpack__(**wanted)
        return sides[0]().__dlpack__(**wanted)
    empty: Any = None if device is None else device.empty(0)
    if not hasattr(empty, "__dlpack__") or tuple(empty.__dlpack_device__()) != _pair(there):
        reason = f"the data is not on the device {_pair(there)} of DLPack, but on {device}"
        raise NoCapsuleError("dl_device", there, reason)
    empty.view(dtype).__dlpack__(**wanted)
    return sides[1]().__dlpack__(**wanted)


def _pair(device: Any) -> tuple[int, int]:
    try:
        kind, number = map(operator.index, device)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError("dl_device", device, "a pair of integers") from error
    return kind, number
