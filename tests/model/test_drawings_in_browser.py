"""In drawings as Chromium paints them, with its real fonts, no word overlaps anything."""

from __future__ import annotations

from html import escape
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from drawings import collisions, head_boxes, lying_on, parsed, stretches, within
from machines import EXAMPLES, ODD
from pictured import PICTURED
from programs import npm_file

from syncedmem.model import EDITIONS
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail, Direction, drawing
from syncedmem.model.diagrams.palette import DARK, LIGHT, Palette, Theme
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.mermaid import mermaid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browser import Explorer

    from syncedmem.model import Machine

pytestmark = pytest.mark.deep

HOST = "cpu_data mutable_cpu_data set_cpu_data"
TRACES = ("", HOST, f"{HOST} " * 40)

_WORDS = """
const pen = document.createElement("canvas").getContext("2d");
return [...document.querySelectorAll("svg")].map((drawing) => [...drawing.querySelectorAll("text")].map((text) => {
  const { fontWeight, fontSize, fontFamily } = getComputedStyle(text);
  pen.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  const ink = pen.measureText(text.textContent);
  const [x, y] = ["x", "y"].map((name) => Number(text.getAttribute(name)));
  const held = text.getComputedTextLength();
  text.removeAttribute("textLength");
  return [text.textContent, x, y - ink.actualBoundingBoxAscent, x + Math.max(held, text.getComputedTextLength()),
    y + ink.actualBoundingBoxDescent];
}));
"""


class Shown(NamedTuple):
    """A drawing, and the options it was made with."""

    name: str
    text: str


def shown() -> list[Shown]:
    """Return drawings of all editions and details: without a trace, with a short trace, and with long numbers."""
    found = [Shown("covered", diagram_svg(covered=())), Shown("early, covered", diagram_svg("early", covered=()))]
    for edition, detail, calls in product(EDITIONS, Detail, TRACES):
        trace = trace_of(calls, edition=edition, size=1 << 40) if calls else None
        text = diagram_svg(edition, detail=detail, trace=trace)
        found.append(Shown(f"{edition}, {detail}, {calls[:30]}", text))
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    pytest.importorskip("selenium", reason="Selenium is not installed: pip install selenium")
    from browser import MISSING, Explorer

    if MISSING:
        pytest.skip(MISSING)
    explorer = Explorer(tmp_path_factory.mktemp("drawings") / "page.html")
    yield explorer
    explorer.driver.quit()


def opened(browser: Explorer, path: Path, body: str) -> None:
    """Open a page with some elements."""
    path.write_text(f'<!doctype html><meta charset="utf-8">{body}', encoding="utf-8")
    browser.driver.get(path.as_uri())


def lies_on(drawing: Shown, words: list[list[Any]]) -> list[tuple[str, str]]:
    """Return what overlaps the boxes of words: other words, arrows, and states that do not contain the word."""
    root = parsed(drawing.text)
    boxes = [(f"{text} at {x:g},{y:g}", (x, y, to_x, to_y)) for text, x, y, to_x, to_y in words]
    found = collisions(boxes)
    for thing in stretches(root):
        found += lying_on(thing, boxes)
    for name, state in head_boxes(root).items():
        found += lying_on((name, state), (word for word in boxes if not within(word[1], state)))
    return [pair for pair in dict.fromkeys(found) if pair[0] != pair[1]]


def test_no_word_lies_on_anything(browser: Explorer, tmp_path: Path) -> None:
    drawings = shown()
    opened(browser, tmp_path / "all.html", "".join(text for _, text in drawings))
    read = browser.run(_WORDS)
    assert len(read) == len(drawings) == 2 + len(EDITIONS) * len(Detail) * len(TRACES)
    assert not [
        (drawing.name, lies_on(drawing, words))
        for drawing, words in zip(drawings, read, strict=True)
        if lies_on(drawing, words)
    ]


_SEEN = """
return [...document.querySelectorAll("svg *")].flatMap((it) => ["fill", "stroke"].map((use) =>
  it.hasAttribute(use) ? getComputedStyle(it)[use] : "none"))
"""


def colours_of(palette: Palette) -> set[str]:
    """The colours as a browser writes them."""
    return {f"rgb({', '.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))})" for colour in palette}


def on_page(scheme: str, theme: Theme = Theme.AUTO) -> str:
    return f"<style>:root{{color-scheme:{scheme}}}</style>{diagram_svg(covered=(), theme=theme)}"


def switched(attribute: str) -> str:
    return f"<div {attribute}>{diagram_svg(covered=())}</div>"


