"""The picture of a machine of any shape: everything is there once, and nothing lies on anything else."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import pytest
from crossings import crossings, of_dot, of_ours
from drawings import (
    SVG,
    arrow_groups,
    classes,
    collisions,
    head_boxes,
    overlap,
    parsed,
    points,
    stretches,
    text_boxes,
    texts,
    within,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import DOOR, EXAMPLES, MSI, THIRD
from pictured import H11, LIFT, OFFLOAD, PICTURED, TLS, VENDING

from syncedmem.model import EDITIONS
from syncedmem.model.declaration import Machine, Row
from syncedmem.model.diagrams.diagram import diagram_svg, painted
from syncedmem.model.diagrams.drawing import Detail, Direction, drawing, drawing_of
from syncedmem.model.diagrams.layered import layered
from syncedmem.model.diagrams.trace import trace_of

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from drawings import Box

DRAWN = [*EDITIONS.values(), *EXAMPLES, DOOR]


def covered(root: ET.Element) -> list[tuple[str, str]]:
    """What lies on something else; arrows may cross."""
    boxes, arrows = head_boxes(root), stretches(root)
    labels = text_boxes(root)
    outside = [label for label in labels if not any(within(label[1], box) for box in boxes.values())]
    found = collisions([*outside, *boxes.items()])
    found += [(name, label) for name, way in arrows for label, box in [*labels, *boxes.items()] if overlap(way, box)]
    return found + [(one, other) for (one, a), (other, b) in combinations(arrows, 2) if one != other and lie_on(a, b)]


def lie_on(a: Box, b: Box) -> bool:
    """Whether two straight lines are one above the other for more than a corner."""
    for across, along in ((0, 1), (1, 0)):
        if a[across] == a[across + 2] == b[across] == b[across + 2]:
            return min(a[along + 2], b[along + 2]) - max(a[along], b[along]) > 1
    return False


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("machine", DRAWN, ids=str)
def test_nothing_lies_on_anything(machine: Machine, detail: Detail) -> None:
    root = parsed(diagram_svg(machine, detail=detail))

    assert [] == covered(root)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    assert [] == [box for box in text_boxes(root) if not within(box[1], (0, 0, width, height))]


@pytest.mark.parametrize("machine", [MSI, THIRD, DOOR], ids=str)
def test_every_call_is_there_from_every_state(machine: Machine) -> None:
    """On an arrow, in the box of a state that it leaves as it is, or on an arrow that leaves every state."""
    root = parsed(diagram_svg(machine))
    seen = {
        (source, dest, call)
        for (sources, dest), group in arrow_groups(root)
        for source in sources.split()
        for call in texts(group, "smd-call")
    }
    stays = [text.partition(" / ")[0] for text in texts(root, "smd-brief")]
    edges = drawing(machine).edges
    loops = [line.call for edge in edges if edge.source == edge.dest for line in edge.lines]

    assert sorted(loops) == sorted(stays)
    assert {
        (edge.source, edge.dest, line.call) for edge in edges if edge.source != edge.dest for line in edge.lines
    } == seen


def test_a_trace_and_coverage_fit() -> None:
    trace = trace_of("read_a write_b read_c evict_b", edition=MSI)
    assert [] == covered(parsed(diagram_svg(MSI, trace=trace)))
    identifiers = [row.identifier(head) for row in MSI.rows[::2] for head in row.source]
    assert [] == covered(parsed(diagram_svg(MSI, covered=identifiers)))


def test_names_are_only_text() -> None:
    odd = Machine('<b>&"', [Row('say "x"', "a < b", "c & d"), Row("<script>", ["c & d", "a < b"], "a < b")])
    root = parsed(diagram_svg(odd))
    assert {"a < b", "c & d"} == set(head_boxes(root))
    assert 'say "x"' in texts(root, "smd-call")


OVERLAP = Machine(
    "overlap",
    [
        *(Row("call_0", source, dest) for source, dest in (("H0", "H3"), ("H4", "H1"))),
        *(Row("call_1", source, dest) for source, dest in (("H1", "H0"), ("H2", "H4"), ("H3", "H2"))),
        *(Row("call_2", source, dest) for source, dest in (("H2", "H0"), ("H4", "H2"))),
        *(Row("call_3", source, dest) for source, dest in (("H0", "H4"), ("H1", "H3"), ("H3", "H0"), ("H4", "H3"))),
    ],
    heads=["H0", "H1", "H2", "H3", "H4"],
)


def test_arrows_that_must_all_be_above_each_other_go_down_in_two_steps() -> None:
    assert [] == covered(parsed(painted(drawing_of(OVERLAP), Detail.HEADS)))


@pytest.mark.parametrize("machine", [*PICTURED, OVERLAP, *DRAWN], ids=str)
@pytest.mark.parametrize("direction", Direction)
def test_no_arrow_moves_aside_by_a_little(machine: Machine, direction: Direction) -> None:
    laid = layered(drawing_of(machine), direction=direction)
    ways = [way for arrow in laid.arrows for way in (arrow.points, *arrow.joining)]
    lengths = [abs(x - to_x) + abs(y - to_y) for way in ways for (x, y), (to_x, to_y) in pairwise(way)]
    assert not [length for length in lengths if length < 9]


@pytest.mark.deep
@pytest.mark.parametrize("machine", [*PICTURED, OVERLAP, *EXAMPLES], ids=str)
def test_arrows_cross_no_more_often_than_in_graphviz(machine: Machine) -> None:
    assert crossings(of_ours(machine)) <= crossings(of_dot(machine))


def test_ends_are_below_and_mutual_neighbours_beside_each_other() -> None:
    """The order of a machine that counts is that of its layers; two heads that lead to each other are side by side."""
    tops = {name: box[1] for name, box in head_boxes(parsed(diagram_svg(VENDING))).items()}
    in_order = ["0c", "5c", "10c", "15c", "20c", "25c", "PAID", "VENDING", "OUT OF ORDER"]
    assert in_order == sorted(tops, key=tops.__getitem__)
    boxes = head_boxes(parsed(diagram_svg(OFFLOAD)))
    middles = {name: (box[1] + box[3]) / 2 for name, box in boxes.items()}
    assert abs(middles["CPU"] - middles["GPU"]) < 1
    assert middles["NEW"] < middles["CPU"] < middles["BOTH"]
    lowest = head_boxes(parsed(diagram_svg(H11)))
    assert max(lowest, key=lambda name: lowest[name][1]) == "ERROR"


def test_equal_labels_to_one_head_join() -> None:
    """The words are there once; each head has its own arrow, which ends on that of another."""
    root = parsed(diagram_svg(LIFT))
    ((sources, _), group), *others = [group for group in arrow_groups(root) if "timeout" in texts(group[1], "smd-call")]
    assert not others
    assert {"floor 2", "floor 3", "floor 4"} == set(sources.split("\n"))
    first, *joining = [points(path) for path in group.iter(f"{SVG}path") if "smd-way" in classes(path)]
    assert 2 == len(joining)
    for way in joining:
        (x, y), steps = way[-1], [*pairwise(first)]
        assert any(a[0] == b[0] == x and min(a[1], b[1]) - 11 <= y <= max(a[1], b[1]) + 11 for a, b in steps)


def test_no_arrows_join_in_a_drawing_with_a_trace() -> None:
    """It takes one of them."""
    trace = trace_of(["up", "up", "timeout"], edition=LIFT)
    assert 3 == sum("timeout" in call for call in texts(parsed(diagram_svg(LIFT, trace=trace)), "smd-call"))


@pytest.mark.parametrize("machine", [VENDING, TLS, MSI], ids=str)
def test_a_drawing_to_the_right_is_wider_than_high(machine: Machine) -> None:
    root = parsed(diagram_svg(machine, direction=Direction.RIGHT))
    places = head_boxes(root)
    first = places[machine.initial.name]
    assert all(box[0] > first[0] for name, box in places.items() if name != machine.initial.name)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert width > height
    assert [] == covered(root)
    assert [] == [box for box in text_boxes(root) if not within(box[1], (0, 0, width, height))]


def test_a_large_machine_is_drawn() -> None:
    """100 heads and 500 rows."""
    rows = [Row(f"call_{c}", f"H{k}", f"H{(3 * k + c) % 100}") for c in range(5) for k in range(100)]
    assert 100 == len(layered(drawing_of(Machine("large", rows))).boxes)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """A machine of some heads, of which nobody can be sure that all are reached."""
    heads = [f"H{n}" for n in range(draw(st.integers(1, 14)))]
    rows = [
        Row(f"call_{c}", head, draw(st.sampled_from(heads))) for c in range(draw(st.integers(1, 6))) for head in heads
    ]
    return Machine("any", rows, heads=heads)


@given(machines())
def test_nothing_lies_on_anything_whatever_the_shape(machine: Machine) -> None:
    assert [] == covered(parsed(painted(drawing_of(machine), Detail.HEADS)))


@pytest.mark.deep
@settings(max_examples=3_000)
@given(machines())
def test_nothing_lies_on_anything_in_many_machines(machine: Machine) -> None:
    """One in a hundred had such arrows."""
    assert [] == covered(parsed(painted(drawing_of(machine), Detail.HEADS)))


LIBRARY = Machine(
    "library",
    [
        Row("catalogue", "ordered", "on the shelf"),
        Row("lend", "on the shelf", "lent out"),
        Row("return", "lent out", "on the shelf"),
        Row("remind", "lent out", "overdue"),
        Row("return", "overdue", "on the shelf"),
        Row("reserve", "lent out", "reserved"),
        Row("return", "reserved", "held"),
        Row("fetch", "held", "lent out"),
        Row("lapse", "held", "on the shelf"),
    ],
)


def reached_without(machine: Machine, left_out: str) -> set[str]:
    """The heads to which a way leads that does not pass one of them."""
    found = {machine.initial.name} - {left_out}
    for name in (waiting := [*found]):
        new = {row.dest for row in machine.rows if name in row.source and row.dest} - found - {left_out}
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("machine", [LIBRARY, TLS, H11, LIFT, VENDING], ids=str)
def test_no_head_is_above_one_that_every_way_to_it_passes(machine: Machine) -> None:
    """Nobody lends what is not on the shelf yet."""
    heights = {box.name: box.centre[1] for box in layered(drawing(machine)).boxes}
    for before in machine.heads:
        later = machine.heads.keys() - reached_without(machine, before) - {before}
        assert [] == [item for item in later if heights[item] <= heights[before]]
