"""Traces in the explorer: suites, Caffe's own tests, and the reports of ``verify`` and ``fuzz``."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory import MEMORY_BUGS
from subjects import device_subject

from syncedmem.explorer import explorer_page
from syncedmem.explorer.material import calls_of
from syncedmem.explorer.trace import MOST_STEPS
from syncedmem.model import EDITIONS, Input, caffe, configurations, matrix, space
from syncedmem.model.files import MOST_TEXT
from syncedmem.spec import check_conformance
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS
from syncedmem.spec.fuzz.finding import Finding, Step
from syncedmem.spec.fuzz.replay import Replay
from syncedmem.spec.requirements import requirements_of
from syncedmem.spec.vectors import SUITES, vectors

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Explorer, Shown

pytestmark = pytest.mark.deep

SHOWN = [suite for suite in SUITES if suite != "large"]
"""The suites whose memories are not too large for the page."""

# --- suites, tests, cells


def test_caffes_seven_tests_take_few_cells(explorer: Explorer) -> None:
    words = [[Input(call) for call in test.calls] for test in CAFFE_TESTS]
    taken: set[str] = set()
    for word in words:
        configuration = configurations(caffe.CAFFE)[0]
        for entry in word:
            taken.add(f"{configuration} {entry}")
            configuration = matrix(caffe.CAFFE)[configuration][entry].after
    marked = "return [...document.querySelectorAll('.cell.marked')].map((cell) => cell.dataset.cell)"

    explorer.press("#run-tests")
    assert set(explorer.run(marked)) == taken
    assert len(taken) == 13
    assert "13 of 153 cells" in explorer.text("cells-note")
    explorer.press("#show-missed")
    assert len(explorer.run(marked)) == 140
    assert taken.isdisjoint(explorer.run(marked))


def test_each_of_caffes_tests_can_be_stepped_through(explorer: Explorer) -> None:
    for test in CAFFE_TESTS:
        explorer.press(f'[data-test="{test.name}"]')
        assert explorer.text("totals").startswith(f"0 of {len(test.calls) + 1};")
    explorer.press("#forward")
    assert explorer.shown().actions[-1] == ["zero_gpu", "done", 10]
    assert explorer.shown().mode == "CPU"


def test_a_cell_of_the_matrix_takes_one_there(explorer: Explorer) -> None:
    explorer.press('[data-cell="G:oe set_cpu_data"]')

    assert explorer.shown().configuration == "C:ee"
    assert [name for name, *_ in explorer.shown().actions] == ["free_cpu", "adopt_cpu"]
    assert explorer.find("tr.here").get_attribute("data-row") == "C:ee"


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_explores_what_the_model_counts(explorer: Explorer, edition: str) -> None:
    explorer.go(edition=edition)
    explorer.press("#prove")
    rows = explorer.run(
        "return [...document.querySelectorAll('[data-count]')].map((row) => row.innerText.split('\\t'))"
    )

    counts = {name: int(found.replace(",", "")) for name, found, _, same in rows if same == "✓ the same"}
    assert counts["configurations"] == len(configurations(EDITIONS[edition]))
    assert counts["cells"] == sum(map(len, matrix(EDITIONS[edition]).values()))
    assert counts["states"] == len(space(EDITIONS[edition]).steps)
    assert counts["transitions"] == space(EDITIONS[edition]).transitions
    assert len(rows) == len(counts)
    holds = explorer.run("return [...document.querySelectorAll('[data-holds]')].map((it) => it.dataset.holds)")
    assert holds == ["true"] * 8


def test_with_two_contents_there_are_as_many_states_as_other_engines_count(explorer: Explorer) -> None:
    explorer.press("#prove")
    assert "in all 186 states with 2 different contents" in explorer.text("proof")


def test_a_vector_is_replayed_by_its_id(explorer: Explorer) -> None:
    vector = list(vectors("tour", "caffe"))[3]
    explorer.find("#vector-id").send_keys(vector.id + "\n")

    assert explorer.text("totals").startswith(f"0 of {len(vector.program.operations)};")
    assert vector.id[:12] in explorer.text("banner")
    explorer.press("#vector-any")
    assert "Loaded" in explorer.text("vector-answer")


@pytest.mark.parametrize(
    ("typed", "said"),
    [("none", "No vector of the edition caffe has an id that begins with none."), ("", "An id is needed")],
)
def test_an_id_that_no_vector_has_says_so(explorer: Explorer, typed: str, said: str) -> None:
    explorer.find("#vector-id").send_keys(typed + "\n")

    assert said in explorer.text("vector-answer")
    assert explorer.steps() == []


def test_how_many_ids_begin_so_is_said_and_none_is_replayed(explorer: Explorer) -> None:
    ids = {vector.id for suite in SHOWN for vector in vectors(suite, "caffe")}
    several = sum(it.startswith("b") for it in ids)
    starts = Counter(it[:5] for it in ids)
    alone = next(start for start, count in starts.items() if count == 1)
    field = explorer.find("#vector-id")
    field.send_keys("b")
    assert (
        explorer.text("vector-answer")
        == f"{several:,} vectors have an id that begins with b: more characters are needed."
    )
    field.send_keys("\n")
    assert "more characters" in explorer.text("vector-answer")
    assert explorer.steps() == []
    field.clear()
    field.send_keys(alone)
    assert explorer.text("vector-answer") == "One vector has an id that begins so."
    field.send_keys("\n")
    assert explorer.text("vector-answer").startswith("Loaded")


LONG = 60
"""Vectors with at least this many steps are left out, because they take too long."""


@pytest.mark.parametrize("suite", SHOWN)
def test_a_file_of_vectors_ends_where_they_say(explorer: Explorer, suite: str) -> None:
    """The test compares heads, flags, actions and fresh sides after each step, for some vectors of every suite."""
    from browser import Program

    found = [it for it in vectors(suite, "caffe") if len(it.program.operations) < LONG]
    assert found
    for vector in found[:: 1 + len(found) // 6]:
        steps = [it for it in vector.as_json()["steps"] if calls_of([it])]
        load(explorer, vector.line())
        assert explorer.text("totals").startswith(f"0 of {len(steps)};")
        ((_, *seen),) = explorer.play([Program(None, ["#forward"] * len(steps))])
        for shown, step in zip(seen, steps, strict=True):
            compare(shown, step)


def compare(shown: Shown, step: dict[str, Any]) -> None:
    if "head" in step:
        assert shown.lit == [step["head"]]
        assert [side for side, content in step["bytes"].items() if content is not None] == shown.fresh
    if "flags" in step:
        assert shown.flags == step["flags"]
    if step.get("actions") is not None:
        assert [name for name, *_ in shown.actions] == step["actions"]
    if "fail" in step:
        assert shown.unchanged == "true"
    elif step.get("refusal"):
        assert shown.refusal


# --- traces from files


def load(explorer: Explorer, text: str) -> str:
    explorer.run("document.getElementById('trace-text').value = arguments[0]", text)
    explorer.press("#trace-load")
    return explorer.text("trace-answer")


@pytest.mark.parametrize(
    ("bug", "calls"),
    [
        ("WriteOnlyHost", ["cpu_data", "mutable_gpu_data", "mutable_cpu_data"]),
        ("AdoptsOwnHostBuffer", ["cpu_data", "set_cpu_data"]),
        ("ReturnsNothing", ["mutable_gpu_data"]),
    ],
)
def test_a_violation_of_verify_is_stepped_through(explorer: Explorer, bug: str, calls: list[str]) -> None:
    found = check_conformance(device_subject(MEMORY_BUGS[bug].make), steps=0).violations[0]
    violation = {"requirement": found.requirement, "message": found.message, "reproducer": found.reproducer}
    report = {"format": 1, "devices": [{"name": "mine", "edition": "caffe", "violations": [violation]}]}
    load(explorer, json.dumps(report))

    assert explorer.steps() == calls
    assert found.requirement in explorer.text("banner")
    load(explorer, found.reproducer)
    assert explorer.steps() == calls


def test_an_armed_allocator_of_a_reproducer_is_an_action_that_fails(explorer: Explorer) -> None:
    program = """log, host, device = recorded(subject)
