"""A small blob that passes: Caffe's ``blob.cpp`` written out by hand over `syncedmem.spec.ReferenceMemory`, made safe.

It is a second implementation, independent of the oracle and of the runtime.  Each step is a method of its own, so
that a seeded bug (`syncedmem.spec.mutants.blob`) is one method overridden.  Its arithmetic is plain Python, also on the
device, where it goes through the views' ``get`` and ``set``.  Here are copies, arithmetic and messages; its memories
are in ``memory_port``, its shapes in ``shape_port``.
"""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any

from syncedmem.model import Mode, SyncedHead, current_mode

from .elements import INTEGERS, decoded, encoded, pour, shown
from .memory_port import MemoryPort
from .shape_port import LEGACY

__all__ = ["IntReferenceBlob", "ReferenceBlob"]

_WITHIN_DEVICE = 3
_INT_MAX = (1 << 31) - 1


class Message:
    """What a port has in place of a BlobProto: the fields, None or empty where they are not set."""

    def __init__(self) -> None:
        self.num = self.channels = self.height = self.width = None
        self.shape = SimpleNamespace(dim=[])
        self.data: list[float] = []
        self.diff: list[float] = []
        self.double_data: list[float] = []
        self.double_diff: list[float] = []

    @property
    def old(self) -> list[int | None]:
        """The four old fields."""
        return [self.num, self.channels, self.height, self.width]


