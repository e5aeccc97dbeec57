"""The page to play with, in a real browser: it does what the model does, and anybody can use it."""

from __future__ import annotations

import json
import random
from importlib.resources import files
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from benches import device_bench

import syncedmem.model.errors as model_errors
from syncedmem import SyncedMemory
from syncedmem.explorer import explorer_material, explorer_page
from syncedmem.model import (
    EDITIONS,
    Action,
    Call,
    Fact,
    Input,
    Mode,
    SyncedHead,
    configurations,
    head_machine,
    inputs,
    matrix,
    space,
    tour,
    using_mode,
)
from syncedmem.model.editions import dispatch
from syncedmem.model.exploration import Entry, explore
from syncedmem.model.machine import refusal_error
from syncedmem.spec import FAULTS, check_conformance
from syncedmem.spec.caffe_tests import CAFFE_TESTS
from syncedmem.spec.fuzz.finding import Finding, Step
from syncedmem.spec.fuzz.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browser import Explorer, Shown

    from syncedmem.model import Configuration

browser = pytest.importorskip("browser", reason="selenium is not installed")
pytestmark = pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)

SIZE = 16
COPIES = (Action.COPY_TO_CPU, Action.COPY_TO_GPU, Action.COPY_TO_GPU_ASYNC)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    page = tmp_path_factory.mktemp("explorer") / "page.html"
    page.write_text(explorer_page(), encoding="utf-8")
    explorer = browser.Explorer(page)
    yield explorer
    explorer.driver.quit()


@pytest.fixture
def explorer(opened: Explorer) -> Iterator[Explorer]:
    """The page as it is at first; whatever a test does, it must not complain."""
    opened.look(1360, 1000)
    opened.open()
    yield opened
    assert opened.complaints() == []


def words_of(edition: str) -> dict[Configuration, list[str]]:
    """A word to the state that speaks for each configuration in the matrix."""
    found = explore(dispatch(edition), inputs(edition, null=True, mode=False), Mode.GPU)
    words: dict[Any, list[str]] = {found.start: []}
    for state, row in found.steps.items():
        for entry, step in row.items():
            words.setdefault(step.after, [*words[state], str(entry)])
    chosen: dict[Configuration, list[str]] = {}
    for state in found.steps:
        chosen.setdefault(state.configuration, words[state])
    return chosen


def flags_of(edition: str, facts: Fact) -> dict[str, bool]:
    return {str(flag.name).lower(): flag in facts for flag in Fact if flag in EDITIONS[edition].flags}


def refused_with(entry: Entry, asked: Input, head: SyncedHead) -> str:
    assert entry.refusal is not None
    assert asked.call is not None
    return str(refusal_error(entry.refusal, asked.call.value, head, None))


# --- the machine


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_cell_does_what_the_model_says(explorer: Explorer, edition: str) -> None:
    """Each is walked to by the address, and then made by pressing its button: 153 cells in Caffe's edition."""
    words, taken = words_of(edition), 0
    for before, row in matrix(edition).items():
        for asked, entry in row.items():
            explorer.go(words[before], edition=edition, size=SIZE)
            assert explorer.shown().configuration == str(before)
            explorer.call(str(asked))
            shown = explorer.shown()

            assert shown.configuration == str(entry.after)
            assert shown.actions == [[action.value, "done", SIZE] for action in entry.actions]
            assert shown.flags == flags_of(edition, entry.facts)
            assert shown.lit == [entry.after.head.name]
            assert bool(shown.refusal) == (entry.refusal is not None)
            if entry.refusal is not None:
                assert refused_with(entry, asked, before.head) in shown.refusal
            taken += 1
    assert taken == sum(map(len, matrix(edition).values()))


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_tour_takes_every_transition_as_the_model_does(explorer: Explorer, edition: str) -> None:
    """With the mode an input too: all 558 of Caffe's edition, with flags and mode after every step."""
    taken: set[object] = set()
    for word in tour(edition):
        explorer.go(map(str, word), edition=edition, size=4, at=0)
        state = space(edition).start
        for entry in word:
            explorer.run("document.getElementById('forward').click()")
            taken.add((state, entry))
            state = space(edition).steps[state][entry].after
            shown = explorer.shown()
            assert (shown.configuration, shown.mode) == (str(state.configuration), state.mode.name)
            assert shown.flags == flags_of(edition, state.facts)
    assert len(taken) == space(edition).transitions


