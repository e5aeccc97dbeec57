"""`.npy`, `.npz` and `.binaryproto` files: what is kept, what others write, what is refused; blobs in them."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blob_fixtures import each_place
from blob_views import HEADS
from caffe_schema import floats, shape
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from subjects import failing

from syncedmem import runtime
from syncedmem.model import (
    AllocationError,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidShapeError,
)
from syncedmem.runtime import CPUDeviceAllocator, FailingAllocator
from syncedmem.runtime.blobs import array_files
from syncedmem.runtime.blobs.array_files import load_npy, load_npz, save_npy, save_npz
from syncedmem.runtime.blobs.binaryproto import load_binaryproto, save_binaryproto
from syncedmem.runtime.blobs.caffemodel import load_caffemodel

if TYPE_CHECKING:
    from pathlib import Path

TYPES = ["bool", "float16", "float32", "float64", "int32", "int64", "uint32", "uint8"]
LOADERS: dict[str, Any] = {"npy": load_npy, "npz": load_npz, "binaryproto": load_binaryproto}
SAVERS: dict[str, Any] = {"npy": save_npy, "npz": save_npz, "binaryproto": save_binaryproto}


def odd(dtype: str, *dims: int) -> Any:
    """An array whose bits a conversion would change: NaNs with payloads, -0.0, denormals."""
    count = int(np.prod(dims, dtype=int))
    bits = np.frombuffer((b"\x01\x00\xa0\x7f\x01\0\0\0\0\0\0\x80" * (count + 1))[: 8 * count], np.dtype(dtype))
    return bits[:count].reshape(dims)


def same(first: Any, second: Any) -> bool:
    """Whether two arrays have the same type, shape and bits."""
    return (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def npy(
    descr: str = "<f4", order: str = "False", dims: str = "(2,)", body: bytes = bytes(8), version: int = 1
) -> bytes:
    """The bytes of an .npy file, made by hand."""
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {dims}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def archive(packed: int = zipfile.ZIP_STORED, **files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as made:
        for name, content in files.items():
            made.writestr(f"{name}.npy", content)
    return out.getvalue()


# --------------------------------------------------------------------------------------------- there and back


@pytest.mark.parametrize("dims", [(), (1,), (2, 3), (2, 0, 3), (1,) * 32])
@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_come_back_bit_for_bit(tmp_path: Path, dtype: str, dims: tuple[int, ...]) -> None:
    data, diff = odd(dtype, *dims), odd(dtype, *dims)[::-1] if dims else odd(dtype)
    save_npy(tmp_path / "a.npy", data)
    save_npz(tmp_path / "a.npz", data, diff)
    np.savez_compressed(tmp_path / "packed.npz", data=data, diff=diff)
    for both in (load_npz(tmp_path / "a.npz"), load_npz(tmp_path / "packed.npz")):
        assert both.shape == dims
        assert same(both.data, data)
        assert both.diff is not None
        assert same(both.diff, diff)
    save_npz(tmp_path / "a.npz", data)
    alone = load_npy(tmp_path / "a.npy")

    assert same(alone.data, data)
    assert (dims, None, None) == (alone.shape, alone.diff, load_npz(tmp_path / "a.npz").diff)
    assert alone.data.flags.writeable


def test_what_numpy_reads_and_writes_is_the_same_file(tmp_path: Path) -> None:
    """It holds for Fortran order and for the byte order of other machines too; both are read into our order."""
    for number, array in enumerate(
        [odd("f4", 2, 3), np.asfortranarray(odd("f4", 2, 3)), odd("f8", 2, 3).astype(">f8")]
    ):
        np.save(tmp_path / f"{number}.npy", array)
        np.savez_compressed(tmp_path / f"{number}.npz", data=array, other=np.array(["x"]))
        for data in (load_npy(tmp_path / f"{number}.npy").data, load_npz(tmp_path / f"{number}.npz").data):
            assert same(data, np.asarray(array, array.dtype.newbyteorder("="), order="C"))
            assert data.flags.c_contiguous

    save_npz(tmp_path / "ours.npz", odd("f4", 2, 3))
    assert same(np.load(tmp_path / "ours.npz")["data"], odd("f4", 2, 3))


@pytest.mark.parametrize(
    "content",
    [
        npy(version=2),
        npy(dims="( 1, 2, )"),
        npy().replace(b"'", b'"'),
        b"\x93NUMPY\1\0\x3a\0{'shape':(2,),'fortran_order':False,'descr':'<f4'}       \n" + bytes(8),
    ],
)
def test_other_writers_headers_are_read(tmp_path: Path, content: bytes) -> None:
    """They may have version 1 or 2, any order of keys, and either kind of quotes."""
    path = tmp_path / "a.npy"
    path.write_bytes(content)

    assert load_npy(path).data.reshape(-1).tolist() == [0, 0]


def test_large_arrays_are_read_in_pieces_and_may_shrink_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deflated zeros are just below the limit above which a size is refused."""
    path, zeros = tmp_path / "a.npz", np.zeros(1 << 22, np.float32)
    np.savez_compressed(path, data=zeros)
    assert path.stat().st_size * 1000 < 1 << 24
    assert same(load_npz(path).data, zeros)

    monkeypatch.setattr(array_files, "_MOST_AT_ONCE", 4096)  # zipfile's own least
    data = np.arange(5000, dtype=np.float32)
    save_npz(path, data)
    assert same(load_npz(path).data, data)