class ReferenceBlob(MemoryPort):
    """A blob; see `syncedmem.spec.blob.BlobMaker`."""

    # --- copies and arithmetic, blob.cpp 174-463

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        self.check_alike(source)
        before = dict(vars(self))
        try:
            if (source.shape, source.count) != (self.shape, self.count):
                self.shape_like_source(source, reshape)
            self.copy_part(source, copy_diff)
        except Exception:
            self.restore(before)
            raise

    def restore(self, before: dict[str, Any]) -> None:
        """Take the shape and the memories that there were."""
        vars(self).update(before)

    def copy_part(self, source: Any, copy_diff: bool) -> None:
        mine, theirs = self.parts(source, copy_diff)
        side = self.side_of_copy(mine, theirs)
        taken, given = self.raw(mine, f"mutable_{side}_data"), self.raw(theirs, f"{side}_data")
        if mine is not theirs and self.elements:
            self.copy(given, taken, side)

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        if not reshape or source.count != prod(source.shape):
            self.refuse("another shape")
        self.take_shape(source.shape)

    def parts(self, source: Any, copy_diff: bool) -> tuple[Any, Any]:
        return (self.diff_memory, source.diff_memory) if copy_diff else (self.data_memory, source.data_memory)

    def side_of_copy(self, _mine: Any, _theirs: Any) -> str:
        return "gpu" if current_mode() is Mode.GPU and self.device is not None else "cpu"

    def copy(self, given: Any, taken: Any, side: str) -> None:
        if side == "gpu":
            self.device.memcpy(given, taken, self.bytes(), _WITHIN_DEVICE)
        else:
            pour(taken, shown(given))

    def update(self) -> None:
        self.check_arithmetic()
        self.check_written()
        side = self.where(self.data_memory)
        step = self.raw(self.diff_memory, f"{side}_data")
        data = self.raw(self.data_memory, f"mutable_{side}_data")
        differences = self.differences(decoded(shown(data), self.dtype), decoded(shown(step), self.dtype))
        pour(data, encoded(differences, self.dtype))

    def differences(self, values: tuple[float, ...], steps: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(map(self.stepped, values, steps))

    def stepped(self, value: float, step: float) -> float:
        return value - step

    def check_written(self) -> None:
        if self.data_memory.head is SyncedHead.UNINITIALIZED:
            self.refuse("Syncedmem not initialized.")

    def check_arithmetic(self) -> None:
        if self.dtype in INTEGERS:
            self.refuse("Not Implemented Yet")

    def asum_data(self) -> float:
        return self.asum(self.data_memory)

    def asum_diff(self) -> float:
        return self.asum(self.diff_memory)

    def sumsq_data(self) -> float:
        return self.sumsq(self.data_memory)

    def sumsq_diff(self) -> float:
        return self.sumsq(self.diff_memory)

    def asum(self, memory: Any) -> float:
        return float(sum(map(abs, self.values(memory))))

    def sumsq(self, memory: Any) -> float:
        return float(sum(value * value for value in self.values(memory)))

    def values(self, memory: Any) -> tuple[Any, ...]:
        """The numbers, read where they are; none if nothing was ever written."""
        self.check_arithmetic()
        return () if self.unwritten(memory) else self.read(memory)

    def unwritten(self, memory: Any) -> bool:
        return memory.head is SyncedHead.UNINITIALIZED

    def read(self, memory: Any) -> tuple[Any, ...]:
        return decoded(shown(self.raw(memory, f"{self.where(memory)}_data")), self.dtype)

    def scale_data(self, factor: float) -> None:
        self.scale(self.data_memory, factor)

    def scale_diff(self, factor: float) -> None:
        self.scale(self.diff_memory, factor)

    def scale(self, memory: Any, factor: float) -> None:
        self.check_arithmetic()
        if not self.untouched(memory):
            row = self.raw(memory, f"mutable_{self.side_of_scale(memory)}_data")
            pour(row, encoded((factor * value for value in decoded(shown(row), self.dtype)), self.dtype))

    def untouched(self, memory: Any) -> bool:
        return memory.head is SyncedHead.UNINITIALIZED

    def side_of_scale(self, memory: Any) -> str:
        return self.where(memory)

    # --- messages, blob.cpp 410-553

    def to_proto(self, write_diff: bool = False) -> Message:
        message, double = Message(), "double_" if self.dtype == "float64" else ""
        message.shape.dim.extend(self.axes)
        for part in ("data", "diff") if write_diff else ("data",):
            self.write_part(getattr(message, f"{double}{part}"), part)
        return message

    def write_part(self, field: list[float], part: str) -> None:
        field.extend(decoded(shown(getattr(self, f"cpu_{part}")()), self.dtype))

    def from_proto(self, message: Message, reshape: bool = True) -> None:
        if not reshape and not self.shape_equals(message):
            self.refuse("shape mismatch (reshape not set)")
        shape = self.checked(self.shape_in(message)) if reshape else self.axes
        data, diff = self.numbers_in(message, "data") or [], self.numbers_in(message, "diff")
        self.check_numbers(shape, data, diff)
        before = dict(vars(self))
        try:
            self.take_shape(shape)
            self.fill(data, diff)
        except Exception:
            self.restore(before)
            raise

    def shape_in(self, message: Message) -> list[int]:
        old = message.old
        return list(message.shape.dim) if old == [None] * LEGACY else [extent or 0 for extent in old]

    def numbers_in(self, message: Message, part: str) -> list[float] | None:
        return getattr(message, f"double_{part}") or getattr(message, part) or None

    def check_numbers(self, shape: tuple[int, ...], data: list[float], diff: list[float] | None) -> None:
        if len(data) != prod(shape) or (diff is not None and len(diff) != prod(shape)):
            self.refuse("another count")

    def fill(self, data: list[float], diff: list[float] | None) -> None:
        parts = [(self.data_memory, data), *([] if diff is None else [(self.diff_memory, diff)])]
        # All that can fail, before a number is overwritten.
        places = [self.raw(memory, "mutable_cpu_data") for memory, _ in parts]
        for place, (_, values) in zip(places, parts, strict=True):
            pour(place, encoded(values, self.dtype))

    def shape_equals(self, message: Message) -> bool:
        if message.old == [None] * LEGACY:
            return self.axes == tuple(message.shape.dim)
        padded = (*(1,) * (LEGACY - self.num_axes), *self.axes)
        return list(padded) == [extent or 0 for extent in message.old]


class IntReferenceBlob(ReferenceBlob):
    """The same with Caffe's own limit: a count is an ``int`` (blob.cpp 34-36)."""

    def check_size(self, extents: list[Any]) -> None:
        if prod(extents) > _INT_MAX:
            self.refuse("blob size exceeds INT_MAX")
