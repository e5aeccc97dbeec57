"""Arrays of other libraries, as a blob takes them: which side they are on, and whether as they are or as a copy.

Nothing is imported to find out: it is seen by what an array has.  NumPy's own conversion is the way to host memory,
because it honours arrays that must not be written, which DLPack before its first version cannot say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.model import BufferMismatchError, SyncedMemoryError
from syncedmem.model.errors import said

from ..allocator import DeviceType, MemcpyKind
from ..simulated_array import SimulatedArray

if TYPE_CHECKING:
    from ..allocator import DeviceAllocator

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
            self.on_device = _on_device(array)
            self.view: Any = self._there(array) if self.on_device else np.asarray(array)
        except SyncedMemoryError:
            raise
        except Exception as error:
            raise BufferMismatchError(_CALL, array, said(error)) from error
        self.shape: tuple[int, ...] = tuple(self.view.shape)
        self.dtype: np.dtype[Any] = np.dtype(self.view.dtype).newbyteorder("=")

    def _there(self, array: Any) -> Any:
        if self._device is None:
            raise BufferMismatchError(_CALL, array, "it is on a device, and this blob has none")
        if self._device.device_type == DeviceType.CUDA:
            from ..cuda import imported  # noqa: PLC0415 -- CuPy is optional, and here already

            return imported(array)
        return array

    def adopted_by(self, blob: Any) -> None:
        """Make this memory the blob's data.

        Raises
        ------
        BufferMismatchError
            With the reason, if the rules do not allow it.
        """
        if self.on_device and _is_read_only(self._array):
            raise BufferMismatchError(_CALL, self._array, "it is read-only, and the host is copied into it")
        (blob.set_gpu_data if self.on_device else blob.set_cpu_data)(self.view)

    def copied_to(self, blob: Any) -> None:
        """Copy the elements into the blob's own memory, on the side where they are."""
        if not self.on_device:
            with np.errstate(all="ignore"):
                np.copyto(blob.mutable_cpu_data(), self.view, casting="unsafe")
        elif self.dtype == blob.dtype:
            row = self.view.reshape(-1).view(np.uint8)
            self._device.memcpy(row, blob.data_memory.mutable_gpu_data(), row.nbytes, MemcpyKind.CUDA2CUDA)
        else:
            with np.errstate(all="ignore"):
                np.copyto(blob.mutable_cpu_data(), self.view.get(), casting="unsafe")


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
