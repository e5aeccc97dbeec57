"""Caffe's messages, through the protobuf package: reading and writing a `BlobProto`, and the declaration of a net.

The messages are declared in ``caffe.proto``, and compiled to ``caffe_pb2``, which is imported when it is first needed.
It has a descriptor pool of its own, so it does not collide with a ``caffe_pb2`` that users compile from Caffe's file.
Messages of such a module are accepted too, if their fields have Caffe's names and numbers.

A blob is read as Caffe reads it, by these rules; but all of it is checked before anything is changed:

- If any of the four old fields is there, these four are the shape.  A missing one is 0, and ``shape`` is ignored.
- Otherwise ``shape`` is the shape.  Without it there are no axes and one value.
- If ``double_data`` has any values, it is the data, whatever ``data`` has.  The same holds for ``double_diff`` and the
  diff.
- A diff without values is no diff.

**Limits.**  A message has at most 2 GiB.  All of it is in memory, once as bytes and once as protobuf's message.  Bytes
that are no message, or are nested deeper than protobuf allows, are refused.  If a field is stored in another way than
its type requires, protobuf takes it for unknown and skips it.  A message that contains only empty messages takes up to
64 times its size in protobuf (measured: 48), and up to 300 times in protobuf's pure-Python variant (measured: 248).  A
message of values takes about its size.
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import AllocationError, FileFormatError, InvalidArgumentError, MissingPackageError
from syncedmem.model.errors import words

from .contents import BlobContents, checked_array, checked_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "MOST_BYTES",
    "VALUE_TYPES",
    "check_blob",
    "contents_of",
    "encoded",
    "message_to_write",
    "message_types",
    "parsed",
    "read_proto",
    "shape_equals",
    "shape_of",
    "write_proto",
]

MOST_BYTES = (1 << 31) - 1
"""The bytes of a message at most; protobuf refuses more, when it writes and when it reads."""
_MOST_BESIDE_VALUES = 1 << 10
"""How many of these the shape and the lengths of the arrays may take; they take less."""

_BYTES = (bytes, bytearray, memoryview)
_BLOB = "BlobProto"
"""This is also the name of a message in errors, if it is in no file."""


_OLD = ("num", "channels", "height", "width")
_ARRAYS: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("data", "diff"), np.dtype("<f4")),
    **dict.fromkeys(("double_data", "double_diff"), np.dtype("<f8")),
}
VALUE_TYPES: dict[np.dtype[Any], tuple[str, str]] = {
    np.dtype("<f4"): ("data", "diff"),
    np.dtype("<f8"): ("double_data", "double_diff"),
}
"""The element types of a message, each with its fields for data and diff."""

_WIDER = {5: 3}
"""Protobuf's numbers of int32 and int64: forks of Caffe have the four old fields as int64, which looks the same."""


# --- the classes


def message_types() -> tuple[type[Any], type[Any]]:
    """The classes `BlobShape` and `BlobProto`."""
    return _class("BlobShape"), _class(_BLOB)


def _class(name: str) -> type[Any]:
    try:
        kind: type[Any] = getattr(importlib.import_module(".caffe_pb2", __package__), name)
    except Exception as error:
        raise MissingPackageError(f"a {name} message", "protobuf", "proto", error) from error
    return kind


# --- writing


def write_proto(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None, proto: Any = None) -> Any:
    """A blob as a message.

    Parameters
    ----------
    shape
        The shape of the blob.  Without axes, there is one value, and the message has no shape.
    data, diff
        As many values as the shape has: float32 values go to ``data`` and ``diff``, float64 values to ``double_data``
        and ``double_diff``.
    proto
        The message to write to, for example a ``BlobProto`` of ``caffe_pb2``; None makes a new one.  All its fields
        that describe a blob are cleared first.  Caffe leaves some of them: the four old fields, which would be read in
        place of the shape, and those of the other precision, which would be read in place of the data.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    InvalidArgumentError
        If ``proto`` is no `BlobProto`, or an array is no array of these types.
    FileFormatError
        If no blob has that shape, an array does not have as many values, or the message would be too long.
    AllocationError
        If there is no room.
    """
    message = message_to_write(proto)
    wire = encoded(shape, data, diff)
    for name in _class(_BLOB).DESCRIPTOR.fields_by_name:
        message.ClearField(name)
    message.MergeFromString(wire)
    return message


def message_to_write(proto: Any) -> Any:
    """A new message, or the given one after a check; it is not changed yet."""
    message = _class(_BLOB)() if proto is None else proto
    _check_fields(message)
    return message


def encoded(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None) -> bytes:
    """The bytes of a blob's message."""
    axes = check_blob(shape, data, diff)
    blob = _class("PackedBlob")()
    blob.shape.dim.extend(axes)
    if not axes:
        blob.ClearField("shape")
    try:
        for place, array in enumerate((data,) if diff is None else (data, diff)):
            if array.size:  # protobuf writes nothing for a field without values
                setattr(blob, VALUE_TYPES[array.dtype][place], array.tobytes())
        wire: bytes = blob.SerializeToString()
    except MemoryError as error:
        raise AllocationError("the host", 2 * data.nbytes) from error
    return wire


def check_blob(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None) -> tuple[int, ...]:
    """The axes of a blob, after a check that a message can hold it; no value is copied."""
    _class(_BLOB)
    axes, size = checked_shape(shape, _BLOB), 0
    arrays: dict[str, object] = {"data": data} if diff is None else {"data": data, "diff": diff}
    for name, value in arrays.items():
        array = checked_array(name, value, VALUE_TYPES)
        if array.size != math.prod(axes):
            raise FileFormatError(_BLOB, f"{name} has {array.size} values, and shape {axes} has {math.prod(axes)}")
        size += array.nbytes
    most = MOST_BYTES - _MOST_BESIDE_VALUES
    if size > most:
        raise FileFormatError(_BLOB, f"its values would have {size} bytes, and a message has room for {most}")
    return axes


