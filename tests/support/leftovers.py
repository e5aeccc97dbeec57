"""A pytest plugin: each test, and each module of tests, leaves the process as it found it.

What a test leaves behind is seen by the tests after it, and which these are depends on how tests are distributed.  So
the process is compared before and after, and a difference is an error of the test that made it.  Warning filters are
not compared: pytest itself restores them after each test.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import locale
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.runtime.devices import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import ModuleType

__all__ = ["leftovers", "state_of_process"]

State = dict[str, dict[Any, Any]]
"""For each kind of thing the things of that kind, by name."""

_GRACE = 5.0
"""Seconds in which threads and processes that are about to end may do so."""
_SIGNALS = {
    number: signal.Signals(number).name if number < signal.SIGRTMIN else f"signal {number}"
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
}
_LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
_TRACKER: Any = resource_tracker._resource_tracker  # pyright: ignore[reportPrivateUsage] -- there is no other way
"""The process of multiprocessing that is started with the first spawned process, and stays."""
_NO_VALUE = object()
_OF_OTHERS = {"PYTEST_CURRENT_TEST", "PYOPENCL_HOME"}
"""Variables of the environment that pytest changes with each phase of a test, and that PyOpenCL sets when imported."""
_OF_HYPOTHESIS = "hypothesis."
"""The modules of Hypothesis, which counts the seconds of the collector from its first test on."""
_OF_PYOPENCL = f"{os.sep}pytools{os.sep}"
"""The folder of a cache that PyOpenCL keeps open from its first use on."""
_INSTALLED = tuple({sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])})


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_OTHERS}


def _signals() -> dict[str, object]:
    return {
        **{name: signal.getsignal(number) for number, name in _SIGNALS.items()},
        "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "alarm": signal.getitimer(signal.ITIMER_REAL),
    }


def _interpreter() -> dict[str, object]:
    """What there is one of in each process."""
    return {
        "the present folder": os.getcwd(),  # noqa: PTH109 -- it is only compared
        "sys.path": tuple(sys.path),
        "faulthandler": faulthandler.is_enabled(),
        "the collector": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "callbacks of the collector": [call for call in gc.callbacks if not call.__module__.startswith(_OF_HYPOTHESIS)],
        "the recursion limit": sys.getrecursionlimit(),
        "the switch interval": sys.getswitchinterval(),
        "the locale": locale.setlocale(locale.LC_ALL),
        **{name: resource.getrlimit(number) for name, number in _LIMITS.items()},
    }


def _hooks() -> dict[str, object]:
    return {
        **{name: getattr(sys, name) for name in ("excepthook", "unraisablehook", "displayhook", "breakpointhook")},
        "threading.excepthook": threading.excepthook,
        "sys.meta_path": tuple(sys.meta_path),
        "the tracer": sys.gettrace(),
        "the profiler": sys.getprofile(),
    }


def _exit_functions() -> dict[int, int]:
    """How many functions are called at exit, with so many modules: each may add some when it is imported."""
    return {len(sys.modules): atexit._ncallbacks()}  # pyright: ignore[reportPrivateUsage] -- there is no other way


def _context() -> dict[str, object]:
    """The context variables that do not have their defaults: the mode, who observes copies, and those of libraries."""
    return {variable.name: value for variable, value in copy_context().items() if value != _default_of(variable)}


def _default_of(variable: ContextVar[Any]) -> object:
    with suppress(LookupError):
        return Context().run(variable.get)
    return _NO_VALUE


def _devices() -> dict[str, object]:
    """What makes the device of each name."""
    return {**registry._MAKERS}  # pyright: ignore[reportPrivateUsage] -- tests replace these


def _modules() -> dict[str, ModuleType]:
    """The modules: one that was imported anew is another one."""
    return sys.modules.copy()


def _threads() -> dict[int | None, str]:
    return {thread.ident: thread.name for thread in threading.enumerate()}


def _processes() -> dict[str, str]:
    """The child processes."""
    children = "".join(_text(f"/proc/self/task/{number}/children") for number in _listing("/proc/self/task"))
    return dict.fromkeys({*children.split()} - {str(_TRACKER._pid)}, "a child")


def _descriptors() -> dict[str, str]:
    links = {number: _link(f"/proc/self/fd/{number}") for number in _listing("/proc/self/fd")}
    links.pop(str(_TRACKER._fd), None)
    return {number: link for number, link in links.items() if link and _OF_PYOPENCL not in link}


def _listing(folder: str) -> list[str]:
    with suppress(FileNotFoundError):  # this is not Linux
        return os.listdir(folder)  # noqa: PTH208 -- as below
    return []


def _text(path: str) -> str:
    with suppress(OSError), open(path, encoding="ascii") as file:  # noqa: PTH123 -- pathlib takes three times as long
        return file.read()
    return ""


def _link(path: str) -> str:
    with suppress(OSError):  # the descriptor with which the folder was read
        return os.readlink(path)  # noqa: PTH115 -- as above
    return ""


def _is_any(_: object) -> bool:
    return True


def _is_none(_: object) -> bool:
    return False


def _is_foreign(name: str) -> bool:
    """Whether a module was imported from a file that is neither installed nor ours."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and not file.startswith(_INSTALLED)


