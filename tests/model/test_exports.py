"""The formats: one registry, every format with every edition, and what is special to drawings and tables."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from exported import exported
from jinja2 import DictLoader, UndefinedError
from machines import DOOR, MSI
from pictured import PICTURED
from programs import program, typeset

from syncedmem.model import (
    EDITIONS,
    InvalidExportError,
    MissingPackageError,
    caffe,
)
from syncedmem.model.caffe import CAFFE
from syncedmem.model.declaration import Call, Machine, Row
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail, Direction, Kind, drawing
from syncedmem.model.diagrams.layered import least_size
from syncedmem.model.diagrams.palette import COLOURS, DARK, LIGHT, Palette, Theme
from syncedmem.model.diagrams.trace import Trace, trace_of
from syncedmem.model.exports import pictures
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.exports.graphviz import dot
from syncedmem.model.exports.mermaid import mermaid
from syncedmem.model.exports.rendering import FOLDER, rendered, templates
from syncedmem.model.exports.tables import html_table, latex_table, markdown_table, rst_table
from syncedmem.model.states import space

PICTURES = ("png", "pdf")
PURE = [name for name in FORMATS if name not in PICTURES]
ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "document-it.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", PURE)
def test_every_format_has_every_edition(name: str, edition: str) -> None:
    """The text is always the same, ends in a newline, and no line ends with a blank."""
    text = export(name, edition=edition)
    assert isinstance(text, str)
    assert text == export(name, edition=edition)
    assert text.endswith("\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


@pytest.mark.parametrize(("name", "detail"), [(name, detail) for name in PURE for detail in FORMATS[name].details])
def test_every_detail_is_another_text(name: str, detail: Detail) -> None:
    text = export(name, detail=detail)
    assert text
    assert (text == export(name)) == (detail is FORMATS[name].details[0])


@pytest.mark.parametrize("name", [name for name in PURE if FORMATS[name].calls])
def test_a_choice_of_calls_leaves_the_others_out(name: str) -> None:
    text = str(export(name, calls=(caffe.GPU_DATA,))).replace(r"\_", "_")
    assert re.search(r"\bgpu_data\b", text)
    assert not re.search(r"\b(mutable_gpu_data|cpu_data|set_cpu_data|async_gpu_push)\b", text)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("jpeg", {}, "unknown format 'jpeg'; there are mermaid, dot"),
        ("c", {"calls": (caffe.CPU_DATA,)}, "the format c cannot show a choice of calls"),
        ("json", {"detail": Detail.HEADS}, "json has no detail heads; it has no details"),
        ("xstate", {"detail": Detail.HEADS}, "xstate has no detail heads; it has configurations, guards"),
        ("mermaid", {"trace": trace_of("cpu_data")}, "mermaid cannot show a trace; these can (--format): svg, "),
        ("html", {"edition": "early", "calls": (caffe.ASYNC_GPU_PUSH,)}, "early has no call 'async_gpu_push'"),
        ("svg", {"calls": (caffe.RELEASE,)}, "svg shows release only as a note, not as an arrow"),
        (
            "svg",
            {"calls": (caffe.GPU_DATA,), "trace": trace_of("set_mode(CPU) gpu_data cpu_data")},
            "the trace calls cpu_data, which is not among the calls to show",
        ),
        ("dot", {"trace": trace_of("cpu_data")}, "the format dot cannot show a trace"),
        ("plantuml", {"theme": Theme.DARK}, "the format plantuml cannot show a theme"),
    ],
)
def test_what_a_format_has_not_is_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidExportError, match=re.escape(message)):
        export(name, **options)  # type: ignore[arg-type]  # options of several types


# --- templates


def test_the_page_has_every_format() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "exports.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(FORMATS) == sorted(name for row in rows[1:] for name in re.findall(r"`([\w-]+)`", row))


def test_a_format_has_a_writer_or_a_template() -> None:
    templates = {f"{name}.{found.extension}.jinja" for name, found in FORMATS.items() if found.write is None}
    assert "c.h.jinja" in templates
    assert templates | {"tla.cfg.jinja"} == {path.name for path in FOLDER.iterdir()}


def test_without_jinja2_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "syncedmem.model.exports.rendering", raising=False)
    with pytest.raises(
        MissingPackageError, match=r"^the format c needs the package jinja2: pip install jinja2 cairosvg$"
    ):
        export("c")
    assert "stateDiagram-v2\n" in str(export("mermaid"))


def test_a_name_that_a_template_cannot_know_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = templates()
    monkeypatch.setattr(environment, "loader", DictLoader({"wrong": "${drawing(edition).title} ${misspelt}"}))
    with pytest.raises(UndefinedError, match="'misspelt' is undefined"):
        rendered("wrong", "caffe", (), None)


# --- text


def test_a_diagram_of_text_spelt_out() -> None:
    trace = trace_of("open close", edition=DOOR)
    assert """door

