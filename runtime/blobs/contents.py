"""Caffe's messages `BlobShape` and `BlobProto`, declared once, and the rules by which a blob is read from them.

Names, numbers and types are those of Caffe's ``src/caffe/proto/caffe.proto`` (BVLC/caffe, lines 6 to 22).  The
protobuf messages (``messages``) are made from the declaration and the wire is read and written by it (``blob_wire``),
so that both see the same fields.  The rules are in `BlobParts`, which does not know where the parts came from:

- if any of the four old fields is there, the shape is these four, a missing one is 0, and ``shape`` is not looked at;
- otherwise it is ``shape``, and without one there are no axes and one value;
- ``double_data`` is the data if it has any values, whatever ``data`` has; so is ``double_diff`` the diff;
- a diff without values is no diff.

Caffe checks counts when it has already reshaped the blob; here all is checked before anything is touched.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from syncedmem.model import FileFormatError, InvalidArgumentError
from syncedmem.model.errors import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "BLOB_PROTO",
    "BLOB_SHAPE",
    "DTYPES",
    "MAX_AXES",
    "BlobContents",
    "BlobParts",
    "Declared",
    "checked_array",
    "checked_shape",
]

MAX_AXES = 32
"""Caffe's kMaxBlobAxes."""


class Declared(NamedTuple):
    """A field of a message, with protobuf's name for its type; that of a message is the message's own."""

    name: str
    number: int
    type: str
    repeated: bool = False


BLOB_SHAPE = (Declared("dim", 1, "int64", repeated=True),)
BLOB_PROTO = (
    Declared("num", 1, "int32"),
    Declared("channels", 2, "int32"),
    Declared("height", 3, "int32"),
    Declared("width", 4, "int32"),
    Declared("data", 5, "float", repeated=True),
    Declared("diff", 6, "float", repeated=True),
    Declared("shape", 7, "BlobShape"),
    Declared("double_data", 8, "double", repeated=True),
    Declared("double_diff", 9, "double", repeated=True),
)
"""In the order of their numbers, in which protobuf writes them.  All that is repeated is packed when written."""

DTYPES: dict[str, np.dtype[Any]] = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}
"""What the values of a type are on the wire."""

_MOST_VALUES = np.iinfo(np.intp).max // max(dtype.itemsize for dtype in DTYPES.values())
_LEGACY = tuple(field.name for field in BLOB_PROTO if field.type == "int32")


class BlobContents(NamedTuple):
    """What was read of a blob: arrays of float32 or float64, each of that shape.

    An array that is read-only is a view of what it was read from; copy it to keep it.
    """

    shape: tuple[int, ...]
    data: NDArray[Any]
    diff: NDArray[Any] | None


class BlobParts(NamedTuple):
    """What a `BlobProto` has, wherever it is: the small fields themselves, and of the long ones how many values."""

    source: str
    legacy: Mapping[str, int]
    dims: Sequence[int]
    counts: Mapping[str, int]
    position: int | None = None  # of the message in its source

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as it is written, checked against nothing."""
        return tuple(self.legacy.get(name, 0) for name in _LEGACY) if self.legacy else tuple(self.dims)

    def equals(self, shape: Sequence[int]) -> bool:
        """Whether a blob of that shape has the shape of this message: Caffe's ``ShapeEquals``.

        The four old fields are compared from the end, so that (3, 2) is 1 x 1 x 3 x 2.
        """
        if not self.legacy:
            return tuple(shape) == self.shape
        return (1,) * (len(_LEGACY) - len(shape)) + tuple(shape) == self.shape

    def checked(self) -> tuple[tuple[int, ...], str, str | None]:
        """The shape, and the names of the fields that hold data and diff, if there is a diff.

        Raises
        ------
        FileFormatError
            No blob can have this shape, or there are not as many values as it has.
        """
        shape = checked_shape(self.shape, self.source, self.position)
        data = "double_data" if self.counts.get("double_data") else "data"
        names = ("double_diff", "diff")
        diff = next((name for name in names if self.counts.get(name)), None)
        for name in (data, diff):
            if name is not None and self.counts.get(name, 0) != math.prod(shape):
                reason = f"{name} has {self.counts.get(name, 0)} values, and shape {shape} has {math.prod(shape)}"
                raise FileFormatError(self.source, reason, self.position)
        return shape, data, diff


def checked_array(name: str, value: object, types: Collection[np.dtype[Any]]) -> NDArray[Any]:
    """An argument that is an array of one of some types.

    Raises
    ------
    InvalidArgumentError
        It is none.
    """
    array = cast("NDArray[Any]", value)
    masked = isinstance(value, np.ma.MaskedArray)
    if not isinstance(value, np.ndarray) or masked or array.dtype not in types:
        mask = ", without a mask" if masked else ""
        raise InvalidArgumentError(name, array, f"a NumPy array of {', '.join(map(str, types))}{mask}")
    return array


def checked_shape(shape: Sequence[int], source: str, position: int | None = None) -> tuple[int, ...]:
    """A shape that arrays can have.

    Raises
    ------
    FileFormatError
        More than `MAX_AXES` axes, a negative one, or more values than memory can be asked for.  As in NumPy, an axis
        of length 0 does not excuse the others.
    InvalidArgumentError
        It is no row of whole numbers.
    """
    try:
        axes = tuple(map(operator.index, shape))
    except TypeError as error:
        raise InvalidArgumentError("shape", shape, "a sequence of whole numbers") from error
    reason = ""
    if len(axes) > MAX_AXES:
        reason = f"shape has {len(axes)} axes, and a blob at most {MAX_AXES}"
    elif min(axes, default=0) < 0:
        reason = f"shape {shown(axes)} has a negative axis"
    elif math.prod(filter(None, axes)) > _MOST_VALUES:
        reason = f"shape {shown(axes)} has more values than memory can be asked for"
    if reason:
        raise FileFormatError(source, reason, position)
    return axes
