"""The drawings and tables of the machine are complete and legible, and show only what is declared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from drawings import (
    SVG,
    Box,
    arrow_groups,
    classes,
    collisions,
    ends,
    head_boxes,
    numbers,
    parsed,
    stretches,
    texts,
    things_in,
)
from loops import some

from syncedmem.model import EDITIONS, DeclarationError, Row, configurations, matrix
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.palette import DARK, LIGHT, Palette, Theme
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.mermaid import mermaid
from syncedmem.model.exports.tables import flag_changes, markdown_table
from syncedmem.model.states import stepper

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree import ElementTree as ET

Arrows = dict[tuple[str, str], list[str]]

DRAWINGS = (diagram_svg, mermaid, markdown_table)
NAMES = tuple(EDITIONS)
# Every arrow except the one from UNINITIALIZED to the device.  Every edition with a device has these calls.
EVERYWHERE = (
    "cpu_data cpu_data mutable_cpu_data mutable_gpu_data gpu_data mutable_cpu_data gpu_data mutable_gpu_data "
    "cpu_data cpu_data gpu_data mutable_cpu_data gpu_data set_cpu_data mutable_gpu_data set_cpu_data "
)
LATE = f"{'set_mode(GPU) ' * 1000}{EVERYWHERE * 2}"


def rows(edition: str) -> tuple[Row, ...]:
    """Return the declared rows of an edition."""
    return EDITIONS[edition].rows


def identifiers(edition: str) -> list[str]:
    """Return the identifiers of all transitions of an edition."""
    return [row.identifier(head) for row in rows(edition) for head in row.source]


def declared_arrows(edition: str) -> Arrows:
    """Return the calls from each head to each other head, read from the declared rows."""
    found: Arrows = {}
    for row in rows(edition):
        for head in row.source:
            if row.dest is not None and row.call not in found.setdefault((head, row.dest), []):
                found[head, row.dest].append(row.call)
    return found


def drawn(edition: str = "caffe", missing: str | None = None, *, marks: bool = False) -> ET.Element:
    """Return a drawing as a tree; with `marks`, every transition except `missing` is covered."""
    covered = {name for name in identifiers(edition) if name != missing} if marks else None
    return parsed(diagram_svg(edition, covered=covered))


@pytest.mark.parametrize("draw", DRAWINGS)
def test_default_edition_and_unknown_edition(draw: Callable[..., str]) -> None:
    """The default edition is ``caffe``. An edition that is not declared is refused."""
    assert draw("caffe") == draw()
    assert len(NAMES) == len({draw(edition) for edition in NAMES})
    with pytest.raises(DeclarationError, match="unknown machine 'torch'"):
        draw("torch")


@pytest.mark.parametrize("edition", NAMES)
def test_svg_shows_every_arrow_call_and_note(edition: str) -> None:
    """The SVG has one arrow per pair of heads, every call on its arrows, every refusal, and the destructor."""
    root = drawn(edition)
    arrows = dict(arrow_groups(root))
    assert declared_arrows(edition) == {pair: texts(group, "smd-call") for pair, group in arrows.items()}
    assert set(EDITIONS[edition].heads) == set(head_boxes(root))
    notes = " ".join(texts(root, "smd-note"))
    for row in rows(edition):
        if row.dest is None:
            assert re.search(rf"{row.call}.*{row.refusal or 'the end'}", notes)


def test_svg_notes_and_effects_of_caffe() -> None:
    """For Caffe's edition, the notes and the merged variants of one call are written out here."""
    root = drawn()
    expected = [
        "release in every head: (free), then the end",
        "set_cpu_data(NULL) in every head: refused, null_data",
        "set_gpu_data(NULL) in every head: refused, null_data",
        "async_gpu_push in every head but HEAD_AT_CPU: refused, not_head_at_cpu",
    ]
    assert expected == texts(root, "smd-note")
    arrow = dict(arrow_groups(root))["HEAD_AT_CPU", "SYNCED"]
    expected = ["gpu_data", "(alloc) + copy to GPU", "async_gpu_push", "(alloc) + async copy to GPU"]
    assert expected == texts(arrow, "smd-call", "smd-step")


