"""`BlobProto` messages: what is written, what is read, by which rules, and what is refused."""

from __future__ import annotations

import functools
import importlib
import math
import struct
import sys
import tracemalloc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from caffe_schema import caffe_pb2, chunk, floats, key, shape, varint
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncedmem.model import AllocationError, FileFormatError, InvalidArgumentError, MissingPackageError
from syncedmem.runtime import load_binaryproto, load_caffemodel, save_binaryproto
from syncedmem.runtime.blobs import messages as messages_module
from syncedmem.runtime.blobs.contents import empty
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


def test_a_scalar_has_no_shape_and_a_blob_without_values_is_only_its_shape() -> None:
    """An array need not be contiguous."""
    scalar = write_proto((), np.array(2.5))
    assert not scalar.HasField("shape")
    assert ((), 2.5) == (read_proto(scalar).shape, read_proto(scalar).data.item())
    assert encoded((), np.ones(()), None) == chunk(8, struct.pack("<d", 1))

    contents = read_proto(write_proto((3, 0), np.empty((3, 0), np.float32), np.empty((3, 0), np.float32)))
    assert ((3, 0), (3, 0), None) == (contents.shape, contents.data.shape, contents.diff)

    every_other = np.arange(12, dtype=np.float32)[::2]
    assert [[0, 2, 4], [6, 8, 10]] == read_proto(write_proto((2, 3), every_other)).data.tolist()


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (FileFormatError, ((2,), np.zeros(3, "f4"))),
        (FileFormatError, ((2,), np.zeros(2, "f4"), np.zeros(1, "f4"))),
        (FileFormatError, ((-1,), np.zeros(1, "f4"))),
        (FileFormatError, ((1,) * 33, np.zeros(1, "f4"))),
        ("shape", ((1.5,), np.zeros(1, "f4"))),
        ("shape", (5, np.zeros(5, "f4"))),
        ("data", ((1,), np.zeros(1, "i4"))),
        ("data", ((1,), [1.0])),
        ("diff", ((1,), np.zeros(1), [1.0])),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_message_is_as_it_was(error: Any, arguments: Any) -> None:
    """The error is of the blob, or of an argument, which it names."""
    proto = caffe_pb2.BlobProto(num=7)
    with pytest.raises(InvalidArgumentError if isinstance(error, str) else error) as caught:
        functools.partial(write_proto, proto=proto)(*arguments)

    assert getattr(caught.value, "argument", error) == error
    assert caffe_pb2.BlobProto(num=7) == proto


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


REFUSALS: dict[str, tuple[bytes, str]] = {
    "too few values": (shape(2, 3) + floats(5, 1), "(2, 3)"),
    "too many doubles": (floats(5, 1) + chunk(8, bytes(16)), "double_data"),
    "a wrong diff of doubles": (floats(5, 1) + chunk(9, bytes(16)) + floats(6, 1), "double_diff"),
    "a negative axis": (shape(2, -1), "(2, -1)"),
    "a negative old field": (key(1, 0) + varint((1 << 64) - 3), "(-3, 0, 0, 0)"),
    "a product beyond 64 bits": (shape(1 << 31, 1 << 31, 1 << 31), ""),
    "a product that wraps to zero": (shape(1 << 32, 1 << 32), ""),
    "a large product beside a zero": (shape(0, 1 << 40, 1 << 40), ""),
    "many axes": (floats(5, 1) + shape(*[1] * 33), "33"),
    "many axes in pieces": (shape(*[1] * 20) * 2, "40"),
    # What is stored as it cannot be is unknown to protobuf, and passed over: then there are no values.
    "values as a varint": (b"\x28\x01", "()"),
}
"""Messages of no blob, and what of them the error shows."""
DAMAGE: dict[str, bytes] = {
    "cut in values": floats(5, 1, 2)[:-1],
    "a huge length": b"\x2a" + varint((1 << 64) - 1),
    "deep groups": b"\x9b\x06" * 200 + b"\x9c\x06" * 200,
    "a part of a value": chunk(5, bytes(6)),
    "a shape that is cut": chunk(7, b"\x0a\x05\x01"),
}
"""Some bytes of each kind that are no message; protobuf itself parses, and generated messages try the rest."""


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("make", [bytes, ours().FromString, loaded])
def test_a_blob_that_cannot_be_is_refused(make: Any, name: str) -> None:
    wire, shown = REFUSALS[name]
    with pytest.raises(FileFormatError) as caught:
        read_proto(make(wire))

    assert caught.value.source == "BlobProto"
    assert shown in caught.value.reason


