"""What the calls of memories and of blobs return."""

from __future__ import annotations

__all__ = ["NUMBERS", "RETURNING", "VIEWS", "WHOLE"]

RETURNING = ("cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data")
"""The calls of a memory that return a side."""

WHOLE = (
    *("canonical_axis_index", "count_axes", "legacy_shape", "offset"),
    *("num", "channels", "height", "width"),
)
"""The calls of a blob that return an index, an extent or a number of elements: whole, whatever the elements are."""

NUMBERS = (*WHOLE, "data_at", "diff_at", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff")
"""The calls of a blob that return a number."""

VIEWS = {
    f"{access}{side}_{part}": (part, side)
    for access in ("", "mutable_")
    for side in ("cpu", "gpu")
    for part in ("data", "diff")
}
"""The part and the side of each call of a blob that returns a view of elements."""
