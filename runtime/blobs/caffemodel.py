"""`load_caffemodel`: the weights in a ``.caffemodel``, layer by layer, without Caffe and without loading the file.

A ``.caffemodel`` is one message `NetParameter`.  Three generations of it are in use, and the numbers of the fields
that lead to blobs are these, from Caffe's ``src/caffe/proto/caffe.proto`` (BVLC/caffe):

====================  =================================  =========  ==========
generation            layer                              its name   its blobs
====================  =================================  =========  ==========
`LayerParameter`      ``NetParameter.layer`` = 100       1          7
`V1LayerParameter`    ``NetParameter.layers`` = 2        4          6
`V0LayerParameter`    ``V1LayerParameter.layer`` = 1     1          50
====================  =================================  =========  ==========

As when Caffe upgrades a net: a file with both ``layer`` and ``layers`` is refused (``UpgradeV1Net`` in
upgrade_proto.cpp), and where one of the latter has a V0 layer inside, name and blobs of that one count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

from syncedmem.model import FileFormatError

from .blob_wire import StoredBlob, stored_blob
from .byte_source import FileSource
from .wire_format import Field, Wire, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model.files import StoredPath

    from .contents import BlobContents

__all__ = ["LayerBlobs", "load_caffemodel"]

_LONGEST_NAME = 1 << 16
"""Bytes in the name of a layer; a longer one is not a name."""
_MOST_BLOBS = 1 << 12
"""In a layer; more of them could only be there to fill our memory with notes on where each lies."""
_HDF5 = b"\x89HDF"


class _Generation(NamedTuple):
    """Where a message for a layer has its name and its blobs, and where the layer itself lies deeper, if it can."""

    name: int
    blobs: int
    inner: _Generation | None = None
    inner_number: int = 0


_V0 = _Generation(name=1, blobs=50)
_V1 = _Generation(name=4, blobs=6, inner=_V0, inner_number=1)
_LAYER = _Generation(name=1, blobs=7)
_GENERATIONS = {100: _LAYER, 2: _V1}
"""Of the fields of a net that are layers: ``layer`` and ``layers``."""


class LayerBlobs(Sequence["BlobContents"]):
    """The blobs of one layer, each read from the file when it is asked for, and not kept.

    They can be asked for when the loading is over, too: the file is opened again, and refused if it has changed.

    Raises
    ------
    FileAccessError, FileFormatError
        From an item: the file is not any more what it was.
    """

    def __init__(self, path: StoredPath, stamp: tuple[int, ...], blobs: tuple[StoredBlob, ...]) -> None:
        self._path = path
        self._stamp = stamp
        self._blobs = blobs

    def __len__(self) -> int:
        return len(self._blobs)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the blobs, known without reading them."""
        return tuple(blob.shape for blob in self._blobs)

    @overload
    def __getitem__(self, index: int) -> BlobContents: ...

    @overload
    def __getitem__(self, index: slice) -> LayerBlobs: ...

    def __getitem__(self, index: int | slice) -> BlobContents | LayerBlobs:
        if isinstance(index, slice):
            return LayerBlobs(self._path, self._stamp, self._blobs[index])
        blob = self._blobs[index]
        with FileSource(self._path, unchanged_since=self._stamp) as source:
            return blob.contents(source)

    def __repr__(self) -> str:
        return f"<{len(self)} blobs of shapes {self.shapes}>"


def load_caffemodel(path: StoredPath) -> Iterator[tuple[str, LayerBlobs]]:
    """The layers of a ``.caffemodel``, each with its name and its blobs, in the order of the file.

    The whole structure is checked before the first layer is handed out, so a file that is cut short gives an error and
    no weights at all.  Values are read when a blob is asked for, so walking a file needs no more memory than its
    largest blob.  Layers without blobs are handed out too.  A name that is not UTF-8 is decoded with
    ``surrogateescape``.

    Parameters
    ----------
    path
        Of a regular file.

    Returns
    -------
    Iterator
        Over pairs of name and `LayerBlobs`.

    Raises
    ------
    FileAccessError
        The file cannot be read.
    FileFormatError
        It is no `NetParameter`, or has a blob that cannot be: with the byte at which that was seen.
    InvalidArgumentError
        ``path`` is no path.
    """
    with FileSource(path) as source:
        if source.at(0, min(source.size, len(_HDF5))) == _HDF5:
            raise FileFormatError(source.name, "it is an HDF5 file, and only Caffe's binary protobuf files are read")
        if not sum(1 for _ in _stored_layers(source)):
            raise FileFormatError(source.name, "it has no layers")
        return _walk(path, source.stamp)


def _walk(path: StoredPath, stamp: tuple[int, ...]) -> Iterator[tuple[str, LayerBlobs]]:
    with FileSource(path, unchanged_since=stamp) as source:
        for name, blobs in _stored_layers(source):
            yield name, LayerBlobs(path, stamp, blobs)


def _stored_layers(source: FileSource) -> Iterator[tuple[str, tuple[StoredBlob, ...]]]:
    """The layers, which have to be of one generation."""
    first = None
    for field in fields(source, 0, source.size):
        generation = _GENERATIONS.get(field.number)
        if generation is None:
            continue
        if first is not None and first != field.number:
            reason = "it has both 'layer' and 'layers', and which of them are the net's cannot be known"
            raise FileFormatError(source.name, reason, field.position)
        first = field.number
        yield _stored_layer(source, _message(source, field, "layer"), generation)


def _stored_layer(source: FileSource, layer: Field, generation: _Generation) -> tuple[str, tuple[StoredBlob, ...]]:
    """The name of a layer and its blobs, checked and not read."""
    parts = [layer]
    if generation.inner is not None:
        inner = [
            _message(source, field, "layer")
            for field in fields(source, layer.start, layer.end)
            if field.number == generation.inner_number
        ]
        if inner:
            parts, generation = inner, generation.inner
    name, blobs = b"", list[StoredBlob]()
    # A message that is there several times is one message in several parts.
    for part in parts:
        for field in fields(source, part.start, part.end):
            if field.number == generation.name:
                name = _name(source, field)
            elif field.number == generation.blobs:
                blob = _message(source, field, "blobs")
                if len(blobs) == _MOST_BLOBS:
                    reason = f"a layer has more than {_MOST_BLOBS} blobs"
                    raise FileFormatError(source.name, reason, field.position)
                blobs.append(stored_blob(source, blob.start, blob.end))
    return name.decode(errors="surrogateescape"), tuple(blobs)


def _name(source: FileSource, field: Field) -> bytes:
    length = _message(source, field, "name").end - field.start
    if length > _LONGEST_NAME:
        raise FileFormatError(source.name, f"the name of a layer has {length} bytes", field.position)
    return bytes(source.at(field.start, length))


def _message(source: FileSource, field: Field, what: str) -> Field:
    if field.wire is not Wire.LENGTH:
        raise FileFormatError(source.name, f"{what} is stored as {field.wire.name}, not by its length", field.position)
    return field