# ------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPX\1\0",
        npy(version=3),
        npy(version=4),
        b"\x93NUMPY\1\0\x50",
        b"\x93NUMPY\2\0\xff\xff\xff\xff",
        b"\x93NUMPY\1\0\x50\0{",
        npy("|O"),
        npy("<i2"),
        npy("<i8"),
        npy("i4,i4"),
        npy(order="1"),
        npy(dims="(2, -1)"),
        npy(dims=f"({'9' * 5000},)"),
        npy(dims="(2,), 'x': 1"),
        npy(dims="(" * 9000),
        npy(dims="-" * 9000 + "1"),
        npy().replace(b"{", b"["),
        npy(dims="(1000000000000,)"),
        npy(dims="(4611686018427387904, 4)"),
        npy(dims=f"({'1, ' * 33})"),
        npy(body=bytes(7)),
        npy(body=bytes(9)),
    ],
)
def test_a_hostile_array_file_is_refused_before_memory_is_taken(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    inside = tmp_path / "a.npz"
    inside.write_bytes(archive(data=content))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError) as caught:
            load_npy(path)
        with pytest.raises(FileFormatError) as within:
            load_npz(inside)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (str(path), f"{inside}: data.npy") == (caught.value.source, within.value.source)
    assert len(caught.value.reason) < 1_100  # NumPy repeats the header
    assert peak < 8 << 20  # of NumPy, which parses a header of at most 10,000 bytes


def claims(content: bytes, size: int) -> bytes:
    """An archive whose directory gives a wrong size for its first file, packed and unpacked."""
    damaged = bytearray(content)
    at = damaged.find(b"PK\1\2")
    damaged[at + 24 : at + 28] = struct.pack("<I", size)
    return bytes(damaged)


