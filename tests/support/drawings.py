"""The parts of a drawing in SVG, as rectangles with their positions, so that tests can look for overlaps."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Box = tuple[float, float, float, float]

SVG = "{http://www.w3.org/2000/svg}"


def arrow_groups(root: ET.Element) -> Iterator[tuple[tuple[str, str], ET.Element]]:
    """The arrows of a drawing, each with the two heads that it joins."""
    for group in root.iter(f"{SVG}g"):
        if "data-source" in group.attrib:
            yield (group.attrib["data-source"], group.attrib["data-dest"]), group


def classes(element: ET.Element) -> list[str]:
    """The class names of an element."""
    return element.get("class", "").split()


def texts(element: ET.Element, *looks: str) -> list[str]:
    """The texts with one of some classes below an element, without ticks and crosses."""
    found = [node for node in element.iter(f"{SVG}text") if set(looks) & set(classes(node))]
    return [node.text or "" for node in found if node.text not in ("✓", "✗")]


def numbers(text: str) -> list[float]:
    """The numbers in an attribute."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def points(path: ET.Element) -> list[tuple[float, float]]:
    """The points of a path that has only M, L, Q and Z; a corner is its control point."""
    assert set("MLQZ") >= set(re.findall("[A-Z]", path.attrib["d"]))
    found = numbers(path.attrib["d"])
    return list(zip(found[::2], found[1::2], strict=True))


def ends(arrow: ET.Element) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The path of an arrow, and its tip; the second point of the tip is the very end."""
    way, tip = list(arrow.iter(f"{SVG}path"))[:2]
    return points(way), points(tip)


def text_boxes(root: ET.Element) -> list[tuple[str, Box]]:
    """The rectangle of every text except the names of heads, with space for descenders."""
    found: list[tuple[str, Box]] = []
    for node in root.iter(f"{SVG}text"):
        if "smd-name" not in classes(node):
            x, y, size, width = (float(node.attrib[name]) for name in ("x", "y", "font-size", "textLength"))
            found.append((f"text {node.text} at {x:g},{y:g}", (x, y - 0.78 * size, x + width, y + 0.24 * size)))
    for node in root.iter(f"{SVG}path"):
        if "transform" in node.attrib:
            x, y = numbers(node.attrib["transform"])
            found.append((f"bullet at {x:g},{y:g}", (x, y - 4, x + 8, y + 4)))
    return found


def rectangles(root: ET.Element, look: str) -> list[Box]:
    """The rectangles of a class."""
    found: list[Box] = []
    for node in root.iter(f"{SVG}rect"):
        if look in classes(node):
            x, y, width, height = (float(node.attrib[name]) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def within(inner: Box, outer: Box) -> bool:
    """Whether a rectangle is inside another one."""
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def head_boxes(root: ET.Element) -> dict[str, Box]:
    """The rectangles of the states, by the name in each."""
    names = [node for node in root.iter(f"{SVG}text") if "smd-name" in classes(node)]
    starts = [(node.text or "", float(node.attrib["x"]), float(node.attrib["y"])) for node in names]
    found: dict[str, Box] = {}
    for box in rectangles(root, "smd-box"):
        (name,) = (name for name, x, y in starts if within((x, y, x, y), box))
        found[name] = box
    return found


def stretches(root: ET.Element) -> list[tuple[str, Box]]:
    """The straight parts of every arrow and of those that join it, as rectangles without thickness."""
    found: list[tuple[str, Box]] = []
    for pair, group in arrow_groups(root):
        ways = (points(path) for path in group.iter(f"{SVG}path") if "smd-way" in classes(path))
        for (x, y), (to_x, to_y) in chain.from_iterable(map(pairwise, ways)):
            box = (min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y))
            found.append((f"arrow {' to '.join(pair)}", box))
    return found


def overlap(a: Box, b: Box) -> bool:
    """Whether two rectangles share more than a border."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def things_in(root: ET.Element) -> list[tuple[str, Box]]:
    """All parts of a drawing that nothing else may cover."""
    rule = next(node for node in root.iter(f"{SVG}path") if "smd-rule" in classes(node))
    x, y, to_x = numbers(rule.attrib["d"])
    return [("rule", (x, y, to_x, y)), *text_boxes(root), *head_boxes(root).items(), *stretches(root)]


def collisions(things: list[tuple[str, Box]]) -> list[tuple[str, str]]:
    """The pairs of parts that overlap."""
    return [
        (name, other)
        for k, (name, box) in enumerate(things)
        for other, other_box in things[:k]
        if overlap(box, other_box)
    ]


def lying_on(thing: tuple[str, Box], things: Iterable[tuple[str, Box]]) -> list[tuple[str, str]]:
    """The parts that overlap with this one."""
    name, box = thing
    return [(name, other) for other, other_box in things if overlap(box, other_box)]


def parsed(text: str) -> ET.Element:
    """A drawing as a tree."""
    return ET.fromstring(text)  # noqa: S314 -- nobody's text but our own