def test_a_walk_has_the_bytes_of_a_real_memory(explorer: Explorer) -> None:
    """The same random calls on the page and on the runtime: head, flags, bytes of fresh sides and live blocks."""
    chosen = random.Random(5)  # noqa: S311 -- a walk, not a secret
    for _ in range(6):
        explorer.go(size=SIZE)
        with using_mode(Mode.GPU), SyncedMemory(SIZE, device="simulated") as memory:
            for number in range(1, 20):
                entry = chosen.choice(inputs(mode=False))
                explorer.call(str(entry))
                assert bool(explorer.shown().refusal) == (not done(memory, entry, number))
                shown = explorer.shown()
                assert shown.configuration[0] == "UCGS"[memory.head.value]
                assert shown.flags == {name: getattr(memory, name) for name in shown.flags}
                assert shown.live == memory.own_cpu_data + memory.own_gpu_data
                compare_bytes(shown, memory)


def done(memory: SyncedMemory, entry: Input, number: int) -> bool:
    """Make a call, and write into it as the page says that the caller does; False where it is refused."""
    value = np.full(SIZE, number, dtype=np.uint8)
    try:
        if entry.call is Call.SET_CPU_DATA:
            memory.set_cpu_data(value)
        elif entry.call is Call.SET_GPU_DATA:
            array = memory.device.empty(SIZE)
            array.set(value)
            memory.set_gpu_data(array)
        elif entry.call is Call.ASYNC_GPU_PUSH:
            memory.async_gpu_push(stream=memory.device.stream())
        elif entry.call is not None:
            view = getattr(memory, entry.call.value)()
            if entry.call is Call.MUTABLE_CPU_DATA:
                view[:] = value
            elif entry.call is Call.MUTABLE_GPU_DATA:
                view.set(value)
    except model_errors.IllegalCallError:
        return False
    return True


def compare_bytes(shown: Shown, memory: SyncedMemory) -> None:
    """Only sides that the memory counts as fresh, so that looking moves nothing."""
    if memory.head in (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED):
        assert shown.bytes["cpu"] == bytes(memory.cpu_data()).hex()
    if memory.head in (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED):
        assert shown.bytes["gpu"] == bytes(memory.gpu_data().get()).hex()


def test_every_action_can_fail_and_nothing_has_changed(explorer: Explorer) -> None:
    """In every configuration, of every call: the strong guarantee is to be seen, and the next call works."""
    words, points = words_of("caffe"), 0
    explorer.press("#failing")
    for before, row in matrix().items():
        for asked, entry in row.items():
            for k, action in enumerate(entry.actions, 1):
                explorer.go(words[before], size=SIZE)
                was = explorer.shown()
                explorer.run("document.querySelector(arguments[0]).click()", f'[data-input="{asked}"] [data-fail="{k}"]')
                shown = explorer.shown()
                assert shown.unchanged == "true"
                assert (shown.configuration, shown.flags, shown.bytes) == (was.configuration, was.flags, was.bytes)
                assert (shown.ledger, shown.live, shown.fresh) == (was.ledger, was.live, was.fresh)
                assert shown.actions[k - 1][:2] == [action.value, "failed"]
                points += 1
    explorer.call("cpu_data")
    assert not explorer.shown().refusal
    assert points == sum(len(entry.actions) for row in matrix().values() for entry in row.values())


def test_a_release_that_fails_half_way_can_be_made_again(explorer: Explorer) -> None:
    """What is freed cannot be unfreed; the other block is still ours, and another release frees it."""
    explorer.go(["cpu_data", "gpu_data", "release!1"], size=SIZE)
    assert (explorer.shown().unchanged, explorer.shown().live) == ("true", 2)
    explorer.go(["cpu_data", "gpu_data", "release!2"], size=SIZE)
    half = explorer.shown()
    assert (half.configuration, half.unchanged, half.live) == ("released", "false", 1)
    explorer.go(["cpu_data", "gpu_data", "release!2", "release!1"], size=SIZE)
    assert explorer.shown().live == 1
    explorer.call("release")
    assert explorer.shown().live == 0
    explorer.call("cpu_data")
    assert "released" in explorer.shown().refusal


def test_zero_bytes_walk_the_same_heads_and_allocate_nothing(explorer: Explorer) -> None:
    explorer.go(["cpu_data", "gpu_data", "set_cpu_data", "mutable_gpu_data", "release"], size=0, at=4)

    assert explorer.shown().configuration == "G:eo"
    assert explorer.shown().live == 0
    explorer.press("#forward")
    assert explorer.shown().configuration == "released"


# --- going back, addresses


