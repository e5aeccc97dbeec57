"""`load_caffemodel`: real files of three generations, and hostile ones, in bounded memory."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from caffe_schema import caffe_pb2, chunk, floats, key, shape, varint
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from subjects import failing

from syncedmem.model import AllocationError, FileAccessError, FileFormatError
from syncedmem.runtime.blobs import caffemodel
from syncedmem.runtime.blobs.caffemodel import load_caffemodel

NETS = ["LayerParameter", "V1LayerParameter", "V0LayerParameter"]
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def filled(blob: Any, values: Any) -> None:
    """A BlobProto as Caffe writes it."""
    blob.shape.dim.extend(values.shape)
    blob.data.extend(values.reshape(-1).tolist())


def net(generation: str) -> Any:
    """A small net of one generation: a layer with two blobs, and one without blobs."""
    net = caffe_pb2.NetParameter(name="net")
    for name, arrays in {"ip": (WEIGHTS, WEIGHTS[0]), "relu": ()}.items():
        if generation == "LayerParameter":
            layer = net.layer.add(name=name, type="T", bottom=["x"], loss_weight=[1, 2])
        elif generation == "V1LayerParameter":
            layer = net.layers.add(name=name, type=4, bottom=["x"], blobs_lr=[1, 2])
        else:
            layer = net.layers.add(name="not this one", bottom=["x"]).layer
            layer.name, layer.type = name, "t"
        for array in arrays:
            filled(layer.blobs.add(), array)
    return net


def stored(folder: Path, wire: bytes) -> Path:
    path = folder / "net.caffemodel"
    path.write_bytes(wire)
    return path


def layer(*blobs: bytes, name: bytes = b"ip") -> bytes:
    """The bytes of a layer, made by hand."""
    return chunk(100, chunk(1, name) + b"".join(chunk(7, blob) for blob in blobs))


@pytest.mark.parametrize("generation", NETS)
def test_layers_are_handed_out_with_their_blobs(tmp_path: Path, generation: str) -> None:
    """The whole file has been read, so it may be gone when the blobs are asked for."""
    path = stored(tmp_path, net(generation).SerializeToString())
    layers = dict(load_caffemodel(path))
    path.unlink()

    assert ["ip", "relu"] == list(layers)
    assert [2, 0] == [len(blobs) for blobs in layers.values()]
    assert [(2, 3), (3,)] == [blob.data.shape for blob in layers["ip"]] == list(layers["ip"].shapes)
    assert np.array_equal(layers["ip"][0].data, WEIGHTS)
    assert np.array_equal(layers["ip"][-1].data, WEIGHTS[0])
    assert [(3,)] == [blob.shape for blob in layers["ip"][1:]]
    assert "<2 blobs of shapes ((2, 3), (3,))>" == repr(layers["ip"])
    with pytest.raises(IndexError):
        _ = layers["relu"][0]


def test_arrays_from_a_file_are_ones_own(tmp_path: Path) -> None:
    """They can be written, and two readings share no memory."""
    ((_, blobs),) = load_caffemodel(stored(tmp_path, layer(floats(5, 1))))
    first = blobs[0].data
    first[...] = 2

    assert first.flags.aligned
    assert blobs[0].data == 1


def test_a_file_with_layers_of_two_generations_is_refused(tmp_path: Path) -> None:
    """Caffe refuses to upgrade such a file, in any order of its layers (upgrade_proto.cpp, UpgradeV1Net)."""
    new, old = net("LayerParameter").SerializeToString(), net("V1LayerParameter").SerializeToString()
    for wire in (new + old, old + new):
        path = stored(tmp_path, wire)
        with pytest.raises(FileFormatError) as refused:
            load_caffemodel(path)
        assert str(path) == refused.value.source


def test_a_layer_in_several_parts_is_one_layer(tmp_path: Path) -> None:
    inside = [chunk(1, chunk(1, b"a") + chunk(50, floats(5, 1))), chunk(1, chunk(1, b"b") + chunk(50, floats(5, 2)))]
    ((name, blobs),) = load_caffemodel(stored(tmp_path, chunk(2, b"".join(inside))))

    assert ("b", [1, 2]) == (name, [blob.data.item() for blob in blobs])


def test_a_name_need_not_be_utf8(tmp_path: Path) -> None:
    ((name, _),) = load_caffemodel(stored(tmp_path, layer(name=b"no\xebl")))

    assert name.encode(errors="surrogateescape") == b"no\xebl"


def test_no_file_stays_open(tmp_path: Path) -> None:
    path = stored(tmp_path, net("LayerParameter").SerializeToString())
    before = len(list(Path("/proc/self/fd").iterdir()))
    walk = load_caffemodel(path)
    next(walk)
    del walk
    for refused in (tmp_path, stored(tmp_path, b"\x0e")):
        with contextlib.suppress(FileFormatError):
            load_caffemodel(refused)

    assert before == len(list(Path("/proc/self/fd").iterdir()))


# ------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize("generation", NETS)
def test_a_file_that_is_cut_short_gives_no_weights_at_all(tmp_path: Path, generation: str) -> None:
    """The exception is a cut between two layers, after which the rest is still a file."""
    wire = net(generation).SerializeToString()
    whole: list[int] = []
    for length in range(len(wire)):
        path = stored(tmp_path, wire[:length])
        with contextlib.suppress(FileFormatError):
            assert ["ip"] == [name for name, _ in load_caffemodel(path)]
            whole.append(length)

    assert len(whole) == 1


@pytest.mark.parametrize(
    ("wire", "shown"),
    [
        (b"", ""),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "HDF5"),
        (b'name: "LeNet"\nlayer {', ""),
        (layer(floats(5, 1)) + b"junk", ""),
        # What is stored as it cannot be is unknown to protobuf, and passed over.
        (key(100, 0) + b"\x01", ""),
        (layer(shape(3) + floats(5, 1)), "blob 0 of layer 'ip'"),
        (layer(floats(5, 1), shape(1 << 50) + floats(5, 1)), "blob 1 of layer 'ip'"),
        (layer(shape(*[1] * 1000)), "blob 0 of layer 'ip'"),
        (chunk(100, b"\x3a" + varint(1 << 62)), ""),
        (b"\xa2\x06" + varint(1 << 40) + b"abc", ""),
        (b"\x0b" * 500 + b"\x0c" * 500, ""),
    ],
)
def test_a_hostile_file_is_refused_with_its_path(tmp_path: Path, wire: bytes, shown: str) -> None:
    path = stored(tmp_path, wire)
    with pytest.raises(FileFormatError) as caught:
        load_caffemodel(path)

    assert caught.value.source == str(path)
    assert shown in caught.value.reason


def test_what_is_stored_as_it_cannot_be_is_passed_over(tmp_path: Path) -> None:
    """A name that is a number, or blobs that are floats: protobuf skips them, and so does Caffe."""
    wire = chunk(100, key(1, 0) + b"\x01") + chunk(100, key(7, 5) + bytes(4))

    assert [("", 0), ("", 0)] == [(name, len(blobs)) for name, blobs in load_caffemodel(stored(tmp_path, wire))]


def plain(path: Path) -> Any:
    """The names, shapes and bits of everything in a file; None if it is refused."""
    try:
        return [
            (
                name,
                [
                    (blob.shape, blob.data.tobytes(), None if blob.diff is None else blob.diff.tobytes())
                    for blob in blobs
                ],
            )
            for name, blobs in load_caffemodel(path)
        ]
    except FileFormatError:
        return None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(generation=st.sampled_from(NETS), data=st.data())
def test_a_damaged_file_is_read_as_protobuf_reads_it_or_refused(
    tmp_path: Path, generation: str, data: st.DataObject
) -> None:
    """It takes little memory, and there is no other exception."""
    wire = bytearray(net(generation).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(wire) - 1))
        wire[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = stored(tmp_path, bytes(wire))

    tracemalloc.start()
    try:
        result = plain(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 128 * 1024
    if result is None:
        return
    try:
        parsed = caffe_pb2.NetParameter.FromString(bytes(wire))
    except (DecodeError, UnicodeDecodeError):
        return  # it also looks into messages that do not lead to blobs, and at the names
    layers = [one.layer if one.HasField("layer") else one for one in parsed.layers] or parsed.layer
    assert [len(one.blobs) for one in layers] == [len(blobs) for _, blobs in result]
    for one, (_, blobs) in zip(layers, result, strict=True):
        for proto, (_, values, _) in zip(one.blobs, blobs, strict=True):
            wanted = np.array(list(proto.double_data), "<f8") if proto.double_data else np.array(proto.data, "<f4")
            assert wanted.tobytes() == values


# ------------------------------------------------------------------------------------------ the file itself


def opened(stream: object) -> Any:
    """A replacement for `Path.open`, which gives a stream, or raises an error."""

    def opening(*_: object) -> Any:
        if isinstance(stream, Exception):
            raise stream
        return contextlib.nullcontext(stream)

    return opening


CANNOT_BE_READ: dict[str, tuple[Any, type[Exception], dict[str, Any]]] = {
    "not allowed": (PermissionError(13, "Permission denied"), FileAccessError, {"errno": 13}),
    "a disk that fails": (
        SimpleNamespace(read=failing(OSError, 5, "Input/output error")),
        FileAccessError,
        {"errno": 5},
    ),
    "no room": (SimpleNamespace(read=failing(MemoryError)), AllocationError, {"byte_size": 15}),
    "a file that becomes shorter": (io.BytesIO(layer(floats(5, 1))[:5]), FileFormatError, {}),
}
"""What opening a file gives, and the error with its values.  Tests may run as root, who may read everything."""


@pytest.mark.parametrize("name", CANNOT_BE_READ)
def test_a_file_that_cannot_be_read_to_its_end_is_an_error_of_the_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    stream, error, values = CANNOT_BE_READ[name]
    path = stored(tmp_path, layer(floats(5, 1)))
    monkeypatch.setattr(Path, "open", opened(stream))
    with pytest.raises(error) as caught:
        load_caffemodel(path)

    assert values == {name: getattr(caught.value, name) for name in values}


def test_a_file_that_is_longer_than_a_message_is_refused_unread(tmp_path: Path) -> None:
    """The file has a hole in place of its bytes."""
    path = stored(tmp_path, b"")
    os.truncate(path, 1 << 31)
    with pytest.raises(FileFormatError, match=r"2,147,483,648"):
        load_caffemodel(path)


def test_a_net_of_countless_layers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts layers and their blobs together; a net of ten thousand layers of two blobs is far from it."""
    blob = floats(5, 1) + shape(1)
    assert 10_000 == sum(1 for _ in load_caffemodel(stored(tmp_path, layer(blob, blob) * 10_000)))

    monkeypatch.setattr(caffemodel, "_MOST_PARTS", 4)
    two_and_none = stored(tmp_path, layer(blob, blob) + layer())
    assert [2, 0] == [len(blobs) for _, blobs in load_caffemodel(two_and_none)]
    for wire in (layer(*[blob] * 4), layer() * 5):
        with pytest.raises(FileFormatError):
            load_caffemodel(stored(tmp_path, wire))


