"""`load_caffemodel`: real files of three generations, in bounded memory, and hostile ones."""

from __future__ import annotations

import contextlib
import os
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

from syncedmem.model import FileAccessError, FileFormatError, InvalidArgumentError
from syncedmem.runtime.blobs import byte_source, caffemodel
from syncedmem.runtime.blobs.byte_source import FileSource
from syncedmem.runtime.blobs.caffemodel import load_caffemodel

NETS = ["LayerParameter", "V1LayerParameter", "V0LayerParameter"]
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def filled(blob: Any, values: Any) -> None:
    """A BlobProto as Caffe writes it."""
    blob.shape.dim.extend(values.shape)
    blob.data.extend(values.reshape(-1).tolist())


def net(generation: str) -> Any:
    """A small net of one generation: a layer with two blobs, and one without any."""
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
    """A layer of a net, by hand."""
    return chunk(100, chunk(1, name) + b"".join(chunk(7, blob) for blob in blobs))


@pytest.mark.parametrize("generation", NETS)
def test_layers_are_handed_out_with_their_blobs(tmp_path: Path, generation: str) -> None:
    path = stored(tmp_path, net(generation).SerializeToString())
    layers = dict(load_caffemodel(path))

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
    """They can be written, and two readings do not share memory."""
    ((_, blobs),) = load_caffemodel(stored(tmp_path, layer(floats(5, 1))))
    first = blobs[0].data
    first[...] = 2

    assert first.flags.aligned
    assert blobs[0].data == 1


def test_a_file_with_layers_of_two_generations_is_refused(tmp_path: Path) -> None:
    """As Caffe refuses to upgrade it, wherever in the file they are (upgrade_proto.cpp, UpgradeV1Net)."""
    new, old = net("LayerParameter").SerializeToString(), net("V1LayerParameter").SerializeToString()
    for wire in (new + old, old + new):
        with pytest.raises(FileFormatError, match=r"net\.caffemodel, byte \d+: it has both 'layer' and 'layers'"):
            load_caffemodel(stored(tmp_path, wire))


def test_a_layer_in_several_parts_is_one_layer(tmp_path: Path) -> None:
    """As the protobuf package merges them."""
    inside = [chunk(1, chunk(1, b"a") + chunk(50, floats(5, 1))), chunk(1, chunk(1, b"b") + chunk(50, floats(5, 2)))]
    ((name, blobs),) = load_caffemodel(stored(tmp_path, chunk(2, b"".join(inside))))

    assert ("b", [1, 2]) == (name, [blob.data.item() for blob in blobs])


def test_a_name_need_not_be_utf8(tmp_path: Path) -> None:
    ((name, _),) = load_caffemodel(stored(tmp_path, layer(name=b"no\xebl")))

    assert name.encode(errors="surrogateescape") == b"no\xebl"


def test_walking_takes_the_memory_of_one_blob(tmp_path: Path) -> None:
    """Eight blobs of a megabyte, two in each layer; the checks before take next to nothing."""
    blob = shape(1 << 18) + chunk(5, bytes(1 << 20))
    path = stored(tmp_path, b"".join(layer(blob, blob, name=b"%d" % number) for number in range(4)))

    tracemalloc.start()
    try:
        layers = load_caffemodel(path)
        checked = tracemalloc.get_traced_memory()[1]
        total = sum(int(blob.data.size) for _, blobs in layers for blob in blobs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert total == 8 << 18
    assert checked < 100_000
    # The variable still holds the blob before while the next one is read.
    assert peak < 2.2 * (1 << 20)


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
    """Except between two layers, where what is left is a file too."""
    wire = net(generation).SerializeToString()
    whole: list[int] = []
    for length in range(len(wire)):
        path = stored(tmp_path, wire[:length])
        with contextlib.suppress(FileFormatError):
            assert ["ip"] == [name for name, _ in load_caffemodel(path)]
            whole.append(length)

    assert len(whole) == 1


@pytest.mark.parametrize(
    ("wire", "position", "message"),
    [
        (b"", None, "it has no layers"),
        (chunk(1, b"a net without layers"), None, "it has no layers"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), None, "it is an HDF5 file, and only Caffe's binary protobuf files are read"),
        (b'name: "LeNet"\nlayer {', 0, "there is no field 13 of wire type 6"),
        (layer(floats(5, 1)) + b"junk", 15, "field 13 has 117 bytes, and 2 are left"),
        (key(100, 0) + b"\x01", 0, "layer is stored as VARINT, not by its length"),
        (chunk(100, key(1, 0) + b"\x01"), 3, "name is stored as VARINT"),
        (chunk(100, key(7, 5) + bytes(4)), 3, "blobs is stored as FIXED32"),
        (chunk(2, key(1, 3) + key(1, 4)), 2, "layer is stored as GROUP"),
        (layer(name=b"x" * 65537), 5, "the name of a layer has 65537 bytes"),
        (layer(shape(3) + floats(5, 1)), 9, r"data has 1 values, and shape \(3,\) has 3"),
        (layer(shape(1 << 50) + floats(5, 1)), 9, "data has 1 values, and shape"),
        (chunk(100, b"\x3a" + varint(1 << 62)), 3, "field 7 has 4611686018427387904 bytes, and 0 are left"),
        (b"\xa2\x06" + varint(1 << 40) + b"abc", 0, "field 100 has 1099511627776 bytes, and 3 are left"),
    ],
)
def test_a_hostile_file_is_refused_with_its_path_and_byte(
    tmp_path: Path, wire: bytes, position: int | None, message: str
) -> None:
    path = stored(tmp_path, wire)
    with pytest.raises(FileFormatError, match=message) as caught:
        load_caffemodel(path)

    assert (str(path), position) == (caught.value.source, caught.value.position)


