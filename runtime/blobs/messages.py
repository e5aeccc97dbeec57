"""Caffe's messages, through the protobuf package: a `BlobProto` is read and written here, a net is declared.

Names, numbers and types are those of Caffe's ``src/caffe/proto/caffe.proto`` (BVLC/caffe); fields that do not lead to a
blob are not declared, and protobuf keeps them without looking into them.  The messages are made when they are first
asked for, in a descriptor pool of their own, so that they do not get in the way of a ``caffe_pb2`` that was compiled
from Caffe's own file.  Messages of such a module are taken too: what counts is that the fields have Caffe's names and
numbers.

A blob is read by these rules, as Caffe reads it, but all of it is checked before anything is touched:

- if any of the four old fields is there, the shape is these four, a missing one is 0, and ``shape`` is not looked at;
- otherwise it is ``shape``, and without one there are no axes and one value;
- ``double_data`` is the data if it has any values, whatever ``data`` has; so is ``double_diff`` the diff;
- a diff without values is no diff.

**Limits.**  A message has at most 2 GiB, and is in memory as a whole, once as bytes and once as protobuf's message.
What is no message, or is nested deeper than protobuf goes, is refused.  A field that is stored in another way than its
type's is unknown to protobuf, and passed over.  A message of nothing but empty messages takes protobuf up to 64 times
its size (measured: 48), and its slow pure-Python variant up to 300 times (248); one of values takes about its size.
"""

from __future__ import annotations

import importlib
import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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
"""Of a message; protobuf refuses more, when it writes and when it reads."""
_MOST_BESIDE_VALUES = 1 << 10
"""Of these, what a blob's shape and the lengths of its arrays may take, which is less."""

_BYTES = (bytes, bytearray, memoryview)
_PACKAGE = "syncedmem.caffe"
_BLOB = "BlobProto"
"""Also what errors call a message that is in no file."""


class _Field(NamedTuple):
    """A field of a message, with protobuf's name for its type; that of a message is the message's own."""

    name: str
    number: int
    type: str
    repeated: bool = False


_BLOB_PROTO = (
    _Field("num", 1, "int32"),
    _Field("channels", 2, "int32"),
    _Field("height", 3, "int32"),
    _Field("width", 4, "int32"),
    _Field("data", 5, "float", repeated=True),
    _Field("diff", 6, "float", repeated=True),
    _Field("shape", 7, "BlobShape"),
    _Field("double_data", 8, "double", repeated=True),
    _Field("double_diff", 9, "double", repeated=True),
)
_ARRAYS = {field.name: np.dtype("<f4" if field.type == "float" else "<f8") for field in _BLOB_PROTO if field.repeated}
_OLD = tuple(field.name for field in _BLOB_PROTO if field.type == "int32")
VALUE_TYPES: dict[np.dtype[Any], tuple[str, str]] = {
    np.dtype("<f4"): ("data", "diff"),
    np.dtype("<f8"): ("double_data", "double_diff"),
}
"""The types of a message's values, each with the fields for data and diff."""

_MESSAGES = {
    "BlobShape": (_Field("dim", 1, "int64", repeated=True),),
    _BLOB: _BLOB_PROTO,
    # The same bytes, with an array as one string of bytes: that is how they are copied from and to NumPy bit for bit,
    # where protobuf takes and gives one Python float after another, and changes some NaNs.
    "PackedBlob": tuple(
        field._replace(type="bytes", repeated=False) if field.name in _ARRAYS else field for field in _BLOB_PROTO
    ),
    # The three generations of layers.  Names are bytes, because they need not be UTF-8.
    "V0LayerParameter": (_Field("name", 1, "bytes"), _Field("blobs", 50, _BLOB, repeated=True)),
    "V1LayerParameter": (
        _Field("layer", 1, "V0LayerParameter"),
        _Field("name", 4, "bytes"),
        _Field("blobs", 6, _BLOB, repeated=True),
    ),
    "LayerParameter": (_Field("name", 1, "bytes"), _Field("blobs", 7, _BLOB, repeated=True)),
    "NetParameter": (
        _Field("layers", 2, "V1LayerParameter", repeated=True),
        _Field("layer", 100, "LayerParameter", repeated=True),
    ),
}
_TYPE_NUMBERS = {"double": {1}, "float": {2}, "int32": {3, 5}, "BlobShape": {11}}
"""What protobuf calls our types.  Some forks of Caffe have the four old fields as int64; the wire does not tell."""


