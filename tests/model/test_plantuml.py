"""The state diagram for PlantUML: every call is there, and PlantUML draws it so that no label lies on anything."""

from __future__ import annotations

import operator
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from drawings import SVG, collisions, numbers, overlap, parsed, text_boxes
from programs import program

from syncedmem.model import EDITIONS
from syncedmem.model.diagrams.drawing import Detail, drawing
from syncedmem.model.exports.formats import export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree import ElementTree as ET

_MARGIN = 2.0
"""Half of a line, in PlantUML's pixels."""


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("edition", EDITIONS)
def test_every_call_is_there(edition: str, detail: Detail) -> None:
    """On an arrow if it leads to another state, and otherwise in the box of its state."""
    drawn, text = drawing(edition, detail=detail), str(export("plantuml", edition=edition, detail=detail))
    names = dict(re.findall(r'^state "(.*)" as (state\d+)$', text, re.MULTILINE))
    arrows = re.findall(r"^(state\d+) --> (state\d+) : (.*)$", text, re.MULTILINE)
    stays = re.findall(r"^(state\d+) : (.*)$", text, re.MULTILINE)
    between = [edge for edge in drawn.edges if edge.source != edge.dest]
    loops = [edge for edge in drawn.edges if edge.source == edge.dest]

    assert [node.name for node in drawn.nodes] == [*names]
    assert [(names[edge.source], names[edge.dest], "\\n".join(edge.labels)) for edge in between] == arrows
    assert [(names[edge.source], label) for edge in loops for label in edge.labels] == stays
    assert len(drawn.nodes) == text.count("--> [*] : release")
    assert text.count("[*] --> state0") == 1


def curve(points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Return many points of a Bezier curve with four points."""
    for at in (step / 32 for step in range(33)):
        weights = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3)
        x, y = (sum(map(operator.mul, weights, axis)) for axis in zip(*points, strict=True))
        yield x, y


def arrows_of(root: ET.Element) -> list[tuple[float, float]]:
    """Return many points of all arrows; PlantUML draws each as curves, which end where the next one begins."""
    found: list[tuple[float, float]] = []
    for node in root.iter(f"{SVG}path"):
        if node.get("fill") == "none":
            places = numbers(node.attrib["d"])
            points = list(zip(places[::2], places[1::2], strict=True))
            for first in range(0, len(points) - 1, 3):
                found += curve(points[first : first + 4])
    return found


def lies_on_something(text: str) -> list[str]:
    """Return the labels that lie on another label or on an arrow in PlantUML's picture."""
    command = [program("plantuml"), "-tsvg", "-pipe"]
    root = parsed(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout)
    boxes, arrows = text_boxes(root), arrows_of(root)
    assert len(boxes) > 4
    assert len(arrows) > 100
    found = [name for pair in collisions(boxes) for name in pair]
    for name, (left, top, right, bottom) in boxes:
        inner = (left + _MARGIN, top + _MARGIN, right - _MARGIN, bottom - _MARGIN)
        if any(overlap((x, y, x, y), inner) for x, y in arrows):
            found.append(name)
    return found


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
@pytest.mark.parametrize("edition", EDITIONS)
def test_no_label_lies_on_anything(edition: str, detail: Detail) -> None:
    assert [] == lies_on_something(str(export("plantuml", edition=edition, detail=detail)))


def test_a_label_on_an_arrow_is_found() -> None:
    """As a loop, which the arrow to the next state crosses."""
    text = str(export("plantuml"))
    loop = re.sub(r"^(state1) : cpu_data(.*)\n\1 : (.*)$", r"\1 --> \1 : cpu_data\2\\n\3", text, flags=re.MULTILINE)
    assert loop != text

    assert lies_on_something(loop)