memory = subject.make(5, host=host, device=device)
set_mode(Mode.CPU)
memory.cpu_data()
with log.moves.armed(2), suppress(Exception): memory.gpu_data()
memory.set_gpu_data(None)
view = memory.mutable_gpu_data()
memory.close()
# R32-strong-guarantee: something"""
    load(explorer, program)

    assert explorer.steps() == [
        "set_mode(CPU)", "cpu_data", "gpu_data", "set_gpu_data(NULL)", "mutable_gpu_data", "release",
    ]  # fmt: skip
    assert "size=5" in explorer.wait_for_address("gpu_data!2")


def test_several_traces_in_one_file_are_a_choice(explorer: Explorer) -> None:
    steps: list[Any] = [{"call": "gpu_data"}, {"call": "set_cpu_data", "argument": None}]
    lines: list[Any] = [{"id": "one", "edition": "caffe", "steps": ["cpu_data"]}]
    lines.append({"id": "two", "edition": "early", "steps": steps})
    answer = load(explorer, "\n".join(map(json.dumps, lines)))

    assert answer.startswith("2 traces")
    explorer.press("#trace-choices button:last-child")
    assert explorer.steps() == ["gpu_data", "set_cpu_data(NULL)"]
    explorer.wait_for_address("edition=early")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no trace in it."),
        ("fly", "The edition caffe has no call fly."),
        ('{"a": 1}', "It is neither a report, nor a replay, nor a vector."),
        ('{"devices": []}', "The report has no violations: everything passed."),
        ('{"steps": ["fly"]}', "The edition caffe has no call fly."),
        ("{broken", "This is broken JSON: line 1, column 2."),
        ("[1,\n 2", "This is broken JSON: line 2, column 3."),
        ("[" * 100_000, "This is broken JSON."),
        ("cpu_data " * (MOST_STEPS + 1), "It has 10,001 steps; the most is 10,000."),
        (json.dumps({"program": [[]] * (MOST_STEPS + 1)}), "It has 10,001 steps; the most is 10,000."),
        ('{"steps": ["cpu_data"], "size": 1e9}', "It has 1,000,000,000 bytes of memory; the most is 8,192."),
        ('{"steps": ["cpu_data"], "size": -1}', "The size is no number of bytes: -1."),
        ("null", "It is neither a report, nor a replay, nor a vector."),
    ],
)
def test_what_is_no_trace_says_so_and_changes_nothing(explorer: Explorer, text: str, said: str) -> None:
    explorer.call("cpu_data")
    was = explorer.shown()

    assert load(explorer, text) == said
    assert explorer.shown() == was


