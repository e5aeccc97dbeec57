"""In a real browser: the page does what the model does, for any machine, and everybody can use it."""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from machines import EXAMPLES, MSI, ODD, PETSC, TCP

from syncedmem import SyncedMemory
from syncedmem.explorer import explorer_page
from syncedmem.model import EDITIONS, Action, Call, Fact, Head, Machine, Row, caffe
from syncedmem.model.states import explore, stepper
from syncedmem.model.suites import tour

if TYPE_CHECKING:
    from browser import Explorer

pytestmark = pytest.mark.deep

LOOKS = {
    "small phone": (320, 640, False),
    "phone": (390, 844, False),
    "dark phone": (390, 844, True),
    "laptop": (1280, 800, False),
    "dark laptop": (1280, 800, True),
}
PROTO = Machine(
    "__proto__",
    [
        Row("constructor", ["__proto__", "to String"], "to String", do="has own"),
        Row("<script>", ["__proto__", "to String"], "__proto__", do="valueOf"),
    ],
    sides=["__proto__", "to String"],
    heads=[Head("__proto__", fresh=("to String",)), Head("to String", fresh=("__proto__",))],
    calls=[Call("constructor", side="__proto__", does="write"), Call("<script>", side="to String", does="read")],
    facts=[Fact("hasOwnProperty", side="__proto__", means="pointer")],
    actions=[
        Action("has own", "allocate", "__proto__", sets=("hasOwnProperty",)),
        Action("valueOf", "free", "__proto__", clears=("hasOwnProperty",)),
    ],
)
"""Its names mean something to JavaScript, and to HTML."""
BUSY = ["cpu_data", "mutable_gpu_data", "set_cpu_data", "async_gpu_push", "set_gpu_data(NULL)"]
SHOWN: dict[str, tuple[Machine, list[str]]] = {
    "caffe": (caffe.CAFFE, BUSY),
    "petsc": (PETSC, ["VecGetArrayWrite", "VecCUDAGetArray"]),
    "msi": (MSI, ["read_a", "read_b", "write_c"]),
    "tcp": (TCP, []),
    "odd": (ODD, []),
    "proto": (PROTO, ["constructor", "<script>"]),
}
MACHINES = (*EDITIONS.values(), *EXAMPLES, ODD, PROTO)
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(14, 18, 23)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Machine, Path]:
    """The page of each machine."""
    folder, found = tmp_path_factory.mktemp("pages"), dict[Machine, Path]()
    for machine in MACHINES:
        found[machine] = folder / f"{machine.name}.html"
        found[machine].write_text(explorer_page(machine), encoding="utf-8")
    return found


# --- the machine


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_every_step_does_what_the_model_says(explorer: Explorer, pages: dict[Machine, Path], machine: Machine) -> None:
    """Buttons are pressed until every step of the machine was taken: 558 of Caffe's."""
    whole = explore(stepper(machine), stepper(machine).inputs())
    explorer.visit(pages[machine])
    for sequence in tour(machine):
        explorer.run("document.getElementById('restart').click()")
        state = whole.start
        for entry, shown in zip(sequence, explorer.play([str(item) for item in sequence]), strict=True):
            step = whole.steps[state][entry]
            assert shown.actions == [[action, "done"] for action in step.actions]
            assert bool(shown.refusal) == bool(step.refusal)
            assert shown.row == (step.row.identifier(state.head) if step.row else None)
            assert shown.called == [str(entry)]
            state = step.after
            assert shown.configuration == str(whole.configuration(state))
            assert shown.lit == [state.head]
            assert {*shown.facts} == state.facts
            assert shown.settings == list(state.settings)
            assert {*shown.fresh} == {*machine.heads[state.head].fresh}


def test_a_walk_holds_what_a_real_memory_holds(explorer: Explorer) -> None:
    """After random calls, the page names for a fresh host the step whose number the memory has in its bytes."""
    names = ["cpu_data", "gpu_data", "mutable_cpu_data", "mutable_gpu_data"]
    walk = random.Random(5).choices(names, k=60)  # noqa: S311 -- a walk, not a secret
    with SyncedMemory(4, device="simulated") as memory:
        for number, (name, shown) in enumerate(zip(walk, explorer.play(walk), strict=True), 1):
            view: Any = getattr(memory, name)()
            if name == "mutable_cpu_data":
                view[:] = number
            elif name == "mutable_gpu_data":
                view.set(view.get() * 0 + number)
            if "cpu" in shown.fresh:
                assert shown.holds["cpu"] in (f"what step {memory.cpu_data()[0]} wrote", "zeros")


