"""`BlobProto` messages: what is written, what is read, by which rules, and what is refused."""

from __future__ import annotations

import functools
import importlib
import struct
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from caffe_schema import caffe_pb2, chunk, floats, key, shape, varint

from syncedmem.model import FileFormatError, InvalidArgumentError, MissingPackageError
from syncedmem.runtime import load_binaryproto, load_caffemodel, save_binaryproto
from syncedmem.runtime.blobs import messages as proto
from syncedmem.runtime.blobs.messages import encoded, message_types, read_proto, shape_equals, write_proto

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Any: types come with some releases of protobuf only.
descriptor_pb2: Any = importlib.import_module("google.protobuf.descriptor_pb2")


def ours() -> Any:
    return message_types()[1]()


def loaded(wire: bytes) -> Any:
    return caffe_pb2.BlobProto.FromString(wire)


def fields(description: Any) -> set[tuple[Any, ...]]:
    """Names, numbers, types, labels and packing, by attributes that every version of protobuf has."""
    return {(field.name, field.number, field.type, field.label, field.options.packed) for field in description.field}


# ------------------------------------------------------------------------------------------ what is written


def test_the_messages_have_caffes_fields() -> None:
    """Names, numbers, types, labels and packing are those of the text that protoc has compiled."""
    for mine, theirs in zip(message_types(), (caffe_pb2.BlobShape, caffe_pb2.BlobProto), strict=True):
        described = [descriptor_pb2.DescriptorProto() for _ in range(2)]
        for message, description in zip((mine, theirs), described, strict=True):
            message.DESCRIPTOR.CopyToProto(description)
        assert fields(described[0]) == fields(described[1])
        assert fields(described[0])


def test_the_messages_are_made_once_and_keep_out_of_the_pool_that_everybody_shares() -> None:
    assert message_types() == message_types()
    assert message_types()[1] is not caffe_pb2.BlobProto


def test_what_caffe_forgets_to_clear_is_cleared() -> None:
    """Otherwise a used message would be read with its old shape, and with its old doubles."""
    proto = caffe_pb2.BlobProto(num=1, channels=2, height=3, width=4, data=[1], diff=[2], double_data=[3])
    proto.double_diff.extend([4.0])
    proto.shape.dim.extend([9, 9])
    data = np.array([[1, 2]], np.float32)

    assert write_proto((1, 2), data, proto=proto) is proto
    assert [(field.name) for field, _ in proto.ListFields()] == ["data", "shape"]
    assert list(proto.shape.dim) == [1, 2]
    assert read_proto(proto).data.tolist() == [[1, 2]]


def test_a_scalar_has_no_shape_message() -> None:
    proto = write_proto((), np.array(2.5))

    assert not proto.HasField("shape")
    assert ((), 2.5) == (read_proto(proto).shape, read_proto(proto).data.item())


def test_a_blob_without_values_is_only_its_shape() -> None:
    contents = read_proto(write_proto((3, 0), np.empty((3, 0), np.float32), np.empty((3, 0), np.float32)))

    assert ((3, 0), (3, 0), None) == (contents.shape, contents.data.shape, contents.diff)
    assert encoded((), np.ones(()), None) == chunk(8, struct.pack("<d", 1))


def test_an_array_need_not_be_contiguous() -> None:
    every_other = np.arange(12, dtype=np.float32)[::2]

    assert read_proto(write_proto((2, 3), every_other)).data.tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (FileFormatError, ((2,), np.zeros(3, "f4")), r"data has 3 values, and shape \(2,\) has 2"),
        (FileFormatError, ((2,), np.zeros(2, "f4"), np.zeros(1, "f4")), r"diff has 1 values, and shape \(2,\) has 2"),
        (FileFormatError, ((-1,), np.zeros(1, "f4")), r"shape \(-1,\) has a negative axis"),
        (FileFormatError, ((1,) * 33, np.zeros(1, "f4")), "shape has 33 axes, and a blob at most 32"),
        (InvalidArgumentError, ((1.5,), np.zeros(1, "f4")), "shape must be a sequence of whole numbers, got"),
        (InvalidArgumentError, (5, np.zeros(5, "f4")), "shape must be a sequence of whole numbers, got 5"),
        (InvalidArgumentError, ((1,), np.zeros(1, "i4")), "data must be a NumPy array of float32, float64, got"),
        (InvalidArgumentError, ((1,), [1.0]), "data must be a NumPy array of float32, float64, got"),
        (InvalidArgumentError, ((1,), np.zeros(1), [1.0]), "diff must be a NumPy array of float32, float64, got"),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_message_is_as_it_was(
    error: type[Exception], arguments: Any, message: str
) -> None:
    proto = caffe_pb2.BlobProto(num=7)

    with pytest.raises(error, match=message):
        functools.partial(write_proto, proto=proto)(*arguments)

    assert caffe_pb2.BlobProto(num=7) == proto


