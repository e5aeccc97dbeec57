"""Caffe's messages as somebody else would have them: declared in .proto text, compiled by protoc, and read by hand.

The numbers are those of BVLC/caffe's caffe.proto; nothing here is taken from the code under test.
"""

from __future__ import annotations

import importlib
import importlib.util
import struct
import tempfile
from pathlib import Path
from typing import Any

PROTO = """
syntax = "proto2";
package caffe;
message BlobShape { repeated int64 dim = 1 [packed = true]; }
message BlobProto {
  optional BlobShape shape = 7;
  repeated float data = 5 [packed = true];
  repeated float diff = 6 [packed = true];
  repeated double double_data = 8 [packed = true];
  repeated double double_diff = 9 [packed = true];
  optional int32 num = 1 [default = 0];
  optional int32 channels = 2 [default = 0];
  optional int32 height = 3 [default = 0];
  optional int32 width = 4 [default = 0];
}
message Datum { optional int32 channels = 1; optional int32 height = 2; optional bytes data = 4; }
message Impostor {
  optional BlobShape shape = 7;
  optional bytes data = 5;
  optional bytes diff = 6;
  optional bytes double_data = 8;
  optional bytes double_diff = 9;
  optional int32 num = 1;
  optional int32 channels = 2;
  optional int32 height = 3;
  optional int32 width = 4;
}
message V0LayerParameter { optional string name = 1; optional string type = 2; repeated BlobProto blobs = 50; }
message V1LayerParameter {
  repeated string bottom = 2;
  optional string name = 4;
  optional int32 type = 5;
  repeated BlobProto blobs = 6;
  repeated float blobs_lr = 7;
  optional V0LayerParameter layer = 1;
}
message LayerParameter {
  optional string name = 1;
  optional string type = 2;
  repeated string bottom = 3;
  repeated float loss_weight = 5;
  repeated BlobProto blobs = 7;
}
message NetParameter {
  optional string name = 1;
  repeated string input = 3;
  repeated LayerParameter layer = 100;
  repeated V1LayerParameter layers = 2;
}
"""


def _compiled() -> Any:
    """The module that protoc makes, as users of pycaffe have one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "caffe_excerpt.proto").write_text(PROTO, encoding="utf-8")
        protoc: Any = importlib.import_module("grpc_tools.protoc")
        status = protoc.main(["protoc", f"--proto_path={folder}", f"--python_out={folder}", "caffe_excerpt.proto"])
        assert status == 0
        spec = importlib.util.spec_from_file_location("caffe_excerpt_pb2", Path(folder) / "caffe_excerpt_pb2.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


caffe_pb2 = _compiled()


def varint(value: int) -> bytes:
    """A number below 2**64."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def key(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def chunk(number: int, body: bytes) -> bytes:
    """A field that is stored by its length."""
    return key(number, 2) + varint(len(body)) + body


def floats(number: int, *values: float) -> bytes:
    """Packed."""
    return chunk(number, struct.pack(f"<{len(values)}f", *values))


def shape(*dims: int) -> bytes:
    """Field 7 of a BlobProto."""
    return chunk(7, chunk(1, b"".join(varint(dim & (1 << 64) - 1) for dim in dims)))
