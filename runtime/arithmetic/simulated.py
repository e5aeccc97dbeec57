"""`SimulatedArithmetic`: arithmetic on a simulated device, whose processor is the host's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidPointerError

from ..simulated_array import SimulatedArray
from .host import ComputedByHost, host_arithmetic

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..simulation import Space

__all__ = ["SimulatedArithmetic"]


class SimulatedArithmetic(ComputedByHost):
    """Arithmetic on simulated arrays: behind the device's default stream, and finished on return.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    space : Space
        Its memory.
    """

    def __init__(self, where: str, space: Space) -> None:
        self.where = where
        self._space = space

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

    @contextmanager
    def _rows(self, *arrays: SimulatedArray, write: bool = False) -> Generator[list[Any]]:  # noqa: ARG002 -- all may be
        """The elements themselves, after what was queued before, and with the device to ourselves."""
        with self._space.entered():
            self._space.default_stream.synchronize()
            yield [array.raw(array.nbytes).view(array.dtype) for array in arrays]

    def _copy(self, x: SimulatedArray, y: SimulatedArray) -> None:
        with self._rows(x, y) as rows:
            host_arithmetic().copy(*rows)
