"""The explorer inside a page with a switch for the theme."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from syncedmem.explorer import explorer_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browser import Explorer

pytestmark = pytest.mark.deep

KEY = "mode"
SITE = """<!doctype html><html lang="en"><title>A site</title><link rel="icon" href="data:,">
<button onclick="localStorage.setItem('mode', this.textContent)">light</button>
<button onclick="localStorage.setItem('mode', this.textContent)">dark</button>
<button onclick="localStorage.setItem('mode', this.textContent)">auto</button>
<iframe src="machine.html" title="The machine"></iframe>
"""
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(14, 18, 23)"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of a site that has a switch for its theme, and the explorer in a frame and on a page of its own."""
    tmp_path.joinpath("machine.html").write_text(explorer_page(theme_key=KEY), encoding="utf-8")
    tmp_path.joinpath("index.html").write_text(SITE, encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name that http.server calls
        """Say nothing."""


def wait_for_paper(explorer: Explorer, colour: str) -> None:
    """Wait until the page has this colour: a browser tells other documents of a change a little later."""
    explorer.wait_for_value(f"return getComputedStyle(document.body).backgroundColor === '{colour}'")


def wait_for_page(explorer: Explorer) -> None:
    explorer.wait_for_value("return 'complete' in (document.body?.dataset ?? {})")


@pytest.mark.parametrize("dark", [False, True], ids=["light system", "dark system"])
def test_the_theme_follows_the_switch_of_the_site(explorer: Explorer, site: str, dark: bool) -> None:
    """In a frame at once, and on a page of its own when it is opened; ``auto`` is the theme of the system."""
    explorer.look(1280, 900, dark=dark)
    driver, system = explorer.driver, DARK if dark else LIGHT
    driver.get(f"{site}/index.html")
    explorer.run("localStorage.clear()")
    for choice, colour in (("dark", DARK), ("light", LIGHT), ("auto", system)):
        explorer.press(f"button:nth-of-type({['light', 'dark', 'auto'].index(choice) + 1})")
        driver.switch_to.frame(0)
        wait_for_page(explorer)
        wait_for_paper(explorer, colour)
        driver.switch_to.default_content()
        driver.switch_to.new_window("tab")
        explorer.look(1280, 900, dark=dark)
        driver.get(f"{site}/machine.html")
        wait_for_page(explorer)
        wait_for_paper(explorer, colour)
        driver.close()
        driver.switch_to.window(driver.window_handles[0])


def test_a_page_of_no_site_asks_nobody_for_a_theme(explorer: Explorer) -> None:
    """Another page of the same address may keep something under any key."""
    explorer.run("for (const key of ['', 'mode', 'theme']) localStorage.setItem(key, 'dark')")
    explorer.open()
    wait_for_paper(explorer, LIGHT)
    explorer.run("localStorage.clear()")

    assert 'data-theme-key=""' in explorer_page()


def test_a_key_of_a_theme_cannot_break_the_page() -> None:
    assert 'data-theme-key="&quot;&gt;&lt;p&gt;"' in explorer_page(theme_key='"><p>')