@pytest.mark.parametrize(
    ("name", "calls", "said"),
    [
        ("caffe", "gpu_data cpu_data", "Because the head is HEAD_AT_GPU and has_cpu_pointer is false|Now fresh: cpu"),
        ("caffe", "gpu_data cpu_data", "copies from gpu to cpu|Now true: has_cpu_pointer|syncedmem.cpp:50-55"),
        ("caffe", "async_gpu_push", "Refused: async_gpu_push is not allowed in head UNINITIALIZED|Nothing has changed"),
        ("caffe", "release cpu_data", "Refused: the memory is released"),
        ("petsc", "VecGetArrayWrite VecCUDAGetArray", "the head is CPU and GPUarray is false|Now stale: host|step 2"),
        ("msi", "write_a read_b", "write_back_a copies from a to mem|Still fresh: a|Now fresh: mem and b"),
        ("tcp", "active_open", "Because the head is CLOSED"),
        (
            "proto",
            "constructor <script>",
            "the head is to String (row|frees __proto__|Now fresh: to String|Now false: hasOwnProperty",
        ),
    ],
)
def test_each_step_says_because(
    explorer: Explorer, pages: dict[Machine, Path], name: str, calls: str, said: str
) -> None:
    explorer.visit(pages[SHOWN[name][0]])
    text = explorer.call(*calls.split()).said

    assert [word for word in said.split("|") if word not in text] == []
    links = explorer.run("return [...document.querySelectorAll('#step a')].map((it) => it.href)")
    assert all("/blob/9b8915401/src/caffe/syncedmem.cpp#L" in link for link in links)
    assert bool(links) == (name == "caffe" and "released" not in said)


def test_a_question_comes_first_where_it_is_wanted(explorer: Explorer, pages: dict[Machine, Path]) -> None:
    explorer.visit(pages[MSI])
    explorer.press("#asking")
    assert not explorer.run("return document.querySelector('.effect').textContent.includes('fetch')")
    for call, sides, right in (("read_a", ["mem", "a"], "true"), ("write_b", ["a", "b"], "false")):
        assert call not in explorer.call(call).called, "it is not made before there is an answer"
        assert explorer.run("return document.activeElement.value") == "mem"
        for side in sides:
            explorer.press(f"#question [value={side}]")
        explorer.press("#question button")
        assert explorer.find("#question p").get_attribute("data-right") == right
        assert explorer.shown().called == [call]
        assert explorer.run("return document.activeElement.dataset.do") == call
    assert "you said a and b. Fresh after write_b: b. 1 of 2 right." in explorer.text("question")
    explorer.visit(pages[TCP])
    assert not explorer.find("#asking").is_displayed(), "its heads do not say what is fresh"


def test_an_action_can_fail_and_nothing_has_changed(explorer: Explorer, pages: dict[Machine, Path]) -> None:
    explorer.press("#failing")
    for call, actions in (("cpu_data", 2), ("gpu_data", 2), ("set_cpu_data", 2)):
        for k in range(1, actions + 1):
            was = explorer.shown()
            explorer.press(f'[data-fail="{call}!{k}"]')
            shown = explorer.shown()
            assert [outcome for _, outcome in shown.actions] == ["done"] * (k - 1) + ["failed"] + ["not tried"] * (
                2 - k
            )
            assert "The call is undone" in shown.said
            assert shown[:2] + shown[3:6] == was[:2] + was[3:6]
        explorer.call(call)
    explorer.visit(pages[PETSC])
    assert not explorer.find("#failing").is_displayed(), "nobody says that PETSc undoes a call"


def test_undo_and_restart_bring_back_what_was_there(explorer: Explorer) -> None:
    seen = [explorer.shown()]
    calls = "set_mode(CPU)", "cpu_data", "set_cpu_data(NULL)", "mutable_gpu_data", "release"
    seen += [explorer.call(call) for call in calls]
    for before in seen[-2::-1]:
        explorer.press("#undo")
        assert explorer.shown() == before
    assert not explorer.find("#undo").is_enabled()
    explorer.call("cpu_data", "gpu_data")
    explorer.press("#restart")
    assert explorer.shown() == seen[0]


