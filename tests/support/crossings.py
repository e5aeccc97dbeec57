"""How often arrows cross, in our layout and in Graphviz's."""

from __future__ import annotations

import json
import subprocess
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from exported import exported

from syncedmem.model.diagrams.drawing import drawing_of
from syncedmem.model.diagrams.layered import layered

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine

__all__ = ["crossings", "of_dot", "of_ours"]

Point = tuple[float, float]
Line = tuple[int, list[Point]]
"""A line with the number of its arrow: an arrow does not cross itself."""


def of_ours(machine: Machine) -> list[Line]:
    """The arrows between states."""
    arrows = layered(drawing_of(machine)).arrows
    return [(k, [*way]) for k, arrow in enumerate(arrows) for way in (arrow.points, *arrow.joining)]


def of_dot(machine: Machine) -> list[Line]:
    """The same, as ``dot`` draws them, as straight pieces of its curves."""
    text = subprocess.run(["dot", "-Tjson"], input=exported("dot", machine), text=True, capture_output=True, check=True)
    found: Any = json.loads(text.stdout)
    drawn = [edge for edge in found["edges"] if edge["tail"] != edge["head"] and found["objects"][edge["tail"]]["name"]]
    curves = [op["points"] for item in drawn for op in item["_draw_"] if op["op"] == "b"]
    return [(k, _pieces(curve)) for k, curve in enumerate(curves)]


def _pieces(curve: list[Point], steps: int = 24) -> list[Point]:
    found: list[Point] = [curve[0]]
    for k in range(0, len(curve) - 1, 3):
        for step in range(1, steps + 1):
            t = step / steps
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(w * pair[axis] for w, pair in zip(weights, curve[k : k + 4], strict=True)) for axis in (0, 1))
            found.append((x, y))
    return found


def crossings(lines: list[Line]) -> int:
    """How often the lines of different arrows cross."""
    return sum(
        _cross(*one, *other)
        for (a, some), (b, others) in combinations(lines, 2)
        if a != b
        for one in pairwise(some)
        for other in pairwise(others)
    )


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
