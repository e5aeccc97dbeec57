"""Messages of blobs in bytes: generated ones are read as Caffe's schema reads them, damaged ones are refused."""

from __future__ import annotations

import math
import struct
import tracemalloc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from caffe_schema import caffe_pb2, chunk, floats, key, shape, varint
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncedmem.model import AllocationError, FileFormatError
from syncedmem.runtime.blobs import messages as messages_module
from syncedmem.runtime.blobs.contents import empty
from syncedmem.runtime.blobs.messages import encoded, read_proto, write_proto

if TYPE_CHECKING:
    from collections.abc import Callable

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

NONE = "its bytes are no BlobProto: "
NOTHING = r"data has 0 values, and shape \(\) has 1"
DAMAGE: list[
    tuple[str, bytes, str]
] = [  # some of each kind; protobuf itself parses, and generated messages try the rest
    ("cut in values", floats(5, 1, 2)[:-1], NONE),
    ("a huge length", b"\x2a" + varint((1 << 64) - 1), NONE),
    ("deep groups", b"\x9b\x06" * 200 + b"\x9c\x06" * 200, NONE),
    ("a part of a value", chunk(5, bytes(6)), NONE),
    ("a shape that is cut", chunk(7, b"\x0a\x05\x01"), NONE),
    # What is stored as it cannot be is unknown to protobuf, and passed over.
    ("values as a varint", b"\x28\x01", NOTHING),
    ("many axes", floats(5, 1) + shape(*[1] * 33), "shape has 33 axes, and a blob at most 32"),
    ("many axes in pieces", shape(*[1] * 20) * 2, "shape has 40 axes, and a blob at most 32"),
]


@pytest.mark.parametrize(("wire", "message"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damage_is_refused(wire: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read_proto(wire)

    assert caught.value.source == "BlobProto"


def test_a_message_cut_anywhere_is_refused_or_a_whole_one() -> None:
    """A message that is cut between two fields is a message, but its counts are wrong."""
    wire = shape(2, 3) + floats(5, *range(6)) + floats(6, *range(6))
    whole = {length for length in range(len(wire) + 1) if found(wire[:length]) is not None}

    assert {len(wire), len(wire) - len(floats(6, *range(6)))} == whole


def test_more_bytes_than_a_message_has_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 2 GiB; this test sets a smaller one."""
    monkeypatch.setattr(messages_module, "MOST_BYTES", 5)
    with pytest.raises(FileFormatError, match="it has 6 bytes, and a message has at most 5"):
        read_proto(floats(5, 1))


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