def test_undo_goes_back_and_step_goes_on(explorer: Explorer) -> None:
    seen = [explorer.shown()]
    for call in ("mutable_cpu_data", "gpu_data", "set_gpu_data", "cpu_data"):
        explorer.call(call)
        seen.append(explorer.shown())
    for earlier in reversed(seen[:-1]):
        explorer.press("#undo")
        assert explorer.shown() == earlier
    assert not explorer.find("#undo").is_enabled()
    for later in seen[1:]:
        explorer.press("#forward")
        assert explorer.shown() == later
    explorer.press("#reset")
    assert explorer.shown() == seen[0]


def test_an_address_brings_back_what_was_there(explorer: Explorer) -> None:
    for call in ("set_mode(CPU)", "cpu_data", "set_cpu_data(NULL)", "mutable_gpu_data", "release"):
        explorer.call(call)
    explorer.press("#undo")
    shown, address = explorer.shown(), explorer.wait_for_address("at=4")
    explorer.driver.get("about:blank")
    explorer.driver.get(address)

    assert explorer.shown() == shown
    assert explorer.wait_for_address("at=4") == address
    explorer.press("#forward")
    assert explorer.shown().configuration == "released"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("edition=nobody", "there is no edition nobody"),
        ("calls=fly", "has no call fly"),
        ("size=many", "many is no number"),
        ("mode=TPU", "there is no mode TPU"),
        ("edition=early&calls=async_gpu_push", "early has no call async_gpu_push"),
        ("calls=cpu_data!x", "x is no number"),
    ],
)
def test_an_address_that_cannot_be_followed_says_why(explorer: Explorer, wrong: str, said: str) -> None:
    explorer.driver.get("about:blank")
    explorer.driver.get(f"{explorer.address}#{wrong}")

    assert said in explorer.text("banner")
    assert explorer.shown().configuration == "U:--"


def test_a_random_walk_goes_where_calls_are_not_refused(explorer: Explorer) -> None:
    explorer.press("#walk")  # without motion it is walked at once
    refused = explorer.run("return document.querySelectorAll('#steps .refused').length")

    assert refused == 0
    assert explorer.text("totals").startswith("24 of 24")


# --- suites, tests, cells


def test_caffes_seven_tests_take_few_cells(explorer: Explorer) -> None:
    words = [[Input(call) for call in test.calls] for test in CAFFE_TESTS]
    taken: set[str] = set()
    for word in words:
        configuration = configurations()[0]
        for entry in word:
            taken.add(f"{configuration} {entry}")
            configuration = matrix()[configuration][entry].after
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
    rows = explorer.run("return [...document.querySelectorAll('[data-count]')].map((row) => row.innerText.split('\\t'))")

    counts = {name: int(found.replace(",", "")) for name, found, _, same in rows if same == "✓ the same"}
    assert counts["configurations"] == len(configurations(edition))
    assert counts["cells"] == sum(map(len, matrix(edition).values()))
    assert counts["states"] == len(space(edition).steps)
    assert counts["transitions"] == space(edition).transitions
    assert len(rows) == len(counts)
    assert explorer.run("return [...document.querySelectorAll('[data-holds]')].map((it) => it.dataset.holds)") == ["true"] * 8


def test_with_two_contents_there_are_as_many_states_as_other_engines_count(explorer: Explorer) -> None:
    explorer.press("#prove")
    assert "in all 186 states with 2 different contents" in explorer.text("proof")


def test_a_vector_is_replayed_by_its_id(explorer: Explorer) -> None:
    suite = next(it for it in explorer_material()["suites"] if (it["edition"], it["name"]) == ("caffe", "tour"))
    explorer.find("#vector-id").send_keys(suite["ids"][3][:8] + "\n")

    assert explorer.text("totals").startswith(f"0 of {len(suite['words'][3])};")
    assert suite["ids"][3] in explorer.text("banner")
    explorer.press("#vector-any")
    assert "Loaded" in explorer.text("vector-answer")
    explorer.run("document.getElementById('vector-id').value = 'none'")
    explorer.press("#vector-form button")
    assert "No vector" in explorer.text("vector-answer")


# --- traces from files


def load(explorer: Explorer, text: str) -> str:
    explorer.run("document.getElementById('trace-text').value = arguments[0]", text)
    explorer.press("#trace-load")
    return explorer.text("trace-answer")


