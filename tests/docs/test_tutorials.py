"""The programs of the tutorials print what the pages say, errors too."""

from __future__ import annotations

import re
import traceback
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from inner_pytest import run_tests

from syncedmem.runtime.memory import watch

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("tutorial-*.md"))
HOME = "/home/you"
"""The folder of the reader, which Python prints."""

FENCE = re.compile(r"^```(python|py|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Run(NamedTuple):
    """A command of a page, the program that stands before it, and what the page says that it prints."""

    command: str
    program: str
    printed: str


def runs_of(page: str) -> list[Run]:
    """The commands of a page; each runs the last program of its name."""
    programs: dict[str, str] = {}
    runs: list[Run] = []
    for language, text in FENCE.findall(page):
        if language != "console":
            programs[text.partition("\n")[0].removeprefix("# ")] = text
            continue
        command, _, printed = text.partition("\n")
        runs.append(Run(command, programs[command.split()[-1]], printed))
    return runs


def output_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal shows; of a traceback only the first line and the last, as in a doctest."""
    prompt, *settings, python, name = run.command.split()
    assert (prompt, python) == ("$", "python")
    monkeypatch.setenv("SYNCEDMEM_DEVICE", "simulated")
    monkeypatch.delenv(watch.ENVIRONMENT, raising=False)
    for setting in settings:
        monkeypatch.setenv(*setting.split("="))
    environment: Any = vars(watch)["_by_environment"]  # it is read once in a process
    environment.cache_clear()
    shown = StringIO()
    try:
        with redirect_stdout(shown):
            exec(compile(run.program, f"{HOME}/{name}", "exec"), {"__name__": "__main__"})  # noqa: S102 -- our own pages
    except Exception as error:  # noqa: BLE001 -- whatever the program raises is printed
        last = traceback.format_exception_only(error)[-1]
        shown.write(f"Traceback (most recent call last):\n  ...\n{last}")
    finally:
        environment.cache_clear()
    return shown.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_shows_what_its_programs_print(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in runs_of(page.read_text(encoding="utf-8")):
        with monkeypatch.context() as patch:
            assert output_of(run, patch) == run.printed, run.command


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_begins_wrong_and_ends_right(page: Path) -> None:
    """Its first errors come from programs that readers see as wrong, ```py, and its last program has none."""
    blocks: list[Any] = FENCE.findall(page.read_text(encoding="utf-8"))

    assert "py" == blocks[0][0]
    assert any("syncedmem.model.errors" in text for language, text in blocks if language == "console")


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    *_, (_, program) = FENCE.findall((DOCS / "tutorial-copies.md").read_text(encoding="utf-8"))
    pytester.makepyfile(program)

    assert {"passed": 2} == run_tests(pytester, "--strict-markers").outcomes
