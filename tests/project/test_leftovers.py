"""What a test leaves behind is an error of that test; a test that failed runs again after the tests before it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from inner_pytest import run_tests
from order import FAILED, lists_to_follow

if TYPE_CHECKING:
    from pathlib import Path

PLUGINS = ("-p", "leftovers", "-p", "order", "-p", "no:syncedmem")
LEFT = {
    "a variable": ("variable NEW: ", "os.environ['NEW'] = 'value'"),
    "a variable that is gone": ("variable HOME: is gone", "del os.environ['HOME']"),
    "a handler": ("signal SIGUSR1: ", "signal.signal(signal.SIGUSR1, print)"),
    "a blocked signal": ("signal blocked: ", "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})"),
    "the folder": ("interpreter the present folder: ", "os.chdir('/')"),
    "faulthandler": ("interpreter faulthandler: False", "faulthandler.disable()"),
    "the collector": ("interpreter the collector: ", "gc.disable()"),
    "a limit": ("interpreter RLIMIT_CORE: ", "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"),
    "a hook": ("hook unraisablehook: ", "sys.unraisablehook = print"),
    "the mode": ("context variable syncedmem_mode: ", "syncedmem.set_mode(syncedmem.Mode.CPU)"),
    "a device": ("device mine: ", "registry._MAKERS['mine'] = print"),
    "a module": ("module json: ", "sys.modules['json'] = os"),
    "a function at exit": ("functions at exit, modules ", "atexit.register(print)"),
    "a thread": ("thread ", "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
    "a process": ("process ", "os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '5')"),
    "a file": ("descriptor ", "os.open('/dev/zero', os.O_RDONLY)"),
}
HEAD = """
import atexit, faulthandler, gc, os, resource, signal, subprocess, sys, threading, time
import syncedmem
from syncedmem.runtime.devices import registry
"""


@pytest.mark.parametrize("left", LEFT)
def test_what_a_test_leaves_behind_is_its_error(left: str, pytester: pytest.Pytester) -> None:
    line, statement = LEFT[left]
    waits = "import leftovers; leftovers._GRACE = 0.1"
    pytester.makepyfile(f"{HEAD}\n{waits}\ndef test_it():\n    {statement}\n")
    run = run_tests(pytester, *PLUGINS)

    assert 1 == run.outcomes["passed"]
    assert "::test_it leaves behind:" in run.text
    assert f"  {line}" in run.text


def test_what_ends_by_itself_or_is_undone_is_nothing(pytester: pytest.Pytester) -> None:
    """So are copies of a user's module, and its folder on the path: a command has a process of its own."""
    pytester.makepyfile(
        HEAD
        + """
def test_it(tmp_path, monkeypatch):
    threading.Thread(target=time.sleep, args=(0.2,)).start()
    subprocess.Popen(["true"]).wait()
    monkeypatch.setenv("NEW", "value")
    with syncedmem.using_mode(syncedmem.Mode.CPU), syncedmem.copies():
        pass
    (tmp_path / "mine.py").touch()
    sys.path.insert(0, str(tmp_path))
    import mine
    sys.excepthook = print
"""
    )
    assert {"passed": 1} == run_tests(pytester, *PLUGINS).outcomes


def test_a_fixture_of_a_module_leaves_nothing_either(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
import pytest
@pytest.fixture(scope="module")
def left():
    os.environ["NEW"] = "value"
def test_it(left): ...
"""
    )
    run = run_tests(pytester, *PLUGINS)

    assert {"passed": 1, "errors": 1} == run.outcomes
    assert "test_a_fixture_of_a_module_leaves_nothing_either.py leaves behind:" in run.text


TESTS = """
import pytest
seen = []
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    seen.append(number)
    assert seen != [0, 1, 2]
"""


def test_what_depends_on_the_tests_before_fails_again(pytester: pytest.Pytester) -> None:
    """Alone it passes."""
    pytester.makepyfile(test_order=TESTS)
    kept = pytester.path / "kept"
    first = run_tests(pytester, "-p", "order", "-o", f"cache_dir={kept}", f"--write-order={kept}")
    (again,) = lists_to_follow(kept)
    second = run_tests(pytester, "-p", "order", f"--follow-order={again}")
    alone = run_tests(pytester, "-p", "order", "-k", "test_it and 2")

    assert {"passed": 3, "failed": 1} == first.outcomes
    assert {"passed": 2, "failed": 1} == second.outcomes
    assert {"passed": 1, "deselected": 3} == alone.outcomes
    assert ["[0]", "[1]", "[2]"] == [name[-3:] for name in again.read_text(encoding="utf-8").split()]


@pytest.mark.parametrize("failed", [[], ["test_a.py"], ["test_a.py::one", "test_a.py"]])
def test_a_failure_that_is_no_test_does_not_run_again(failed: list[str], tmp_path: Path) -> None:
    """A module that could not be imported, or a worker that could not start."""
    (tmp_path / "gw0.order").write_text("test_a.py::one\n", encoding="utf-8")
    (tmp_path / FAILED).parent.mkdir(parents=True)
    (tmp_path / FAILED).write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")

    with pytest.raises(SystemExit, match="can run once more"):
        lists_to_follow(tmp_path)