def calls_shown(explorer: Explorer) -> list[str]:
    return [it.removesuffix("()") for it in explorer.run("return [...document.querySelectorAll('#steps .what .mono')].map((it) => it.textContent)")]


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        ("WriteOnlyHost", ["cpu_data", "mutable_gpu_data", "mutable_cpu_data"]),
        ("AdoptsOwnHostBuffer", ["cpu_data", "set_cpu_data"]),
        ("ReturnsNothing", ["mutable_gpu_data"]),
    ],
)
def test_a_violation_of_verify_is_stepped_through(explorer: Explorer, fault: str, calls: list[str]) -> None:
    found = check_conformance(device_bench(FAULTS[fault].make), steps=0).violations[0]
    violation = {"requirement": found.requirement, "message": found.message, "script": found.reproducer}
    report = {"format": 1, "devices": [{"name": "mine", "edition": "caffe", "violations": [violation]}]}
    load(explorer, json.dumps(report))

    assert calls_shown(explorer) == calls
    assert found.requirement in explorer.text("banner")
    load(explorer, found.reproducer)
    assert calls_shown(explorer) == calls


def test_an_armed_allocator_of_a_program_is_an_action_that_fails(explorer: Explorer) -> None:
    program = """ledger, host, device = recorded(bench)
memory = bench.make(5, host=host, device=device)
set_mode(Mode.CPU)
memory.cpu_data()
with ledger.moves.armed(2), suppress(Exception): memory.gpu_data()
memory.set_gpu_data(None)
view = memory.mutable_gpu_data()
memory.close()
# R32-strong-guarantee: something"""
    load(explorer, program)

    assert calls_shown(explorer) == [
        "set_mode(CPU)", "cpu_data", "gpu_data", "set_gpu_data(NULL)", "mutable_gpu_data", "release",
    ]  # fmt: skip
    assert "size=5" in explorer.wait_for_address("gpu_data!2")


def test_several_traces_in_one_file_are_a_choice(explorer: Explorer) -> None:
    lines = [{"id": "one", "edition": "caffe", "steps": ["cpu_data"]}]
    lines.append({"id": "two", "edition": "early", "steps": [{"call": "gpu_data"}, {"call": "set_cpu_data", "data": False}]})  # type: ignore[list-item]
    answer = load(explorer, "\n".join(map(json.dumps, lines)))

    assert answer.startswith("2 traces")
    explorer.press("#trace-choices button:last-child")
    assert calls_shown(explorer) == ["gpu_data", "set_cpu_data(NULL)"]
    explorer.wait_for_address("edition=early")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no trace in it."),
        ("fly", "The edition caffe has no call fly."),
        ('{"a": 1}', "It is neither a report, nor a replay, nor a vector."),
        ('{"devices": []}', "The report has no violations: everything passed."),
        ('{"steps": ["fly"]}', "caffe has no call fly"),
        ("null", "It is neither a report, nor a replay, nor a vector."),
    ],
)
def test_what_is_no_trace_says_so_and_changes_nothing(explorer: Explorer, text: str, said: str) -> None:
    explorer.call("cpu_data")
    was = explorer.shown()

    assert load(explorer, text) == said
    assert explorer.shown() == was


