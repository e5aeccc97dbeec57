"""Wrong messages."""

from __future__ import annotations

from math import prod
from typing import Any

from ..registry import seeded_bug
from .handmade import HandmadeBlob


@seeded_bug("B50-message-shape", "blob.cpp:469-470: old fields have priority")
class NewShapeFirst(HandmadeBlob):
    """The shape of a message is read before its old fields."""

    def shape_in(self, message: Any) -> list[int]:
        return list(message.shape.dim) or super().shape_in(message)


@seeded_bug("B50-message-shape", "caffe.proto:19-22: the default is zero")
class MissingFieldsAreOne(HandmadeBlob):
    """Old fields that are missing count as one."""

    def shape_in(self, message: Any) -> list[int]:
        found = super().shape_in(message)
        return found if message.num is None else [extent or 1 for extent in found]


@seeded_bug("B51-message-numbers", "blob.cpp:490: double_data first")
class FloatsFirst(HandmadeBlob):
    """Floats are read before doubles."""

    def numbers_in(self, message: Any, part: str) -> list[float] | None:
        return getattr(message, part) or super().numbers_in(message, part)


@seeded_bug("B51-message-numbers", "blob.cpp:501-513: the old diff is kept")
class MissingDiffIsZero(HandmadeBlob):
    """A diff that is not in the message is cleared."""

    def numbers_in(self, message: Any, part: str) -> list[float] | None:
        found = super().numbers_in(message, part)
        return [0.0] * len(super().numbers_in(message, "data") or []) if found is None else found


@seeded_bug("B52-message-count", "#4215; blob.cpp:496")
class ShortMessages(HandmadeBlob):
    """Numbers that are missing in a message are zero."""

    def check_numbers(self, shape: tuple[int, ...], data: list[float], diff: list[float] | None) -> None:
        for values in (data, diff or data):
            values.extend([0.0] * (prod(shape) - len(values)))
        super().check_numbers(shape, data, diff)


@seeded_bug("B53-message-same-shape", "blob.cpp:486")
class MessagesByCount(HandmadeBlob):
    """A message of another shape is read if the counts are the same."""

    def from_proto(self, message: Any, reshape: bool = True) -> None:
        same = prod(self.shape_in(message)) == self.elements
        super().from_proto(message, reshape or same)


@seeded_bug("B54-message-written", "blob.cpp:528: write_diff")
class WritesNoDiff(HandmadeBlob):
    """The diff is not written although it was requested."""

    def to_proto(self, write_diff: bool = False) -> Any:
        return super().to_proto(write_diff=False)


@seeded_bug("B55-shape-equals", "blob.cpp:419-423: from the last axis")
class ComparesFromTheFront(HandmadeBlob):
    """Old fields are compared from the first axis."""

    def shape_equals(self, message: Any) -> bool:
        if message.num is None:
            return super().shape_equals(message)
        return bool([*self.axes, *(1,) * (4 - self.num_axes)] == message.old)


@seeded_bug("B57-failure-keeps-numbers", "H4; blob.cpp:484: Reshape comes first")
class FailedMessageReshapes(HandmadeBlob):
    """After a message that could not be read, its shape stays, with memory without numbers."""

    def from_proto(self, message: Any, reshape: bool = True) -> None:
        try:
            super().from_proto(message, reshape)
        except MemoryError:
            self.take_shape(self.checked(self.shape_in(message)))
            raise


@seeded_bug("B57-failure-keeps-numbers", "H4: the data is written before there is room for the diff")
class HalfAMessage(HandmadeBlob):
    """The data of a message is read although there is no memory for its diff."""

    def fill(self, data: list[float], diff: list[float] | None) -> None:
        super().fill(data, None)
        if diff is not None:
            super().fill(data, diff)
