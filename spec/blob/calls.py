"""The interface of a blob that the kit can test: each attribute and call, with its arguments and its result.

docs/conformance.md shows this as a table.  A test checks that the kit uses exactly these names.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["CALLS", "Calls"]


class Calls(NamedTuple):
    """Attributes or calls that are used in the same way.

    Attributes
    ----------
    names : tuple of str
    arguments : str or None
        As in Python; None for an attribute.
    result : str
        The value of an attribute, or what a call does or returns.
    asked : {"always", "safe", "device", "messages"}
        When the kit uses them: always; not with ``profile="caffe"``; with a device; or if the blob has ``to_proto``.
    """

    names: tuple[str, ...]
    arguments: str | None
    result: str
    asked: Literal["always", "safe", "device", "messages"] = "always"

    def spelt(self) -> str:
        """The names as code, with the arguments of each."""
        behind = "" if self.arguments is None else f"({self.arguments})"
        return ", ".join(f"`{name}{behind}`" for name in self.names)


CALLS: tuple[Calls, ...] = (
    Calls(("shape",), None, "the extents, in order; empty before the first shape"),
    Calls(("num_axes", "count"), None, "the number of extents, and of elements"),
    Calls(("capacity",), None, "the number of elements that fit into both memories as they are", "safe"),
    Calls(("num", "channels", "height", "width"), None, "legacy axes 0 to 3; raise if there are more than four axes"),
    Calls(("shape_string",), None, 'such as `"2 3 (6)"`; it may be a call without arguments'),
    Calls(("data_memory", "diff_memory"), None,
          "the memories, which have `head`, `size`, `cpu_data()` and `gpu_data()`; one object for all who share it"),
    Calls(("reshape",), "*shape",
          "takes a sequence, an object with `dim`, or integers: four, or with the profile `safe` any number"),
    Calls(("reshape_like",), "other", "takes the shape of a blob"),
    Calls(("shrink_to_fit",), "", "frees the memory after the last element", "safe"),
    Calls(("canonical_axis_index",), "axis", "the axis counted from the front, for an axis from the front or the back"),
    Calls(("count_axes",), "start=0, end=None", "the volume of some axes, Caffe's `count(start, end)`"),
    Calls(("legacy_shape",), "index", "the extent of one of four axes"),
    Calls(("offset",), "*indices", "the position of an element, given up to four integers or a sequence"),
    Calls(("data_at", "diff_at"), "*indices", "an element, as a number"),
    Calls(("gpu_shape",), "", "the extents on the device: a view of 32-bit integers", "device"),
    Calls(("cpu_data", "cpu_diff"), "", "a new view to read on the host: a buffer in the blob's shape"),
    Calls(("mutable_cpu_data", "mutable_cpu_diff"), "", "such a view to write"),
    Calls(("gpu_data", "gpu_diff"), "", "a new view to read on the device; its `get()` returns the contents"),
    Calls(("mutable_gpu_data", "mutable_gpu_diff"), "", "such a view to write, with `set(values)`"),
    Calls(("set_cpu_data", "set_gpu_data"), "data", "adopts a buffer as a side of the data"),
    Calls(("set_cpu_diff", "set_gpu_diff"), "diff", "adopts a buffer as a side of the diff", "safe"),
    Calls(("share_data", "share_diff"), "other", "uses the memory of a blob"),
    Calls(("copy_from",), "source, copy_diff=False, reshape=False", "copies the data of a blob, or its diff"),
    Calls(("update",), "", "subtracts the diff from the data"),
    Calls(("asum_data", "asum_diff", "sumsq_data", "sumsq_diff"), "", "a number"),
    Calls(("scale_data", "scale_diff"), "factor", "multiplies a part by a number"),
    Calls(("to_proto",), "write_diff=False", "a message; its class makes an empty one", "messages"),
    Calls(("from_proto",), "message, reshape=True", "takes the shape and the numbers of a message", "messages"),
    Calls(("shape_equals",), "message", "whether a message has this shape", "messages"),
)  # fmt: skip
"""Everything of a blob that the kit uses, except its maker."""
