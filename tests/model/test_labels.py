"""Texts instead of names: every format shows them or says that it cannot, and each text has a place."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from drawings import collisions, head_boxes, overlap, parsed, stretches, text_boxes, things_in, within

from syncedmem.model import EDITIONS, Call, InvalidExportError
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.labels import PLAIN, Labels, labels_of
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.formats import FORMATS, export

OURS = "SYNCED=both fresh; gpu_data=device_ptr(); has_gpu_pointer=there; null_data=no pointer given; free_gpu=give back"
SHOWN = {
    "mermaid": ('state "both fresh" as SYNCED', "device_ptr()", "refused, no pointer given", "give back"),
    "dot": ('"both fresh"', "device_ptr()", "refused, no pointer given", "give back"),
    "svg": (">both fresh<", ">device_ptr()<", "refused, no pointer given", "give back"),
    "plantuml": ('state "both fresh" as state3', "device_ptr()", "refused, no pointer given", "give back"),
    "markdown": ("| both fresh |", "| device_ptr() |", "`[!there]`", "**refused: no pointer given**", "give back"),
    "rst": ("- both fresh", "- device_ptr()", "``[!there]``", "**refused: no pointer given**", "give back"),
    "html": (">both fresh<", ">device_ptr()<", "[!there]", "refused: no pointer given", "give back"),
}


def drawn(labels: str, detail: Detail, edition: str = "caffe") -> ET.Element:
    return parsed(str(export("svg", edition=edition, detail=detail, labels=labels_of([labels], edition))))


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_shows_labels_or_says_that_it_cannot(name: str) -> None:
    labels = labels_of([OURS])
    if name in ("png", "pdf"):  # made of the SVG
        assert export(name, labels=labels) != export(name)
    elif name in SHOWN:
        text = str(export(name, labels=labels))
        assert [words for words in SHOWN[name] if words not in text] == []
        assert '"SYNCED"' not in text
        assert ">SYNCED<" not in text
    else:
        with pytest.raises(InvalidExportError, match=f"^the format {name} cannot show labels$"):
            export(name, labels=labels)


def test_a_name_without_a_label_stays_and_no_labels_change_nothing() -> None:
    text = str(export("markdown", labels=labels_of(["SYNCED=both fresh"])))
    assert text == str(export("markdown")).replace("SYNCED", "both fresh")
    assert export("svg", labels=labels_of([])) == export("svg")


def test_the_words_of_a_trace_and_its_numbers_follow_the_labels() -> None:
    trace = trace_of("mutable_cpu_data gpu_data async_gpu_push release", size=8)
    labels = labels_of(
        ["HEAD_AT_CPU=host", "gpu_data=device_ptr()", "not_head_at_cpu=not the host; free_gpu=give back"]
    )
    text = str(export("svg", trace=trace, labels=labels))
    assert ">2: device_ptr()<" in text
    assert "2. device_ptr(): host → SYNCED, alloc + copy to GPU, 8 bytes" in text
    assert "3. async_gpu_push in SYNCED: refused, not the host" in text
    assert "give back" in text
    assert ">1: mutable_cpu_data<" in text


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
def test_labels_as_long_as_caffes_names_have_a_place_in_the_diamond(detail: Detail, edition: str) -> None:
    """Each call has the length of the longest name, so no position has room by luck."""
    longest = max(len(call.value) for call in Call)
    calls = [call for call in Call if not call.ends and call.value in str(export("csv", edition=edition))]
    labels = "; ".join(f"{call.value}={call.value}{'x' * longest}"[: len(call.value) + 1 + longest] for call in calls)
    root = drawn(labels, detail, edition)
    assert collisions(things_in(root)) == []
    assert len({box[1] for box in head_boxes(root).values()}) == 3 if edition != "cpu_only" else True


@pytest.mark.parametrize(
    "labels",
    [
        "SYNCED=both of them fresh",
        "gpu_data=the pointer of the device",
        "copy_to_gpu=bring it to the memory of the device",
    ],
)
def test_longer_labels_are_drawn_in_layers_where_all_have_a_place(labels: str) -> None:
    root = drawn(labels, Detail.GUARDS)
    boxes, texts = head_boxes(root).values(), text_boxes(root)
    outside = [text for _, text in texts if not any(within(text, box) for box in boxes)]
    assert len(outside) > 20
    assert not any(overlap(one, other) for (_, one), (_, other) in combinations(texts, 2))
    assert not any(overlap(text, thing) for text in outside for thing in (*boxes, *(way for _, way in stretches(root))))
    assert len({(left + right) / 2 for left, _, right, _ in boxes}) == 1  # in one column
    assert labels.partition("=")[2] in ET.tostring(root, "unicode")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SYNCED", "a label is NAME=TEXT, not 'SYNCED'"),
        ("SYNC=x", "unknown name 'SYNC'; there are UNINITIALIZED, HEAD_AT_CPU"),
        ("SYNCED=", "the label of SYNCED is empty"),
        ("SYNCED=a; SYNCED=b", "SYNCED has two labels, 'a' and 'b'"),
        ("SYNCED=a<b", "the label of SYNCED has '<': use letters, digits, blanks and _-.,+/()!?'"),
        ("SYNCED=a\nb", r"the label of SYNCED has '\n': use letters"),
        (f"SYNCED={'x' * 41}", "the label of SYNCED has 41 characters, and can have 40: 'xxx"),
        ("SYNCED=HEAD_AT_CPU", "the heads HEAD_AT_CPU and SYNCED would both be shown as 'HEAD_AT_CPU'"),
        ("gpu_data=get; cpu_data=get", "the calls cpu_data and gpu_data would both be shown as 'get'"),
    ],
)
def test_labels_that_would_mislead_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidExportError) as caught:
        labels_of([text])
    assert str(caught.value).startswith(message)


def test_configurations_have_no_labels() -> None:
    with pytest.raises(InvalidExportError, match=r"^configurations are codes, and have no labels$"):
        export("svg", detail=Detail.CONFIGURATIONS, labels=labels_of(["SYNCED=x"]))


def test_labels_can_be_swapped_and_of_any_script() -> None:
    labels = labels_of(["HEAD_AT_CPU=HEAD_AT_GPU; HEAD_AT_GPU=HEAD_AT_CPU", " SYNCED = beides gültig ;"])
    assert labels == Labels(
        (("HEAD_AT_CPU", "HEAD_AT_GPU"), ("HEAD_AT_GPU", "HEAD_AT_CPU"), ("SYNCED", "beides gültig"))
    )
    assert labels != PLAIN
    assert "| call | UNINITIALIZED | HEAD_AT_GPU | HEAD_AT_CPU | beides gültig |" in str(
        export("markdown", labels=labels)
    )