# --- the classes


def message_types() -> tuple[type[Any], type[Any]]:
    """The classes `BlobShape` and `BlobProto`.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    """
    return _class("BlobShape"), _class(_BLOB)


def _class(name: str) -> type[Any]:
    try:
        return _classes()[name]
    except ImportError as error:
        raise MissingPackageError(f"a {name} message", "protobuf", "proto") from error


@cache
def _classes() -> dict[str, type[Any]]:
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    file = descriptors.FileDescriptorProto(name="syncedmem/caffe.proto", package=_PACKAGE)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _declare(message, field)
    pool = pools.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


def _declare(message: Any, declared: _Field) -> None:
    field = message.field.add(name=declared.name, number=declared.number)
    field.label = field.LABEL_REPEATED if declared.repeated else field.LABEL_OPTIONAL
    if declared.type in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{declared.type}"
    else:
        field.type = getattr(field, f"TYPE_{declared.type.upper()}")
        field.options.packed = declared.repeated


# --- writing


def write_proto(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None, proto: Any = None) -> Any:
    """A blob as a message.

    Parameters
    ----------
    shape
        Of the blob.  Without axes, there is one value and the message has no shape.
    data, diff
        As many values as the shape has: float32 ones go to ``data`` and ``diff``, float64 ones to ``double_data`` and
        ``double_diff``.
    proto
        The message to write to, for example one of ``caffe_pb2.BlobProto``; without it a new one is made.  All fields
        of a blob that it has are cleared first, also those that Caffe leaves: the four old ones, which would be read in
        place of the shape, and the other precision, which would be read in place of the data.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    InvalidArgumentError
        ``proto`` is no `BlobProto`, or an array is none, or not of these types.
    FileFormatError
        No blob has that shape, an array does not have as many values, or the message would be too long.
    AllocationError
    """
    message = message_to_write(proto)
    wire = encoded(shape, data, diff)
    for field in _BLOB_PROTO:
        message.ClearField(field.name)
    message.MergeFromString(wire)
    return message


def message_to_write(proto: Any) -> Any:
    """A new message, or the given one, which is not changed yet.

    Raises
    ------
    MissingPackageError, InvalidArgumentError
        As `write_proto`.
    """
    message = _class(_BLOB)() if proto is None else proto
    _check_fields(message)
    return message


def encoded(shape: Sequence[int], data: NDArray[Any], diff: NDArray[Any] | None = None) -> bytes:
    """The bytes of a blob's message.

    Raises
    ------
    MissingPackageError, InvalidArgumentError, FileFormatError, AllocationError
        As `write_proto`.
    """
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
    """The axes of a blob that can be a message; everything else is refused, without copying a value.

    Raises
    ------
    MissingPackageError, InvalidArgumentError, FileFormatError
        As `write_proto`.
    """
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
    """The blob in a message, or in the bytes of one: all of it checked before any array is made.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    InvalidArgumentError
        It is neither bytes nor a `BlobProto`.
    FileFormatError
        The bytes are no message, or no blob can be what the message says: a wrong number of values, a negative axis,
        too many axes.
    AllocationError
    """
    return contents_of(_message(proto), _BLOB)


def shape_equals(shape: Sequence[int], proto: Any) -> bool:
    """Whether a blob of that shape has the shape of a message, or of the bytes of one: Caffe's ``ShapeEquals``.

    If the message has any of the four old fields, these count, from the last axis backwards: (3, 2) is 1 x 1 x 3 x 2.
    Otherwise ``shape`` counts, and a message without one has no axes.

    Raises
    ------
    MissingPackageError, InvalidArgumentError
        As `read_proto`.
    FileFormatError
        The bytes are no message.
    """
    blob, mine = _message(proto), tuple(shape)
    dims = _dims(blob)
    if _has_old(blob):
        mine = (1,) * (len(_OLD) - len(mine)) + mine
    return len(mine) == len(dims) and mine == tuple(dims)


