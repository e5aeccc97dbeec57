"""`SimulatedArithmetic`: arithmetic on a simulated device, which the host computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidPointerError

from ...allocators.arithmetic import Arithmetic
from ..host_arithmetic import host_arithmetic
from .array import SimulatedArray

if TYPE_CHECKING:
    from .simulation import DeviceSpace

__all__ = ["SimulatedArithmetic"]


class SimulatedArithmetic(Arithmetic):
    """Arithmetic on simulated arrays: it runs after all work on the current stream, and has finished on return.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    space : DeviceSpace
        Its memory.
    """

    def __init__(self, where: str, space: DeviceSpace) -> None:
        self.where = where
        self._space = space
        self._host: Any = host_arithmetic()  # Any: its methods behind the checks are for itself

    def _check(self, array: Any, argument: str, *, write: bool) -> None:
        if not isinstance(array, SimulatedArray) or not array.belongs_to(self._space):
            raise InvalidPointerError(self.where, array, f"{argument} is not memory of this device")
        if array.ndim != 1 or array.ptr % array.dtype.itemsize:
            raise InvalidPointerError(self.where, array, f"{argument} is not a contiguous, aligned row of numbers")
        if write and array.read_only:
            raise InvalidPointerError(self.where, array, f"{argument} is read-only")

    def _overlap(self, x: SimulatedArray, y: SimulatedArray) -> bool:
        return x.shares(y)

    def _same(self, x: SimulatedArray, y: SimulatedArray) -> bool:
        return x.ptr == y.ptr

    def _each(self, name: str, alpha: float, *arrays: SimulatedArray) -> None:
        with self._space.entered():
            self._host._each(name, alpha, *self._rows(arrays))  # noqa: SLF001 -- what it checks is checked here

    def _total(self, name: str, *arrays: SimulatedArray) -> float:
        with self._space.entered():
            total: float = self._host._total(name, *self._rows(arrays))  # noqa: SLF001 -- as above
            return total

    def _copy(self, x: SimulatedArray, y: SimulatedArray) -> None:
        with self._space.entered():
            self._host._copy(*self._rows((x, y)))  # noqa: SLF001 -- as above

    def _rows(self, arrays: tuple[SimulatedArray, ...]) -> list[Any]:
        """The elements themselves, after all work that was queued before; the caller holds the lock of the devices."""
        self._space.current_stream.synchronize()
        return [array.items() for array in arrays]
