"""The wire format against the protobuf package: generated messages, damaged ones, and what each refusal says."""

from __future__ import annotations

import math
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from caffe_schema import caffe_pb2, chunk, floats, key, shape, varint
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncedmem.model import AllocationError, FileFormatError
from syncedmem.runtime.blobs import wire_format
from syncedmem.runtime.blobs.blob_wire import encoded, stored_blob
from syncedmem.runtime.blobs.byte_source import MemorySource, empty
from syncedmem.runtime.blobs.messages import read_proto

# ------------------------------------------------------------------------------------------- generated


def expected(proto: Any) -> tuple[tuple[int, ...], list[float], list[float] | None] | None:
    """What Caffe's FromProto makes of a parsed message, value by value, or None where it would stop the process."""
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
    """What we make of it, or None where it is refused."""
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
    """Lists of floats as something that compares NaNs too."""
    return None if values is None else np.array(values, np.float64).tobytes()


small = st.integers(0, 3)
single = st.floats(width=32, allow_nan=False)


@st.composite
def pieces(draw: st.DrawFn, number: int, code: str, count: int) -> list[bytes]:
    """That many values of a repeated field, packed, not packed, or in pieces of both kinds."""
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
    """Messages that a blob may be read from, in any order of fields, with some that we do not know."""
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
    """Ours is what Caffe would read; where ours is refused, that is for the caller to judge."""
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
    """Byte for byte, of any bits; and it comes back."""
    dims, raw, dtype, with_diff = case
    data: Any = np.frombuffer(raw, dtype)[: math.prod(dims)].reshape(dims)
    wire = encoded(dims, data, data if with_diff else None).tobytes()
    back = read_proto(wire)

    assert caffe_pb2.BlobProto.FromString(wire).SerializeToString() == wire
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