def test_svg_kinds_differ_in_more_than_colour() -> None:
    """Arrows are grouped by copy direction. Each kind has tips and bullets of its own shape."""
    root = drawn()
    looks = {pair: classes(group[0]) for pair, group in arrow_groups(root)}
    to_gpu = {pair for pair, look in looks.items() if look == ["smd-device"]}
    assert {("HEAD_AT_CPU", "HEAD_AT_GPU"), ("HEAD_AT_CPU", "SYNCED")} == to_gpu
    to_cpu = {pair for pair, look in looks.items() if look == ["smd-host"]}
    assert {("HEAD_AT_GPU", "HEAD_AT_CPU"), ("HEAD_AT_GPU", "SYNCED")} == to_cpu
    keys = [group for group in root.findall(f"{SVG}g") if texts(group, "smd-call")]
    bullets = {group[0].attrib["d"] for group in keys if "data-source" not in group.attrib}
    assert len(bullets) == 4


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
@pytest.mark.parametrize("calls", ["", "all covered", "cpu_data mutable_cpu_data set_cpu_data", EVERYWHERE * 9, LATE])
@pytest.mark.parametrize("edition", NAMES)
def test_svg_nothing_overlaps(edition: str, calls: str, detail: Detail) -> None:
    """Not with guards, with marks, or with the numbers of a long trace that takes nearly every arrow many times."""
    covered = identifiers(edition) if calls == "all covered" else None
    if edition == "cpu_only" and calls in (EVERYWHERE * 9, LATE):
        calls = "cpu_data mutable_cpu_data set_cpu_data " * 40
    trace = trace_of(calls, edition=edition, size=1 << 30) if calls and covered is None else None
    root = parsed(diagram_svg(edition, detail=detail, trace=trace, covered=covered))
    things = things_in(root)
    assert not collisions(things)
    _, _, width, height = numbers(root.attrib["viewBox"])
    assert not [name for name, (x, y, to_x, to_y) in things if min(x, y, width - to_x, height - to_y) < 8]


@pytest.mark.parametrize("edition", NAMES)
def test_svg_arrows_keep_apart(edition: str) -> None:
    """The distance between two arrows is at least 8 units everywhere."""
    grown = [(name, (x - 4, y - 4, to_x + 4, to_y + 4)) for name, (x, y, to_x, to_y) in stretches(drawn(edition))]
    assert not [pair for pair in collisions(grown) if pair[0] != pair[1]]


@pytest.mark.parametrize("edition", NAMES)
def test_svg_tips_are_closed_where_something_is_copied(edition: str) -> None:
    """An arrow that copies ends at the base of a closed tip. Any other arrow ends at the point of an open tip."""
    for _, group in some(arrow_groups(drawn(edition))):
        way, tip = ends(group)
        copies = classes(group[0])[0] in ("smd-device", "smd-host")
        assert copies == list(group.iter(f"{SVG}path"))[1].attrib["d"].endswith("Z")
        assert (8 if copies else 0) == sum(abs(a - b) for a, b in zip(way[-1], tip[1], strict=True))


def test_frames_overlap_nothing() -> None:
    """If nothing is covered, the frames of the warnings do not overlap each other, a head or an arrow."""
    root = parsed(diagram_svg(covered=()))
    frames: list[tuple[str, Box]] = []
    for node in root.iter(f"{SVG}path"):
        if "smd-frame" in classes(node):
            x, y, to_x, to_y, _ = numbers(node.attrib["d"])
            frames.append((f"frame at {x:g},{y:g}", (x, y, to_x, to_y)))
    assert len(texts(root, "smd-call", "smd-note")) - 4 == len(frames)  # the legend has four
    assert not collisions(frames + list(head_boxes(root).items()) + stretches(root))


@pytest.mark.parametrize("edition", NAMES)
def test_svg_arrows_join_the_heads_they_say(edition: str) -> None:
    """Every arrow starts on the border of its source, and its tip is on the border of its destination."""
    root = drawn(edition)
    heads = head_boxes(root)
    for (source, dest), group in some(arrow_groups(root)):
        way, tip = ends(group)
        for head, (x, y) in ((source, way[0]), (dest, tip[1])):
            left, top, right, bottom = heads[head]
            assert left <= x <= right
            assert top <= y <= bottom
            assert x in (left, right) or y in (top, bottom)