_KINDS: dict[str, tuple[Callable[[], dict[Any, Any]], Callable[[Any], bool]]] = {
    "variable": (_environment, _is_any),
    "signal": (_signals, _is_any),
    "interpreter": (_interpreter, _is_any),
    "hook": (_hooks, _is_any),
    "context variable": (_context, _is_any),
    "device": (_devices, _is_any),
    "functions at exit, modules": (_exit_functions, _is_none),
    "module": (_modules, _is_foreign),
    "thread": (_threads, _is_any),
    "process": (_processes, _is_any),
    "descriptor": (_descriptors, _is_any),
}
"""For each kind how its things are found, and which of them may not be new."""
_PASSING = ("thread", "process", "descriptor")
"""The kinds of things that end by themselves; one that has ended is nothing that is left."""
_WITH_NUMBERS = (*_PASSING, "functions at exit, modules")
"""The kinds whose names are numbers that are used again; one that is gone says nothing."""


def state_of_process() -> State:
    """Everything that a test can leave behind."""
    return {kind: look() for kind, (look, _) in _KINDS.items()}


def leftovers(before: State) -> list[str]:
    """What is not as it was, a line each."""
    lines: list[str] = []
    for kind, after in state_of_process().items():
        old, (_, may_not_be_new) = before[kind], _KINDS[kind]
        if after == old:  # nearly always, and much quicker
            continue
        for name, value in after.items():
            if value != old[name] if name in old else may_not_be_new(name):
                lines.append(f"{kind} {name}: {value!r}, before {old.get(name, 'nothing')!r}")
        lines += [f"{kind} {name}: is gone" for name in old.keys() - after.keys() if kind not in _WITH_NUMBERS]
    return lines


def _check(name: str) -> Generator[None]:
    """Compare the process after a test, or a module, with what it was before."""
    before = state_of_process()
    yield
    lines, end = leftovers(before), time.monotonic() + _GRACE
    while lines and all(line.startswith(_PASSING) for line in lines) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
        lines = leftovers(before)
    if lines:
        pytest.fail("\n  ".join((f"{name} leaves behind:", *lines)), pytrace=False)


@pytest.fixture(autouse=True, scope="session")
def _used_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Use what registers a function for the exit at its first use: pytest's folders, and finalisers of weakref."""
    tmp_path_factory.getbasetemp()
    with TemporaryDirectory():
        pass


@pytest.fixture(autouse=True)
def _a_test_leaves_nothing(request: pytest.FixtureRequest) -> Generator[None]:
    yield from _check(request.node.nodeid)


@pytest.fixture(autouse=True)
def _commands_have_their_own_process(_a_test_leaves_nothing: None) -> Generator[None]:
    """Undo what a command does to a process that it expects to end: modules of users, their folders, Typer's hook."""
    path, hook, modules = [*sys.path], sys.excepthook, sys.modules.copy()
    yield
    sys.path[:] = path
    sys.excepthook = hook
    for name in [name for name in sys.modules.keys() - modules.keys() if _is_foreign(name)]:
        del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def _a_module_leaves_nothing(request: pytest.FixtureRequest, _used_once: None) -> Generator[None]:
    """Also what the fixtures of a module have left, which are older than its first test."""
    yield from _check(request.node.nodeid)