def test_a_cell_leads_to_its_configuration_and_makes_the_call(explorer: Explorer) -> None:
    explorer.press('[data-cell="G:oe set_cpu_data"]')
    shown = explorer.shown()

    assert shown.configuration == "C:ee"
    assert [name for name, _ in shown.actions] == ["free_cpu", "adopt_cpu"]
    assert explorer.run("return document.querySelector('.cell.last').dataset.cell") == "G:oe set_cpu_data"
    steps = len(explorer.steps())
    assert explorer.text("cells-note") == f"{steps} of 153 taken"


def test_a_random_walk_takes_steps_that_are_not_refused(explorer: Explorer) -> None:
    explorer.press("#walk")  # the browser asks for reduced motion, so the walk ends at once

    assert len(explorer.steps()) == 24
    assert explorer.run("return document.querySelector('#steps .refused')") is None
    explorer.command("Emulation.setEmulatedMedia", features=[])
    explorer.press("#walk")
    explorer.wait_for_value("return document.querySelectorAll('#steps li').length > 25")
    explorer.press("#walk")
    assert explorer.text("walk").split()[1] == "Random", "it was stopped"
    assert 25 < len(explorer.steps()) < 48


# --- access


def test_on_a_phone_the_drawing_stays_in_sight(explorer: Explorer) -> None:
    explorer.look(390, 844)
    explorer.call(*BUSY, "mutable_cpu_data")
    explorer.run("return new Promise((resolve) => setTimeout(resolve, 300))")
    seen = explorer.run("return document.querySelector('rect.here').getBoundingClientRect().toJSON()")

    assert 0 <= seen["top"] < seen["bottom"] < 844 < explorer.run("return 844 + scrollY")


_AXE = """
return axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}).then(({violations}) =>
  violations.map(({id, nodes}) => ({id, where: nodes.slice(0, 3).map(({html}) => html)})));
"""