ARCHIVES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ""),
    "no data": (archive(diff=npy()), "no data.npy"),
    "another name": (archive(data=npy()).replace(b"data.npy", b"Data.npy"), "no data.npy"),
    "two names": (archive(data=npy()).replace(b"data.npy", b"Data.npy", 1), "Data.npy"),
    "another shape of diff": (archive(data=npy(), diff=npy(dims="(1,)", body=bytes(4))), "(1,)"),
    "bytes after diff": (archive(data=npy(), diff=npy(dims="(1,)")), ""),
    "a huge size": (claims(archive(data=npy()), 1 << 31), str(1 << 31)),
    "too large a size": (claims(archive(data=npy(dims="(3,)")), 80), ""),
    "a wrong checksum": (archive(data=npy()).replace(bytes(8), b"changed!", 1), ""),
    "cut": (archive(data=npy())[:-30], ""),
    "packed so that it could grow without a limit": (archive(packed=zipfile.ZIP_LZMA, data=npy()), "data.npy"),
}
"""Archives that are refused, and what of them the error shows."""


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive_is_refused(tmp_path: Path, name: str) -> None:
    content, shown = ARCHIVES[name]
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError) as refused:
            load_npz(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert str(path) in refused.value.source
    assert shown in str(refused.value)
    assert peak < 8 << 20


@pytest.mark.parametrize("load", [*LOADERS.values(), load_caffemodel])
def test_what_is_no_file_is_refused(tmp_path: Path, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes at once, names the path, and is also the built-in error that a caller would catch."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, os.fsencode(pipe), tmp_path / "none", "a\0b"):
        with pytest.raises(FileAccessError, match=re.escape(os.fsdecode(path)) if path != "a\0b" else None) as caught:
            load(path)
        assert isinstance(caught.value, OSError)

    # It may also go after its size was asked for.
    monkeypatch.setattr(array_files, "size_of", len)
    with pytest.raises(FileAccessError):
        load(str(tmp_path / "none"))


def contents(path: Path) -> Any:
    try:
        found = LOADERS[path.suffix[1:]](path)
    except FileFormatError:
        return None
    return found.data, found.diff


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(LOADERS)), data=st.data())
def test_a_damaged_file_is_read_right_or_refused_in_little_memory(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    """There is no other exception.  What is read has the bits of the file; an archive has checksums."""
    path = tmp_path / f"a.{kind}"
    array = odd("f4", 2, 3)
    if kind == "npz":
        save_npz(path, array, array)
    else:
        SAVERS[kind](path, array)
    wire = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(wire) - 1))
        wire[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(wire)

    tracemalloc.start()
    try:
        found = contents(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 512 * 1024
    if found is not None and kind == "npz":
        assert np.array_equal(found[0].reshape(-1).view("u1"), array.reshape(-1).view("u1")) or found[0].dtype != "f4"
    elif found is not None:
        assert found[0].nbytes <= len(wire)


# -------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("kind", sorted(SAVERS))
def test_what_no_blob_can_be_is_not_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    for value in (np.zeros(1, "i2"), np.zeros(1, object), [1.0], None):
        with pytest.raises(InvalidArgumentError) as refused:
            SAVERS[kind](path, value)
        assert ("data", value) == (refused.value.argument, refused.value.value)
    with pytest.raises(FileFormatError):
        SAVERS[kind](path, np.zeros((1,) * 33, "f4"))
    if kind == "npz":
        with pytest.raises(FileFormatError):
            SAVERS[kind](path, odd("f4", 2), odd("f4", 2, 1))

    assert (b"before", ["a"]) == (path.read_bytes(), names(tmp_path))


@pytest.mark.deep
@pytest.mark.parametrize("kind", sorted(SAVERS))
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    """A limit on the size of files imitates a full disk."""
    path = tmp_path / f"a.{kind}"
    path.write_bytes(b"before")
    program = (
        "import resource, sys, numpy; from syncedmem.model import FileAccessError; "
        "from syncedmem.runtime.blobs.array_files import *; from syncedmem.runtime.blobs.binaryproto import *; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))\n"
        "try: globals()['save_' + sys.argv[1]](sys.argv[2], numpy.zeros(1 << 20, 'f4'))\n"
        "except FileAccessError as error: print(error.errno, error)"
    )
    done = subprocess.run([sys.executable, "-c", program, kind, path], capture_output=True, text=True, check=True)

    assert f"27 {path}: File too large\n" == done.stdout
    assert (b"before", [path.name]) == (path.read_bytes(), names(tmp_path))


def test_a_binaryproto_that_is_none_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mean.binaryproto"
    path.write_bytes(shape(2) + floats(5, 1))
    with pytest.raises(FileFormatError) as refused:
        load_binaryproto(path)

    assert str(path) == refused.value.source


# --- blobs in messages and files


Blob: Any = runtime.Blob
UNINITIALIZED, CPU, GPU, SYNCED = HEADS
place = each_place
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


# --- messages


def test_a_blob_without_a_shape_is_equal_to_no_message() -> None:
    """Its shape is empty, and so is the shape of this message, which has one number."""
    with pytest.raises(InvalidShapeError):
        Blob(device=None).from_proto(floats(5, 1), reshape=False)


def test_what_a_message_cannot_say_is_refused(place: Any) -> None:
    """That is no shape at all, and integers, for which Caffe has no ToProto (H14)."""
    with pytest.raises(InvalidShapeError):
        Blob(device=place).to_proto()
    integers = Blob((2,), np.int32, device=place)
    with pytest.raises(InvalidArgumentError) as refused:
        integers.to_proto()
    assert ("dtype", UNINITIALIZED) == (refused.value.argument, integers.data_memory.head)


# --- files


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".binaryproto"])
def test_a_blob_travels_in_a_file(place: Any, tmp_path: Path, suffix: str) -> None:
    path, blob = tmp_path / f"blob{suffix}", Blob((2, 3), device=place)
    blob.data = ROW
    if place is not None:
        blob.gpu_data()
        blob.scale_data(2)
    blob.diff = ROW + 1
    blob.save(path)
    back = Blob.load(path, device=place)
    assert (blob.data.tolist(), (2, 3), np.float32) == (back.data.tolist(), back.shape, back.dtype)
    assert (UNINITIALIZED, place) == (back.diff_memory.head, back.device)
    wide = Blob.load(path, dtype=np.float64, device=place)
    assert (np.float64, blob.data.tolist()) == (wide.dtype, wide.data.tolist())
    if suffix == ".npy":
        with pytest.raises(FileFormatError, match="holds one array, and there is a diff"):
            blob.save(path, write_diff=True)
    else:
        blob.save(path, write_diff=True)
        assert (ROW + 1).tolist() == Blob.load(path, device=place).diff.tolist()


