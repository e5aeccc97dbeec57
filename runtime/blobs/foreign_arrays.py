"""Arrays of other libraries, as a blob takes them: which side they are on, and whether as they are or as a copy.

Nothing is imported to find out: it is seen by what an array has.  NumPy's own conversion is the way to host memory,
because it honours arrays that must not be written, which DLPack before its first version cannot say.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import BufferMismatchError, InvalidArgumentError, InvalidPointerError, SyncedMemoryError
from syncedmem.model.errors import said
from syncedmem.model.interface import DeviceType, MemcpyKind

from ..devices.simulated.array import SimulatedArray
from ..memory.synced_memory import SyncedMemory
from .conversion import PROTOCOLS, are_numbers, checked, fill, host_array
from .elements import TYPES

if TYPE_CHECKING:
    from ..allocators.base import DeviceAllocator
    from .elements import Elements

__all__ = ["ForeignArray"]

_CALL = "from_array"
_HOST_TYPES = (1, 3)
"""DLPack's ``kDLCPU`` and ``kDLCUDAHost``: what the processor can read."""


class ForeignArray:
    """Somebody's array, looked at as NumPy's or as the device's own kind; its memory is theirs.

    Parameters
    ----------
    array : object
    device : DeviceAllocator or None
        Of the blob that will take it.

    Attributes
    ----------
    on_device : bool
    view : array
        NumPy's, or of the device's own kind.
    shape : tuple of int
    dtype : numpy.dtype
        In this machine's order of bytes.

    Raises
    ------
    BufferMismatchError
        If it cannot be looked at like that; the reason says why.
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
        except SyncedMemoryError:
            raise
        except Exception as error:
            raise BufferMismatchError(_CALL, array, said(error)) from error
        if not countable:
            raise BufferMismatchError(_CALL, array, f"its elements are of type {self.dtype}, and no numbers")

    def _there(self, array: Any) -> Any:
        if self._device is None:
            raise BufferMismatchError(_CALL, array, "it is on a device, and this blob has none")
        if self._device.device_type == DeviceType.CUDA:
            from ..devices.cuda import imported  # noqa: PLC0415 -- CuPy is optional, and here already

            return imported(array)
        if not (isinstance(array, SimulatedArray) or hasattr(array, "base_data")):
            raise self._elsewhere()
        return array

    def _elsewhere(self) -> BufferMismatchError:
        return BufferMismatchError(_CALL, self._array, f"it is not memory of {self._device.name}")

    def element_type(self) -> np.dtype[Any]:
        """The type of the elements, if blobs have it.

        Raises
        ------
        InvalidArgumentError
            With what to do about it.
        """
        if self.dtype.name in TYPES:
            return self.dtype
        expected = f"given, as one of {', '.join(TYPES)}, to convert elements of type {self.dtype}"
        raise InvalidArgumentError("dtype", None, expected)

    def check_adoptable(self, dtype: np.dtype[Any]) -> None:
        """Refuse what cannot be adopted, as `view`, by a blob of a type; the rest is for the memory to check.

        Raises
        ------
        BufferMismatchError
            With the reason.
        """
        if not _has_memory(self._array):
            raise BufferMismatchError(_CALL, self._array, "it is no array, so there is no memory that could be used")
        if self.dtype != dtype:
            raise BufferMismatchError(_CALL, self._array, f"its elements are {self.dtype}, and {dtype} are needed")
        if self.on_device and _is_read_only(self._array):
            raise BufferMismatchError(_CALL, self._array, "it is read-only, and the host is copied into it")

    def copied_to(self, elements: Elements, host: DeviceAllocator) -> None:
        """Copy to elements of the same shape, on the side where these are; `host` is for what is needed between.

        Raises
        ------
        BufferMismatchError
            If they are on another device, or not in one piece on this one.
        InvalidValueError
            If an element cannot hold one of them.
        """
        if not self.on_device:
            real = checked(self.view, elements.dtype)
            fill(elements.mutable_cpu_data(), real)
        elif self.dtype == elements.dtype:
            self._copy_across(elements.memory)
        else:
            size = prod(self.shape) * self.dtype.itemsize
            between = SyncedMemory(size, host=host, device=self._device)
            self._copy_across(between)
            real = checked(between.cpu_data().view(self.dtype).reshape(self.shape), elements.dtype)
            fill(elements.mutable_cpu_data(), real)

    def _copy_across(self, memory: SyncedMemory) -> None:
        """Copy to the device side of a new memory."""
        if hasattr(self.view, "base_data") and not self.view.flags.c_contiguous:
            raise BufferMismatchError(_CALL, self._array, "it is not contiguous, and PyOpenCL does not make it so")
        row = self.view.reshape(-1).view(np.uint8)
        try:
            self._device.memcpy(row, memory.mutable_gpu_data(), row.nbytes, MemcpyKind.CUDA2CUDA)
        except InvalidPointerError as error:
            raise self._elsewhere() from error


def _has_memory(array: Any) -> bool:
    """Whether something is an array or a buffer, and not made into one, as lists and single numbers are."""
    if isinstance(array, np.generic):
        return False
    try:
        memoryview(array)
    except (TypeError, ValueError, BufferError):
        names = (*PROTOCOLS, "__dlpack__", "__cuda_array_interface__")
        return hasattr(array, "dtype") or any(hasattr(array, name) for name in names)
    return True


def _on_device(array: Any) -> bool:
    """Whether an array is in memory that the processor does not read."""
    if isinstance(array, np.ndarray):
        return False
    if isinstance(array, SimulatedArray) or hasattr(array, "base_data"):  # PyOpenCL's
        return True
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0] not in _HOST_TYPES
    return hasattr(array, "__cuda_array_interface__")


def _is_read_only(array: Any) -> bool:
    """Whether an array of a GPU says that it must not be written to, as JAX's do; CuPy's never say so."""
    interface: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    return interface is not None and bool(interface["data"][1])