@settings(max_examples=500, deadline=None)
@given(damaged())
@example(b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x2a\xff\xff\xff\x7f")
@example(shape(1 << 60))
@example(b"\x0b" * 5000)
def test_a_damaged_message_is_read_right_or_refused_in_little_memory(wire: bytes) -> None:
    """There is no other exception, and no allocation that the length of the message does not explain."""
    tracemalloc.start()
    try:
        found(wire)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    agrees(wire)
    assert peak < 64 * 1024 + 100 * len(wire)


# ------------------------------------------------------------------------------------------- by hand

ENDLESS = b"\xff" * 12
DAMAGE: list[tuple[str, bytes, int, str]] = [
    ("cut in a tag", floats(5, 1) + b"\x80", 6, "a varint is cut short"),
    ("cut after a tag", b"\x08", 1, "a varint is cut short"),
    ("cut in a length", b"\x2a\x80", 1, "a varint is cut short"),
    ("cut in values", floats(5, 1, 2)[:-1], 0, "field 5 has 8 bytes, and 7 are left"),
    ("cut in an unpacked value", b"\x2d\0\0", 0, "field 5 has 4 bytes, and 2 are left"),
    ("cut in a run", b"\x2d\0\0\0\0" * 3 + b"\x2d\0", 15, "field 5 has 4 bytes, and 1 are left"),
    ("a huge length", b"\x2a" + varint((1 << 64) - 1), 0, "field 5 has 18446744073709551615 bytes, and 0 are left"),
    ("an endless varint", b"\x08" + ENDLESS, 1, "a varint has more than 10 bytes"),
    ("an endless tag", ENDLESS, 0, "a varint has more than 5 bytes"),
    ("a varint beyond 64 bits", b"\x08" + b"\xff" * 9 + b"\x02", 1, "a varint has more than 64 bits"),
    ("field 0", b"\x00\x01", 0, "there is no field 0 of wire type 0"),
    ("a field beyond the last", varint(1 << 32) + b"\0", 0, "there is no field 536870912 of wire type 0"),
    ("wire type 6", b"\x0e", 0, "there is no field 1 of wire type 6"),
    ("wire type 7", b"\x0f", 0, "there is no field 1 of wire type 7"),
    ("a group that is not begun", floats(5, 1) + b"\x0c", 6, "group 1 ends and has not begun"),
    ("a group that does not end", floats(5, 1) + b"\x9b\x06\x08\x01", 6, "group 99 does not end"),
    ("groups that cross", b"\x9b\x06\x0b\x9c\x06\x0c", 3, "group 99 ends inside another one"),
    ("deep groups", b"\x9b\x06" * 200, 200, "more than 100 groups lie in each other"),
    ("values as a varint", b"\x28\x01", 0, "data is a field of type float, and is stored as VARINT"),
    ("floats as doubles", b"\x29" + bytes(8), 0, "data is a field of type float, and is stored as FIXED64"),
    ("doubles as floats", b"\x45" + bytes(4), 0, "double_data is a field of type double, and is stored as FIXED32"),
    ("values as a group", b"\x2b\x2c", 0, "data is a field of type float, and is stored as GROUP"),
    ("a part of a value", chunk(5, bytes(6)), 0, "data has 6 bytes, and its values have 4 each"),
    ("an old field as bytes", chunk(2, b"abc"), 0, "channels is a field of type int32, and is stored as LENGTH"),
    ("an old field that is too big", b"\x08" + varint(1 << 32), 0, "num is 4294967296, which has more than 32 bits"),
    ("an old field that is too small", b"\x08" + varint(1 << 63), 0, "num is -9223372036854775808, which has more"),
    ("a shape as a number", b"\x38\x01", 0, "shape is a field of type BlobShape, and is stored as VARINT"),
    ("an axis as a float", chunk(7, b"\x0d" + bytes(4)), 2, "dim is a field of type int64, and is stored as FIXED32"),
    ("a shape that is cut", chunk(7, b"\x0a\x05\x01"), 2, "field 1 has 5 bytes, and 1 are left"),
    ("an axis that is cut", chunk(7, b"\x0a\x01\x80"), 4, "a varint is cut short"),
    ("many axes", floats(5, 1) + shape(*[1] * 33), 6, "shape has more than 32 axes"),
    ("many axes in pieces", shape(*[1] * 20) * 2, 24, "shape has more than 32 axes"),
    ("counts that do not fit", shape(2), 0, r"data has 0 values, and shape \(2,\) has 2"),
]


@pytest.mark.parametrize(("wire", "position", "message"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damage_is_named_with_its_byte(wire: bytes, position: int, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read_proto(wire)

    assert ("BlobProto", position) == (caught.value.source, caught.value.position)


def test_groups_in_groups_are_stepped_over() -> None:
    nested = b"\x9b\x06" * 100 + b"\x9c\x06" * 100

    assert read_proto(nested + floats(5, 1)).data == 1


def test_a_message_cut_anywhere_is_refused_or_a_whole_one() -> None:
    """A cut between two fields leaves a message, and then its counts are wrong."""
    wire = shape(2, 3) + floats(5, *range(6)) + floats(6, *range(6))
    whole = {length for length in range(len(wire) + 1) if found(wire[:length]) is not None}

    assert {len(wire), len(wire) - len(floats(6, *range(6)))} == whole


def test_a_run_longer_than_a_block_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_format, "_RECORDS", 7)
    values = np.arange(100, dtype="<f8")
    wire = shape(100) + b"".join(key(8, 1) + value.tobytes() for value in values)

    assert read_proto(wire).data.tolist() == values.tolist()


def test_records_with_one_tag_are_one_field() -> None:
    """However long the run, and whatever follows it."""
    runs = [1, 2, 3, 4, 5, 6, 20, 21, 22, 100]
    wire = b"".join((b"\x2d\0\0\0\0" if place % 2 else b"\x35\0\0\0\0") * length for place, length in enumerate(runs))

    assert runs == [field.repeats for field in wire_format.fields(MemorySource(wire, "wire"), 0, len(wire))]


def test_alternating_unpacked_fields_take_time_in_proportion() -> None:
    """Data and diff in turn: each run ends soon, and nothing may be read far ahead each time."""
    wire = shape(3000) + (b"\x2d\0\0\x80?" * 2 + b"\x35\0\0\0@" * 2) * 1500
    asked: list[int] = []

    class Counting(MemorySource):
        def fill(self, position: int, out: Any) -> None:
            asked.append(len(out))
            super().fill(position, out)

    source = Counting(wire, "wire")
    contents = stored_blob(source, 0, source.size).contents(source)

    assert contents.diff is not None
    assert (3000, 6000) == (contents.data.sum(), contents.diff.sum())
    assert sum(asked) < 10 * len(wire)


def test_a_source_that_changes_between_looking_and_reading_is_refused() -> None:
    buffer = bytearray(shape(2) + floats(5, 1) + floats(5, 2) + floats(77, 1, 2))
    source = MemorySource(buffer, "wire")
    blob = stored_blob(source, 0, source.size)
    buffer[11] = 0x6A  # the second piece is now a field 13

    with pytest.raises(FileFormatError, match="it has changed while it was read"):
        blob.contents(source)

    more = bytearray(shape(1) + floats(5, 1) + chunk(13, bytes(8)))
    source = MemorySource(more, "wire")
    blob = stored_blob(source, 0, source.size)
    for changed in (b"\x2a\x00" + chunk(5, bytes(8)) + b"\x68\x01\x68\x01", b"\x2d\0\0\0\0" * 2 + b"\x68\x01" * 3):
        more[5:] = changed
        with pytest.raises(FileFormatError, match="it has changed while it was read"):
            blob.contents(source)


def test_an_array_that_does_not_fit_into_memory_is_an_error_of_the_family() -> None:
    with pytest.raises(AllocationError, match=f"cannot allocate {1 << 62} bytes on the host"):
        empty((1 << 59,), np.dtype("f8"))
