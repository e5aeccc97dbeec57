"""What it costs to store a blob and to read it again, as ratios to a baseline that is timed in the same run.

Run with ``make bench``.  These are measurements, not tests: nothing fails when a machine is slow.  Every figure is the
median over rounds, and the two sides of a ratio alternate within each round.  Both sides store an array and read it
back into another array that exists already, as a blob's memory does.  For the memory copy, NumPy copies it twice.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import options_of, publish
from hot_path import compared, show

from syncedmem.runtime import load_caffemodel, read_proto, write_proto
from syncedmem.runtime.blobs.messages import encoded, message_types, parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

BYTES = 100_000_000
FEW = 100
"""How many times smaller the blob for the slow loop is; the time of that loop grows with the number of values."""


class Roundtrips:
    """Ways of storing an array and reading it back into another one."""

    def __init__(self, dtype: str, byte_size: int) -> None:
        self.values: NDArray[Any] = np.random.default_rng(1).random(byte_size // np.dtype(dtype).itemsize).astype(dtype)
        self.back = np.empty_like(self.values)
        self.shape = self.values.shape

    def copy(self) -> None:
        """Two copies; the first is into new memory."""
        np.copyto(self.back, self.values.copy())

    def fresh_bytes(self) -> None:
        """Two copies through a bytes object, for which the system has to make new pages."""
        np.copyto(self.back, np.frombuffer(self.values.tobytes(), self.values.dtype))

    def message(self) -> None:
        """The work of ``to_proto`` and ``from_proto`` of a blob."""
        np.copyto(self.back, read_proto(write_proto(self.shape, self.values)).data)

    def wire(self) -> None:
        """The same, but through the bytes of the message instead of the message."""
        np.copyto(self.back, read_proto(encoded(self.shape, self.values)).data)

    def package(self) -> None:
        """The least that the protobuf package does for a message: parse it, and return its values."""
        message = message_types()[1]()
        message.MergeFromString(encoded(self.shape, self.values))
        name = "data" if self.values.itemsize == np.dtype("f4").itemsize else "double_data"
        np.copyto(self.back, np.asarray(getattr(message, name), self.values.dtype))

    def loop(self) -> None:
        """Caffe's ToProto and FromProto, line by line in Python."""
        message = message_types()[1]()
        message.shape.dim.extend(self.shape)
        for value in self.values:
            message.data.append(value)
        for place in range(len(message.data)):
            self.back[place] = message.data[place]


def messages() -> list[dict[str, Any]]:
    """Messages and their bytes, of float32 and float64."""
    rows: list[dict[str, Any]] = []
    few = Roundtrips("float32", BYTES // FEW)
    rows.append(_row("1 MB, Caffe's loop / message", few.loop, few.message, ">= 5"))
    for dtype in ("float32", "float64"):
        many = Roundtrips(dtype, BYTES)
        rows += [
            _row(f"100 MB {dtype}, wire / memory copy", many.wire, many.copy, "the package copies 5 times"),
            _row(f"100 MB {dtype}, message / memory copy", many.message, many.copy, "the package copies 5 times"),
            _row(f"100 MB {dtype}, message / copy through bytes", many.message, many.fresh_bytes, "<= 6"),
            _row(f"100 MB {dtype}, message / protobuf alone", many.message, many.package, "<= 1.1"),
        ]
    return rows


def files() -> list[dict[str, Any]]:
    """A ``.caffemodel`` of 16 layers, compared with reading as many bytes into one array."""
    with tempfile.TemporaryDirectory() as folder:
        path, layers = Path(folder) / "net.caffemodel", 16
        net = parsed("NetParameter", b"", "nothing")
        blob = net.layer.add().blobs.add()
        blob.shape.dim.append(BYTES // 4 // layers)
        blob.data.extend(np.ones(BYTES // 4 // layers, np.float32))
        path.write_bytes(net.SerializeToString() * layers)  # several messages in a row are read as one message

        def walk() -> None:
            for _, blobs in load_caffemodel(path):
                for each in blobs:
                    del each

        return [
            _row(
                "100 MB, load_caffemodel / numpy.fromfile",
                walk,
                lambda: np.fromfile(path, np.uint8),
                "the package copies once",
            )
        ]


def _row(what: str, first: Callable[[], object], second: Callable[[], object], wanted: str) -> dict[str, Any]:
    ours, theirs, ratio = compared(first, second, 1)
    return {"what": what, "us": ours * 1e6, "against_us": theirs * 1e6, "ratio": ratio, "wanted": wanted}


def main() -> None:
    """Measure, print, and write the figures where ``--json`` says."""
    options = options_of(__doc__).parse_args()
    rows = [*messages(), *files()]
    publish(rows, show, options.json)


if __name__ == "__main__":
    main()
