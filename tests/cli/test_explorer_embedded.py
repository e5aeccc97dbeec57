"""The explorer inside other pages and in browsers that allow less: its theme, its address, and no scripts."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from syncedmem.explorer import explorer_page
from syncedmem.model.diagrams.palette import DARK as DARK_PALETTE
from syncedmem.model.diagrams.palette import LIGHT as LIGHT_PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browser import Explorer

KEY = "mode"
SITE = """<!doctype html><html lang="en"><title>A site</title><link rel="icon" href="data:,">
<button onclick="localStorage.setItem('mode', this.textContent)">light</button>
<button onclick="localStorage.setItem('mode', this.textContent)">dark</button>
<button onclick="localStorage.setItem('mode', this.textContent)">auto</button>
<iframe src="machine.html" title="The machine"></iframe>
"""
SANDBOX = """<!doctype html><html lang="en"><title>A site</title><link rel="icon" href="data:,">
<iframe sandbox="allow-scripts" src="machine.html" title="The machine"></iframe>
"""
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(14, 18, 23)"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of a site that has a switch for its theme, and the explorer in a frame and on a page of its own."""
    tmp_path.joinpath("machine.html").write_text(explorer_page(theme_key=KEY), encoding="utf-8")
    tmp_path.joinpath("index.html").write_text(SITE, encoding="utf-8")
    tmp_path.joinpath("sandbox.html").write_text(SANDBOX, encoding="utf-8")
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


@pytest.mark.no_cover
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


def test_the_drawing_has_the_theme_of_the_page(explorer: Explorer, site: str) -> None:
    explorer.driver.get(f"{site}/machine.html")
    fill = "getComputedStyle(document.querySelector('#drawing .smd-box:not(.here)')).fill"
    for theme, palette in (("light", LIGHT_PALETTE), ("dark", DARK_PALETTE)):
        explorer.run("document.documentElement.dataset.theme = arguments[0]", theme)
        red, green, blue = bytes.fromhex(palette.head[1:])
        assert explorer.wait_for_value(f"return {fill} === 'rgb({red}, {green}, {blue})'")


def test_a_page_of_no_site_asks_nobody_for_a_theme(explorer: Explorer) -> None:
    """Another page of the same address may keep something under any key."""
    explorer.run("for (const key of ['', 'mode', 'theme']) localStorage.setItem(key, 'dark')")
    explorer.open()
    wait_for_paper(explorer, LIGHT)
    explorer.run("localStorage.clear()")

    assert 'data-theme-key=""' in explorer_page()


def test_a_key_of_a_theme_cannot_break_the_page() -> None:
    assert 'data-theme-key="&quot;&gt;&lt;p&gt;"' in explorer_page(theme_key='"><p>')


def test_the_page_works_in_a_sandbox(explorer: Explorer, site: str) -> None:
    """It may not ask for the theme of the site, and not write to the clipboard; the link to copy is shown."""
    explorer.driver.get(f"{site}/sandbox.html")
    explorer.driver.switch_to.frame(0)
    wait_for_page(explorer)
    explorer.call("cpu_data")
    assert "C:o-" == explorer.shown().configuration
    explorer.press("#share")
    explorer.wait_for("#link[open]")
    link = explorer.run("return document.getElementById('link-text').value")
    explorer.driver.switch_to.default_content()

    assert f"{site}/machine.html#edition=caffe&size=16&mode=GPU&calls=cpu_data" == link


def test_the_page_works_where_the_address_cannot_be_changed(explorer: Explorer) -> None:
    """The browser refuses once; then the page does not ask again, and the link still says everything."""
    explorer.run(
        "window.refusals = 0;"
        "history.replaceState = () => { window.refusals += 1; throw new DOMException('no', 'SecurityError'); };"
    )
    explorer.call("cpu_data")
    explorer.wait_for_value("return window.refusals === 1")
    before = explorer.run("return performance.now()")
    explorer.call("gpu_data")
    explorer.wait_for_value(f"return performance.now() > {before} + 900")
    explorer.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    explorer.press("#share")

    assert 1 == explorer.run("return window.refusals")
    assert explorer.run("return window.copied").endswith("&calls=cpu_data,gpu_data")
    assert "S:oo" == explorer.shown().configuration


def test_an_error_that_nobody_catches_is_seen(explorer: Explorer) -> None:
    """The fixture looks for errors after each test: so an unguarded change of the address would be found."""
    explorer.run("setTimeout(() => { throw new DOMException('no', 'SecurityError'); })")

    assert explorer.driver.execute_async_script("setTimeout(arguments[0], 50, true)")
    assert ["SecurityError" in it or "Uncaught" in it for it in explorer.complaints()] == [True]


def test_without_scripts_the_page_says_so(explorer: Explorer) -> None:
    """Nothing that would not work is shown.  With scripts, the sentence is not there."""
    shown = (
        "return ['.without', 'main', '.settings'].map((it) => document.querySelector(it)?.checkVisibility() ?? false)"
    )
    assert [False, True, True] == explorer.run(shown)
    explorer.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        explorer.driver.get("about:blank")
        explorer.driver.get(explorer.address)
        assert [True, False, False] == explorer.run(shown)
    finally:
        explorer.command("Emulation.setScriptExecutionDisabled", value=False)
