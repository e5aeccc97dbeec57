"""In a real browser: the page does what the model does, for any machine, and everybody can use it."""

from __future__ import annotations

import random
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from machines import EXAMPLES, MSI, PETSC, TCP

from syncedmem import SyncedMemory
from syncedmem.explorer import explorer_page
from syncedmem.explorer.trace import MOST_STEPS
from syncedmem.model import EDITIONS, Input, Machine, caffe, matrix
from syncedmem.model.states import explore, stepper
from syncedmem.spec.evidence.caffe_tests import CAFFE_TESTS
from syncedmem.spec.vectors import vectors

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Explorer

    from syncedmem.model.states import Space

pytestmark = pytest.mark.deep

LOOKS = {
    "small phone": (320, 640, False),
    "phone": (390, 844, False),
    "dark phone": (390, 844, True),
    "laptop": (1280, 800, False),
    "dark laptop": (1280, 800, True),
}
BUSY = ["cpu_data", "mutable_gpu_data", "set_cpu_data", "gpu_data!1", "gpu_data", "async_gpu_push"]
SHOWN: dict[str, tuple[Machine, list[str]]] = {
    "caffe": (caffe.CAFFE, BUSY),
    "petsc": (PETSC, ["VecGetArrayWrite", "VecCUDAGetArray"]),
    "msi": (MSI, ["read_a", "read_b", "write_c"]),
    "tcp": (TCP, []),
}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(14, 18, 23)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Machine, str]:
    """The address of the page of each machine."""
    folder, found = tmp_path_factory.mktemp("pages"), dict[Any, str]()
    for machine in (*EDITIONS.values(), *EXAMPLES):
        path = folder / f"{machine.name}.html"
        path.write_text(explorer_page(edition=machine), encoding="utf-8")
        found[machine] = path.as_uri()
    return found


def ways_of(whole: Space) -> dict[Any, list[str]]:
    """The inputs that lead to each state."""
    found: dict[Any, list[str]] = {whole.start: []}
    for state, row in whole.steps.items():
        for entry, step in row.items():
            if not entry.ends:
                found.setdefault(step.after, [*found[state], str(entry)])
    return found


# --- the machine


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *EXAMPLES], ids=str)
def test_every_step_does_what_the_model_says(explorer: Explorer, pages: dict[Machine, str], machine: Machine) -> None:
    """An address leads to each state, and each button makes its call: 744 steps of Caffe's machine."""
    from browser import Program, address, button

    takes = stepper(machine)
    whole = explore(takes, takes.inputs(end=True))
    ways = ways_of(whole)
    steps = [(state, entry, step) for state, row in whole.steps.items() for entry, step in row.items()]
    explorer.visit(pages[machine])
    programs = [Program(address(ways[state]), [button(str(entry))]) for state, entry, _ in steps]
    for (state, entry, step), (was, shown) in zip(steps, explorer.play(programs), strict=True):
        assert was.configuration == str(whole.configuration(state))
        assert shown.actions == [[action, "done"] for action in step.actions]
        assert bool(shown.refusal) == bool(step.refusal)
        assert shown.row == (step.row.identifier(state.head) if step.row else None)
        assert shown.called == [str(entry)]
        if entry.ends:
            assert (shown.configuration, shown.lit, shown.facts) == ("released", [], [])
            continue
        assert shown.configuration == str(whole.configuration(step.after))
        assert shown.lit == [step.after.head]
        assert {*shown.facts} == step.after.facts
        assert shown.settings == list(step.after.settings)
        assert {*shown.fresh} == {*machine.heads[step.after.head].fresh}


def test_a_walk_holds_what_a_real_memory_holds(explorer: Explorer) -> None:
    """After random calls, the page names for a fresh host the step whose number the memory has in its bytes."""
    from browser import Program, address, button

    names = ["cpu_data", "gpu_data", "mutable_cpu_data", "mutable_gpu_data"]
    walk = random.Random(5).choices(names, k=60)  # noqa: S311 -- a walk, not a secret
    ((_, *seen),) = explorer.play([Program(address(), list(map(button, walk)))])
    with SyncedMemory(4, device="simulated") as memory:
        for number, (name, shown) in enumerate(zip(walk, seen, strict=True), 1):
            view: Any = getattr(memory, name)()
            if name == "mutable_cpu_data":
                view[:] = number
            elif name == "mutable_gpu_data":
                view.set(view.get() * 0 + number)
            assert shown.live == memory.own_cpu_data + memory.own_gpu_data
            if "cpu" in shown.fresh:
                assert shown.holds["cpu"] in (f"what step {memory.cpu_data()[0]} wrote", "zeros")