def test_more_than_protobuf_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 2 GiB; this test sets a smaller one."""
    monkeypatch.setattr(proto, "MOST_BYTES", 1034)

    assert encoded((2,), np.zeros(2, np.float32))
    with pytest.raises(FileFormatError, match="its values would have 16 bytes, and a message has room for 10"):
        encoded((2,), np.zeros(2))


# ----------------------------------------------------------------------------------------- what is read

RULES: list[tuple[str, bytes, tuple[int, ...], list[float], list[float] | None]] = [
    ("a shape", shape(2, 1) + floats(5, 1, 2), (2, 1), [1, 2], None),
    ("an empty shape", chunk(7, b"") + floats(5, 3), (), [3], None),
    ("one old field beside a shape", shape(1) + bytes([8, 5]), (5, 0, 0, 0), [], None),
    ("the last of two old fields", bytes([8, 9, 8, 1, 16, 1, 24, 1, 32, 1]) + floats(5, 4), (1, 1, 1, 1), [4], None),
    ("doubles win over floats", floats(5, 1, 2) + chunk(8, struct.pack("<d", 7)), (), [7], None),
    ("no doubles do not", floats(5, 1) + chunk(8, b""), (), [1], None),
    ("a diff of doubles", floats(5, 1) + chunk(9, struct.pack("<d", 3)) + floats(6, 1, 2), (), [1], [3]),
    ("an empty diff is none", floats(5, 1) + chunk(6, b""), (), [1], None),
]


@pytest.mark.parametrize(
    ("wire", "dims", "data", "diff"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES]
)
@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, ours().FromString, loaded])
def test_a_message_is_read_by_caffes_rules(
    make: Any, wire: bytes, dims: tuple[int, ...], data: list[float], diff: list[float] | None
) -> None:
    contents = read_proto(make(wire))

    assert dims == contents.shape == contents.data.shape
    assert data == contents.data.reshape(-1).tolist()
    assert diff == (None if contents.diff is None else contents.diff.reshape(-1).tolist())


REFUSALS: list[tuple[str, bytes, str]] = [
    ("too few values", shape(2, 3) + floats(5, 1), r"data has 1 values, and shape \(2, 3\) has 6"),
    ("too many doubles", floats(5, 1) + chunk(8, bytes(16)), r"double_data has 2 values, and shape \(\) has 1"),
    ("a wrong diff of doubles", floats(5, 1) + chunk(9, bytes(16)) + floats(6, 1), "double_diff has 2 values"),
    ("a negative axis", shape(2, -1), r"shape \(2, -1\) has a negative axis"),
    ("a negative old field", key(1, 0) + varint((1 << 64) - 3), r"shape \(-3, 0, 0, 0\) has a negative axis"),
    ("a product beyond 64 bits", shape(1 << 31, 1 << 31, 1 << 31), "more values than memory can have"),
    ("a product that wraps to zero", shape(1 << 32, 1 << 32), "more values than memory can have"),
    ("a large product beside a zero", shape(0, 1 << 40, 1 << 40), "more values than memory can have"),
]


@pytest.mark.parametrize(("wire", "message"), [rule[1:] for rule in REFUSALS], ids=[rule[0] for rule in REFUSALS])
@pytest.mark.parametrize("make", [bytes, ours().FromString, loaded])
def test_a_blob_that_cannot_be_is_refused(make: Any, wire: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read_proto(make(wire))

    assert caught.value.source == "BlobProto"


def test_what_is_read_of_bytes_is_ones_own() -> None:
    """The arrays can be written, and share no memory with the bytes."""
    wire = bytearray(floats(5, 1) + floats(6, 2))
    contents = read_proto(wire)
    wire[-4:] = struct.pack("<f", 9)

    assert contents.diff is not None
    assert (2, True, True) == (contents.diff.item(), contents.diff.flags.writeable, contents.data.flags.writeable)


def test_what_is_read_of_a_message_stays_when_the_message_changes() -> None:
    proto = loaded(floats(5, 1))
    contents = read_proto(proto)
    proto.data[0] = 2

    assert contents.data == 1


def test_a_package_that_hands_out_values_one_by_one_is_read_through_its_bytes() -> None:
    """So a signalling NaN, which a Python float cannot hold, is unchanged."""
    message = loaded(chunk(5, struct.pack("<I", 0x7FA00001)))

    class Older:
        DESCRIPTOR = caffe_pb2.BlobProto.DESCRIPTOR
        data: ClassVar[list[float]] = [float("nan")]

        def __getattr__(self, name: str) -> Any:
            return getattr(message, name)

    assert read_proto(Older()).data.view(np.uint32) == 0x7FA00001


@pytest.mark.parametrize(
    "proto",
    [
        None,
        5,
        "text",
        caffe_pb2.Datum(),
        caffe_pb2.Impostor(data=b"abcd"),
        caffe_pb2.BlobProto,
        caffe_pb2.BlobShape(),
        memoryview(b"abcd")[::2],
    ],
)
def test_what_is_no_blob_message_is_refused(proto: Any) -> None:
    for call in (lambda: read_proto(proto), lambda: shape_equals((), proto)):
        with pytest.raises(InvalidArgumentError, match="proto must be "):
            call()


def test_only_a_message_is_written_to() -> None:
    with pytest.raises(InvalidArgumentError, match=r"or its bytes, got a BlobShape that prints as nothing$"):
        read_proto(caffe_pb2.BlobShape())
    with pytest.raises(InvalidArgumentError, match="proto must be a BlobProto with Caffe's fields"):
        write_proto((), np.ones(()), proto=caffe_pb2.Datum())


# ------------------------------------------------------------------------------------------- the package


WITHOUT: dict[str, Callable[[Path], object]] = {
    "write_proto": lambda _: write_proto((), np.ones(())),
    "read_proto": lambda _: read_proto(b""),
    "shape_equals": lambda _: shape_equals((), b""),
    "save_binaryproto": lambda path: save_binaryproto(path, np.ones(1)),
    "load_binaryproto": load_binaryproto,
    "load_caffemodel": load_caffemodel,
}


@pytest.mark.parametrize("name", WITHOUT)
def test_without_the_package_an_error_says_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    proto._classes.cache_clear()  # pyright: ignore[reportPrivateUsage] -- as if it had never been asked for
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(MissingPackageError, match=r"pip install protobuf"):
        WITHOUT[name](path)

    assert path.read_bytes() == b"before"
