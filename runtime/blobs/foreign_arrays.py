"""Arrays of other libraries, for a blob: which side they are on, and whether they can be adopted or must be copied.

No library is imported for this; the attributes of an array tell.  Arrays on the host are converted by NumPy's own ways,
because these respect read-only arrays, which DLPack before version 1 cannot express.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import BufferMismatchError, InvalidArgumentError, InvalidPointerError, SyncedMemoryError
from syncedmem.model.errors import said
from syncedmem.model.interface import DeviceType, MemcpyKind

from ..devices.simulated.array import SimulatedArray
from .conversion import PROTOCOLS, are_numbers, checked, fill, host_array
from .elements import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator
    from ..memory.synced_memory import SyncedMemory
    from .elements import Elements

__all__ = ["ForeignArray"]

_CALL = "from_array"
_HOST_TYPES = (1, 3)
"""DLPack's ``kDLCPU`` and ``kDLCUDAHost``: memory that the processor can read."""


class ForeignArray:
    """Somebody's array, as a view that NumPy or the device can use; the memory stays theirs.

    Parameters
    ----------
    array : object
    device : DeviceAllocator or None
        The device of the blob that will take the array.

    Attributes
    ----------
    on_device : bool
    view : array
        A NumPy array, or one of the device's own kind.
    shape : tuple of int
    dtype : numpy.dtype
        In the byte order of this machine.
    """

    def __init__(self, array: Any, device: DeviceAllocator | None) -> None:
        self._device: Any = device
        self._array = array
        try:
            self.on_device: bool = _on_device(array)
            self.view: Any = self._there(array) if self.on_device else host_array(array)
            self.shape: tuple[int, ...] = tuple(self.view.shape)
            self.dtype: np.dtype[Any] = np.dtype(self.view.dtype).newbyteorder("=")
            countable = are_numbers(self.view)
        except (SyncedMemoryError, MemoryError, RecursionError, TimeoutError):
            raise
        except Exception as error:
            raise BufferMismatchError(_CALL, array, said(error)) from error
        if not countable:
            raise BufferMismatchError(_CALL, array, f"its elements are of type {self.dtype}, which are no numbers")

    def _there(self, array: Any) -> Any:
        if self._device is None:
            raise BufferMismatchError(_CALL, array, "it is on a device, and this blob has none")
        if self._device.device_type == DeviceType.CUDA:
            from ..devices.cuda import imported  # noqa: PLC0415 -- CuPy is optional; here it is installed

            return imported(array)
        if not (isinstance(array, SimulatedArray) or hasattr(array, "base_data")):
            raise self._elsewhere()
        return array

    def _elsewhere(self) -> BufferMismatchError:
        return BufferMismatchError(_CALL, self._array, f"it is not memory of {self._device.name}")

    def element_type(self) -> np.dtype[Any]:
        """The element type, after a check that blobs have it.

        Raises
        ------
        InvalidArgumentError
            If they do not; the message says what to do.
        """
        if self.dtype.name in TYPES:
            return self.dtype
        expected = f"given, as one of {', '.join(TYPES)}, to convert elements of type {self.dtype}"
        raise InvalidArgumentError("dtype", None, expected)

    def check_adoptable(self, dtype: np.dtype[Any]) -> None:
        """Check that a blob of a type can adopt `view`; the memory checks everything else."""
        if not _has_memory(self._array):
            raise BufferMismatchError(_CALL, self._array, "it is no array, so it has no memory that could be used")
        if self.dtype != dtype:
            raise BufferMismatchError(_CALL, self._array, f"its elements are {self.dtype}, and {dtype} are needed")
        if self.on_device and _is_read_only(self._array):
            raise BufferMismatchError(_CALL, self._array, "it is read-only, and the host is copied into it")

    def copied_to(self, elements: Elements, make: Callable[[int], SyncedMemory]) -> None:
        """Copy to elements of the same shape, on the side of this array; `make` makes a memory for the way between.

        Raises
        ------
        BufferMismatchError
            If the array is on another device, or is not contiguous on this one.
        InvalidValueError
            If an element cannot hold one of the numbers.
        """
        if not self.on_device:
            real = checked(self.view, elements.dtype)
            fill(elements.mutable_cpu_data(), real)
        elif self.dtype == elements.dtype:
            self._copy_across(elements.memory)
        else:
            size = prod(self.shape) * self.dtype.itemsize
            between = make(size)
            self._copy_across(between)
            real = checked(between.cpu_data().view(self.dtype).reshape(self.shape), elements.dtype)
            fill(elements.mutable_cpu_data(), real)

    def _copy_across(self, memory: SyncedMemory) -> None:
        """Copy to the device side of a new memory."""
        ours = isinstance(self.view, SimulatedArray) or hasattr(self.view, "base_data")
        if ours and not self.view.flags.c_contiguous:  # CuPy's reshape copies such an array
            raise BufferMismatchError(_CALL, self._array, "it is not contiguous, or its last axis is not the fastest")
        row = self.view.reshape(-1).view(np.uint8)
        try:
            self._device.memcpy(row, memory.mutable_gpu_data(), row.nbytes, MemcpyKind.CUDA2CUDA)
        except InvalidPointerError as error:
            raise self._elsewhere() from error


def _has_memory(array: Any) -> bool:
    """Whether an object is an array or a buffer itself; lists and single numbers are not."""
    if isinstance(array, np.generic):
        return False
    try:
        memoryview(array)
    except (TypeError, ValueError, BufferError):
        names = (*PROTOCOLS, "__dlpack__", "__cuda_array_interface__")
        return hasattr(array, "dtype") or any(hasattr(array, name) for name in names)
    return True


def _on_device(array: Any) -> bool:
    """Whether an array is in memory that the processor cannot read."""
    if isinstance(array, np.ndarray):
        return False
    if isinstance(array, SimulatedArray) or hasattr(array, "base_data"):  # PyOpenCL's arrays have base_data
        return True
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0] not in _HOST_TYPES
    return hasattr(array, "__cuda_array_interface__")


def _is_read_only(array: Any) -> bool:
    """Whether an array of a GPU says that it must not be written, as JAX's arrays do; CuPy's arrays never say so."""
    interface: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    return interface is not None and bool(interface["data"][1])