@pytest.mark.parametrize(
    ("name", "calls", "said"),
    [
        ("caffe", "gpu_data cpu_data", "Because the head is HEAD_AT_GPU and has_cpu_pointer is false|Now fresh: cpu"),
        (
            "caffe",
            "gpu_data cpu_data",
            "copy_to_cpu copies from gpu to cpu|Now true: has_cpu_pointer|syncedmem.cpp:50-55",
        ),
        ("caffe", "async_gpu_push", "Refused: async_gpu_push is not allowed in head UNINITIALIZED|Nothing has changed"),
        ("caffe", "release cpu_data", "Refused: the memory is released"),
        ("petsc", "VecGetArrayWrite VecCUDAGetArray", "the head is CPU and GPUarray is false|Now stale: host|step 2"),
        ("msi", "write_a read_b", "write_back_a copies from a to mem|Still fresh: a|Now fresh: mem and b"),
        ("tcp", "active_open", "Because the head is CLOSED"),
    ],
)
def test_each_step_says_because(
    explorer: Explorer, pages: dict[Machine, str], name: str, calls: str, said: str
) -> None:
    explorer.visit(pages[SHOWN[name][0]])
    for call in calls.split():
        explorer.call(call)
    text = " ".join(explorer.shown().said.replace("\n", " ").split())

    assert [it for it in said.split("|") if it not in text] == []
    links = explorer.run("return [...document.querySelectorAll('#step a')].map((it) => it.href)")
    assert all("/blob/9b8915401/src/caffe/syncedmem.cpp#L" in it for it in links)
    assert bool(links) == (name == "caffe" and "released" not in said)


def test_a_question_comes_first_where_it_is_wanted(explorer: Explorer, pages: dict[Machine, str]) -> None:
    explorer.visit(pages[MSI])
    explorer.press("#asking")
    assert not explorer.run("return document.querySelector('.effect').textContent.includes('fetch')")
    for call, sides, right in (("read_a", ["mem", "a"], "true"), ("write_b", ["a", "b"], "false")):
        explorer.call(call)
        assert explorer.run("return document.activeElement.value") == "mem"
        assert call not in explorer.shown().called, "it is not made before there is an answer"
        for side in sides:
            explorer.press(f"#question [value={side}]")
        explorer.press("#question button")
        assert explorer.find("#question p").get_attribute("data-right") == right
        assert explorer.shown().called == [call]
        assert explorer.run("return document.activeElement.dataset.do") == call
    assert "you said a and b. Fresh after write_b: b. 1 of 2 right." in explorer.text("question")
    explorer.visit(pages[TCP])
    assert not explorer.find("#asking").is_displayed(), "its heads do not say what is fresh"


def test_an_action_can_fail_and_nothing_has_changed(explorer: Explorer, pages: dict[Machine, str]) -> None:
    for call, actions in (("cpu_data", 2), ("gpu_data", 2), ("set_cpu_data", 2), ("release", 1)):
        for k in range(1, actions + 1):
            was = explorer.shown()
            explorer.run("document.getElementById('failing').checked || document.getElementById('failing').click()")
            explorer.press(f'[data-fail="{call}!{k}"]')
            shown = explorer.shown()
            assert (shown.unchanged, shown.actions[k - 1][1]) == ("true", "failed")
            assert shown[:1] + shown[3:6] + (shown.live,) == was[:1] + was[3:6] + (was.live,)
        explorer.call(call)
    explorer.go(["cpu_data", "gpu_data", "release!2", "release!1"])
    assert (explorer.shown().configuration, explorer.shown().live) == ("released", 1)
    explorer.call("release")
    assert explorer.shown().live == 0
    explorer.visit(pages[PETSC])
    assert not explorer.find("#failing").is_displayed(), "nobody says that PETSc undoes a call"


# --- going back, addresses, traces


def test_undo_restart_and_the_address_bring_back_what_was_there(explorer: Explorer) -> None:
    seen = [explorer.shown()]
    for call in ("set_mode(CPU)", "cpu_data", "set_cpu_data(NULL)", "mutable_gpu_data", "release"):
        explorer.call(call)
        seen.append(explorer.shown())
    for button, states in (("#undo", seen[-2::-1]), ("#forward", seen[1:])):
        for state in states:
            explorer.press(button)
            assert explorer.shown() == state
    explorer.press("#undo")
    kept = explorer.wait_for_address("at=4")
    explorer.visit(kept)
    assert explorer.shown() == seen[4]
    explorer.press("#forward")
    assert explorer.shown() == seen[5]
    explorer.press("#reset")
    assert explorer.shown() == seen[0]


