"""How large the page to play with is, and how soon it can be used, in headless Chromium; wanted under 200 ms.

Of each browser the first load counts apart from those after it: it also pays for the fonts and for compiling.  What
is measured begins with the navigation, and ends when the page can be used: its buttons work and it has been painted.
A page of one word, loaded in a new browser too, says how much of that is the browser's own.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from figures import options_of, publish

from syncedmem.explorer import explorer_page

BROWSERS, LOADS = 5, 10
WANTED = {"bytes": 300_000, "first load": 200.0, "load": 200.0, "one word": None}
_WORD = '<!doctype html><meta charset="utf-8"><title>a word</title><p>word'
_CALLS = ("cpu_data", "gpu_data")

_READY = """
const marks = ["interactive", "first-contentful-paint"].flatMap((name) => performance.getEntriesByName(name));
return marks.length === 2 ? Math.max(...marks.map(({startTime}) => startTime)) : null;
"""
_PAINTED = 'return performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null;'


def times_of(browser: Any, page: Path) -> list[float]:
    """Milliseconds from the navigation to use, of one load after another in a new browser."""
    explorer = browser.Explorer(page)
    try:
        found: list[float] = []
        for _ in range(LOADS):
            explorer.open(_CALLS)
            found.append(explorer.wait_for_value(_READY))
        return found
    finally:
        explorer.driver.quit()


def paint_of(browser: Any, page: Path) -> float:
    """Milliseconds until a new browser shows the word."""
    explorer = browser.Explorer(page)
    try:
        explorer.driver.get(page.as_uri())
        return float(explorer.wait_for_value(_PAINTED))
    finally:
        explorer.driver.quit()


def row_of(name: str, values: list[float], unit: str) -> dict[str, Any]:
    """The figures of a row."""
    return {
        "name": name,
        "best": min(values),
        "median": statistics.median(values),
        "worst": max(values),
        "unit": unit,
        "wanted": WANTED[name],
    }


def shown(row: dict[str, Any]) -> str:
    """A row as a line."""
    figures = f"{row['median']:10,.0f} {row['unit']} (best {row['best']:,.0f}, worst {row['worst']:,.0f})"
    return f"{row['name']:12}{figures}" + (f", wanted under {row['wanted']:,.0f}" if row["wanted"] else "")


def browser_or_what_is_missing() -> tuple[Any, str]:
    """The module of the tests that drives Chromium; or None, and what is not installed."""
    try:
        browser: Any = import_module("browser")
    except ImportError:
        return None, "selenium is not installed"
    return browser, browser.MISSING


def main() -> None:
    """Measure, and print; without a browser, the size alone."""
    arguments = options_of(__doc__).parse_args()
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
    text = explorer_page()
    rows = [row_of("bytes", [float(len(text.encode()))], "")]
    browser, missing = browser_or_what_is_missing()
    if not missing:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            page.write_text(text, encoding="utf-8")
            word = Path(folder) / "word.html"
            word.write_text(_WORD, encoding="utf-8")
            pairs = [(times_of(browser, page), paint_of(browser, word)) for _ in range(BROWSERS)]
        loads = [times for times, _ in pairs]
        rows.append(row_of("first load", [first for first, *_ in loads], "ms"))
        rows.append(row_of("one word", [time for _, time in pairs], "ms"))
        rows.append(row_of("load", [time for _, *rest in loads for time in rest], "ms"))
    publish(rows, shown, arguments.json, f"; {missing}" if missing else "")


if __name__ == "__main__":
    main()