def test_svg_is_symmetric() -> None:
    """If Caffe's diamond is mirrored, every arrow lies where the arrow of the other side was."""
    heads, ways = head_boxes(drawn()), [ends(group)[0][:-1] for _, group in arrow_groups(drawn())]
    assert heads["HEAD_AT_CPU"][0] == 600 - heads["HEAD_AT_GPU"][2]
    around = [way for way in ways if len(way) > 2 and way[0][0] not in (285, 315)]
    assert len(around) == 8
    assert {tuple(way) for way in around} == {tuple((600 - x, y) for x, y in way) for way in around}


def test_svg_can_be_inlined_many_times() -> None:
    """The SVG has a name, a description and no id. All its classes have its prefix, and no selector takes others."""
    text, root = diagram_svg(), drawn()
    assert root.get("role") == "img"
    assert [f"{SVG}title", f"{SVG}desc"] == [node.tag for node in root][:2]
    assert "edition caffe" in (root[0].text or "")
    assert " id=" not in text
    assert {True} == {name.startswith("smd") for node in root.iter() for name in classes(node)}
    style = root.findtext(f"{SVG}style") or ""
    selectors = re.sub(r"@supports [^{]*\{|\{[^}]*\}", ",", style).replace("}", ",")
    names = [name.split() for name in selectors.split(",") if name.strip()]
    assert {".smd"} == {name[-1][:4] for name in names}
    assert {True} == {outer.startswith((".smd", "[data-")) for name in names for outer in name[:-1]}


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_svg_is_legible_in_light_and_dark(palette: Palette) -> None:
    """The contrast is 4.5 to 1 for text and 3 to 1 for lines (WCAG AA). Only faint parts may have less."""
    paper = luminance(palette.paper)
    for name, colour in some(item for item in palette._asdict().items() if item[0] not in ("paper", "head", "faint")):
        low, high = sorted((paper, luminance(colour)))
        assert (high + 0.05) / (low + 0.05) >= (4.5 if name in ("ink", "soft", "miss") else 3.0), name


def colours(text: str) -> set[str]:
    """Return the colours in the attributes of a drawing."""
    return {value for value in re.findall(r'(?:fill|stroke)="([^"]*)"', text) if value != "none"}


@pytest.mark.parametrize("detail", Detail)
def test_svg_needs_no_style_to_be_seen(detail: Detail) -> None:
    """Each theme writes its palette into attributes. Only the dark colours of ``AUTO`` need a style sheet."""
    drawings = {theme: diagram_svg(detail=detail, theme=theme) for theme in Theme}
    assert diagram_svg(detail=detail) == drawings[Theme.AUTO]
    for theme, palette in ((Theme.AUTO, LIGHT), (Theme.LIGHT, LIGHT), (Theme.DARK, DARK)):
        assert colours(drawings[theme]) <= set(palette)
        assert palette.paper in colours(drawings[theme])
        assert ("<style>" in drawings[theme]) == (theme is Theme.AUTO)
    assert re.sub(r"<style>.*</style>\n", "", drawings[Theme.AUTO], flags=re.DOTALL) == drawings[Theme.LIGHT]
    assert "var(" not in drawings[Theme.AUTO]
    assert " style=" not in drawings[Theme.AUTO]


def test_svg_colours_have_the_class_that_the_dark_layer_names() -> None:
    """Every colour then changes in dark mode."""
    style = parsed(diagram_svg()).findtext(f"{SVG}style") or ""
    layer = dict(re.findall(r"\.smd \.smd-(\S+)\{\w+:(light-dark\(\S+\))\}", style))
    both = LIGHT._asdict().items(), DARK
    assert layer == {
        f"{use}-{name}": f"light-dark({light},{dark})"
        for (name, light), dark in zip(*both, strict=True)
        for use in ("fill", "stroke")
    }
    for node in parsed(diagram_svg(covered=())).iter():
        for use in ("fill", "stroke"):
            colour = node.get(use, "none")
            named = [look for look in classes(node) if look.startswith(f"smd-{use}-")]
            assert named == ([] if colour == "none" else [f"smd-{use}-{LIGHT._fields[LIGHT.index(colour)]}"])


def test_svg_knows_its_size() -> None:
    """The size is in pixels, and has the proportions of the view box."""
    root = drawn()
    _, _, width, height = numbers(root.attrib["viewBox"])
    assert float(root.attrib["width"]) / width == float(root.attrib["height"]) / height == 1.25