@pytest.mark.parametrize("name", DAMAGE)
def test_bytes_that_are_no_message_are_refused(name: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read_proto(DAMAGE[name])

    assert caught.value.source == "BlobProto"


def test_what_is_read_is_ones_own() -> None:
    """The arrays can be written, and share no memory with the bytes or the message."""
    wire = bytearray(floats(5, 1) + floats(6, 2))
    message = loaded(bytes(wire))
    of_bytes, of_message = read_proto(wire), read_proto(message)
    wire[-4:] = struct.pack("<f", 9)
    message.diff[0] = 9

    for contents in (of_bytes, of_message):
        assert contents.diff is not None
        assert (2, True, True) == (contents.diff.item(), contents.diff.flags.writeable, contents.data.flags.writeable)


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
    uses: list[Callable[[], object]] = [
        lambda: read_proto(proto),
        lambda: shape_equals((), proto),
        *([lambda: write_proto((), np.ones(()), proto=proto)] if proto is not None else []),
    ]
    for use in uses:
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert ("proto", proto) == (caught.value.argument, caught.value.value)


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
    monkeypatch.delitem(sys.modules, "syncedmem.runtime.blobs.caffe_pb2", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pool", None)
    with pytest.raises(MissingPackageError, match=r"pip install protobuf"):
        WITHOUT[name](path)

    assert path.read_bytes() == b"before"


# ------------------------------------------------------------------------------------------- generated


def expected(proto: Any) -> tuple[tuple[int, ...], list[float], list[float] | None] | None:
    """The result of Caffe's FromProto for a parsed message, value by value; None where it would end the process."""
    if any(proto.HasField(name) for name in ("num", "channels", "height", "width")):
        dims = (proto.num, proto.channels, proto.height, proto.width)
    else:
        dims = tuple(proto.shape.dim)
    data = list(proto.double_data) or list(proto.data)
    diff = list(proto.double_diff) or list(proto.diff) or None
    good = len(dims) <= 32 and min(dims, default=0) >= 0
    good = good and math.prod(filter(None, dims)) < 1 << 60
    good = good and all(len(values) == math.prod(dims) for values in (data, diff) if values is not None)
    return (dims, data, diff) if good else None


def found(wire: bytes) -> tuple[tuple[int, ...], list[float], list[float] | None] | None:
    """Our result; None if the message is refused."""
    try:
        contents = read_proto(wire)
    except FileFormatError:
        return None
    diff = None if contents.diff is None else contents.diff.reshape(-1).tolist()
    return contents.shape, contents.data.reshape(-1).tolist(), diff


def parsed(wire: bytes) -> Any:
    try:
        return caffe_pb2.BlobProto.FromString(wire)
    except DecodeError:
        return None


def bits(values: Any) -> Any:
    """Lists of floats in a form in which NaNs can be compared."""
    return None if values is None else np.array(values, np.float64).tobytes()


small = st.integers(0, 3)
single = st.floats(width=32, allow_nan=False)


@st.composite
def pieces(draw: st.DrawFn, number: int, code: str, count: int) -> list[bytes]:
    """A number of values of a repeated field: packed, not packed, or in parts of both kinds."""
    values = draw(st.lists(single, min_size=count, max_size=count))
    parts: list[bytes] = []
    while values:
        taken = draw(st.integers(1, len(values)))
        some, values = values[:taken], values[taken:]
        if draw(st.booleans()):
            parts.append(chunk(number, struct.pack(f"<{taken}{code}", *some)))
        else:
            parts += [key(number, 5 if code == "f" else 1) + struct.pack(f"<{code}", value) for value in some]
    return parts


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Messages from which a blob may be read, with fields in any order, and some that we do not know."""
    dims = draw(st.lists(small, max_size=5))
    legacy = draw(st.booleans()) and len(dims) == 4
    count = math.prod(dims)
    parts = [key(place, 0) + varint(dim) for place, dim in enumerate(dims, 1)] if legacy else [shape(*dims)]
    for number, code in draw(st.sampled_from([[(5, "f")], [(8, "d")], [(5, "f"), (6, "f")], [(8, "d"), (9, "d")]])):
        parts += draw(pieces(number, code, count))
    unknown = st.sampled_from(
        [chunk(77, b"xyz"), key(78, 0) + b"\x81\0", key(79, 5) + b"abcd", b"\x93\x06\x08\1\x94\x06"]
    )
    parts += draw(st.lists(unknown, max_size=3))
    if draw(st.booleans()):
        parts = draw(st.permutations(parts))
    return b"".join(parts)


def agrees(wire: bytes) -> bool:
    """Check that our result is Caffe's; if ours is a refusal, the caller decides."""
    result, proto = found(wire), parsed(wire)
    if result is None:
        return False
    assert proto is not None
    wanted = expected(proto)
    assert wanted is not None
    assert (wanted[0], bits(wanted[1]), bits(wanted[2])) == (result[0], bits(result[1]), bits(result[2]))
    return True


@given(messages())
def test_every_message_is_read_as_the_protobuf_package_reads_it(wire: bytes) -> None:
    assert agrees(wire)


@given(
    st.lists(small, max_size=6).flatmap(
        lambda dims: st.tuples(
            st.just(tuple(dims)),
            st.binary(min_size=8 * math.prod(dims), max_size=8 * math.prod(dims)),
            st.sampled_from(["<f4", "<f8"]),
            st.booleans(),
        )
    )
)
def test_what_is_encoded_is_what_the_protobuf_package_would_write(
    case: tuple[tuple[int, ...], bytes, str, bool],
) -> None:
    """They are the same byte for byte, for values of any bits; and reading gives the blob again."""
    dims, raw, dtype, with_diff = case
    data: Any = np.frombuffer(raw, dtype)[: math.prod(dims)].reshape(dims)
    wire = encoded(dims, data, data if with_diff else None)
    back = read_proto(wire)

    assert caffe_pb2.BlobProto.FromString(wire).SerializeToString() == wire
    assert write_proto(dims, data, data if with_diff else None).SerializeToString() == wire
    assert back.shape == dims
    assert back.data.tobytes() == data.tobytes()
    assert (back.diff is not None) is (with_diff and data.size > 0)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good message with some bytes changed, dropped, doubled or added."""
    wire = bytearray(draw(messages()))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(wire)))
        match draw(st.sampled_from(["flip", "cut", "drop", "add", "double"])):
            case "flip" if at < len(wire):
                wire[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del wire[at:]
            case "drop":
                del wire[at : at + draw(st.integers(1, 9))]
            case "add":
                wire[at:at] = draw(st.binary(max_size=12))
            case _:
                wire[at:at] = wire[at : at + draw(st.integers(1, 20))]
    return bytes(wire)


@pytest.mark.deep
@settings(max_examples=500, deadline=None)
@given(damaged())
@example(b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x2a\xff\xff\xff\x7f")
@example(shape(1 << 60))
@example(b"\x0b" * 5000)
def test_a_damaged_message_is_read_right_or_refused_in_little_memory(wire: bytes) -> None:
    """There is no other exception, and no allocation that is too large for the length of the message."""
    tracemalloc.start()
    try:
        found(wire)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    agrees(wire)
    assert peak < 64 * 1024 + 100 * len(wire)


# ------------------------------------------------------------------------------------------- by hand


def test_a_message_cut_anywhere_is_refused_or_a_whole_one() -> None:
    """A message that is cut between two fields is a message, but its counts are wrong."""
    wire = shape(2, 3) + floats(5, *range(6)) + floats(6, *range(6))
    whole = {length for length in range(len(wire) + 1) if found(wire[:length]) is not None}

    assert {len(wire), len(wire) - len(floats(6, *range(6)))} == whole


@pytest.mark.parametrize(
    ("least", "call"),
    [(6, lambda: read_proto(floats(5, 1))), (1024 + 16, lambda: encoded((2,), np.zeros(2)))],
    ids=["read", "written"],
)
def test_more_bytes_than_a_message_has_are_refused(
    least: int, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is 2 GiB; this test sets smaller ones.  What is written has 1 KiB for all that are no values."""
    monkeypatch.setattr(messages_module, "MOST_BYTES", least)
    call()
    monkeypatch.setattr(messages_module, "MOST_BYTES", least - 1)
    with pytest.raises(FileFormatError):
        call()


def full(*_: object) -> Any:
    raise MemoryError


def no_message(_: str) -> Any:
    return FullMessage


class FullMessage:
    """A message for which there is no room."""

    shape = SimpleNamespace(dim=[])
    FromString = SerializeToString = full


@pytest.mark.parametrize(
    ("name", "replacement", "call"),
    [
        ("_class", no_message, lambda: read_proto(floats(5, 1))),
        ("_class", no_message, lambda: encoded((1,), np.ones(1))),
        (
            "np",
            SimpleNamespace(array=full, frombuffer=np.frombuffer),
            lambda: read_proto(caffe_pb2.BlobProto(data=[1])),
        ),
    ],
)
def test_a_lack_of_memory_is_an_error_of_the_family(
    name: str, replacement: Any, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for parsing, for writing, and for making an array."""
    monkeypatch.setattr(messages_module, name, replacement)
    with pytest.raises(AllocationError, match="on the host"):
        call()


def test_an_array_that_does_not_fit_into_memory_is_an_error_of_the_family() -> None:
    with pytest.raises(AllocationError, match=f"cannot allocate {1 << 62} bytes on the host"):
        empty((1 << 59,), np.dtype("f8"))