_COVERED = """
const wide = document.documentElement.clientWidth;
return [...document.querySelectorAll("button:enabled, input")].filter((it) => it.checkVisibility()).filter((it) => {
  it.scrollIntoView({block: "center", inline: "center"});
  const {x, y, width, height, left, right} = it.getBoundingClientRect();
  const there = document.elementFromPoint(x + width / 2, y + height / 2);
  return left < 0 || right > wide || there?.closest("button, input") !== it;
}).map((it) => it.outerHTML);
"""


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", SHOWN)
def test_every_page_fits_its_window_and_axe_finds_nothing(
    explorer: Explorer, pages: dict[Machine, Path], name: str, look: str, pictures: Path
) -> None:
    """No control is covered, sticks out or has no name. With --screenshots, the test saves pictures."""
    machine, calls = SHOWN[name]
    width, height, dark = LOOKS[look]
    explorer.look(width, height, dark=dark)
    explorer.visit(pages[machine])
    explorer.play(calls)
    explorer.picture(pictures / f"explorer-{name}-{look.replace(' ', '-')}.png")
    fits = explorer.run("return document.documentElement.scrollWidth")
    for setting in ("#failing", "#asking"):
        if explorer.find(setting).is_displayed():
            explorer.press(setting)
            assert explorer.run(_COVERED) == []
            explorer.run("scrollTo(0, 0)")
    if explorer.find("#asking").is_displayed():
        explorer.run("document.querySelector('.do').click()")
        assert explorer.find("#question form").is_displayed()

    explorer.run(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    assert explorer.run(_AXE) == []
    assert fits == explorer.run("return document.documentElement.scrollWidth") == width
    assert explorer.run("return performance.getEntriesByType('resource').map(({name}) => name)") == []


def keys(explorer: Explorer, *pressed: str) -> None:
    from selenium.webdriver import ActionChains

    for key in pressed:
        ActionChains(explorer.driver).send_keys(key).perform()


def test_everything_can_be_done_with_the_keyboard_and_is_told(explorer: Explorer) -> None:
    from selenium.webdriver.common.keys import Keys

    for pressed, configuration in (("1", "C:o-"), ("6", "G:oo"), ("u", "C:o-"), ("x", "U:--"), ("u", "U:--")):
        keys(explorer, pressed)
        assert explorer.shown().configuration == configuration
    explorer.press("#shortcuts")
    keys(explorer, "1")
    assert explorer.steps() == []
    explorer.run("document.querySelector('[data-do=gpu_data]').focus()")
    keys(explorer, Keys.ENTER)
    assert explorer.text("live") == "gpu_data: allocate_gpu, zero_gpu. HEAD_AT_GPU. Fresh: gpu."
    assert explorer.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys(explorer, Keys.TAB, Keys.SPACE)
    assert explorer.shown().configuration == "G:-o", "the next button is mutable_gpu_data"
    explorer.call("set_cpu_data(NULL)")
    assert "refused" in explorer.text("live")
    explorer.run("document.querySelector('.cell').focus()")
    keys(explorer, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert explorer.steps() == ["cpu_data", "mutable_cpu_data"]
    wanted = explorer.run(
        "return [...document.querySelectorAll('button, input')].filter((it) => it.checkVisibility()"
        " && !it.disabled && it.tabIndex >= 0).length"
    )
    reached = set[str]()
    for _ in range(wanted + 12):
        keys(explorer, Keys.TAB)
        reached.add(explorer.run("const it = document.activeElement; return it.tabIndex < 0 ? '' : it.outerHTML"))
    assert sum(element.startswith(("<button", "<input")) for element in reached) == wanted > 15


def test_without_scripts_there_are_the_picture_and_the_table(explorer: Explorer, pages: dict[Machine, Path]) -> None:
    explorer.command("Emulation.setScriptExecutionDisabled", value=True)
    explorer.visit(pages[PETSC])
    shown = {
        name: explorer.find(name).is_displayed() for name in ("#drawing svg", "noscript table", "#calls", "#cells")
    }
    explorer.command("Emulation.setScriptExecutionDisabled", value=False)

    assert shown == {"#drawing svg": True, "noscript table": True, "#calls": False, "#cells": False}


@pytest.mark.parametrize("dark", [False, True], ids=["light system", "dark system"])
def test_the_theme_follows_the_switch_of_the_site(explorer: Explorer, tmp_path: Path, dark: bool) -> None:
    """At once, in a frame; ``auto`` is the theme of the system. The drawing has the same theme."""
    tmp_path.joinpath("machine.html").write_text(explorer_page(theme_key="mode"), encoding="utf-8")
    press = "localStorage.setItem('mode', this.textContent)"
    buttons = "".join(f'<button onclick="{press}">{name}</button>' for name in ("light", "dark", "auto"))
    site = tmp_path / "index.html"
    site.write_text(
        f'<!doctype html><title>A</title><link rel="icon" href="data:,">{buttons}<iframe src="machine.html"></iframe>',
        encoding="utf-8",
    )
    explorer.look(1280, 900, dark=dark)
    explorer.visit(site)
    explorer.run("localStorage.clear()")
    for number, colour in ((2, DARK), (1, LIGHT), (3, DARK if dark else LIGHT)):
        explorer.press(f"button:nth-of-type({number})")
        explorer.driver.switch_to.frame(0)
        explorer.wait_for_value(f"return getComputedStyle(document.body).backgroundColor === '{colour}'")
        ink = explorer.run("return getComputedStyle(document.querySelector('.smd-name')).fill")
        assert ink == ("rgb(230, 237, 243)" if colour == DARK else "rgb(31, 35, 40)")
        explorer.driver.switch_to.default_content()


def test_calls_without_a_row_are_named_and_are_no_buttons(explorer: Explorer, pages: dict[Machine, Path]) -> None:
    explorer.visit(pages[TCP])
    buttons = "return [...document.querySelectorAll('.call')].filter((it) => it.checkVisibility()).length"
    assert 2 == explorer.run(buttons)
    assert "5 calls have no row here" in explorer.text("folded")
    explorer.call("passive_open")
    assert 1 == explorer.run(buttons)
    assert explorer.find("[data-do=syn]").is_displayed()
    explorer.visit(pages[MSI])
    assert not explorer.text("folded")


def test_calls_of_one_group_have_one_heading(explorer: Explorer, pages: dict[Machine, Path]) -> None:
    headings = "return [...document.querySelectorAll('#calls-title, #call-list legend')].map((it) => it.textContent)"
    explorer.visit(pages[TCP])
    assert ["Calls"] == explorer.run(headings)
    explorer.visit(pages[MSI])
    assert ["Calls", "a", "b", "c"] == explorer.run(headings)