SMALL = {
    "layers": lambda: chunk(2, b"") * 524_000,
    "blobs": lambda: chunk(100, chunk(7, b"") * 524_000),
    "blobs of no elements": lambda: chunk(100, chunk(7, shape(0)) * 150_000),
    "axes": lambda: chunk(100, chunk(7, shape(*[1] * 1_000_000))),
    "fields that are not known": lambda: b"\x08\x01" * 524_000,
}
"""They make files of a megabyte, in which everything is as small as can be."""


@pytest.mark.deep
@pytest.mark.parametrize("kind", SMALL)
def test_what_a_hostile_file_takes_is_in_proportion_to_its_size(tmp_path: Path, kind: str) -> None:
    """It takes at most the documented 64 bytes for each of its own, whatever protobuf makes of it."""
    wire = SMALL[kind]()
    path = stored(tmp_path, wire)
    program = """
import sys
from syncedmem.model import FileFormatError
from syncedmem.runtime import load_caffemodel, read_proto

def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

read_proto(b"*\\4abcd")  # the messages are made
before = most()
try:
    print(sum(1 for _ in load_caffemodel(sys.argv[1])))
except FileFormatError as error:
    print(error)
print(most() - before)
"""
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)

    assert int(done.stdout.split("\n")[-2]) < 64 * len(wire)
