"""A `BlobProto` on the wire, and the arrays in it: read where they lie, written in one go.

The protobuf package is not needed for this and not used: it copies arrays several times.  The bytes are the ones that
it would write.  Reading is stricter in two ways: a known field that is stored in a way which it cannot have is refused
and not skipped, and so is an old shape field with more than 32 bits, which protobuf cuts.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from syncedmem.model import FileFormatError

from .byte_source import empty
from .contents import (
    BLOB_PROTO,
    BLOB_SHAPE,
    DTYPES,
    MAX_AXES,
    BlobContents,
    BlobParts,
    Declared,
    checked_array,
    checked_shape,
)
from .wire_format import FIXED_WIDTHS, Field, Wire, fields, records, tag, varint, varints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .byte_source import ByteSource

__all__ = ["MESSAGE", "StoredBlob", "encoded", "planned", "scanned", "stored_blob"]

MESSAGE = "BlobProto"
"""What errors call a message that is in no file."""

_BY_NUMBER = {field.number: field for field in BLOB_PROTO}
_BY_NAME = {field.name: field for field in BLOB_PROTO}
_ROLES = ("data", "diff")
_STORED_AS = {DTYPES["float"]: _ROLES, DTYPES["double"]: ("double_data", "double_diff")}
_MOST_BYTES = (1 << 31) - 1
"""Of a message; protobuf refuses more, when it writes and when it reads."""


class StoredBlob(NamedTuple):
    """A blob that was checked and not yet read: where it lies, its shape, and which fields hold its values."""

    start: int
    end: int
    shape: tuple[int, ...]
    data: str
    diff: str | None

    def contents(self, source: ByteSource) -> BlobContents:
        """Read it; memory is taken for its arrays and nothing else.

        Raises
        ------
        FileFormatError
            The source is not any more what it was when it was checked.
        """
        diff = None if self.diff is None else self._array(source, _BY_NAME[self.diff])
        return BlobContents(self.shape, self._array(source, _BY_NAME[self.data]), diff)

    def _array(self, source: ByteSource, declared: Declared) -> NDArray[Any]:
        dtype, count = DTYPES[declared.type], math.prod(self.shape)
        for field in fields(source, self.start, self.end):
            if field.number == declared.number:
                if field.wire is Wire.LENGTH and field.end - field.start == count * dtype.itemsize:
                    return source.values(field.start, count, dtype).reshape(self.shape)
                break
        return self._gathered(source, declared, empty(self.shape, dtype))

    def _gathered(self, source: ByteSource, declared: Declared, array: NDArray[Any]) -> NDArray[Any]:
        """Values that lie in several places: not packed, or packed in pieces."""
        out, at = array.reshape(-1).view(np.uint8), 0
        for field in fields(source, self.start, self.end):
            if field.number == declared.number:
                stop = at + _count(source, field, declared) * array.itemsize
                if stop <= len(out):
                    _fill(source, field, out[at:stop])
                at = stop
        if at != len(out):
            raise FileFormatError(source.name, "it has changed while it was read", self.start)
        return array


def stored_blob(source: ByteSource, start: int, end: int) -> StoredBlob:
    """The blob between two positions, checked as a whole.

    Raises
    ------
    FileFormatError
        The bytes are no message, or no blob can be what they say.
    """
    shape, data, diff = scanned(source, start, end).checked()
    return StoredBlob(start, end, shape, data, diff)


def scanned(source: ByteSource, start: int, end: int) -> BlobParts:
    """What the message between two positions has.

    Raises
    ------
    FileFormatError
        The bytes are no message.
    """
    legacy: dict[str, int] = {}
    dims: list[int] = []
    counts: Counter[str] = Counter()
    for field in fields(source, start, end):
        declared = _BY_NUMBER.get(field.number)
        if declared is None:
            continue
        if declared.type in DTYPES:
            counts[declared.name] += _count(source, field, declared)
        elif declared.type == "int32":
            legacy[declared.name] = _int32(source, field, declared)
        else:
            dims += _dims(source, field, declared, MAX_AXES - len(dims))
    return BlobParts(source.name, legacy, dims, counts, start)


def encoded(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None) -> NDArray[np.uint8]:
    """A blob as a message, with the bytes that protobuf would write.

    Raises
    ------
    InvalidArgumentError
        An array is none, or not of float32 or float64.
    FileFormatError
        No blob has that shape, an array does not have as many values, or the message would be too long.
    """
    pieces: list[NDArray[np.uint8]] = []
    for head, body in planned(shape, data, diff):
        pieces += [np.frombuffer(head, np.uint8), np.ascontiguousarray(body).reshape(-1).view(np.uint8)]
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8)


def planned(
    shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None
) -> list[tuple[bytes, NDArray[Any]]]:
    """The fields of a message, each with the bytes in front of its values: checked as by `encoded`, and not copied."""
    axes = checked_shape(shape, MESSAGE)
    bodies = {_BY_NAME["shape"].number: _encoded_shape(axes)} if axes else {}
    for place, array in enumerate((data,) if diff is None else (data, diff)):
        name = _STORED_AS[_checked_values(_ROLES[place], array, axes).dtype][place]
        bodies[_BY_NAME[name].number] = array
    parts = [
        (tag(number, Wire.LENGTH) + varint(body.nbytes), body)
        for number, body in sorted(bodies.items(), key=operator.itemgetter(0))
        if body.size  # protobuf writes nothing for a field without values
    ]
    length = sum(len(head) + body.nbytes for head, body in parts)
    if length > _MOST_BYTES:
        raise FileFormatError(MESSAGE, f"it would have {length} bytes, and a message has at most {_MOST_BYTES}")
    return parts


def _encoded_shape(axes: tuple[int, ...]) -> NDArray[np.uint8]:
    dims = b"".join(map(varint, axes))
    return np.frombuffer(tag(BLOB_SHAPE[0].number, Wire.LENGTH) + varint(len(dims)) + dims, np.uint8)


def _checked_values(name: str, value: object, axes: tuple[int, ...]) -> NDArray[Any]:
    array = checked_array(name, value, _STORED_AS)
    if array.size != math.prod(axes):
        raise FileFormatError(MESSAGE, f"{name} has {array.size} values, and shape {axes} has {math.prod(axes)}")
    return array


def _count(source: ByteSource, field: Field, declared: Declared) -> int:
    """How many values a field or a run of them has."""
    width = DTYPES[declared.type].itemsize
    if field.wire is Wire.LENGTH:
        if (field.end - field.start) % width:
            reason = f"{declared.name} has {field.end - field.start} bytes, and its values have {width} each"
            raise FileFormatError(source.name, reason, field.position)
        return (field.end - field.start) // width
    if FIXED_WIDTHS.get(field.wire) != width:
        raise _misstored(source, field, declared)
    return field.repeats


def _fill(source: ByteSource, field: Field, out: NDArray[np.uint8]) -> None:
    if field.wire is Wire.LENGTH:
        source.fill(field.start, out)
        return
    at = 0
    for rows in records(source, field):
        out[at : at + rows.size].reshape(rows.shape)[...] = rows
        at += rows.size


def _int32(source: ByteSource, field: Field, declared: Declared) -> int:
    if field.wire is not Wire.VARINT:
        raise _misstored(source, field, declared)
    value = _signed(field.value)
    if not -(1 << 31) <= value < 1 << 31:
        raise FileFormatError(source.name, f"{declared.name} is {value}, which has more than 32 bits", field.position)
    return value


def _dims(source: ByteSource, message: Field, declared: Declared, room: int) -> list[int]:
    """The axes in a shape, of which there may be so many."""
    if message.wire is not Wire.LENGTH:
        raise _misstored(source, message, declared)
    dims: list[int] = []
    for value in _dim_values(source, message):
        if len(dims) == room:
            raise FileFormatError(source.name, f"shape has more than {MAX_AXES} axes", message.position)
        dims.append(_signed(value))
    return dims


def _dim_values(source: ByteSource, message: Field) -> Iterator[int]:
    dim = BLOB_SHAPE[0]
    for field in fields(source, message.start, message.end):
        if field.number != dim.number:
            continue
        match field.wire:
            case Wire.LENGTH:
                yield from varints(source, field.start, field.end)
            case Wire.VARINT:
                yield field.value
            case _:
                raise _misstored(source, field, dim)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _misstored(source: ByteSource, field: Field, declared: Declared) -> FileFormatError:
    reason = f"{declared.name} is a field of type {declared.type}, and is stored as {field.wire.name}"
    return FileFormatError(source.name, reason, field.position)