SHUT (at first)
  close           creak + ring
  open   -> OPEN  [!locked]

OPEN
  close  -> SHUT  creak + ring

open [locked] in every head but OPEN: refused, no_key
[guard]: only if it holds, [!guard]: only if it does not

1. open [!locked]: SHUT → OPEN, nothing
2. close: OPEN → SHUT, creak + ring
""" == export("text", edition=DOOR, trace=trace)


# --- what every drawing shows


@pytest.mark.parametrize("edition", EDITIONS)
def test_guards_are_told_apart(edition: str) -> None:
    """At the detail of guards, every row that leads to a head has its own line, with all its steps."""
    steps = 0
    for edge in drawing(edition, detail=Detail.GUARDS).edges:
        for line in edge.lines:
            assert len(line.steps) in (0, 1, len(line.identifiers))
            assert not [step for step in line.steps if step.startswith("(")]
            steps += len(line.identifiers)
    rows = EDITIONS[edition].rows
    assert steps == sum(len(row.source) for row in rows if row.dest is not None)


def test_a_drawing_of_one_call_has_its_notes_alone() -> None:
    assert [note.text for note in drawing(calls=(caffe.RELEASE,)).notes] == [
        "release in every head: (free), then the end"
    ]
    assert drawing(calls=(caffe.CPU_DATA,)).notes == ()
    alone = ["    note right of UNINITIALIZED", "        (step) depends on a guard", "    end note"]
    assert alone == mermaid(calls=(caffe.CPU_DATA,)).splitlines()[-3:]
    assert "note" not in mermaid(calls=(caffe.CPU_DATA,), detail=Detail.CONFIGURATIONS)
    assert ["note right of state0", alone[1].strip(), "end note"] == [
        line.strip() for line in exported("plantuml", calls=(caffe.CPU_DATA,)).splitlines()[-4:-1]
    ]


def test_the_end_has_the_name_that_it_has_in_the_machine() -> None:
    door = Machine(
        "door", [Row("open", "A", "B"), Row("leave", ["A", "B"])], calls=[Call("open"), Call("leave", "release")]
    )
    drawn = exported("plantuml", edition=door)
    assert ["state0 --> [*] : leave", "state1 --> [*] : leave"] == [
        line for line in drawn.splitlines() if "> [*]" in line
    ]


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("name", ["mermaid", "plantuml"])
def test_text_has_every_edge_and_line(name: str, detail: Detail) -> None:
    """Both have an arrow per edge and an initial one, and each call; PlantUML has arrows to the end too."""
    drawn, text = drawing(detail=detail), exported(name, detail=detail)
    ends = len(drawn.nodes) if name == "plantuml" else 0
    assert len(drawn.edges) + 1 + ends == len(re.findall(r"-->", text))
    assert text.count("--> [*] : release") == ends
    found = re.findall(r"-->.* : (.*)", text)
    lines = [re.split(r"<br/>|\\n", label) for label in found if label != "release"]
    assert [list(edge.labels) for edge in drawn.edges] == lines
    assert [note.text for note in drawn.notes if note.text not in text.replace("\\n", "")] == []


def test_labels_are_those_of_uml() -> None:
    """Guards are in square brackets, actions follow a slash, and calls that do the same share a line."""
    edges = {(edge.source, edge.dest): edge.labels for edge in drawing(detail=Detail.GUARDS).edges}
    assert edges["UNINITIALIZED", "HEAD_AT_CPU"] == (
        "cpu_data, mutable_cpu_data / alloc + zero",
        "set_cpu_data / adopt",
    )
    assert edges["HEAD_AT_GPU", "SYNCED"] == (
        "cpu_data [!has_cpu_pointer] / alloc + copy to CPU",
        "cpu_data [has_cpu_pointer] / copy to CPU",
    )
    assert edges["SYNCED", "SYNCED"] == ("cpu_data, gpu_data",)
    for detail in Detail:
        for edge in drawing(detail=detail).edges:
            called = [name for label in edge.labels for name in re.split(r" \[| / ", label)[0].split(", ")]
            assert {line.call for line in edge.lines} == set(called)


def test_names_of_configurations_are_identifiers_in_mermaid() -> None:
    text = mermaid(detail=Detail.CONFIGURATIONS)
    assert 'state "C:o-" as C_on' in text
    assert not [line for line in text.splitlines() if "-->" in line and re.search(r"^\s*\w:", line)]


# --- Graphviz


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("detail", Detail)
def test_graphviz_draws_every_node_and_edge(edition: str, detail: Detail) -> None:
    source = dot(edition, detail=detail).encode()
    done = subprocess.run([program("dot"), "-Tsvg"], input=source, capture_output=True, check=True)
    root = ET.fromstring(done.stdout)  # noqa: S314 -- from Graphviz
    drawn = drawing(edition, detail=detail)
    arrows = [text for node in root.iter(f"{SVG}title") if "->" in (text := node.text or "")]
    assert sorted([f"->{drawn.nodes[0].name}", *(f"{edge.source}->{edge.dest}" for edge in drawn.edges)]) == sorted(
        arrows
    )
    words = [node.text for node in root.iter(f"{SVG}text")]
    said = [drawn.title, *(node.name for node in drawn.nodes), *(text for edge in drawn.edges for text in edge.labels)]
    assert not [text for text in (*said, *(note.text for note in drawn.notes)) if text not in words]


STARTS = {"png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.deep
@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("detail", Detail)
def test_cairo_makes_the_picture_that_the_svg_is(kind: str, detail: Detail) -> None:
    found = export(kind, detail=detail)
    assert isinstance(found, bytes)
    assert found.startswith(STARTS[kind])
    if kind == "png":
        root = ET.fromstring(str(export("svg", detail=detail)))  # noqa: S314 -- our own
        wide, high = struct.unpack(">II", found[16:24])
        assert abs(wide - 2 * float(root.attrib["width"])) <= 1
        assert abs(high - 2 * float(root.attrib["height"])) <= 1


@pytest.mark.deep
@pytest.mark.parametrize(("theme", "palette"), [(Theme.AUTO, LIGHT), (Theme.LIGHT, LIGHT), (Theme.DARK, DARK)])
def test_pixels_have_the_colours_of_the_theme(theme: Theme, palette: Palette) -> None:
    """The painter is not a browser. The test checks that the picture is not blank and that no style is missing."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
    found = export("png", edition="caffe", theme=theme)
    assert isinstance(found, bytes)
    picture = image.open(io.BytesIO(found)).convert("RGB")
    counts = {f"#{bytes(colour).hex()}": count for count, colour in picture.getcolors(1 << 24)}
    assert max(counts, key=lambda colour: counts[colour]) == palette.paper
    assert {palette.ink, palette.soft, palette.head, palette.device, palette.host, palette.adopt} <= set(counts)
    assert "#000000" not in counts


