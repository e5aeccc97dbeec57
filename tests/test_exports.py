"""The formats: one registry, every format with every edition, and what only the drawings and tables have."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest
from programs import program

from syncedmem.model import (
    EDITIONS,
    Action,
    Call,
    InvalidExportError,
    MissingProgramError,
    SyncedHead,
    configurations,
    matrix,
)
from syncedmem.model.drawing import Detail, Kind, drawing
from syncedmem.model.editions import head_machine
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.exports.graphviz import dot, laid_out
from syncedmem.model.exports.plantuml import plantuml
from syncedmem.model.exports.tabular import csv_table, html_table, rst_table
from syncedmem.model.exports.trace import trace_of
from syncedmem.model.exports.vocabulary import Host
from syncedmem.model.mermaid import mermaid
from syncedmem.model.tables import markdown_table

PURE = [name for name in FORMATS if name != "png"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", PURE)
def test_every_format_has_every_edition(name: str, edition: str) -> None:
    """The same text every time, ending in a newline, without a blank at the end of a line."""
    text = export(name, edition=edition)
    assert isinstance(text, str)
    assert text == export(name, edition=edition)
    assert text.endswith("\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


@pytest.mark.parametrize("name", PURE)
def test_caffe_is_the_edition_unless_another_is_named(name: str) -> None:
    same = export(name) == export(name, edition="caffe")
    assert same == (name != "json")


@pytest.mark.parametrize(("name", "detail"), [(name, it) for name in PURE for it in FORMATS[name].details])
def test_every_detail_is_another_text(name: str, detail: Detail) -> None:
    if (name, detail) == ("svg", Detail.CONFIGURATIONS):
        program("dot")
    text = export(name, detail=detail)
    assert text
    assert (text == export(name)) == (detail is FORMATS[name].details[0])


@pytest.mark.parametrize("name", [name for name, found in FORMATS.items() if found.calls and name != "png"])
def test_a_choice_of_calls_leaves_the_others_out(name: str) -> None:
    text = str(export(name, calls=(Call.GPU_DATA,)))
    assert re.search(r"\bgpu_data\b", text)
    assert not re.search(r"\b(mutable_gpu_data|cpu_data|set_cpu_data|async_gpu_push)\b", text)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gif", {}, "unknown format 'gif'; there are mermaid, dot"),
        ("c", {"calls": (Call.CPU_DATA,)}, "c has no choice of calls"),
        ("json", {"detail": Detail.HEADS}, "json has no detail heads; it has none"),
        ("scxml", {"detail": Detail.HEADS}, "scxml has no detail heads; there are guards, configurations"),
        ("mermaid", {"trace": trace_of("cpu_data")}, "mermaid has no trace"),
        ("csv", {"edition": "early", "calls": (Call.ASYNC_GPU_PUSH,)}, "edition early has no call 'async_gpu_push'"),
        ("svg", {"calls": (Call.RELEASE,)}, "svg has no arrow for release, only a note"),
        (
            "dot",
            {"calls": (Call.GPU_DATA,), "trace": trace_of("set_mode(CPU) gpu_data cpu_data")},
            "the trace has cpu_data, which is not among the calls to show",
        ),
    ],
)
def test_what_a_format_has_not_is_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidExportError, match=re.escape(message)):
        export(name, **options)  # type: ignore[arg-type]  # options of several types


# --- what every drawing says


@pytest.mark.parametrize("edition", EDITIONS)
def test_guards_are_told_apart(edition: str) -> None:
    """At the detail of guards every row that leads somewhere stands for itself, with all it does."""
    steps = 0
    for edge in drawing(edition, detail=Detail.GUARDS).edges:
        for line in edge.lines:
            assert len(line.steps) in (0, 1, len(line.identifiers))
            assert not [step for step in line.steps if step.startswith("(")]
            steps += len(line.identifiers)
    rows = head_machine(edition).declaration.rows
    assert steps == sum(len(row.source) for row in rows if row.dest is not None)


@pytest.mark.parametrize("edition", EDITIONS)
def test_configurations_are_drawn_as_they_are_reached(edition: str) -> None:
    drawn = drawing(edition, detail=Detail.CONFIGURATIONS)
    assert [str(it) for it in configurations(edition)] == [node.name for node in drawn.nodes]
    expected = {
        (str(before), str(asked), str(entry.after))
        for before, row in matrix(edition).items()
        for asked, entry in row.items()
        if entry.refusal is None
    }
    assert expected == {(edge.source, line.call, edge.dest) for edge in drawn.edges for line in edge.lines}
    assert len({(edge.source, edge.dest) for edge in drawn.edges}) == len(drawn.edges)


def test_an_edge_has_the_kind_of_its_first() -> None:
    edges = {(edge.source, edge.dest): edge for edge in drawing().edges}
    assert edges["HEAD_AT_CPU", "HEAD_AT_GPU"].kind is Kind.GPU
    assert edges["SYNCED", "SYNCED"].kind is Kind.NONE


def test_a_drawing_of_one_call_has_its_notes_alone() -> None:
    assert [note.text for note in drawing(calls=(Call.RELEASE,)).notes] == [
        "release in every head: (free), then the end"
    ]
    assert drawing(calls=(Call.CPU_DATA,)).notes == ()
    assert "note" not in mermaid(calls=(Call.CPU_DATA,))
    assert "note" not in plantuml(calls=(Call.CPU_DATA,))


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("write", [mermaid, plantuml])
def test_text_has_every_edge_and_line(write: type, detail: Detail) -> None:
    """Both languages have an arrow per edge, an initial one, and one to the end from every node."""
    drawn, text = drawing(detail=detail), write(detail=detail)
    assert len(drawn.edges) + 1 + len(drawn.nodes) == len(re.findall(r"-->", text))
    assert text.count("--> [*] : release") == len(drawn.nodes)
    calls = sum(len(edge.lines) for edge in drawn.edges)
    assert calls == len(re.findall(r"(?:: |<br/>|\\n)(?:\w+_data|async_gpu_push)(?=<br/>|\\n|$)", text, re.MULTILINE))


def test_names_of_configurations_are_identifiers_in_mermaid() -> None:
    text = mermaid(detail=Detail.CONFIGURATIONS)
    assert 'state "C:o-" as C_on' in text
    assert not [line for line in text.splitlines() if "-->" in line and re.search(r"^\s*\w:", line)]


# --- Graphviz


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("detail", Detail)
def test_graphviz_draws_every_node_and_edge(edition: str, detail: Detail) -> None:
    program("dot")
    root = ET.fromstring(laid_out(dot(edition, detail=detail), "svg"))  # noqa: S314 -- from Graphviz
    titles = [node.text or "" for node in root.iter(f"{SVG}title")]
    drawn = drawing(edition, detail=detail)
    assert {node.name for node in drawn.nodes} <= set(titles)
    assert len(drawn.edges) == sum("->" in title for title in titles) - 1


def test_png_is_made_by_graphviz() -> None:
    program("dot")
    found = export("png", detail=Detail.GUARDS, calls=(Call.CPU_DATA,))
    assert isinstance(found, bytes)
    assert found.startswith(b"\x89PNG")


def test_graphviz_has_the_places_of_the_diamond() -> None:
    """CPU and GPU as far from the middle, on one level."""
    places = dict(re.findall(r'"(\w+)" \[pos="(-?\d+,-?\d+)"', dot()))
    (left, level), (right, other) = (
        tuple(map(int, places[name].split(","))) for name in ("HEAD_AT_CPU", "HEAD_AT_GPU")
    )
    middle = int(places["SYNCED"].split(",")[0])
    assert level == other
    assert middle - left == right - middle


def test_without_graphviz_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_name: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", nowhere)
    with pytest.raises(MissingProgramError, match="a picture as png by Graphviz needs the program dot"):
        export("png")


def test_what_is_no_dot_is_refused_by_graphviz() -> None:
    program("dot")
    with pytest.raises(subprocess.CalledProcessError):
        laid_out("graph {", "svg")


# --- tables


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS, Detail.CONFIGURATIONS])
def test_markups_say_the_same(detail: Detail) -> None:
    """Without its marks each markup has the words of the Markdown table, in order."""
    words = [re.findall(r"[^\s|`*<>]+", re.sub(r"<[^>]+>|---|[|`]", " ", _bare(markdown_table(detail=detail))))]
    html = re.sub(r"<caption>.*</caption>", "", html_table(detail=detail))
    words.append(_bare(re.sub(r"<[^>]+>", " ", html)).split())
    rst = re.sub(r"^ *(\* )?- |^\.\. list-table::|^ +:.*$|\| |``", " ", rst_table(detail=detail), flags=re.MULTILINE)
    words.append(_bare(re.sub(r"^   \* -", "", rst, flags=re.MULTILINE)).split())
    assert words[0] == words[1] == words[2]


def _bare(text: str) -> str:
    return text.replace("**", " ").replace("*", " ").replace("&gt;", ">")


def test_html_is_well_formed_and_has_scopes() -> None:
    root = ET.fromstring(f"<div>{html_table(detail=Detail.CONFIGURATIONS)}</div>")  # noqa: S314 -- our own
    assert {"col": 10, "row": 17} == {scope: len(root.findall(f".//th[@scope='{scope}']")) for scope in ("col", "row")}
    assert len(root.findall(".//td")) == 153


@pytest.mark.parametrize("edition", EDITIONS)
def test_csv_has_every_transition_and_cell(edition: str) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(edition))))
    declared = {row.identifier(head): row for row in head_machine(edition).declaration.rows for head in row.source}
    assert list(declared) == [row["id"] for row in rows]
    for row in rows:
        found = declared[row["id"]]
        assert [action.value for action in found.actions] == row["actions"].split()
        assert (found.dest.name if found.dest else "", found.cite) == (row["next"], row["cite"])
    cells = list(csv.DictReader(io.StringIO(csv_table(edition, detail=Detail.CONFIGURATIONS))))
    assert sum(map(len, matrix(edition).values())) == len(cells)
    assert {cell["next"] for cell in cells} == {str(it) for it in configurations(edition)}
    few = csv_table(edition, calls=(Call.SET_CPU_DATA,), detail=Detail.CONFIGURATIONS)
    assert {"set_cpu_data", "set_cpu_data(NULL)"} == {row["call"] for row in csv.DictReader(io.StringIO(few))}


def test_flags_that_change_are_said() -> None:
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(csv_table()))}
    assert rows["cpu_data@UNINITIALIZED"]["flags"] == "+own_cpu_data; cpu_malloc_use_cuda by mode"
    assert rows["set_gpu_data@SYNCED[has_data,own_gpu_data]"]["flags"] == "-own_gpu_data"
    assert rows["gpu_data@SYNCED"]["flags"] == ""


# --- traces


def test_a_trace_says_what_it_copies() -> None:
    trace = trace_of("cpu_data gpu_data mutable_gpu_data cpu_data set_cpu_data(NULL) release", size=4096)
    assert trace.lines() == (
        "1. cpu_data: UNINITIALIZED → HEAD_AT_CPU, alloc + zero",
        "2. gpu_data: HEAD_AT_CPU → SYNCED, alloc + copy to GPU, 4,096 bytes",
        "3. mutable_gpu_data: SYNCED → HEAD_AT_GPU, nothing",
        "4. cpu_data: HEAD_AT_GPU → SYNCED, copy to CPU, 4,096 bytes",
        "5. set_cpu_data(NULL) in SYNCED: refused, null_data",
        "6. release: SYNCED → the end, free",
        "Copied: 4,096 bytes to GPU, 4,096 bytes to CPU.",
    )
    assert (trace.total(Host.CPU), trace.total(Host.GPU)) == (4096, 4096)
    assert trace.numbers_of(["gpu_data@HEAD_AT_CPU[!has_gpu_pointer]"], "C:o-") == [2]


def test_a_call_is_named_with_its_first_step() -> None:
    """And with an ellipsis where there are more, or where there is no room."""
    trace = trace_of("gpu_data " * 200)
    assert trace.named("gpu_data", ["gpu_data@UNINITIALIZED"], "UNINITIALIZED") == "1: gpu_data"
    assert trace.named("gpu_data", ["gpu_data@HEAD_AT_GPU"], "HEAD_AT_GPU") == "2…: gpu_data"
    assert trace.named("gpu_data", ["gpu_data@HEAD_AT_GPU"], "UNINITIALIZED") == "gpu_data"
    late = trace_of("cpu_data " * 11 + "gpu_data gpu_data gpu_data")
    assert late.named("gpu_data", ["gpu_data@SYNCED"], "SYNCED") == "…: gpu_data"


def test_a_change_of_mode_is_a_step() -> None:
    first, second = trace_of(["set_mode(CPU)", "cpu_data"]).steps
    assert (first.identifier, first.actions, second.before.mode.name) == ("", (), "CPU")
    assert second.after.head is SyncedHead.HEAD_AT_CPU
    assert Action.ALLOCATE_CPU in second.actions


@pytest.mark.parametrize(
    ("calls", "size", "message"),
    [
        ("cpu_data gpu_dat", 0, "'gpu_dat' is no call of edition caffe; there are cpu_data"),
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
    """In the SVG the arrows that it takes are marked and numbered, and all others are faint."""
    trace = trace_of("cpu_data gpu_data cpu_data", size=64)
    root = ET.fromstring(str(export("svg", trace=trace, detail=detail)))  # noqa: S314 -- our own
    arrows = [node for node in root.iter(f"{SVG}g") if "data-source" in node.attrib]
    taken = {
        (it.attrib["data-source"], it.attrib["data-dest"]) for it in arrows if "smd-taken" in it[0].attrib["class"]
    }
    ways = {("UNINITIALIZED", "HEAD_AT_CPU"), ("HEAD_AT_CPU", "SYNCED"), ("SYNCED", "SYNCED")}
    assert ways == taken
    assert len(arrows) - len(ways) == sum("smd-faint" in it[0].attrib["class"] for it in arrows)
    texts = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert {"1: cpu_data", "2: gpu_data", "3: cpu_data"} <= set(texts)
    assert texts[-1] == "Copied: 64 bytes to GPU, 0 bytes to CPU."


@pytest.mark.parametrize("detail", Detail)
def test_a_trace_is_drawn_by_graphviz(detail: Detail) -> None:
    text = dot(detail=detail, trace=trace_of("gpu_data gpu_data", size=8))
    assert text.count("penwidth=3") == 2
    assert "1: gpu_data" in text
    assert "2: gpu_data" in text


def test_the_diamond_has_no_configurations() -> None:
    from syncedmem.model.diamond import diamond_svg

    with pytest.raises(InvalidExportError, match="no configurations"):
        diamond_svg(detail=Detail.CONFIGURATIONS)


def test_json_of_an_edition_is_that_alone() -> None:
    assert len(json.loads(str(export("json")))["editions"]) == len(EDITIONS)
    assert len(json.loads(str(export("json", edition="early")))["editions"]) == 1
