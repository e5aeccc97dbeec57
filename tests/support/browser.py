"""A real browser, without a window, that shows the page of the machine: press its buttons, and read what it shows."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from selenium.webdriver.remote.webelement import WebElement

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "Chromium is not installed: make system-deps"

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)

_READ = """
const read = () => {
const all = (what) => [...document.querySelectorAll(what)];
return {
  configuration: document.body.dataset.configuration,
  settings: all("[data-setting]").map((it) => it.lastChild.textContent),
  actions: all("#step [data-action]").map(({dataset}) => [dataset.action, dataset.outcome]),
  facts: all("[data-fact][data-set=true]").map(({dataset}) => dataset.fact),
  holds: Object.fromEntries(all(".side").map((side) =>
    [side.dataset.side, side.querySelector(".holds").lastChild.textContent])),
  fresh: all(".side[data-fresh=true]").map(({dataset}) => dataset.side),
  refusal: document.querySelector("#step .refusal")?.textContent ?? "",
  row: document.querySelector("#step [data-row]")?.dataset.row ?? null,
  lit: all("#drawing rect.here").map((box) => box.nextElementSibling.textContent),
  called: all("[data-do][aria-current]").map(({dataset}) => dataset.do),
  said: document.getElementById("step").innerText.replace(/\\s+/g, " "),
};
};
"""

# A button that is missing or cannot be pressed raises an error; `click()` alone would do nothing.
_PLAY = (
    _READ
    + """
return arguments[0].map((name) => {
  const button = [...document.querySelectorAll("[data-do]")].find(({dataset}) => dataset.do === name);
  if (!button?.checkVisibility()) throw new Error(`${name} cannot be pressed`);
  button.click();
  return read();
});
"""
)
_AT_ONCE = 100
"""How many calls are made at once, because a script has a time limit."""


class Shown(NamedTuple):
    """What the page shows."""

    configuration: str
    settings: list[str]
    actions: list[list[str]]
    facts: list[str]
    holds: dict[str, str]
    fresh: list[str]
    refusal: str
    row: str | None
    lit: list[str]
    called: list[str]
    said: str


class Explorer:
    """The page in a browser.

    Parameters
    ----------
    page : Path
        The file of the page.
    """

    def __init__(self, page: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for option in _OPTIONS:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.address = page.as_uri()
        self.driver: Any = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.look(1360, 1000)

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and the dark colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])

    def command(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A command of the browser's own protocol."""
        answer: dict[str, Any] = self.driver.execute_cdp_cmd(name, arguments)
        return answer

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page."""
        return self.driver.execute_script(script, *arguments)

    def visit(self, page: Path | str | None = None) -> None:
        """Load a page, or its own page again."""
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() if isinstance(page, Path) else page or self.address)
        # Where the processors are busy, the driver takes the end of the blank page for that of this one.
        self.wait_for_value("return document.readyState === 'complete' && location.href !== 'about:blank'")

    def find(self, selector: str) -> WebElement:
        """The first element of a selector."""
        found: WebElement = self.driver.find_element(By.CSS_SELECTOR, selector)
        return found

    def press(self, selector: str) -> None:
        """Press a button with the pointer, in the middle of the window, where nothing covers it."""
        button = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    def call(self, *names: str) -> Shown:
        """Make calls by pressing their buttons with the pointer, and return what the page shows then."""
        for name in names:
            self.press(f'[data-do="{name}"]')
        return self.shown()

    def wait_for_value(self, script: str) -> Any:
        """The result of a script, when it is not empty."""
        return WebDriverWait(self.driver, 60).until(lambda _: self.run(script))

    def steps(self) -> list[str]:
        """The calls in the page's list of steps."""
        names = self.run("return [...document.querySelectorAll('#steps .what .mono')].map((it) => it.textContent)")
        return list(names)

    def shown(self) -> Shown:
        """What the page shows now."""
        return Shown(**self.run(f"{_READ} return read();"))

    def play(self, names: Sequence[str]) -> list[Shown]:
        """What the page shows after each of many calls.

        The page itself presses its own buttons.  Another test checks that nothing covers them.
        """
        parts = [names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE)]
        return [Shown(**shown) for part in parts for shown in self.run(_PLAY, part)]

    def text(self, identifier: str) -> str:
        """The text of an element."""
        return str(self.run("return document.getElementById(arguments[0]).textContent", identifier))

    def complaints(self) -> list[str]:
        """What the page has written to the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        # The page is asked, which makes it lay itself out; what the browser knows may be from before that, and empty.
        width, height = self.run("const it = document.documentElement; return [it.scrollWidth, it.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))