@pytest.mark.deep
def test_a_trace_that_is_too_long_for_pixels_is_refused() -> None:
    """A trace with one call fewer is painted."""
    at_heads = diagram_svg(trace=trace_of("cpu_data"))
    height = re.search(r' height="([\d.]+)"', at_heads)
    assert height
    most = 1 + int((32_767 / 2 - float(height[1])) / 25)
    with pytest.raises(InvalidExportError, match=r"at most 32,767 pixels .* would have 32,7"):
        export("png", trace=trace_of("cpu_data " * (most + 1)))
    assert export("png", trace=trace_of("cpu_data " * most))


def test_a_machine_that_is_too_large_for_pixels_is_refused_before_it_is_laid_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pictures, "diagram_svg", None)
    chain = Machine("chain", [Row("go", f"S{k}", f"S{k + 1}") for k in range(500)])
    with pytest.raises(InvalidExportError, match=r"at most 32,767 pixels .* at least \d\d,\d\d\d"):
        export("png", edition=chain)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("machine", [*PICTURED, MSI], ids=str)
def test_a_layout_is_as_large_as_was_said_before(machine: Machine, direction: Direction) -> None:
    size = re.findall(r' (?:width|height)="([\d.]+)"', diagram_svg(machine, direction=direction))[:2]
    assert least_size(drawing(machine)) <= max(map(float, size))


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
def test_letters_are_as_large_in_a_paper_as_the_guide_says(detail: Detail) -> None:
    """The guide states them in points, for a drawing that is scaled to a width in millimetres."""
    text = diagram_svg(detail=detail)
    smallest = min(int(size) for size in re.findall(r'font-size="(\d+)"', text))
    box = re.search(r'viewBox="0 0 (\d+) ', text)
    assert box
    found = [f"{smallest / int(box[1]) * width / 25.4 * 72:.1f}" for width in (170, 257, 400)]
    assert f"| {detail} | {' | '.join(found)} |" in GUIDE


