"""`Viewed`: data and diff as arrays: Caffe's accessors, pycaffe's attributes, and what other libraries ask for.

Every array is a fresh view over the memory itself and keeps its bytes, also when the blob has grown and has another
memory, unless a pool has lent them again.  On the simulated device views of freed memory are of no use, and say so.
For the same reason a blob has no ``__array_interface__`` and no ``__cuda_array_interface__``: whoever takes one keeps
the blob alive, and not the memory.  The views have them.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from syncedmem.model import InvalidArgumentError

from .live_array import assign, live
from .pair import Pair, ScalarT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .elements import Elements

__all__ = ["Viewed"]

_HOST = (1, 0)
"""``kDLCPU`` and its only device, as DLPack numbers them."""


class Viewed(Pair[ScalarT]):
    """A pair of memories that can be looked at."""

    __slots__ = ()

    # --- Caffe's accessors

    def cpu_data(self) -> NDArray[ScalarT]:
        """The data on the host, to read: a NumPy array of the blob's shape and type that is and stays read-only.

        Raises
        ------
        AllocationError, DeviceError
            As for `SyncedMemory.cpu_data`.
        """
        view: NDArray[ScalarT] = self._data.cpu_data()
        return view

    def mutable_cpu_data(self) -> NDArray[ScalarT]:
        """The data on the host, to write; the device side is stale then."""
        view: NDArray[ScalarT] = self._data.mutable_cpu_data()
        return view

    def gpu_data(self) -> Any:
        """The data on the device, to read: an array of the device's own kind, of the blob's shape and type.

        Keep the blob as long as you use it: when the memory is freed, real devices show old bytes through it, and the
        simulated one raises `SimulatedDeviceError`.
        """
        return self._data.gpu_data()

    def mutable_gpu_data(self) -> Any:
        """The data on the device, to write; the host side is stale then."""
        return self._data.mutable_gpu_data()

    def cpu_diff(self) -> NDArray[ScalarT]:
        """The diff on the host, to read."""
        view: NDArray[ScalarT] = self._diff.cpu_data()
        return view

    def mutable_cpu_diff(self) -> NDArray[ScalarT]:
        """The diff on the host, to write; the device side is stale then."""
        view: NDArray[ScalarT] = self._diff.mutable_cpu_data()
        return view

    def gpu_diff(self) -> Any:
        """The diff on the device, to read."""
        return self._diff.gpu_data()

    def mutable_gpu_diff(self) -> Any:
        """The diff on the device, to write; the host side is stale then."""
        return self._diff.mutable_gpu_data()

    def data_at(self, *indices: Any) -> ScalarT:
        """An element of the data; brings the host side up to date.

        Parameters
        ----------
        *indices
            As for `offset`, but each strictly inside its axis.

        Raises
        ------
        InvalidIndexError, InvalidShapeError, AllocationError, DeviceError
        """
        return self._at(self._data, indices)

    def diff_at(self, *indices: Any) -> ScalarT:
        """An element of the diff; see `data_at`."""
        return self._at(self._diff, indices)

    def _at(self, elements: Elements, indices: tuple[Any, ...]) -> ScalarT:
        position = self._position(indices)
        element: ScalarT = elements.flat(elements.memory.cpu_data())[position]
        return element

    # --- pycaffe's attributes

    @property
    def data(self) -> NDArray[ScalarT]:
        """The data on the host as a NumPy array, as in pycaffe.

        Reading it leaves the device side fresh.  Assigning, as in ``blob.data[...] = 1``, ``blob.data -= step`` or
        ``blob.data = values``, makes it stale.  Everything else finds the array read-only.

        Take it anew instead of keeping it.  One that was kept shows what was on the host when it was taken; it is
        refused to write through it (`InvalidPointerError`) once the device has newer numbers, or the blob other memory.

        Raises
        ------
        InvalidValueError
            If an element cannot hold one of the numbers that are assigned, such as 2**40 or NaN for ``int32``.
        InvalidArgumentError, InvalidShapeError
            If they are no numbers, or do not fit.  In every case nothing has changed.
        """
        return live(self._data, ref(self))

    @data.setter
    def data(self, values: object) -> None:
        assign(self._data, values)

    @property
    def diff(self) -> NDArray[ScalarT]:
        """The diff on the host as a NumPy array; see `data`."""
        return live(self._diff, ref(self))

    @diff.setter
    def diff(self, values: object) -> None:
        assign(self._diff, values)

    # --- protocols; all of them show the data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        np.array(self._nothing(), dtype, copy=copy)  # refused, if it will be
        return np.array(self.cpu_data(), dtype, copy=copy)

    def __buffer__(self, flags: int) -> memoryview:
        """For ``memoryview(blob)``, read-only; Python asks for it from 3.12 on."""
        nothing: Any = self._nothing()
        memoryview(nothing)  # NumPy itself refuses what a buffer cannot describe, such as bfloat16
        view: Any = self.cpu_data()
        return memoryview(view)

    def _nothing(self) -> NDArray[ScalarT]:
        """No elements, looked at as `cpu_data` shows them: what is refused of it will be refused of that."""
        nothing: NDArray[ScalarT] = np.empty(0, self.dtype)
        nothing.flags.writeable = False
        return nothing

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host: a consumer that wants the device side asks for it, or takes ``gpu_data()``."""
        return _HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        """A capsule over the data, of the host side unless another device is asked for.

        It is read-only, so the consumer has to know of versions (``max_version=(1, 0)``); others can be given
        ``mutable_cpu_data()``.

        Parameters
        ----------
        dl_device : tuple of int, optional
            As in the array API standard; the blob's own device, or the host.
        **options
            ``stream``, ``max_version`` and ``copy``, for NumPy or the library of the device.

        Raises
        ------
        InvalidArgumentError
            If `dl_device` is no pair of integers.
        BufferError
            If the data is not on that device, or cannot be handed out like that; no head has moved.
        """
        wanted = {name: value for name, value in options.items() if value is not None}
        there = _HOST if dl_device is None else _pair(dl_device)
        nothing: Any = self._nothing()
        if there == _HOST:
            if "stream" in wanted:
                raise BufferError(f"there are no streams on the host, and stream is {wanted['stream']!r}")
            nothing.__dlpack__(**wanted)
            view: Any = self.cpu_data()
            return view.__dlpack__(**wanted)
        nothing = None if self._device is None else self._device.empty(0)
        if not hasattr(nothing, "__dlpack__") or tuple(nothing.__dlpack_device__()) != there:
            raise BufferError(f"the data is not on the device {there} of DLPack, but on {self._device}")
        nothing.view(self.dtype).__dlpack__(**wanted)
        return self.gpu_data().__dlpack__(**wanted)


def _pair(device: Any) -> tuple[int, int]:
    """What DLPack calls a device: a kind, and a number."""
    try:
        kind, number = map(operator.index, device)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError("dl_device", device, "a pair of integers") from error
    return kind, number
