"""The wire format of protocol buffers, walked where it lies: tags, varints, lengths and groups.

A message is a row of fields.  Each starts with a tag, a varint of the field's number and of how its value is
stored.  The walk reads tags and lengths and steps over values, so it costs the same whether a value has four bytes or
four gigabytes.  It trusts nothing: each step is checked against the end of the message, groups are followed
without recursion, everything takes time in proportion to the bytes, and there is a limit to the fields.

Nothing here knows any schema.  The format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from syncedmem.model import FileFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .byte_source import ByteSource

__all__ = ["FIXED_WIDTHS", "Field", "Wire", "fields", "records", "tag", "varint", "varints"]

_LONGEST_VARINT, _LONGEST_TAG = 10, 5
_DEEPEST = 100
"""How many groups may lie in each other; protobuf's own limit."""
_MOST_FIELDS = 1 << 18
"""That are looked at in one source.  Real nets have some thousands; more could only be there to keep us busy."""
_RECORDS = 1 << 16
"""How many records of a run are looked at in one go."""


class Wire(IntEnum):
    """How a value is stored."""

    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


_WIRES = tuple(Wire)
FIXED_WIDTHS = {Wire.FIXED64: 8, Wire.FIXED32: 4}
"""Bytes of a value that is stored as it is in memory."""


class Field(NamedTuple):
    """One field, or a run of fixed-width fields with one tag: an unpacked array is one of these, not millions."""

    number: int
    wire: Wire
    position: int  # of the tag, from the beginning of the source, in bytes
    start: int  # of the value; in a run, of the first
    end: int
    value: int = 0  # of a varint, without sign

    @property
    def stride(self) -> int:
        """The bytes from one record of a run to the next: a tag and a value."""
        return self.start - self.position + FIXED_WIDTHS[self.wire]

    @property
    def repeats(self) -> int:
        """How many records a run has."""
        return (self.end - self.position) // self.stride


def fields(source: ByteSource, start: int, end: int) -> Iterator[Field]:
    """The fields of the message between two positions, groups as a whole.

    Raises
    ------
    FileFormatError
        The bytes are no message; those before have been yielded.
    """
    while start < end:
        field = _field(source, start, end)
        match field.wire:
            case Wire.END_GROUP:
                raise FileFormatError(source.name, f"group {field.number} ends and has not begun", start)
            case Wire.GROUP:
                field = field._replace(end=_group_end(source, field, end))
            case Wire.FIXED32 | Wire.FIXED64:
                field = field._replace(end=_run_end(source, field, end))
            case _:
                pass
        yield field
        start = field.end


def varints(source: ByteSource, start: int, end: int) -> Iterator[int]:
    """The varints that fill the bytes between two positions, without sign."""
    while start < end:
        value, start = _varint(source, start, end, _LONGEST_VARINT)
        yield value


def records(source: ByteSource, field: Field) -> Iterator[NDArray[np.uint8]]:
    """The values of a run as rows of bytes, a block at a time."""
    for at in range(field.position, field.end, _RECORDS * field.stride):
        rows = _rows(source, at, min((field.end - at) // field.stride, _RECORDS), field.stride)
        yield rows[:, field.start - field.position :]


def varint(value: int) -> bytes:
    """A number from 0 to 2**64 - 1 as a varint."""
    groups = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def tag(number: int, wire: Wire) -> bytes:
    """What a field starts with."""
    return varint(number << 3 | wire)


def _field(source: ByteSource, position: int, end: int) -> Field:
    """The field at a position; of a group only its tag, of a run only its first record."""
    source.fields += 1
    if source.fields > _MOST_FIELDS:
        raise FileFormatError(source.name, f"it has more than {_MOST_FIELDS:,} fields to look at", position)
    key, start = _varint(source, position, end, _LONGEST_TAG)
    number, code = key >> 3, key & 7
    if not 0 < number < 1 << 29 or code > Wire.FIXED32:
        raise FileFormatError(source.name, f"there is no field {number} of wire type {code}", position)
    match wire := _WIRES[code]:
        case Wire.VARINT:
            value, stop = _varint(source, start, end, _LONGEST_VARINT)
            return Field(number, wire, position, start, stop, value)
        case Wire.GROUP | Wire.END_GROUP:
            return Field(number, wire, position, start, start)
        case Wire.LENGTH:
            length, start = _varint(source, start, end, _LONGEST_VARINT)
        case _:
            length = FIXED_WIDTHS[wire]
    if length > end - start:
        reason = f"field {number} has {length} bytes, and {end - start} are left"
        raise FileFormatError(source.name, reason, position)
    return Field(number, wire, position, start, start + length)


def _varint(source: ByteSource, position: int, end: int, longest: int) -> tuple[int, int]:
    """A varint and where it ends."""
    value, piece = 0, source.at(position, min(longest, end - position))
    if piece and piece[0] < 0x80:  # noqa: PLR2004 -- as below; nearly all tags have one byte
        return piece[0], position + 1
    for place, byte in enumerate(piece):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 -- the bit that says that more follow
            if value >> 64:
                raise FileFormatError(source.name, "a varint has more than 64 bits", position)
            return value, position + place + 1
    reason = "a varint is cut short" if end - position < longest else f"a varint has more than {longest} bytes"
    raise FileFormatError(source.name, reason, position)


def _group_end(source: ByteSource, group: Field, end: int) -> int:
    """Where a group ends, with all groups in it."""
    numbers, position = [group.number], group.end
    while numbers:
        if position == end:
            raise FileFormatError(source.name, f"group {numbers[-1]} does not end", group.position)
        field = _field(source, position, end)
        if field.wire is Wire.GROUP:
            numbers.append(field.number)
        elif field.wire is Wire.END_GROUP and field.number != numbers.pop():
            raise FileFormatError(source.name, f"group {field.number} ends inside another one", position)
        if len(numbers) > _DEEPEST:
            raise FileFormatError(source.name, f"more than {_DEEPEST} groups lie in each other", position)
        position = field.end
    return position


def _run_end(source: ByteSource, first: Field, end: int) -> int:
    """Where the run ends that a fixed-width field begins: at the first record with another tag."""
    label = np.frombuffer(source.at(first.position, first.start - first.position), np.uint8)
    stride, at, block = first.stride, first.end, 1
    # Blocks grow with the run: a lone field costs one more look, a long run few.
    while count := min((end - at) // stride, block):
        same = (_rows(source, at, count, stride)[:, : len(label)] == label).all(axis=1)
        if not same.all():
            return at + int(same.argmin()) * stride
        at, block = at + count * stride, min(4 * block, _RECORDS)
    return at


def _rows(source: ByteSource, position: int, count: int, stride: int) -> NDArray[np.uint8]:
    rows = np.empty(count * stride, np.uint8)
    source.fill(position, rows)
    return rows.reshape(count, stride)