@pytest.mark.parametrize("edition", NAMES)
def test_svg_with_everything_covered(edition: str) -> None:
    """If every transition is covered, every line has a tick, and there is no warning."""
    root = drawn(edition, marks=True)
    marks = [node.text for node in root.iter(f"{SVG}text") if node.text in ("✓", "✗")]
    notes = texts(root, "smd-note")
    assert ["✓"] * (sum(map(len, declared_arrows(edition).values())) + len(notes)) == marks
    assert not [node for node in root.iter() if "smd-miss" in classes(node)]


@pytest.mark.parametrize("missing", identifiers("caffe"))
def test_svg_marks_the_one_that_is_missing(missing: str) -> None:
    """One transition that is not covered puts a cross on its line and a warning on its arrow only."""
    root = drawn(missing=missing, marks=True)
    crossed = [group for group in root.iter(f"{SVG}g") if "✗" in [node.text for node in group]]
    assert len(crossed) == 1
    assert "smd-miss" in classes(crossed[0])
    row, head = next((row, head) for row in rows("caffe") for head in row.source if row.identifier(head) == missing)
    assert texts(crossed[0], "smd-call", "smd-note")[0].startswith(row.call)
    warned = [pair for pair, group in arrow_groups(root) if "smd-miss" in classes(group[0])]
    assert ([] if row.dest is None else [(head, row.dest)]) == warned


def test_svg_with_nothing_covered_is_not_one_without_coverage() -> None:
    """Ticks and crosses appear only if coverage was requested, and an empty collection requests it."""
    marks = {node.text for node in parsed(diagram_svg(covered=())).iter(f"{SVG}text") if node.text in ("✓", "✗")}
    assert {"✗"} == marks
    assert not [mark for mark in ("✓", "✗", "smd-miss") if mark in diagram_svg().split("</style>")[1]]


def cells_of(text: str) -> list[list[str]]:
    """Return the header and the rows of the table in a Markdown text."""
    lines = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert set(lines[1]) == {"---"}
    return [lines[0], *lines[2:]]


@pytest.mark.parametrize("edition", NAMES)
def test_table_has_every_row_of_the_declaration(edition: str) -> None:
    """Each cell has one line per row of its call and head: the actions and the next head, or the refusal in bold."""
    header, *lines = cells_of(markdown_table(edition))
    assert ["call", *EDITIONS[edition].heads] == header
    assert [*EDITIONS[edition].calls] == [line[0] for line in lines]
    cells = {(line[0], head): cell.split("<br>") for line in lines for head, cell in zip(header, line, strict=True)}
    for effect in stepper(EDITIONS[edition]).effects:
        row = effect.row
        steps = ", ".join(row.actions) or "nothing"
        end = f"{steps} → {row.dest or 'the end'}"
        if row.refusal:
            end = f"**refused: {row.refusal}**"
        guards = effect.identifier.partition("[")[2].replace(",", ", ")
        line = f"`[{guards}` {end}" if guards else end
        changed = flag_changes(EDITIONS[edition], effect)
        line += f" ({', '.join(changed)})" if changed else ""
        assert cells[row.call, effect.head].count(line) == 1
    found = sum(len(cell) for (_, head), cell in cells.items() if head != "call")
    assert len(identifiers(edition)) == found


@pytest.mark.parametrize("edition", NAMES)
def test_matrix_has_every_configuration_and_call(edition: str) -> None:
    """The Markdown matrix, read with its own legend, equals the explored matrix."""
    text = markdown_table(edition, detail=Detail.CONFIGURATIONS)
    legend = dict(re.findall(r"`(\S+)` (\w+)", text.splitlines()[-1]))
    header, *lines = cells_of(text)
    calls = stepper(EDITIONS[edition]).inputs(settings=False)
    assert ["configuration", *map(str, calls)] == header
    assert [f"`{configuration}`" for configuration in configurations(EDITIONS[edition])] == [line[0] for line in lines]
    seen: set[str] = set()
    for (before, entries), line in zip(matrix(EDITIONS[edition]).items(), lines, strict=True):
        for call, cell in zip(calls, line[1:], strict=True):
            entry = entries[call]
            if entry.refusal:
                assert f"**refused: {entry.refusal}**" == cell, (before, call)
                continue
            codes, _, after = cell.replace("`", "").partition("→ ")
            assert (entry.actions, str(entry.after)) == (tuple(legend[code] for code in codes.split()), after)
            seen.update(entry.actions)
    assert seen == set(legend.values())
