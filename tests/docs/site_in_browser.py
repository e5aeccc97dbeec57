"""The built site in a browser: nothing sticks out, colours go together, the search finds things.  `make docs` runs it.

As a program it takes pictures of the main pages: ``make screenshots``.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")
pytest.importorskip("selenium", reason="Selenium is not installed: pip install selenium")

from browser import MISSING, Explorer
from extension.command_line import commands, options
from PIL import Image
from selenium.webdriver.support.wait import WebDriverWait

from syncedmem.model import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(it.relative_to(SITE).as_posix() for it in SITE.rglob("*.html") if "_static" not in it.parts)
MAIN = ("index.html", "start.html", "concepts.html", "play.html", "machine.html", "errors.html", "requirements.html")
WIDTHS = (390, 1280)

DRAWINGS = {"concepts.html": "article img[src$='.svg']", "machine.html": "figure.machine svg", "play.html": "iframe"}
"""A picture in a file, a picture in the page, and a frame."""

EXCEPTIONS = [
    name for name, it in vars(errors).items() if isinstance(it, type) and issubclass(it, errors.SyncedMemoryError)
]
OPTIONS = sorted({option for name in commands() for option in options(name)})

_STICKING_OUT = """
const scrolls = (it) => /auto|scroll|hidden|clip/.test(getComputedStyle(it).overflowX);
const inside = (it) => {
  for (let at = it.parentElement; at !== document.body; at = at.parentElement) if (scrolls(at)) return true;
  return false;
};
const out = [...document.body.querySelectorAll("*")].filter((it) =>
  it.getBoundingClientRect().right > arguments[0] + 1 && it.checkVisibility() && !inside(it));
return [document.documentElement.scrollWidth - arguments[0], out.slice(0, 3).map((it) => it.outerHTML.slice(0, 120))];
"""
_PLACE = """
document.querySelector(arguments[0]).scrollIntoView();
const {x, y, width, height} = document.querySelector(arguments[0]).getBoundingClientRect();
return {x: x + scrollX, y: y + scrollY, width, height, scale: 0.25};
"""
_FOUND = """
const said = document.querySelector("#search-results .search-summary, #search-results p")?.textContent ?? "";
if (!/finished|did not match/.test(said)) return null;
return [...document.querySelectorAll("#search-results ul.search li a")].map((it) => it.textContent);
"""


class Site(Explorer):
    """The site in a browser."""

    def __init__(self) -> None:
        super().__init__(SITE / "index.html")

    def show(self, page: str, theme: str = "auto") -> None:
        """Open a page, for a reader who has chosen a theme."""
        address = (SITE / page).as_uri()
        self.driver.get(address)
        self.run("localStorage.setItem('mode', arguments[0]); localStorage.setItem('theme', arguments[0])", theme)
        self.driver.get("about:blank")
        self.driver.get(address)
        if DRAWINGS.get(page) == "iframe":
            self.driver.switch_to.frame(self.find("iframe"))
            self.wait_for_value("return 'complete' in document.body.dataset")
            self.driver.switch_to.default_content()

    def shade(self, selector: str) -> str:
        """Say whether an element is light or dark, as it is painted."""
        clip = self.run(_PLACE, selector)
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        brightness = Image.open(io.BytesIO(base64.b64decode(data))).convert("L").resize((1, 1)).getpixel((0, 0))
        assert isinstance(brightness, int | float)
        return "light" if brightness > 0xAA else "dark" if brightness < 0x55 else f"neither: {brightness} of 255"

    def sticking_out(self, width: int) -> tuple[int, list[str]]:
        """By how much the page is wider than a window, and the first elements that are.

        A browser that shows a wide page on a phone says that its window is wider.
        """
        excess, elements = self.run(_STICKING_OUT, width)
        return excess, elements

    def found(self, words: str) -> list[str]:
        """Return the titles of what the search finds."""
        self.driver.get(f"{(SITE / 'search.html').as_uri()}?q={words}")
        script = f"return ((found) => found && JSON.stringify(found))((() => {{ {_FOUND} }})())"
        titles: list[str] = json.loads(WebDriverWait(self.driver, 20).until(lambda _: self.run(script)))
        return titles


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    shown = Site()
    yield shown
    shown.driver.quit()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(site: Site, width: int) -> None:
    site.look(width, 900)
    wide: dict[str, object] = {}
    for page in PAGES:
        site.driver.get((SITE / page).as_uri())
        if (found := site.sticking_out(width)) != (0, []):
            wide[page] = found

    assert len(PAGES) > 40
    assert not wide


@pytest.mark.parametrize("page", MAIN)
def test_nothing_sticks_out_of_a_small_phone(site: Site, page: str) -> None:
    site.look(320, 900)
    site.driver.get((SITE / page).as_uri())

    assert (0, []) == site.sticking_out(320)


def test_what_sticks_out_is_found(site: Site) -> None:
    site.look(390, 900)
    site.driver.get((SITE / "index.html").as_uri())
    site.run("document.body.insertAdjacentHTML('beforeend', '<p style=width:900px>x</p>')")

    excess, elements = site.sticking_out(390)
    assert excess > 400
    assert elements[-1] == '<p style="width:900px">x</p>'


@pytest.mark.parametrize(("system", "theme"), [*product(("light", "dark"), ("light", "dark", "auto"))])
@pytest.mark.parametrize("page", DRAWINGS)
def test_pages_and_drawings_have_the_colours_that_the_reader_chose(
    site: Site, page: str, system: str, theme: str
) -> None:
    site.look(1280, 900, dark=system == "dark")
    site.show(page, theme)
    wanted = system if theme == "auto" else theme

    assert (wanted, wanted) == (site.shade(DRAWINGS[page]), site.shade("header"))


def test_a_drawing_in_other_colours_is_found(site: Site) -> None:
    site.look(1280, 900, dark=True)
    site.show("machine.html", "dark")
    site.run("document.querySelector('figure.machine svg').style.filter = 'invert(1)'")

    assert ("light", "dark") == (site.shade("figure.machine svg"), site.shade("header"))


def test_a_wide_table_fades_out_where_it_goes_on(site: Site) -> None:
    """It scrolls, and phones show no bar for that."""
    site.look(390, 900)
    site.driver.get((SITE / "errors.html").as_uri())
    read = "const it = document.querySelector('.pst-scrollable-table-container'); return getComputedStyle(it).maskImage"

    assert "gradient" in site.run(read)
    site.run("document.querySelector('.pst-scrollable-table-container').scrollLeft = 10000")
    site.wait_for_value(read.replace("maskImage", "maskImage === 'none'"))


@pytest.mark.parametrize("word", ["license", "licence", "install", "pip", "cudaMalloc", *EXCEPTIONS])
def test_the_search_finds(site: Site, word: str) -> None:
    assert site.found(word)


def test_the_search_finds_every_option_of_a_command(site: Site) -> None:
    missing = [option for option in OPTIONS if not any(title.endswith(f".{option}") for title in site.found(option))]

    assert len(OPTIONS) > 40
    assert not missing


def test_what_is_not_there_is_not_found(site: Site) -> None:
    assert [] == site.found("xyzzy")


def main(folder: Path) -> None:
    """Take pictures of the main pages, for all widths, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = Site()
    for page, width, theme in product(MAIN, WIDTHS, ("light", "dark")):
        shown.look(width, 900)
        shown.show(page, theme)
        shown.picture(folder / f"{Path(page).stem}-{width}-{theme}.png")
    shown.driver.quit()
    print(f"{len(MAIN) * len(WIDTHS) * 2} pictures in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
