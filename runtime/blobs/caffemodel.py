"""`load_caffemodel`: the weights in a ``.caffemodel``, layer by layer, without Caffe.

A ``.caffemodel`` is one message `NetParameter`.  Three generations of layers are in use, and all of them are read:
`LayerParameter` in ``layer``, `V1LayerParameter` in ``layers``, and `V0LayerParameter` inside a `V1LayerParameter`.
The rules are those by which Caffe upgrades a net: a file with both ``layer`` and ``layers`` is refused
(``UpgradeV1Net`` in upgrade_proto.cpp); and if a V1 layer has a V0 layer inside, the name and the blobs of the V0 layer
are used.

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
"""The most layers and blobs of a net.  Real nets have some thousands; a file with more is refused."""


class LayerBlobs(Sequence[BlobContents]):
    """The blobs of one layer.  Each access makes new arrays."""

    def __init__(self, source: str, blobs: Sequence[Any]) -> None:
        self._source = source
        self._blobs = blobs

    def __len__(self) -> int:
        return len(self._blobs)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the blobs; this makes no arrays."""
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

    The whole file is read, and every blob in it checked, before the first layer is returned.  So a file that is cut
    short gives an error and no weights at all.  The file is kept in memory as one message, as long as you keep the
    iterator or the blobs of a layer.  Arrays are made when you ask for a blob.  Layers without blobs are returned too.
    A name that is not UTF-8 is decoded with ``surrogateescape``.

    Parameters
    ----------
    path
        The path of a regular file of at most 2 GiB.

    Returns
    -------
    Iterator
        It yields pairs of a name and `LayerBlobs`.

    Raises
    ------
    MissingPackageError
        If the protobuf package is not installed.
    FileAccessError
        If the file cannot be read.
    FileFormatError
        If it is no `NetParameter`, or describes an impossible blob.
    InvalidArgumentError
        If ``path`` is no path.
    AllocationError
        If there is no room.
    """
    source, wire = checked_path(path), read_bytes(path, MOST_BYTES)
    if wire.startswith(_HDF5):
        raise FileFormatError(source, "it is an HDF5 file, and only Caffe's binary protobuf files are read")
    net = parsed("NetParameter", wire, source)
    if len(net.layer) and len(net.layers):
        raise FileFormatError(source, "it has both 'layer' and 'layers', and it is unknown which of them are the net's")
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
    """The message that has the name and the blobs of a layer."""
    return layer.layer if "layer" in layer.DESCRIPTOR.fields_by_name and layer.HasField("layer") else layer


def _name(layer: Any) -> str:
    name: bytes = layer.name
    return name.decode(errors="surrogateescape")


def _check(layer: Any, source: str) -> None:
    """Check the blobs of a layer; the error names the layer and the blob."""
    for number, blob in enumerate(layer.blobs):
        try:
            shape_of(blob, source)
        except FileFormatError as error:
            reason = f"blob {number} of layer {_name(layer)!r}: {error.reason}"
            raise FileFormatError(source, reason) from None