def test_other_types_travel_in_files_of_numpy(tmp_path: Path) -> None:
    blob = Blob((3,), np.uint32, device=None)
    blob.data = [1, 2, 3]
    blob.save(tmp_path / "blob.npz")

    assert (np.uint32, [1, 2, 3]) == (blob.dtype, Blob.load(tmp_path / "blob.npz", device=None).data.tolist())
    assert [1, 2, 3] == Blob.from_contents(load_npz(tmp_path / "blob.npz"), device=None).data.tolist()
    with pytest.raises(InvalidArgumentError, match="must be a NumPy array of float32, float64"):
        blob.save(tmp_path / "blob.binaryproto")


def test_where_there_is_no_room_the_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file is begun before the blob is asked for its host side; and no room is no fault of the file."""
    path = tmp_path / "blob.npy"
    path.write_bytes(b"before")
    blob = Blob((2, 3), host=FailingAllocator(CPUDeviceAllocator(), at=1), device=None)
    with pytest.raises(AllocationError):
        blob.save(path)
    assert ([path], b"before") == (list(tmp_path.iterdir()), path.read_bytes())

    save_npz(tmp_path / "a.npz", odd("f4", 2))
    monkeypatch.setattr(array_files, "empty", failing(MemoryError))
    with pytest.raises(MemoryError):
        load_npz(tmp_path / "a.npz")


def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    blob = Blob((2, 3), device=None)
    for path in (tmp_path / "blob.txt", tmp_path / "blob", b"blob.caffemodel", "net.caffemodel"):
        for use in (blob.save, Blob.load):
            with pytest.raises(InvalidArgumentError) as refused:
                use(path)
            assert ("path", path) == (refused.value.argument, refused.value.value)
    with pytest.raises(FileAccessError):
        Blob.load(tmp_path / "blob.npy")
    with pytest.raises(InvalidShapeError):
        Blob(device=None).save(tmp_path / "blob.npy")

    assert ([], UNINITIALIZED) == (list(tmp_path.iterdir()), blob.data_memory.head)
