"""`load_caffemodel`: the weights in a ``.caffemodel``, layer by layer, without Caffe.

A ``.caffemodel`` is one message `NetParameter`.  Three generations of layers are in use, and all are read:
`LayerParameter` in ``layer``, `V1LayerParameter` in ``layers``, and `V0LayerParameter` inside one of these.  As when
Caffe upgrades a net: a file with both ``layer`` and ``layers`` is refused (``UpgradeV1Net`` in upgrade_proto.cpp), and
where one of the latter has a V0 layer inside, name and blobs of that one count.

The limits are those of ``messages``: 2 GiB, all of it in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from syncedmem.model import FileFormatError
from syncedmem.model.files import checked_path, read_bytes

from .contents import BlobContents
from .messages import MOST_BYTES, contents_of, parsed, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model.files import StoredPath

__all__ = ["LayerBlobs", "load_caffemodel"]

_HDF5 = b"\x89HDF"
_MOST_PARTS = 1 << 18
"""Layers and blobs of a net.  Real nets have some thousands; more could only be there to keep us busy."""


class LayerBlobs(Sequence[BlobContents]):
    """The blobs of one layer, whose arrays are made each time that one is asked for."""

    def __init__(self, source: str, blobs: Sequence[Any]) -> None:
        self._source = source
        self._blobs = blobs

    def __len__(self) -> int:
        return len(self._blobs)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the blobs; no arrays are made for it."""
        return tuple(shape_of(blob, self._source) for blob in self._blobs)

    @overload
    def __getitem__(self, index: int) -> BlobContents: ...

    @overload
    def __getitem__(self, index: slice) -> LayerBlobs: ...

    def __getitem__(self, index: int | slice) -> BlobContents | LayerBlobs:
        if isinstance(index, slice):
            return LayerBlobs(self._source, self._blobs[index])
        return contents_of(self._blobs[index], self._source)

    def __repr__(self) -> str:
        return f"<{len(self)} blobs of shapes {self.shapes}>"


def load_caffemodel(path: StoredPath) -> Iterator[tuple[str, LayerBlobs]]:
    """The layers of a ``.caffemodel``, each with its name and its blobs, in the order of the file.

    All of the file is read, and every blob in it checked, before the first layer is handed out, so a file that is cut
    short gives an error and no weights at all.  It is in memory as one message as long as the iterator or the blobs of
    a layer are; arrays are made when a blob is asked for.  Layers without blobs are handed out too.  A name that is not
    UTF-8 is decoded with ``surrogateescape``.

    Parameters
    ----------
    path
        Of a regular file of at most 2 GiB.

    Returns
    -------
    Iterator
        Over pairs of name and `LayerBlobs`.

    Raises
    ------
    MissingPackageError
        The protobuf package is not installed.
    FileAccessError
        The file cannot be read.
    FileFormatError
        It is no `NetParameter`, or has a blob that cannot be.
    InvalidArgumentError
        ``path`` is no path.
    AllocationError
    """
    source, wire = checked_path(path), read_bytes(path, MOST_BYTES)
    if wire.startswith(_HDF5):
        raise FileFormatError(source, "it is an HDF5 file, and only Caffe's binary protobuf files are read")
    net = parsed("NetParameter", wire, source)
    if len(net.layer) and len(net.layers):
        raise FileFormatError(source, "it has both 'layer' and 'layers', and which of them are the net's is unknown")
    layers = net.layer if len(net.layer) else net.layers
    if not len(layers):
        raise FileFormatError(source, "it has no layers")
    parts = 0
    for layer in map(_innermost, layers):
        parts += 1 + len(layer.blobs)
        if parts > _MOST_PARTS:
            raise FileFormatError(source, f"it has more than {_MOST_PARTS:,} layers and blobs")
        _check(layer, source)
    return _walk(layers, source)


def _walk(layers: Sequence[Any], source: str) -> Iterator[tuple[str, LayerBlobs]]:
    for layer in map(_innermost, layers):
        yield _name(layer), LayerBlobs(source, layer.blobs)


def _innermost(layer: Any) -> Any:
    """The message that has a layer's name and blobs."""
    return layer.layer if "layer" in layer.DESCRIPTOR.fields_by_name and layer.HasField("layer") else layer


def _name(layer: Any) -> str:
    name: bytes = layer.name
    return name.decode(errors="surrogateescape")


def _check(layer: Any, source: str) -> None:
    """Refuse a layer with a blob that cannot be, and say which one it is."""
    for number, blob in enumerate(layer.blobs):
        try:
            shape_of(blob, source)
        except FileFormatError as error:
            reason = f"blob {number} of layer {_name(layer)!r}: {error.reason}"
            raise FileFormatError(source, reason) from None