def test_the_page_works_where_the_address_may_not_be_written(explorer: Explorer) -> None:
    """Browsers forbid it to pages of files, or after many changes."""
    explorer.run("history.replaceState = () => { throw new DOMException('no', 'SecurityError'); }")
    explorer.call("cpu_data")
    explorer.run("return new Promise((resolve) => setTimeout(resolve, 500))")
    explorer.call("gpu_data")

    assert explorer.steps() == ["cpu_data", "gpu_data"]
    explorer.run(
        "navigator.clipboard.writeText = () => Promise.reject(); window.prompt = (_, it) => (window.link = it)"
    )
    explorer.press("#share")
    assert str(explorer.wait_for_value("return window.link")).endswith("#machine=caffe&calls=cpu_data,gpu_data")


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        ("machine=nobody&calls=cpu_data", "nobody: this page is about caffe", "cpu_data"),
        ("calls=gpu_data,fly,cpu_data", "fly: caffe has no such call", "gpu_data,cpu_data"),
        ("at=9&calls=cpu_data", "at=9: it has to be a number from 0 to 1, so it is 1", "cpu_data"),
        ("calls=cpu_data!x", "cpu_data!x: behind ! has to be the number of", "cpu_data"),
        ("calls=cpu_data!9", "cpu_data!9: it has 2 actions, so none fails", "cpu_data"),
        ("colour=red", "colour: there is no such thing to say; there are machine,", ""),
        ("at=0&at=1&calls=cpu_data", "at: it is said twice, and the first counts", "cpu_data"),
        ("calls=%ff,cpu_data", "%ff: caffe has no such call", "cpu_data"),
        ("edition=caffe&mode=CPU&calls=set_cpu_data%28NULL%29", "", "set_mode(CPU),set_cpu_data(NULL)"),
    ],
)
def test_what_an_address_says_wrongly_is_said_and_the_rest_is_kept(
    explorer: Explorer, asked: str, said: str, kept: str
) -> None:
    explorer.visit(f"{explorer.address}#{asked}")

    assert said in explorer.text("unclear")
    assert explorer.find("#unclear").is_displayed() == bool(said)
    assert explorer.steps() == kept.split(",") * bool(kept)
    explorer.call("gpu_data")
    assert not explorer.find("#unclear").is_displayed()


def test_traces_are_stepped_through(explorer: Explorer, tmp_path: Path) -> None:
    def load(text: str) -> str:
        explorer.run("document.getElementById('trace-text').value = arguments[0]", text)
        explorer.press("#trace-load")
        return explorer.text("trace-answer")

    assert load("cpu_data()\nset_mode(CPU)\ngpu_data!2\n") == "Loaded: 3 steps."
    assert explorer.steps() == ["cpu_data", "set_mode(CPU)", "gpu_data"]
    assert (load("fly"), load(" ")) == ("caffe has no call fly.", "There are 0 calls; it takes 1 to 10,000.")
    assert "takes 1 to 10,000" in load("cpu_data " * (MOST_STEPS + 1))
    assert load("cpu_data " * MOST_STEPS) == "Loaded: 10,000 steps."
    explorer.press("#forward")
    assert explorer.text("totals") == "1 of 10,000 steps"
    vector = list(vectors("tour", "caffe"))[3]
    explorer.find("#vector-id").send_keys(vector.id + "\n")
    assert len(explorer.steps()) == len(vector.program.operations)
    explorer.find("#vector-id").clear()
    explorer.find("#vector-id").send_keys("b\n")
    assert "more characters are needed" in explorer.text("vector-answer")
    page = tmp_path / "page.html"
    steps = '{"steps": ["cpu_data"]}\n{"id": "two", "steps": ["gpu_data"]}\n{"program": [["allocate", 0, 8]]}'
    page.write_text(explorer_page(steps), encoding="utf-8")
    explorer.visit(page.as_uri())
    assert explorer.steps() == ["cpu_data"]
    explorer.press('[data-walk="vector two"]')
    assert explorer.steps() == ["gpu_data"]
    explorer.press("#opened li:last-child button")
    assert "allocate(block=0, size=8) live: block 0 (8 bytes)" in explorer.text("program")


def test_caffes_seven_tests_take_few_cells(explorer: Explorer) -> None:
    taken = set[str]()
    for test in CAFFE_TESTS:
        configuration = next(iter(matrix(caffe.CAFFE)))
        for call in test.calls:
            taken.add(f"{configuration} {call}")
            configuration = matrix(caffe.CAFFE)[configuration][Input(call)].after
    explorer.press("#missed")
    missed = explorer.run("return [...document.querySelectorAll('.cell.missed')].map((cell) => cell.dataset.cell)")
    assert (len(taken), len(missed)) == (13, 140)
    assert taken.isdisjoint(missed)
    for test in CAFFE_TESTS:
        explorer.press(f'[data-walk="{test.name}"]')
        assert explorer.text("totals") == f"0 of {len(test.calls) + 2} steps"
    explorer.press("#walk")  # the browser asks for reduced motion, so the walk ends at once
    assert (explorer.text("totals"), explorer.run("return document.querySelector('#steps .refused')")) == (
        "24 of 24 steps",
        None,
    )
    explorer.press('[data-cell="G:oe set_cpu_data"]')
    assert explorer.shown().configuration == "C:ee"
    assert [name for name, _ in explorer.shown().actions] == ["free_cpu", "adopt_cpu"]