def test_a_file_is_read(explorer: Explorer, tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_text("cpu_data()\ngpu_data!2\n", encoding="utf-8")
    explorer.find("#trace-file").send_keys(str(path))
    explorer.run("return new Promise((resolve) => setTimeout(resolve, 50))")

    assert calls_shown(explorer) == ["cpu_data", "gpu_data"]


def test_a_replay_of_an_allocator_shows_its_blocks(explorer: Explorer) -> None:
    program = (Step("allocate", (0, 8, 0, 0)), Step("allocate", (1, 16, 0, 0)), Step("free", (0, 0)))
    finding = Finding("A05-no-overlap", "they overlap", program) if "A05-no-overlap" in property_ids() else Finding(property_ids()[0], "they overlap", program)
    load(explorer, Replay("mine:pool", {}, finding).text())

    assert "live are block 1 (16 bytes)" in explorer.text("allocator")
    explorer.press("#allocator button:first-child")
    assert "block 0 (8 bytes), block 1 (16 bytes)" in explorer.text("allocator")
    explorer.press("#allocator button:last-child")
    assert "After 3 of 3" in explorer.text("allocator")


def property_ids() -> list[str]:
    from syncedmem.spec.fuzz.properties import PROPERTIES

    return list(PROPERTIES)


# --- everybody


def keys(explorer: Explorer, *pressed: str) -> None:
    from selenium.webdriver import ActionChains

    for key in pressed:
        ActionChains(explorer.driver).send_keys(key).perform()


def focused(explorer: Explorer, what: str = "id") -> str:
    return str(explorer.run(f"return document.activeElement.{what}"))


def test_everything_can_be_done_with_the_keyboard(explorer: Explorer) -> None:
    from selenium.webdriver.common.keys import Keys

    keys(explorer, "1", "4")
    assert explorer.shown().configuration == "G:oo"
    keys(explorer, "u")
    assert explorer.shown().configuration == "C:o-"
    keys(explorer, "n")
    assert explorer.shown().configuration == "G:oo"
    keys(explorer, "x")
    assert explorer.shown().configuration == "U:--"
    keys(explorer, "?")
    assert explorer.find("#help").is_displayed()
    keys(explorer, Keys.ESCAPE)
    assert not explorer.find("#help").is_displayed()
    explorer.run("document.querySelector('[data-do=gpu_data]').focus()")
    keys(explorer, Keys.ENTER)
    assert explorer.shown().configuration == "G:-o"
    assert focused(explorer, "dataset.do") == "gpu_data"
    keys(explorer, Keys.TAB, Keys.SPACE)
    assert explorer.shown().configuration == "C:oo"
    explorer.run("document.querySelector('.cell').focus()")
    keys(explorer, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert "cpu_data" in focused(explorer, "dataset.cell")
    assert len(calls_shown(explorer)) == 2


def test_every_control_is_reached_with_the_tab_key(explorer: Explorer) -> None:
    """The matrix is one stop, with arrows inside it."""
    from selenium.webdriver.common.keys import Keys

    wanted = explorer.run(
        "return [...document.querySelectorAll('button, select, input, textarea')].filter((it) => it.checkVisibility()"
        " && !it.disabled && it.tabIndex >= 0).length"
    )
    reached: set[str] = set()
    explorer.run("document.activeElement.blur()")
    for _ in range(wanted + 12):
        keys(explorer, Keys.TAB)
        reached.add(explorer.run("const it = document.activeElement; return it.matches('button, select, input, textarea') ? it.outerHTML : ''"))
    assert len(reached - {""}) == wanted


def test_single_keys_can_be_switched_off(explorer: Explorer) -> None:
    explorer.run("document.getElementById('shortcuts').checked = false")
    keys(explorer, "1")
    assert explorer.shown().configuration == "U:--"


def test_each_step_is_told_to_a_screen_reader(explorer: Explorer) -> None:
    explorer.call("cpu_data")
    assert explorer.text("live") == "cpu_data(): allocate_cpu, zero_cpu. HEAD_AT_CPU. The host side is fresh."
    explorer.call("set_cpu_data(NULL)")
    assert "refused" in explorer.text("live")


LOOKS = {"desktop": (1360, 1000, False), "phone": (390, 844, False), "dark": (1360, 1000, True), "dark phone": (390, 844, True)}
BUSY = ["cpu_data", "mutable_gpu_data", "set_cpu_data", "gpu_data!1", "gpu_data", "async_gpu_push"]


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_found_by_axe(explorer: Explorer, look: str) -> None:
    """Names, roles, contrast and structure, by the checker that others use."""
    width, height, dark = LOOKS[look]
    explorer.look(width, height, dark=dark)
    explorer.open(BUSY)
    explorer.press("#failing")
    explorer.press("#prove")
    explorer.press("#show-missed")

    assert axe(explorer) == []


def test_axe_would_find_a_control_without_a_name(explorer: Explorer) -> None:
    explorer.run("document.querySelector('#edition').closest('label').replaceWith(document.querySelector('#edition'))")
    assert "select-name" in [found["id"] for found in axe(explorer)]


def axe(explorer: Explorer) -> list[dict[str, Any]]:
    explorer.run(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = explorer.run(
        "return axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}).then(({violations}) =>"
        " violations.map(({id, nodes}) => ({id, nodes: nodes.slice(0, 3).map(({html, failureSummary}) => [html, failureSummary])})))"
    )
    return found


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_fits_its_window(explorer: Explorer, look: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Nothing has to be scrolled sideways but tables and the drawing; with --screenshots there are pictures to look at."""
    width, height, dark = LOOKS[look]
    explorer.look(width, height, dark=dark)
    explorer.open(BUSY)
    folder = request.config.getoption("--screenshots") or tmp_path
    explorer.picture(folder / f"explorer-{look.replace(' ', '-')}.png")

    assert explorer.run("return document.documentElement.scrollWidth") == width


def test_the_page_loads_nothing_and_is_soon_there(explorer: Explorer) -> None:
    """The best of several loads, because other work may be going on here."""
    spent: list[float] = []
    for _ in range(5):
        explorer.open(BUSY)
        assert explorer.run("return performance.getEntriesByType('resource').map(({name}) => name)") == []
        spent.append(
            explorer.run(
                "return performance.getEntriesByName('interactive')[0].startTime"
                " - performance.getEntriesByType('navigation')[0].responseEnd"
            )
        )
    assert min(spent) < 200