def parsed(message: str, wire: bytes, source: str) -> Any:
    """A message of a name from its bytes, which errors call `source`.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    FileFormatError
        They are no such message, or more than one can have.
    AllocationError
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
    """The blob in a message.

    Raises
    ------
    FileFormatError, AllocationError
        As `read_proto`.
    """
    shape = shape_of(blob, source)
    data, diff = _fields_of(blob)
    return BlobContents(shape, _array(blob, data, shape), None if diff is None else _array(blob, diff, shape))


def shape_of(blob: Any, source: str) -> tuple[int, ...]:
    """The shape of the blob in a message, of which everything is checked.

    Raises
    ------
    FileFormatError
        As `read_proto`.
    """
    shape = checked_shape(_dims(blob), source)
    for name in filter(None, _fields_of(blob)):
        count = len(getattr(blob, name))
        if count != math.prod(shape):
            raise FileFormatError(source, f"{name} has {count} values, and shape {shape} has {math.prod(shape)}")
    return shape


def _dims(blob: Any) -> Sequence[int]:
    """The shape as it is written, checked against nothing."""
    dims: Sequence[int] = tuple(getattr(blob, name) for name in _OLD) if _has_old(blob) else blob.shape.dim
    return dims


def _has_old(blob: Any) -> bool:
    """Whether a message has any of the four old fields; of one with another syntax `HasField` may not be asked."""
    return any(field.name in _OLD for field, _ in blob.ListFields())


def _fields_of(blob: Any) -> tuple[str, str | None]:
    """Which fields have the data and the diff, if there is one."""
    data = "double_data" if len(blob.double_data) else "data"
    return data, next((name for name in ("double_diff", "diff") if len(getattr(blob, name))), None)


def _array(blob: Any, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values in a field of a message, bit for bit."""
    dtype, values = _ARRAYS[name], getattr(blob, name)
    try:
        if not hasattr(values, "__array__"):  # older packages hand out values one by one, as Python floats
            ours = _class(_BLOB).FromString(blob.SerializePartialToString())  # which packs all values when written
            values = np.frombuffer(getattr(_class("PackedBlob").FromString(ours.SerializeToString()), name), dtype)
        return np.array(values, dtype).reshape(shape)
    except MemoryError as error:
        raise AllocationError("the host", math.prod(shape) * dtype.itemsize) from error


def _message(proto: Any) -> Any:
    """A message with Caffe's fields, as it is or from its bytes.

    Raises
    ------
    MissingPackageError, InvalidArgumentError, FileFormatError, AllocationError
        As `read_proto`.
    """
    if not isinstance(proto, _BYTES):
        _check_fields(proto)
        return proto
    return parsed(_BLOB, _wire(proto), _BLOB)


def _wire(data: Any) -> bytes:
    try:
        return bytes(memoryview(data).cast("B"))
    except (TypeError, ValueError) as error:  # a view with gaps, or a released one
        raise InvalidArgumentError("proto", data, "bytes in one piece") from error


def _check_fields(proto: Any) -> None:
    """Refuse what is no message with all of Caffe's fields."""
    kind = cast("Any", type(proto))  # a class has a descriptor too, and no fields
    try:
        theirs = {name: (field.number, field.type) for name, field in kind.DESCRIPTOR.fields_by_name.items()}
    except AttributeError:
        theirs = {}
    for field in _BLOB_PROTO:
        number, value_type = theirs.get(field.name, (None, None))
        if number != field.number or value_type not in _TYPE_NUMBERS[field.type]:
            raise InvalidArgumentError("proto", proto, "a BlobProto with Caffe's fields, or its bytes")
