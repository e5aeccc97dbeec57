"""The messages of ``caffe.proto``, compiled by `make generated`: not written by hand."""

from importlib import import_module
from typing import Any

__all__ = ["BlobProto", "BlobShape", "LayerParameter", "NetParameter", "PackedBlob", "V0LayerParameter", "V1LayerParameter"]

_POOL: Any = import_module("google.protobuf.descriptor_pool").DescriptorPool()
_FACTORY: Any = import_module("google.protobuf.message_factory")
_POOL.AddSerializedFile(
    b'\n\x0bcaffe.proto\x12\x0fsyncedm'
    b'em.caffe"!\n\tBlobShape\x12'
    b'\x14\n\x03dim\x18\x01 \x03(\x03B\x02\x10\x01R\x03dim"'
    b'\x93\x02\n\tBlobProto\x12\x10\n\x03num\x18\x01'
    b' \x01(\x05R\x03num\x12\x1a\n\x08channels\x18'
    b'\x02 \x01(\x05R\x08channels\x12\x16\n\x06hei'
    b'ght\x18\x03 \x01(\x05R\x06height\x12\x14\n\x05w'
    b'idth\x18\x04 \x01(\x05R\x05width\x12\x16\n\x04d'
    b'ata\x18\x05 \x03(\x02B\x02\x10\x01R\x04data\x12\x16\n'
    b'\x04diff\x18\x06 \x03(\x02B\x02\x10\x01R\x04diff\x12'
    b'0\n\x05shape\x18\x07 \x01(\x0b2\x1a.synce'
    b'dmem.caffe.BlobShapeR\x05'
    b'shape\x12#\n\x0bdouble_data\x18\x08'
    b' \x03(\x01B\x02\x10\x01R\ndoubleData\x12#'
    b'\n\x0bdouble_diff\x18\t \x03(\x01B\x02\x10'
    b'\x01R\ndoubleDiff"\x84\x02\n\nPack'
    b'edBlob\x12\x10\n\x03num\x18\x01 \x01(\x05R\x03n'
    b'um\x12\x1a\n\x08channels\x18\x02 \x01(\x05R\x08'
    b'channels\x12\x16\n\x06height\x18\x03 \x01'
    b'(\x05R\x06height\x12\x14\n\x05width\x18\x04 '
    b'\x01(\x05R\x05width\x12\x12\n\x04data\x18\x05 \x01'
    b'(\x0cR\x04data\x12\x12\n\x04diff\x18\x06 \x01(\x0c'
    b'R\x04diff\x120\n\x05shape\x18\x07 \x01(\x0b2'
    b'\x1a.syncedmem.caffe.Blob'
    b'ShapeR\x05shape\x12\x1f\n\x0bdouble'
    b'_data\x18\x08 \x01(\x0cR\ndoubleDat'
    b'a\x12\x1f\n\x0bdouble_diff\x18\t \x01(\x0c'
    b'R\ndoubleDiff"X\n\x10V0Laye'
    b'rParameter\x12\x12\n\x04name\x18\x01 \x01'
    b'(\x0cR\x04name\x120\n\x05blobs\x182 \x03('
    b'\x0b2\x1a.syncedmem.caffe.Bl'
    b'obProtoR\x05blobs"\x91\x01\n\x10V1L'
    b'ayerParameter\x127\n\x05layer'
    b'\x18\x01 \x01(\x0b2!.syncedmem.caf'
    b'fe.V0LayerParameterR\x05l'
    b'ayer\x12\x12\n\x04name\x18\x04 \x01(\x0cR\x04na'
    b'me\x120\n\x05blobs\x18\x06 \x03(\x0b2\x1a.sy'
    b'ncedmem.caffe.BlobProt'
    b'oR\x05blobs"V\n\x0eLayerParam'
    b'eter\x12\x12\n\x04name\x18\x01 \x01(\x0cR\x04na'
    b'me\x120\n\x05blobs\x18\x07 \x03(\x0b2\x1a.sy'
    b'ncedmem.caffe.BlobProt'
    b'oR\x05blobs"\x80\x01\n\x0cNetParame'
    b'ter\x129\n\x06layers\x18\x02 \x03(\x0b2!.'
    b'syncedmem.caffe.V1Laye'
    b'rParameterR\x06layers\x125\n\x05'
    b'layer\x18d \x03(\x0b2\x1f.syncedme'
    b'm.caffe.LayerParameter'
    b'R\x05layer'
)


def _message(name: str) -> Any:
    return _FACTORY.GetMessageClass(_POOL.FindMessageTypeByName(f"syncedmem.caffe.{name}"))


BlobProto: Any = _message("BlobProto")
BlobShape: Any = _message("BlobShape")
LayerParameter: Any = _message("LayerParameter")
NetParameter: Any = _message("NetParameter")
PackedBlob: Any = _message("PackedBlob")
V0LayerParameter: Any = _message("V0LayerParameter")
V1LayerParameter: Any = _message("V1LayerParameter")