def test_a_layer_of_countless_blobs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes on where they lie would take many times the memory of the file."""
    monkeypatch.setattr(caffemodel, "_MOST_BLOBS", 3)

    assert [3] == [len(blobs) for _, blobs in load_caffemodel(stored(tmp_path, layer(*[floats(5, 1)] * 3)))]
    with pytest.raises(FileFormatError, match="a layer has more than 3 blobs"):
        load_caffemodel(stored(tmp_path, layer(*[floats(5, 1)] * 4)))


def plain(path: Path) -> Any:
    """Names, shapes and bits of all that is in a file, or None if it is refused."""
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
    """In little memory, and with no other exception."""
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


def test_a_directory_a_pipe_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    """Each at once, as the built-in that a caller would catch, too."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused: dict[Path | str, str] = {
        tmp_path: "it is a directory",
        pipe: "it is no regular file",
        tmp_path / "none": "No such file or directory",
        "a\0b": "null",
    }
    for path, message in refused.items():
        with pytest.raises(FileAccessError, match=message) as caught:
            load_caffemodel(path)
        assert isinstance(caught.value, OSError)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says, with its number; tests may run as root, who may read everything."""

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    path = stored(tmp_path, b"")
    monkeypatch.setattr(byte_source, "io", SimpleNamespace(FileIO=denied))
    with pytest.raises(FileAccessError, match=r"net\.caffemodel: Permission denied") as caught:
        load_caffemodel(path)

    assert caught.value.errno == 13


def test_a_disk_that_fails_is_an_error_of_the_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", failing)
    with pytest.raises(FileAccessError, match="Input/output error"):
        load_caffemodel(stored(tmp_path, layer(floats(5, 1))))


def test_a_path_has_to_be_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"path must be a path: a str, bytes or os\.PathLike, got 5"):
        load_caffemodel(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] -- what is refused


def test_a_path_may_be_bytes(tmp_path: Path) -> None:
    assert ["ip"] == [name for name, _ in load_caffemodel(os.fsencode(stored(tmp_path, layer())))]


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    """Between the check and the walk, and between the walk and a blob."""
    path = stored(tmp_path, layer(floats(5, 1)))
    ((_, blobs),) = load_caffemodel(path)
    walk = load_caffemodel(path)
    path.write_bytes(layer(floats(5, 1), floats(5, 2)))

    with pytest.raises(FileFormatError, match="it has changed since its structure was read"):
        next(walk)
    with pytest.raises(FileFormatError, match="it has changed since its structure was read"):
        _ = blobs[0]


def test_a_file_that_is_truncated_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """A mapped file would end the process here."""
    path = stored(tmp_path, layer(floats(5, *range(9000))))
    with FileSource(path) as source:
        path.write_bytes(b"")
        with pytest.raises(FileFormatError, match=r"byte 100: it ends here, and it had \d+ bytes"):
            source.values(100, 5, np.dtype("f4"))


@pytest.mark.parametrize(
    "content",
    [
        chunk(100, b""),  # layers
        chunk(2, b""),  # layers of the generation before
        b"\x08\x01",  # what is no layer
        b"\x0b\x0c",  # groups
    ],
)
def test_a_file_of_nothing_but_small_fields_is_refused_soon(tmp_path: Path, content: bytes) -> None:
    """Each costs us a microsecond or two and its writer two bytes."""
    path = stored(tmp_path, content * 3_000_000)

    with pytest.raises(FileFormatError, match=r"net\.caffemodel, byte \d+: it has more than 262,144 fields to look at"):
        load_caffemodel(path)


def test_a_blob_in_nothing_but_small_pieces_is_refused_soon(tmp_path: Path) -> None:
    path = stored(tmp_path, layer(chunk(5, b"") * 3_000_000))

    with pytest.raises(FileFormatError, match="it has more than 262,144 fields to look at"):
        load_caffemodel(path)


def test_a_large_net_is_far_from_the_limit(tmp_path: Path) -> None:
    """Ten thousand layers of two blobs each."""
    blob = floats(5, 1) + shape(1)
    path = stored(tmp_path, layer(blob, blob) * 10_000)

    assert 10_000 == sum(1 for _ in load_caffemodel(path))