@pytest.mark.parametrize("kind", PICTURES)
def test_without_cairosvg_an_error_says_what_to_install(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingPackageError, match=rf"^the format {kind} needs the package cairosvg: pip install"):
        export(kind)


def test_without_its_library_cairosvg_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cairosvg.py").write_text("raise OSError('no library called cairo was found')", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    with pytest.raises(InvalidExportError, match="png needs the C library cairo"):
        export("png")


# --- tables


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS, Detail.CONFIGURATIONS])
def test_markups_say_the_same(detail: Detail) -> None:
    """Without its markup, each format has the words of the Markdown table, in the same order."""
    words = [re.findall(r"[^\s|`*<>]+", re.sub(r"<[^>]+>|---|[|`]", " ", _bare(markdown_table(detail=detail))))]
    html = re.sub(r"<caption>.*</caption>", "", html_table(detail=detail))
    words.append(_bare(re.sub(r"<[^>]+>", " ", html)).split())
    rst = re.sub(r"^ *(\* )?- |^\.\. list-table::|^ +:.*$|\| |``", " ", rst_table(detail=detail), flags=re.MULTILINE)
    words.append(_bare(re.sub(r"^   \* -", "", rst, flags=re.MULTILINE)).split())
    lines = [line for line in latex_table(detail=detail).splitlines() if not re.match(r"%|{\\let|}$|.*tabularx", line)]
    latex = "\n".join(lines).replace("\\_", "_").replace("$\\to$~", "→ ").replace("\\allowbreak", "")
    words.append(_bare(re.sub(r"\\text(tt|bf)|\\newline|\\hline|\\\\(\[2pt\])?|[{}&]", " ", latex)).split())
    assert words[0] == words[1] == words[2] == words[3]


def test_no_line_of_a_table_in_latex_ends_with_an_arrow() -> None:
    """Nothing after it is a place to break."""
    text = latex_table()
    assert "\\to" in text
    assert not re.search(r"\\to\$[^~]", text)


@pytest.mark.deep
@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS, Detail.CONFIGURATIONS])
def test_latex_fits_the_width_of_a_page(detail: Detail, tmp_path: Path) -> None:
    said = typeset(tmp_path, latex_table(detail=detail), paper="portrait", size="footnotesize", margin="2cm")
    assert "Overfull" not in said


def test_what_tex_would_take_for_itself_is_escaped() -> None:
    odd = Machine("odd", [Row("50% & $x_1", "A", "B"), Row("#2 {~^}\\", "B", "A")])
    text = latex_table(odd).replace("\\allowbreak", "").replace(" ", "")
    assert r"50\%\&\$x\_1" in text
    assert r"\#2\{\textasciitilde{}\textasciicircum{}\}\textbackslash{}" in text


def _bare(text: str) -> str:
    return text.replace("**", " ").replace("*", " ").replace("&gt;", ">")


def test_html_is_well_formed_and_has_scopes() -> None:
    root = ET.fromstring(f"<div>{html_table(detail=Detail.CONFIGURATIONS)}</div>")  # noqa: S314 -- our own
    assert {"col": 10, "row": 17} == {scope: len(root.findall(f".//th[@scope='{scope}']")) for scope in ("col", "row")}
    assert len(root.findall(".//td")) == 153


def test_flags_that_change_are_said() -> None:
    table = markdown_table(calls=("cpu_data", "set_gpu_data", "gpu_data"))
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in table.splitlines()}
    assert rows["cpu_data"][1].endswith("(+own_cpu_data, cpu_malloc_use_cuda by mode)")
    assert "(-own_gpu_data)" in rows["set_gpu_data"][4]
    assert "(" not in rows["gpu_data"][4]


# --- traces