def test_as_many_steps_as_there_may_be_are_played(explorer: Explorer) -> None:
    load(explorer, "cpu_data " * MOST_STEPS)
    explorer.press("#forward")

    assert explorer.text("totals").startswith(f"1 of {MOST_STEPS};")


def test_a_file_that_is_too_large_is_not_read(explorer: Explorer) -> None:
    explorer.run(
        """
        const blobs = new DataTransfer();
        blobs.items.add(new File(["x".repeat(arguments[0])], "large"));
        const field = document.getElementById("trace-file");
        File.prototype.text = () => { throw new Error("it is read"); };
        field.files = blobs.files;
        field.dispatchEvent(new Event("change"));
        """,
        MOST_TEXT + 1,
    )

    assert explorer.text("trace-answer") == "It has 16,777,217 bytes; the most is 16,777,216."


def test_a_text_that_is_too_large_is_refused(explorer: Explorer) -> None:
    """The text is not put into the visible field, because drawing it would take the browser 15 seconds."""
    text = "{get: () => 'x'.repeat(arguments[0])}"
    explorer.run(f"Object.defineProperty(document.getElementById('trace-text'), 'value', {text})", MOST_TEXT + 1)
    explorer.run("document.getElementById('trace-load').click()")

    assert explorer.text("trace-answer") == "It has 16,777,217 bytes; the most is 16,777,216."