@pytest.mark.parametrize("dark", [False, True], ids=["light system", "dark system"])
@pytest.mark.parametrize(
    ("body", "palette"),
    [
        (on_page("light"), LIGHT),
        (on_page("dark"), DARK),
        (on_page("normal"), LIGHT),
        (on_page("dark", Theme.LIGHT), LIGHT),
        (on_page("light", Theme.DARK), DARK),
        (switched('data-theme="dark"'), DARK),
        (switched('data-theme="light"'), LIGHT),
        (switched('data-theme="auto"'), None),
        (switched('data-md-color-scheme="slate"'), DARK),
        (switched('data-md-color-scheme="default"'), LIGHT),
        (on_page("light dark"), None),
        ("", None),
    ],
    ids=range(12),
)
def test_a_drawing_is_light_or_dark_as_its_page(
    browser: Explorer, tmp_path: Path, body: str, palette: Palette | None, *, dark: bool
) -> None:
    """By the page's scheme, its theme, or what a reader chose with the switch of Furo, PyData or Material for MkDocs.

    A page that names no scheme is light; where the page leaves it open, and for a file, the system decides.
    """
    browser.look(1360, 1000, dark=dark)
    if body:
        opened(browser, tmp_path / "theme.html", body)
    else:
        (tmp_path / "machine.svg").write_text(diagram_svg(covered=()), encoding="utf-8")
        browser.driver.get((tmp_path / "machine.svg").as_uri())
    seen = set(browser.run(_SEEN)) - {"none"}
    assert seen <= colours_of(palette or (DARK if dark else LIGHT))
    assert len(seen) >= 6


def test_an_image_has_its_own_size(browser: Explorer, tmp_path: Path) -> None:
    """It keeps its size where the page does not set one."""
    (tmp_path / "machine.svg").write_text(diagram_svg(), encoding="utf-8")
    opened(browser, tmp_path / "image.html", '<span style="display:inline-block"><img src="machine.svg"></span>')
    root = parsed(diagram_svg())
    size = browser.run("const it = document.querySelector('img'); return [it.width, it.height]")
    assert size == [pytest.approx(float(root.attrib[name]), abs=0.51) for name in ("width", "height")]


# --- Mermaid, as Mermaid itself draws it

_MERMAID = "mermaid@11.17.2"
_DRAW = """
const done = arguments[arguments.length - 1];
mermaid.initialize({ startOnLoad: false });
mermaid.run({ querySelector: ".diagram" }).then(() => done(
  [...document.querySelectorAll(".edgeLabels .edgeLabel .label, g.node")].map((it) => {
    const { x, y, width, height } = it.getBoundingClientRect();
    return [it.textContent.trim(), x, y, x + width, y + height];
  }).filter(([text, x, y, right, bottom]) => right > x && bottom > y)
)).catch((error) => done(error.message));
"""
_TOO_LARGE = ("early", Detail.CONFIGURATIONS)
"""A label of this drawing lies on another with every room between them that was tried; docs/exports.md says so."""


def drawn_by_mermaid(browser: Explorer, tmp_path: Path, text: str) -> list[tuple[str, tuple[float, ...]]]:
    """The boxes of labels and states."""
    script = npm_file(_MERMAID, "dist/mermaid.min.js").as_uri()
    block = f'<div style="width:3000px"><pre class="diagram">{escape(text)}</pre></div><script src="{script}"></script>'
    opened(browser, tmp_path / "mermaid.html", block)
    found: Any = browser.driver.execute_async_script(_DRAW)
    assert not isinstance(found, str), found
    return [(str(name), tuple(box)) for name, *box in found]


def lying(boxes: list[tuple[str, tuple[float, ...]]]) -> list[tuple[str, str]]:
    """The pairs of boxes that share more than a pixel."""
    return [
        (one, other)
        for (one, (x, y, right, bottom)), (other, (x2, y2, right2, bottom2)) in combinations(boxes, 2)
        if min(right, right2) - max(x, x2) > 1 and min(bottom, bottom2) - max(y, y2) > 1
    ]


@pytest.mark.parametrize(("edition", "detail"), sorted(set(product(EDITIONS, Detail)) - {_TOO_LARGE}))
def test_mermaid_draws_no_label_on_another(browser: Explorer, tmp_path: Path, edition: str, detail: Detail) -> None:
    boxes = drawn_by_mermaid(browser, tmp_path, mermaid(edition, detail=detail))

    assert len(boxes) > len(EDITIONS[edition].heads)
    assert [] == lying(boxes)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("machine", [*EXAMPLES, ODD, *PICTURED], ids=str)
def test_mermaid_shows_every_name_of_any_machine(
    browser: Explorer, tmp_path: Path, machine: Machine, direction: Direction
) -> None:
    text = mermaid(machine, direction=direction)
    shown = "".join("".join(name.split()) for name, _ in drawn_by_mermaid(browser, tmp_path, text))
    words = [*machine.heads, *(line.call for edge in drawing(machine).edges for line in edge.lines)]

    assert [] == [word for word in words if "".join(word.split()) not in shown]