def test_a_trace_says_what_it_copies() -> None:
    trace = trace_of("cpu_data gpu_data mutable_gpu_data cpu_data set_cpu_data(NULL) release", size=4096)
    assert trace.lines() == (
        "1. cpu_data: UNINITIALIZED → HEAD_AT_CPU, alloc + zero",
        "2. gpu_data: HEAD_AT_CPU → SYNCED, alloc + copy to GPU, 4,096 bytes",
        "3. mutable_gpu_data: SYNCED → HEAD_AT_GPU, nothing",
        "4. cpu_data: HEAD_AT_GPU → SYNCED, copy to CPU, 4,096 bytes",
        "5. set_cpu_data(NULL) in SYNCED: refused, null_data",
        "6. release: SYNCED → the end, free CPU + free GPU",
        "Copied: 4,096 bytes to GPU, 4,096 bytes to CPU.",
    )
    assert (trace.total("cpu"), trace.total("gpu")) == (4096, 4096)
    assert trace.numbers_of(["gpu_data@HEAD_AT_CPU[!has_gpu_pointer]"], "C:o-") == [2]


@pytest.mark.parametrize(
    ("calls", "size", "lines"),
    [
        ("cpu_data gpu_data", 0, ["copy to GPU, 0 bytes", "Copied: 0 bytes to GPU, 0 bytes to CPU."]),
        ("cpu_data gpu_data", 1, ["copy to GPU, 1 byte", "Copied: 1 byte to GPU, 0 bytes to CPU."]),
        ("cpu_data gpu_data", None, ["copy to GPU, all bytes", "Copied: all bytes to GPU, nothing to CPU."]),
        (
            "mutable_cpu_data gpu_data mutable_cpu_data gpu_data",
            None,
            [
                "copy to GPU, all bytes",
                "nothing",
                "copy to GPU, all bytes",
                "all bytes 2 times to GPU, nothing to CPU.",
            ],
        ),
    ],
)
def test_a_trace_says_how_much_it_copies_as_far_as_its_size_is_known(
    calls: str, size: int | None, lines: list[str]
) -> None:
    trace = trace_of(calls, size=size)
    assert [True] * len(lines) == [said.endswith(end) for said, end in zip(trace.lines()[1:], lines, strict=True)]
    if size is None:
        with pytest.raises(InvalidExportError, match="depends on its size"):
            trace.total("gpu")
    else:
        assert trace.total("gpu") == size


def test_a_call_is_named_with_its_first_step() -> None:
    """An ellipsis says that there are later steps. There is room for the longest number."""
    trace = trace_of("gpu_data " * 200)
    assert trace.numbered("gpu_data", trace.numbers_of(["gpu_data@UNINITIALIZED"], "UNINITIALIZED")) == "1: gpu_data"
    assert trace.numbered("gpu_data", trace.numbers_of(["gpu_data@HEAD_AT_GPU"], "HEAD_AT_GPU")) == "2…: gpu_data"
    assert trace.numbers_of(["gpu_data@HEAD_AT_GPU"], "UNINITIALIZED") == []
    assert trace.numbered("gpu_data", []) == "gpu_data"
    assert trace.numbered("gpu_data", [13, 14]) == "13…: gpu_data"
    assert trace.room == len("200…: ")


def first_on_a_way(trace: Trace, detail: Detail) -> set[int]:
    """Return the numbers of the first step on each drawn line."""
    found: dict[object, int] = {}
    for number, step in enumerate(trace.steps, 1):
        states = (step.before, step.after)
        configurations = tuple(map(space(CAFFE).configuration, states))
        drawn = configurations if detail is Detail.CONFIGURATIONS else tuple(state.head for state in states)
        found.setdefault((step.input, drawn), number)
    return set(found.values())


@pytest.mark.parametrize("detail", Detail)
def test_every_step_is_found_in_the_drawing(detail: Detail) -> None:
    """The list names the states that are drawn, every call has its number, and the legend explains the numbers."""
    calls = "cpu_data gpu_data set_gpu_data cpu_data set_cpu_data gpu_data mutable_gpu_data mutable_cpu_data"
    trace = trace_of(f"{calls} " * 5, size=8)
    text = str(export("svg", trace=trace, detail=detail))
    start, end = ("S:ee", "G:ee") if detail is Detail.CONFIGURATIONS else ("SYNCED", "HEAD_AT_GPU")
    assert f"19. set_gpu_data: {start} → {end}, " in text
    assert "3…: and later ones" in text
    assert "3…: and later ones" not in str(export("svg", detail=detail))
    assert not re.search(r"[^\d]…: ", text)
    assert {int(number) for number in re.findall(r">(\d+)…?: [a-z]+_", text)} == first_on_a_way(trace, detail)