def test_a_link_with_too_many_calls_keeps_the_first_of_them(explorer: Explorer) -> None:
    explorer.go(["cpu_data"] * (MOST_STEPS + 1))

    assert explorer.text("totals").startswith(f"{MOST_STEPS} of {MOST_STEPS};")
    assert f"calls: there are {MOST_STEPS + 1}, and all after {MOST_STEPS} are left out." in explorer.text("unclear")


def test_one_trace_of_several_that_cannot_be_played_leaves_the_others(explorer: Explorer) -> None:
    lines = '{"steps": ["cpu_data"], "size": 9000}\n{"steps": ["gpu_data"]}'

    assert load(explorer, lines) == "It has 9,000 bytes of memory; the most is 8,192."
    explorer.press("#trace-choices button:last-child")
    assert explorer.steps() == ["gpu_data"]
    explorer.press("#trace-choices button:first-child")
    assert explorer.steps() == ["gpu_data"]


@pytest.mark.parametrize("text", ['{"steps": ["cpu_data"]}', "cpu_data", "memory = subject.make(4)\nmemory.cpu_data()"])
def test_a_text_may_begin_with_a_byte_order_mark(explorer: Explorer, text: str) -> None:
    assert load(explorer, f"\ufeff{text}").startswith("Loaded")
    assert explorer.steps() == ["cpu_data"]


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_long_names_do_not_widen_the_page(explorer: Explorer, width: int, height: int) -> None:
    name = "a_package.with.a_long.path.to_its.modules:AndAClassOfIt" * 3
    finding = Finding(next(iter(requirements_of("allocator"))), name, (Step("allocate", (0, 8, 0, 0)),))
    explorer.look(width, height)
    load(explorer, Replay(name, {}, finding).text())
    wide = (
        "return [...document.querySelectorAll('#shelves > div')].filter((it) => it.scrollWidth > it.clientWidth).length"
    )

    assert explorer.run("return document.documentElement.scrollWidth") == width
    assert explorer.run(wide) == 0


def test_a_trace_that_the_page_was_made_with_is_loaded(explorer: Explorer, tmp_path: Path) -> None:
    explorer.visit(made_with("cpu_data\ngpu_data\n", tmp_path))

    assert explorer.steps() == ["cpu_data", "gpu_data"]
    assert explorer.text("unclear") == "Not understood:"


def test_a_page_that_was_made_with_a_report_without_violations_says_so(explorer: Explorer, tmp_path: Path) -> None:
    """The message is at the top, so that the reader need not scroll to see that there is no trace."""
    explorer.visit(made_with('{"devices": []}', tmp_path))

    assert explorer.find("#unclear").is_displayed()
    assert "The report has no violations: everything passed." in explorer.text("unclear")


def made_with(trace: str, folder: Path) -> str:
    """Return the address of a page that was made with a trace."""
    page = folder / "made.html"
    page.write_text(explorer_page(trace), encoding="utf-8")
    return page.as_uri()


def test_a_file_is_read(explorer: Explorer, tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_text("cpu_data()\ngpu_data!2\n", encoding="utf-8")
    explorer.find("#trace-file").send_keys(str(path))
    explorer.run("return new Promise((resolve) => setTimeout(resolve, 50))")

    assert explorer.steps() == ["cpu_data", "gpu_data"]


def test_a_replay_of_an_allocator_shows_its_blocks(explorer: Explorer) -> None:
    program = (Step("allocate", (0, 8, 0, 0)), Step("allocate", (1, 16, 0, 0)), Step("free", (0, 0)))
    finding = Finding(next(iter(requirements_of("allocator"))), "they overlap", program)
    load(explorer, Replay("mine:pool", {}, finding).text())

    assert "live are block 1 (16 bytes)" in explorer.text("allocator")
    explorer.press("#allocator button:first-child")
    assert "block 0 (8 bytes), block 1 (16 bytes)" in explorer.text("allocator")
    explorer.press("#allocator button:last-child")
    assert "After 3 of 3" in explorer.text("allocator")
