"""`BlobProto` and `BlobShape` as messages of the protobuf package, and arrays in and out of them.

The messages are made from the declaration in ``contents`` when they are first asked for, in a descriptor pool of
their own, so that they do not get in the way of a ``caffe_pb2`` that was compiled from Caffe's own file.  Messages of
such a module are taken too: what counts is that the fields have Caffe's names and numbers.

The package is an extra and is imported when a message has to be made.  Reading messages and bytes needs none of it.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, MissingPackageError

from .blob_wire import MESSAGE, encoded, scanned, stored_blob
from .byte_source import MemorySource
from .contents import BLOB_PROTO, BLOB_SHAPE, DTYPES, BlobContents, BlobParts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["message_types", "read_proto", "shape_equals", "write_proto"]

_BYTES = (bytes, bytearray, memoryview)
_PACKAGE = "syncedmem.caffe"
_MESSAGES = {"BlobShape": BLOB_SHAPE, "BlobProto": BLOB_PROTO}
_BY_NAME = {field.name: field for field in BLOB_PROTO}
_TYPE_NUMBERS = {"double": {1}, "float": {2}, "int32": {3, 5}, "BlobShape": {11}}
"""What protobuf calls our types.  Some forks of Caffe have the four old fields as int64; the wire does not tell."""


def message_types() -> tuple[type[Any], type[Any]]:
    """The classes `BlobShape` and `BlobProto`.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    """
    try:
        return _made()
    except ImportError as error:
        raise MissingPackageError("a BlobProto message", "protobuf", "proto") from error


@cache
def _made() -> tuple[type[Any], type[Any]]:
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    file = descriptors.FileDescriptorProto(name="syncedmem/blob.proto", package=_PACKAGE)
    for name, declaration in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for declared in declaration:
            _declare(message, declared.name, declared.number, declared.type, declared.repeated)
    pool = pools.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    shape, blob = (factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES)
    return shape, blob


def _declare(message: Any, name: str, number: int, kind: str, repeated: bool) -> None:
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
        field.options.packed = repeated


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
        There is no message to write to, and the protobuf package is not installed.
    InvalidArgumentError
        ``messages`` is no `BlobProto`, or an array is none, or not of these types.
    FileFormatError
        No blob has that shape, an array does not have as many values, or the message would be too long.
    """
    message = message_to_write(proto)
    wire = encoded(shape, data, diff)
    for declared in BLOB_PROTO:
        message.ClearField(declared.name)
    message.MergeFromString(wire.data)
    return message


def message_to_write(proto: Any) -> Any:
    """A new message, or the given one, which is not changed yet.

    Raises
    ------
    MissingPackageError, InvalidArgumentError
        As `write_proto`.
    """
    message = message_types()[1]() if proto is None else proto
    _check_fields(message)
    return message


def read_proto(proto: Any) -> BlobContents:
    """The blob in a message, or in the bytes of one: all of it checked before any array is made.

    Of bytes, arrays are read-only views where the values lie in one piece.

    Raises
    ------
    InvalidArgumentError
        It is neither bytes nor a `BlobProto`.
    FileFormatError
        The bytes are no message, or no blob can be what the message says: a wrong number of values, a negative axis,
        too many axes.
    """
    if isinstance(proto, _BYTES):
        source = _source(proto)
        return stored_blob(source, 0, source.size).contents(source)
    values = _values(proto)
    shape, data, diff = _parts(values).checked()
    if not all(hasattr(values[name], "__array__") for name in (data, diff) if name in values):
        # Older packages hand out values one by one, as Python floats, and that changes some NaNs.
        return read_proto(proto.SerializeToString())
    return BlobContents(shape, _array(values, data, shape), None if diff is None else _array(values, diff, shape))


def shape_equals(shape: Sequence[int], proto: Any) -> bool:
    """Whether a blob of that shape has the shape of a message, or of the bytes of one: Caffe's ``ShapeEquals``.

    If the message has any of the four old fields, these count, from the last axis backwards: (3, 2) is 1 x 1 x 3 x 2.
    Otherwise ``shape`` counts, and a message without one has no axes.

    Raises
    ------
    InvalidArgumentError
        It is neither bytes nor a `BlobProto`.
    FileFormatError
        The bytes are no message.
    """
    if isinstance(proto, _BYTES):
        source = _source(proto)
        return scanned(source, 0, source.size).equals(shape)
    return _parts(_values(proto)).equals(shape)


def _source(data: Any) -> MemorySource:
    try:
        return MemorySource(data, MESSAGE)
    except (TypeError, ValueError) as error:  # a view with gaps, or a released one
        raise InvalidArgumentError("proto", data, "bytes in one piece") from error


def _values(proto: Any) -> dict[str, Any]:
    """The fields that are present in a message, by name; those that Caffe's BlobProto does not have are left out.

    Raises
    ------
    InvalidArgumentError
        It is no message with all of Caffe's fields.
    """
    _check_fields(proto)
    return {field.name: value for field, value in proto.ListFields() if field.name in _BY_NAME}


def _check_fields(proto: Any) -> None:
    kind = cast("Any", type(proto))  # a class has a descriptor too, and no fields
    try:
        theirs = {name: (field.number, field.type) for name, field in kind.DESCRIPTOR.fields_by_name.items()}
    except AttributeError:
        theirs = {}
    for declared in BLOB_PROTO:
        number, value_type = theirs.get(declared.name, (None, None))
        if number != declared.number or value_type not in _TYPE_NUMBERS[declared.type]:
            raise InvalidArgumentError("proto", proto, "a BlobProto with Caffe's fields, or its bytes")


def _parts(values: dict[str, Any]) -> BlobParts:
    present = [_BY_NAME[name] for name in values]
    legacy = {field.name: int(values[field.name]) for field in present if field.type == "int32"}
    counts = {field.name: len(values[field.name]) for field in present if field.type in DTYPES}
    return BlobParts(MESSAGE, legacy, values["shape"].dim if "shape" in values else (), counts)


def _array(values: dict[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = DTYPES[_BY_NAME[name].type]
    array: NDArray[Any] = np.array(values.get(name, ()), dtype)
    return array.reshape(shape)