@pytest.mark.parametrize("format_", ["svg", "dot"])
@pytest.mark.parametrize("detail", Detail)
def test_a_step_in_brackets_is_explained(detail: Detail, format_: str) -> None:
    text = str(export(format_, detail=detail))
    assert "(free)" in text
    assert "(step) depends on a guard" in text


@pytest.mark.parametrize(
    ("calls", "size", "message"),
    [
        ("cpu_data gpu_dat", 0, "'gpu_dat' is not a call of caffe; its calls are cpu_data"),
        ("release cpu_data", 0, "release is the end, and cpu_data follows it"),
        ("cpu_data", -1, "a memory has at least 0 bytes, got -1"),
        (" , ", 0, "a trace has at least one call, got none"),
    ],
)
def test_what_is_no_trace_is_refused(calls: str, size: int, message: str) -> None:
    with pytest.raises(InvalidExportError, match=re.escape(message)):
        trace_of(calls, size=size)


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
def test_a_trace_is_drawn_as_a_way(detail: Detail) -> None:
    """In the SVG, the arrows of the trace are marked and numbered, and all others are faint."""
    trace = trace_of("cpu_data gpu_data cpu_data", size=64)
    root = ET.fromstring(str(export("svg", trace=trace, detail=detail)))  # noqa: S314 -- our own
    arrows = [node for node in root.iter(f"{SVG}g") if "data-source" in node.attrib]
    taken = {
        (arrow.attrib["data-source"], arrow.attrib["data-dest"])
        for arrow in arrows
        if "smd-taken" in arrow[0].attrib["class"]
    }
    ways = {("UNINITIALIZED", "HEAD_AT_CPU"), ("HEAD_AT_CPU", "SYNCED"), ("SYNCED", "SYNCED")}
    assert ways == taken
    assert len(arrows) - len(ways) == sum("smd-faint" in arrow[0].attrib["class"] for arrow in arrows)
    texts = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert {"1: cpu_data", "2: gpu_data", "3: cpu_data"} <= set(texts)
    assert texts[-1] == "Copied: 64 bytes to GPU, 0 bytes to CPU."


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize(("calls", "kind"), [("set_gpu_data", Kind.ADOPT), ("mutable_gpu_data", Kind.DEVICE)])
def test_an_arrow_of_a_trace_looks_like_what_was_taken_on_it(calls: str, kind: Kind, detail: Detail) -> None:
    """Its colour and its tip show the step of the trace, and not a copy that another call makes on this arrow."""
    trace = trace_of(f"cpu_data {calls}")
    root = ET.fromstring(str(export("svg", trace=trace, detail=detail)))  # noqa: S314 -- our own
    ways = [node[0] for node in root.iter(f"{SVG}g") if "data-source" in node.attrib]
    taken = [way for way in ways if "smd-taken" in way.attrib["class"]]
    assert [way.attrib["class"] for way in taken] == ["smd-none smd-taken", f"smd-{kind.name.lower()} smd-taken"]
    assert {path.attrib["stroke"] for path in taken[1]} == {getattr(LIGHT, COLOURS[kind])}


@pytest.mark.parametrize("detail", Detail)
def test_a_step_of_a_trace_is_marked_by_what_it_copies(detail: Detail) -> None:
    """The rows below the drawing have the bullets of the legend: the side that is copied to, or another kind."""
    calls = "cpu_data gpu_data mutable_gpu_data cpu_data set_cpu_data set_cpu_data(NULL) release"
    root = ET.fromstring(str(export("svg", trace=trace_of(calls), detail=detail)))  # noqa: S314 -- our own
    groups = [node for node in root.findall(f"{SVG}g") if "data-source" not in node.attrib]
    marks = {(node[-1].text or ""): [path.attrib["d"] for path in node.findall(f"{SVG}path")] for node in groups}
    listed = {text[0]: marks[text] for text in marks if text[1:3] == ". "}
    nothing, to_gpu, to_cpu, adopted = (
        marks[kind.said(CAFFE)] for kind in (Kind.NONE, Kind.DEVICE, Kind.HOST, Kind.ADOPT)
    )
    assert [listed[number] for number in "12345"] == [nothing, to_gpu, nothing, to_cpu, adopted]
    assert len({str(listed[number]) for number in "1567"}) == 4
    assert marks["Copied: all bytes to GPU, all bytes to CPU."] == []


def test_coverage_of_configurations_is_not_drawn() -> None:
    with pytest.raises(InvalidExportError, match="coverage is shown for heads and guards"):
        diagram_svg(detail=Detail.CONFIGURATIONS, covered=())
