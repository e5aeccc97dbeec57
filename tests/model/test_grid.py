"""The grid of configurations has every edge once, is symmetric about the diagonal, and has no overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from drawings import (
    arrow_groups,
    classes,
    collisions,
    head_boxes,
    lying_on,
    numbers,
    parsed,
    rectangles,
    stretches,
    text_boxes,
    within,
)

from syncedmem.model import EDITIONS, Call, caffe
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail, drawing, without_kind
from syncedmem.model.diagrams.plan import plan_of
from syncedmem.model.diagrams.trace import trace_of

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from drawings import Box

    from syncedmem.model.diagrams.arrangement import Arrangement

CALLS = "mutable_cpu_data gpu_data cpu_data mutable_gpu_data set_cpu_data gpu_data gpu_data release"
LATE = f"{'set_mode(GPU) ' * 1000}{CALLS}"
HOST = "mutable_cpu_data cpu_data set_cpu_data cpu_data mutable_cpu_data " * 30
TRACES = {"caffe": CALLS.replace("release", "set_gpu_data " * 12), "early": LATE, "cpu_only": HOST}


def planned(edition: str) -> Arrangement:
    return plan_of(drawing(edition, detail=Detail.CONFIGURATIONS), Detail.CONFIGURATIONS)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_edge_is_there_once(edition: str) -> None:
    """An edge is an arrow, is part of an arrow from a frame, or is written in its state."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    plan = planned(edition)
    for arrow in plan.arrows:
        for source in arrow.sources:
            assert (source, arrow.dest) not in found
            found[source, arrow.dest] = tuple(line.call for line in arrow.lines)
    found |= {(box.name, box.name): tuple(line.call for line in box.stays) for box in plan.boxes if box.stays}
    assert found == {(edge.source, edge.dest): tuple(line.call for line in edge.lines) for edge in plan.drawn.edges}


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_leaves_a_frame_leaves_every_state_in_it_alike(edition: str) -> None:
    plan = planned(edition)
    edges = {(edge.source, edge.dest): edge for edge in plan.drawn.edges}
    framed = [arrow for arrow in plan.arrows if len(arrow.sources) > 1]
    assert bool(framed) == (edition != "cpu_only")
    for arrow in framed:
        assert set(arrow.sources) == {box.name for box in plan.boxes if box.name[2:] == arrow.sources[0][2:]}
        for source in arrow.sources:
            lines = list(zip(arrow.lines, edges[source, arrow.dest].lines, strict=True))
            assert lines
            assert not [line for line, own in lines if line.steps != without_kind(plan.drawn.machine, own).steps]
            assert not [line for line, own in lines if not set(own.identifiers) <= set(line.identifiers)]


def test_host_and_device_are_mirrored_in_the_diagonal() -> None:
    """The places of states and the ends of arrows are mirrored; only the order of the sources differs."""
    plan = planned("caffe")

    def other(name: str) -> str:
        return f"{name[0].translate(str.maketrans('CG', 'GC'))}:{name[3]}{name[2]}"

    ends = {(frozenset(arrow.sources), arrow.dest) for arrow in plan.arrows}
    assert ends == {(frozenset(map(other, sources)), other(dest)) for sources, dest in ends}
    columns, rows = (sorted({box.centre[axis] for box in plan.boxes}) for axis in (0, 1))
    places = {box.name: (columns.index(box.centre[0]), rows.index(box.centre[1])) for box in plan.boxes}
    assert {(other(name), (row, column)) for name, (column, row) in places.items()} == set(places.items())


def test_tips_differ_in_more_than_colour() -> None:
    """An arrow that adopts ends in a diamond with four corners; other arrows in a closed or an open triangle."""
    root = parsed(diagram_svg(detail=Detail.CONFIGURATIONS))
    tips: dict[str, set[tuple[int, bool]]] = {}
    for _, group in arrow_groups(root):
        tip = group[0][1].attrib["d"]
        tips.setdefault(classes(group[0])[0], set()).add((tip.count("L"), tip.endswith("Z")))
    triangle = {(2, True)}
    assert tips == {"smd-device": triangle, "smd-host": triangle, "smd-none": {(2, False)}, "smd-adopt": {(3, True)}}


def borders(frame: Box) -> list[tuple[str, Box]]:
    """Return the four sides of a frame, as boxes without thickness."""
    x, y, to_x, to_y = frame
    sides = ((x, y, to_x, y), (x, to_y, to_x, to_y), (x, y, x, to_y), (to_x, y, to_x, to_y))
    return [(f"frame at {x:g},{y:g}", side) for side in sides]


def overlaps(root: ET.Element) -> list[tuple[str, str]]:
    """Return all overlaps: words on words, words and arrows on states, words on arrows, and arrows along arrows."""
    states, ways = head_boxes(root), stretches(root)
    words = [word for word in text_boxes(root) if not any(within(word[1], box) for box in states.values())]
    found = collisions([*words, *states.items()]) + collisions(text_boxes(root))
    for way in (*ways, *(side for frame in rectangles(root, "smd-group") for side in borders(frame))):
        found += lying_on(way, words)
    for way in ways:
        found += lying_on(way, states.items())
    for level in (0, 1):
        alike = [(name, box) for name, box in ways if box[level] == box[level + 2]]
        grown = [(name, (x - 3, y - 3, to_x + 3, to_y + 3)) for name, (x, y, to_x, to_y) in alike]
        found += [pair for pair in collisions(grown) if pair[0] != pair[1]]
    _, _, width, height = numbers(root.attrib["viewBox"])
    inner = (8, 8, width - 8, height - 8)
    return found + [(name, "the border") for name, box in (*words, *ways, *states.items()) if not within(box, inner)]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("edition", EDITIONS)
def test_nothing_overlaps(edition: str, *, traced: bool) -> None:
    """It holds without a trace, and with a trace, whose numbers need room."""
    trace = trace_of(TRACES.get(edition, HOST), edition=edition) if traced else None
    assert not overlaps(parsed(diagram_svg(edition, detail=Detail.CONFIGURATIONS, trace=trace)))


@pytest.mark.parametrize("call", caffe.CAFFE.calls.values(), ids=str)
def test_nothing_overlaps_with_a_single_call(call: Call) -> None:
    assert not overlaps(parsed(diagram_svg(detail=Detail.CONFIGURATIONS, calls=(call,))))