# --- reading


def read_proto(proto: Any) -> BlobContents:
    """The blob in a message, or in the bytes of a message; all of it is checked before any array is made.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    InvalidArgumentError
        If it is neither bytes nor a `BlobProto`.
    FileFormatError
        If the bytes are no message, or the message describes no possible blob: a wrong number of values, a negative
        axis, or too many axes.
    AllocationError
        If there is no room.
    """
    return contents_of(_message(proto), _BLOB)


def shape_equals(shape: Sequence[int], proto: Any) -> bool:
    """Whether a blob of that shape has the shape of a message, or of its bytes: Caffe's ``ShapeEquals``.

    If the message has any of the four old fields, these are compared, from the last axis backwards: (3, 2) is 1 x 1 x 3
    x 2.  Otherwise ``shape`` is compared, and a message without it has no axes.

    Raises
    ------
    MissingPackageError, InvalidArgumentError
        As for `read_proto`.
    FileFormatError
        If the bytes are no message.
    """
    blob, mine = _message(proto), tuple(shape)
    dims = _dims(blob)
    if _has_old(blob):
        mine = (1,) * (len(_OLD) - len(mine)) + mine
    return len(mine) == len(dims) and mine == tuple(dims)


def parsed(message: str, wire: bytes, source: str) -> Any:
    """A message, by the name of its type, from its bytes; errors call it `source`.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    FileFormatError
        If the bytes are no such message, or are longer than a message can be.
    AllocationError
        If there is no room.
    """
    if len(wire) > MOST_BYTES:
        raise FileFormatError(source, f"it has {len(wire)} bytes, and a message has at most {MOST_BYTES}")
    kind: Any = _class(message)
    try:
        return kind.FromString(wire)
    except MemoryError as error:
        raise AllocationError("the host", len(wire)) from error
    except Exception as error:  # protobuf's DecodeError, and in its Python variant a RecursionError
        raise FileFormatError(source, f"its bytes are no {message}: {words(error)}") from error


def contents_of(blob: Any, source: str) -> BlobContents:
    """The blob in a message."""
    shape = shape_of(blob, source)
    data, diff = _fields_of(blob)
    return BlobContents(shape, _array(blob, data, shape), None if diff is None else _array(blob, diff, shape))


def shape_of(blob: Any, source: str) -> tuple[int, ...]:
    """The shape of the blob in a message; the whole blob is checked."""
    shape = checked_shape(_dims(blob), source)
    for name in filter(None, _fields_of(blob)):
        count = len(getattr(blob, name))
        if count != math.prod(shape):
            raise FileFormatError(source, f"{name} has {count} values, and shape {shape} has {math.prod(shape)}")
    return shape


def _dims(blob: Any) -> Sequence[int]:
    """The shape as the message has it, without a check."""
    dims: Sequence[int] = tuple(getattr(blob, name) for name in _OLD) if _has_old(blob) else blob.shape.dim
    return dims


def _has_old(blob: Any) -> bool:
    """Whether a message has any of the four old fields; for fields of another syntax `HasField` would raise."""
    return any(field.name in _OLD for field, _ in blob.ListFields())


def _fields_of(blob: Any) -> tuple[str, str | None]:
    """The names of the fields that have the data and, if there is one, the diff."""
    data = "double_data" if len(blob.double_data) else "data"
    return data, next((name for name in ("double_diff", "diff") if len(getattr(blob, name))), None)


def _array(blob: Any, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values in a field of a message, bit for bit."""
    dtype, values = _ARRAYS[name], getattr(blob, name)
    try:
        if not hasattr(values, "__array__"):  # older protobuf packages return single values, as Python floats
            ours = _class(_BLOB).FromString(blob.SerializePartialToString())  # writing packs all values into one string
            values = np.frombuffer(getattr(_class("PackedBlob").FromString(ours.SerializeToString()), name), dtype)
        return np.array(values, dtype).reshape(shape)
    except MemoryError as error:
        raise AllocationError("the host", math.prod(shape) * dtype.itemsize) from error


def _message(proto: Any) -> Any:
    """A message with Caffe's fields, given as a message or as its bytes."""
    if not isinstance(proto, _BYTES):
        _check_fields(proto)
        return proto
    return parsed(_BLOB, _wire(proto), _BLOB)


def _wire(data: Any) -> bytes:
    try:
        return bytes(memoryview(data).cast("B"))
    except (TypeError, ValueError) as error:  # a view that is not contiguous, or was released
        raise InvalidArgumentError("proto", data, "bytes in one piece") from error


def _check_fields(proto: Any) -> None:
    """Refuse an object that is no message with all of Caffe's fields."""
    kind = cast("Any", type(proto))  # the type, because a class of messages has a descriptor too, but no fields
    try:
        theirs = {name: (field.number, field.type) for name, field in kind.DESCRIPTOR.fields_by_name.items()}
    except AttributeError:
        theirs = {}
    for name, field in _class(_BLOB).DESCRIPTOR.fields_by_name.items():
        number, value_type = theirs.get(name, (None, None))
        if number != field.number or value_type not in (field.type, _WIDER.get(field.type)):
            raise InvalidArgumentError("proto", proto, "a BlobProto with Caffe's fields, or its bytes")
