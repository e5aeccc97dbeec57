"""``make generated``: compiles ``runtime/blobs/caffe.proto`` to ``caffe_pb2.py`` beside it.

What protoc writes itself refuses every protobuf package that is older than protoc.  Of its file only the description of
the messages is needed, so this writes one that runs with each version that ``pyproject.toml`` allows.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "runtime" / "blobs" / "caffe.proto"
COMPILED = PROTO.with_name("caffe_pb2.py")
WIDTH = 88
TEXT = '''"""The messages of ``caffe.proto``, compiled by `make generated`: not written by hand."""

from importlib import import_module
from typing import Any

__all__ = {names}

_POOL: Any = import_module("google.protobuf.descriptor_pool").DescriptorPool()
_FACTORY: Any = import_module("google.protobuf.message_factory")
_POOL.AddSerializedFile(
{wire}
)


def _message(name: str) -> Any:
    return _FACTORY.GetMessageClass(_POOL.FindMessageTypeByName(f"{package}.{{name}}"))


{classes}
'''


def compiled() -> str:
    """The text of the compiled module."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        protoc = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO.parent}", PROTO.name]
        subprocess.run([*protoc, f"--descriptor_set_out={out}"], check=True)
        descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
        (file,) = descriptors.FileDescriptorSet.FromString(out.read_bytes()).file
    wire = file.SerializeToString(deterministic=True)
    names = sorted(message.name for message in file.message_type)
    return TEXT.format(
        names=json.dumps(names),
        wire="\n".join(f"    {wire[at : at + WIDTH // 4]!r}" for at in range(0, len(wire), WIDTH // 4)),
        package=file.package,
        classes="\n".join(f'{name}: Any = _message("{name}")' for name in names),
    )


def main() -> int:
    """Write the file, or with ``--check`` compare it."""
    text = compiled()
    if "--check" not in sys.argv[1:]:
        COMPILED.write_text(text, encoding="utf-8")
        return 0
    if COMPILED.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{COMPILED.relative_to(ROOT)} is not what {PROTO.name} compiles to: make generated\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