# --- access


def test_on_a_phone_the_drawing_stays_in_sight(explorer: Explorer) -> None:
    explorer.look(390, 844)
    explorer.open(BUSY)
    explorer.press('[data-do="mutable_cpu_data"]')
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
    explorer: Explorer, pages: dict[Machine, str], name: str, look: str, pictures: Path
) -> None:
    """No control is covered, sticks out or has no name. With --screenshots, the test saves pictures."""
    machine, calls = SHOWN[name]
    width, height, dark = LOOKS[look]
    explorer.look(width, height, dark=dark)
    explorer.visit(f"{pages[machine]}#calls={','.join(calls)}")
    explorer.picture(pictures / f"explorer-{name}-{look.replace(' ', '-')}.png")
    fits = explorer.run("return document.documentElement.scrollWidth")
    for setting in ("#failing", "#asking"):
        if explorer.find(setting).is_displayed():
            explorer.press(setting)
            assert explorer.run(_COVERED) == []
            explorer.run("scrollTo(0, 0)")
    if machine is not TCP:
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

    for pressed, configuration in (("1", "C:o-"), ("6", "G:oo"), ("u", "C:o-"), ("n", "G:oo"), ("x", "U:--")):
        keys(explorer, pressed)
        assert explorer.shown().configuration == configuration
    keys(explorer, "?")
    assert explorer.find("#help").is_displayed()
    explorer.run("document.getElementById('shortcuts').checked = false")
    keys(explorer, Keys.ESCAPE, "1")
    assert not explorer.find("#help").is_displayed()
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
    controls = "button, input, textarea"
    wanted = explorer.run(
        f"return [...document.querySelectorAll('{controls}')].filter((it) => it.checkVisibility()"
        " && !it.disabled && it.tabIndex >= 0).length"
    )
    reached = set[str]()
    for _ in range(wanted + 12):
        keys(explorer, Keys.TAB)
        reached.add(explorer.run("const it = document.activeElement; return it.tabIndex < 0 ? '' : it.outerHTML"))
    assert sum(f"<{it}" in element[:9] for element in reached for it in controls.split(", ")) == wanted > 20


def test_without_scripts_there_are_the_picture_and_the_table(explorer: Explorer, pages: dict[Machine, str]) -> None:
    explorer.command("Emulation.setScriptExecutionDisabled", value=True)
    explorer.driver.get(pages[PETSC])
    shown = {it: explorer.find(it).is_displayed() for it in ("#drawing svg", "noscript table", "#calls", "#library")}
    explorer.command("Emulation.setScriptExecutionDisabled", value=False)

    assert shown == {"#drawing svg": True, "noscript table": True, "#calls": False, "#library": False}


@pytest.fixture
def site(tmp_path: Path) -> str:
    """The address of a page that has a switch for its theme, and the explorer in a frame."""
    tmp_path.joinpath("machine.html").write_text(explorer_page(theme_key="mode"), encoding="utf-8")
    press = "localStorage.setItem('mode', this.textContent)"
    buttons = "".join(f'<button onclick="{press}">{it}</button>' for it in ("light", "dark", "auto"))
    page = (
        f'<!doctype html><title>A</title><link rel="icon" href="data:,">{buttons}<iframe src="machine.html"></iframe>'
    )
    tmp_path.joinpath("index.html").write_text(page, encoding="utf-8")
    return tmp_path.joinpath("index.html").as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light system", "dark system"])
def test_the_theme_follows_the_switch_of_the_site(explorer: Explorer, site: str, dark: bool) -> None:
    """At once, in a frame; ``auto`` is the theme of the system. The drawing has the same theme."""
    explorer.look(1280, 900, dark=dark)
    explorer.driver.get(site)
    explorer.run("localStorage.clear()")
    for number, colour in ((2, DARK), (1, LIGHT), (3, DARK if dark else LIGHT)):
        explorer.press(f"button:nth-of-type({number})")
        explorer.driver.switch_to.frame(0)
        explorer.wait_for_value(f"return getComputedStyle(document.body).backgroundColor === '{colour}'")
        ink = explorer.run("return getComputedStyle(document.querySelector('.smd-name')).fill")
        assert ink == ("rgb(230, 237, 243)" if colour == DARK else "rgb(31, 35, 40)")
        explorer.driver.switch_to.default_content()
