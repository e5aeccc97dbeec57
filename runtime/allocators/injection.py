"""`FailingAllocator`: calls that fail on request."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, DeviceError, InvalidArgumentError
from syncedmem.model.interface import OPERATIONS

from .adaptor import Adaptor
from .pointers import as_integer, check_byte_size, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["FailingAllocator"]

_WORDS = "this call was told to fail"


class FailingAllocator(Adaptor):
    """Fails where it is told to, before anything is done; with nothing said it never fails.

    A call that fails for more reasons than one fails once.  Calls of zero bytes and of None are not counted.

    Parameters
    ----------
    upstream : DeviceAllocator
    operation : {"allocate", "release", "memcpy", "memset_zero"}
        The calls that are counted, and may fail.
    at : int or None
        The number of the call that fails, from 1.
    from_size : int or None
        Calls of that many bytes, or more, fail.
    when : callable or None
        Calls fail for whose size in bytes it returns true.
    probability : float
        From 0 to 1: of a call to fail.
    seed : int or None
        Makes those calls the same ones each time.

    Attributes
    ----------
    calls : int
        How many calls were counted.
    failures : int
        How many of them failed here.

    Raises
    ------
    InvalidArgumentError, InvalidSizeError
        If an argument is none of these.
    """

    def __init__(  # noqa: PLR0913 -- each says in its own way which calls fail
        self,
        upstream: DeviceAllocator,
        *,
        operation: str = "allocate",
        at: int | None = None,
        from_size: int | None = None,
        when: Callable[[int], bool] | None = None,
        probability: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(upstream)
        if operation not in OPERATIONS:
            raise InvalidArgumentError("operation", operation, f"one of {', '.join(OPERATIONS)}")
        self._operation = operation
        self._at = None if at is None else as_integer(at, "at", "the number of a call, or None")
        self._from_size = None if from_size is None else check_byte_size(from_size, "from_size")
        self._when = when
        self._probability = _check_probability(probability)
        chosen = None if seed is None else as_integer(seed, "seed", "an integer, or None")
        self._random = random.Random(chosen)  # noqa: S311 -- replayable failures, not secrets
        self.calls: int = 0
        self.failures: int = 0

    def allocate(self, byte_size: int) -> Pointer | None:
        size = check_byte_size(byte_size)
        if self._fails("allocate", size):
            raise AllocationError(self.name, size, _WORDS)
        (ptr,) = map(self._upstream.allocate, (size,))
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        self._check("release", size_of(ptr))
        (_,) = map(self._upstream.release, (ptr,))

    def memcpy(self, src: Pointer, dest: Pointer, byte_size: int, *rest: Any, **named: Any) -> None:
        self._check("memcpy", check_byte_size(byte_size))
        super().memcpy(src, dest, byte_size, *rest, **named)

    def memset_zero(self, ptr: Pointer, byte_size: int, *rest: Any, **named: Any) -> None:
        self._check("memset_zero", check_byte_size(byte_size))
        super().memset_zero(ptr, byte_size, *rest, **named)

    def _check(self, operation: str, size: int) -> None:
        if self._fails(operation, size):
            raise DeviceError(operation, self.name, RuntimeError(_WORDS))

    def _fails(self, operation: str, size: int) -> bool:
        """Count a call, and say whether it fails."""
        if operation != self._operation or size == 0:
            return False
        self.calls += 1
        # Drawn for every call, so that which ones fail by chance does not depend on the other reasons.
        fails = (
            self._random.random() < self._probability
            or self.calls == self._at
            or (self._from_size is not None and size >= self._from_size)
            or (self._when is not None and self._when(size))
        )
        self.failures += fails
        return fails


def _check_probability(value: object) -> float:
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    raise InvalidArgumentError("probability", value, "a number from 0 to 1")
