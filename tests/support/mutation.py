"""Says how many mutants of a file the tests kill: ``make mutation FILE=model/mode.py``.

A mutant is a copy of a file that differs in one place (``mutation_operators.py`` makes them).  It is killed if a test
fails, and it survives if none does.  Then a test is missing, or the mutant is *equivalent*: no test can tell it from
the original.  ``mutation.toml`` lists the files to measure, and the equivalent mutants with their reasons.
``mutation.json`` has what was measured.  ``docs/mutation.md`` is made of both.

Neither mutmut nor cosmic-ray runs these mutants.  mutmut changes no code outside functions, and none in functions with
a decorator, but most of the declaration and every property are such code.  It chooses a mutant at each call, by
functions that stand in every traceback and profile, and our tests of interrupts count those.  It also wants a file's
path to be its name in Python, and ours are links.  cosmic-ray starts pytest once for each mutant, which takes seconds
before the first test.

Here pytest collects the tests once, in a process that forks once for each mutant.  In the child the code of the changed
function is replaced.  Then the tests run that take its lines, until one fails.  Where the changed code runs on import,
that is not enough: such a mutant has a child that is forked before syncedmem is imported.  It imports the mutant, and
collects tests itself.

What was measured is kept in ``build/mutation``, so that a run that was ended goes on where it was.  A mutant that was
killed is not run again while its function is the same.  A survivor is run again unless it is known to be equivalent.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import coverage
import pytest
from mutation_operators import Mutant, mutants, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

__all__ = ["FILES", "Place", "main"]

ROOT = Path(__file__).parents[2]
MEASURED = Path(__file__).with_name("mutation.json")
TOLD: dict[str, Any] = tomllib.loads(Path(__file__).with_name("mutation.toml").read_text(encoding="utf-8"))

FILES: dict[str, list[str]] = {file: room["tests"] for room in TOLD["room"] for file in room["files"]}
"""The files that are to be measured, the most important first, and the tests that should kill their mutants."""

QUICK = 10.0
"""Slower tests, in seconds, are not run against mutants."""
BUDGET = 30.0
"""A survivor has survived tests that take so many seconds, if there are so many."""
OPTIONS = (
    *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--capture=sys", "--quiet"),
    *("-p", "no:cacheprovider", "--hypothesis-profile=repeatable", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
# Imported before the first child is forked, because every child needs them.
LIBRARIES = ("hypothesis.stateful", "numpy.testing", "transitions", "scipy.special", "sybil", "typer", "rich", "jinja2")

Seconds = dict[str, float]
"""Tests, in the order in which they are run, with the time that each takes."""


@dataclass(frozen=True)
class Place:
    """A file that is measured: the name of its module, its path, and its text."""

    module: str
    path: Path
    source: str

    @classmethod
    def of(cls, file: str) -> Place:
        """Find ``model/mode.py`` in the package that this Python would import, but do not import it."""
        package = find_spec("syncedmem")
        assert package is not None
        assert package.submodule_search_locations
        path = Path(package.submodule_search_locations[0]) / file
        name = ".".join(["syncedmem", *Path(file).with_suffix("").parts]).removesuffix(".__init__")
        return cls(name, path, path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------------------- children


NOWHERE = os.open(os.devnull, os.O_RDWR)


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what work returns in a child that is forked for it; nothing if the child ended before."""
    with tempfile.TemporaryFile() as told:
        if (pid := os.fork()) == 0:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                told.write(json.dumps(work()).encode())
                told.flush()
            except BaseException as error:  # noqa: BLE001 -- told to the parent
                told.write(json.dumps({"error": repr(error)}).encode())
                told.flush()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        with suppress(ProcessLookupError):  # what the tests have started and left
            os.killpg(pid, signal.SIGKILL)
        told.seek(0)
        line = told.read()
    found: dict[str, Any] = json.loads(line) if line else {}
    return found


def checked(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a child returned; if it ended by an error of this program, raise."""
    if "error" in found:
        raise RuntimeError(found["error"])
    return found


def limit(seconds: float) -> None:
    """End this process after some seconds of its processor's time, or if it waits for ever."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + 5 + 5 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    faulthandler.dump_traceback_later(60 + 20 * seconds, exit=True, file=NOWHERE)


def silence() -> None:
    """Print nothing from now on, in this process and in those that it starts."""
    for descriptor in range(3):
        os.dup2(NOWHERE, descriptor)


# --------------------------------------------------------------------------- tests that are collected once


@dataclass(frozen=True)
class Order:
    """Tests to run, in a child: against a mutant, or to see the lines of files that they take."""

    tests: Seconds
    place: Place | None = None
    mutant: str = ""
    lines_of: tuple[str, ...] = ()


class Collected:
    """A pytest plugin that carries out orders in place of the tests, each in a child."""

    def __init__(self, orders: Connection) -> None:
        self._orders = orders
        self._functions: Functions = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Carry out orders until there are no more."""
        items = {item.nodeid: item for item in session.items}
        self._orders.send(list(items))
        while (order := self._orders.recv()) is not None:
            if order.place is not None and not self._functions:
                self._functions = _functions(order.place)
            self._orders.send(in_child(partial(self._done, order, [items[it] for it in order.tests])))
        return True

    def _done(self, order: Order, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Carry out an order."""
        if order.lines_of:
            return _lines(order, items)
        if order.place is not None and not _replaced(order.place, order.mutant, self._functions):
            return {"unfit": True}
        return {"killer": next((item.nodeid for item in items if not _passes(item, order.tests[item.nodeid])), None)}


def _passes(item: pytest.Item, seconds: float) -> bool:
    """Run a test; whatever ends the run is a failure."""
    limit(seconds)
    failed = item.session.testsfailed
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    except BaseException:  # noqa: BLE001 -- of the mutant
        return False
    return item.session.testsfailed == failed


def _lines(order: Order, items: Sequence[pytest.Item]) -> dict[str, Any]:
    """For each test: whether it passes, how long it takes, and its lines in each of the files."""
    found: dict[str, Any] = {}
    for item in items:
        begun = time.perf_counter()
        passed, lines = counted(partial(_passes, item, 60), order.lines_of)
        found[item.nodeid] = {"seconds": round(time.perf_counter() - begun, 3), "passed": passed, "lines": lines}
    return found


def counted(work: Callable[[], object], paths: Sequence[str]) -> tuple[object, dict[str, list[int]]]:
    """Return what work returns, and the lines of files that it takes."""
    lines = coverage.Coverage(data_file=None, config_file=False, include=list(paths))
    lines.start()
    result = work()
    lines.stop()
    with warnings.catch_warnings(action="ignore"):  # there may be none
        data = lines.get_data()
    return result, {file: sorted(data.lines(file) or ()) for file in data.measured_files()}


Functions = dict[tuple[str, int], list[FunctionType]]
"""The functions of a file by name and first line: one of a class in a function may be there more than once."""


def _functions(place: Place) -> Functions:
    found: Functions = {}
    file = sys.modules[place.module].__file__ if place.module in sys.modules else None
    gc.unfreeze()  # what is frozen is not among the objects
    for it in gc.get_objects():
        if isinstance(it, FunctionType) and it.__code__.co_filename == file:
            found.setdefault((it.__code__.co_qualname, it.__code__.co_firstlineno), []).append(it)
    gc.freeze()
    return found


def _replaced(place: Place, mutant: str, functions: Functions) -> bool:
    """Give every function that differs in the mutant its new code; false if more than functions differ."""
    found: list[tuple[FunctionType, CodeType]] = []
    old, new = (compile(text, place.path, "exec", dont_inherit=True) for text in (place.source, mutant))
    for before, after in _changed(old, new):
        known = functions.get((before.co_qualname, before.co_firstlineno), [])
        if not known:
            return False
        found += [(function, after) for function in known]
    for function, code in found:
        if len(code.co_freevars) != len(function.__code__.co_freevars):
            return False
        function.__code__ = code
    return bool(found)


_FUNCTION = 0x2  # CO_NEWLOCALS: a class body and a module have other locals


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The outermost functions that differ; the module or the class, if it differs otherwise."""
    if same(old, new):
        return
    if old.co_flags & _FUNCTION:
        yield old, new
        return
    inner = [[it for it in code.co_consts if isinstance(it, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]) or not same(_bare(old), _bare(new)):
        yield old, new
        return
    for before, after in zip(*inner, strict=True):
        yield from _changed(before, after)


def _bare(code: CodeType) -> CodeType:
    """Code without that of what it contains."""
    return code.replace(co_consts=tuple(it for it in code.co_consts if not isinstance(it, CodeType)))


class Session:
    """A process that has collected tests, and runs them as it is told."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._here, there = Pipe()
        if (pid := os.fork()) == 0:
            try:
                silence()
                pytest.main([*OPTIONS, *tests], plugins=[Collected(there)])
            finally:
                os._exit(0)
        there.close()
        self._pid = pid
        self.tests: list[str] = self._told()

    def _told(self) -> Any:
        try:
            return self._here.recv()
        except EOFError:
            raise SystemExit("mutation.py: pytest cannot collect the tests; try pytest --collect-only") from None

    def run(self, order: Order) -> dict[str, Any]:
        """Carry out an order."""
        self._here.send(order)
        return checked(self._told())

    def close(self) -> None:
        """End the process."""
        self._here.send(None)
        os.waitpid(self._pid, 0)


# ----------------------------------------------------------------------------- tests that import the mutant


class Importer(SourceFileLoader):
    """Finds one module, and loads other code for it."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(place.module, str(place.path))
        self._code = compile(text, place.path, "exec", dont_inherit=True)

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the module if it is asked for."""
        spec = PathFinder.find_spec(name, path) if name == self.name else None
        if spec is not None:
            spec.loader = self
        return spec

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 -- there is only one
        """Return the mutant."""
        return self._code


@dataclass
class Chosen:
    """A pytest plugin that runs some tests in an order, and notes which of them failed first."""

    tests: Seconds
    failed: str | None = None
    order: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.order = {name: number for number, name in enumerate(self.tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all tests but these.  A test that the mutant has renamed is not run."""
        items[:] = sorted((it for it in items if it.nodeid in self.order), key=lambda it: self.order[it.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Limit the time of a test."""
        limit(self.tests[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def imported(tests: Seconds, place: Place, text: str) -> dict[str, Any]:
    """Import a file with other text, and run tests until one fails.  This process has not imported syncedmem before."""
    silence()
    limit(4)
    sys.meta_path.insert(0, Importer(place, text))
    chosen = Chosen(tests)
    modules = list(dict.fromkeys(str(ROOT / name.partition("::")[0]) for name in tests))
    try:
        status = int(pytest.main([*OPTIONS, "-x", *modules], plugins=[chosen]))
    except BaseException:  # noqa: BLE001 -- of the mutant
        status = 3
    return {"killer": None if status == 0 else chosen.failed or "import"}


def lines_of_imports(tests: Sequence[str], place: Place) -> dict[str, Any]:
    """The lines of a file that run while tests are collected.  This process has not imported syncedmem before."""
    silence()
    path = os.path.realpath(place.path)
    _, lines = counted(partial(pytest.main, [*OPTIONS, "--collect-only", *tests]), [path])
    return {"lines": lines.get(path, [])}


# ------------------------------------------------------------------------------------------ judging mutants


class Judge:
    """Runs tests against the mutants of a file.

    Parameters
    ----------
    place : Place
    session : Session
        It has collected the tests.
    seen : mapping
        Of each test its time and its lines.
    early : set of int
        The lines of the file that run while tests are collected.
    """

    def __init__(self, place: Place, session: Session, seen: dict[str, Any], early: set[int]) -> None:
        self._place = place
        self._session = session
        self._early = early
        path = os.path.realpath(place.path)
        self._lines = {name: set(it["lines"].get(path, ())) for name, it in seen.items()}
        self._seconds: Seconds = {name: it["seconds"] for name, it in seen.items() if it["seconds"] <= QUICK}
        self._kills: Counter[str] = Counter()
        self._alone: dict[tuple[str, bool], bool] = {}

    def killer(self, mutant: Mutant) -> str | None:
        """The test that kills a mutant, or None."""
        near = [it for it in self._seconds if not self._lines[it].isdisjoint(mutant.lines)]
        if near:
            found = self._sound(mutant, near, imports=False)
            if found != "unfit" and (found is not None or self._early.isdisjoint(mutant.lines)):
                return found
        elif self._early.isdisjoint(mutant.lines):
            return None
        touching = near or [it for it in self._seconds if self._lines[it]]
        modules = Counter[str]()
        for name in touching:
            modules[name.partition("::")[0]] += 1 + 1000 * self._kills[name]
        best = {name for name, _ in modules.most_common(2)}
        first = [it for it in touching if it.partition("::")[0] in best]
        # At last all tests: what a class is made of can be seen without taking a line of its file.
        return self._sound(mutant, first, imports=True) or self._sound(mutant, list(self._seconds), imports=True)

    def _sound(self, mutant: Mutant, names: Sequence[str], *, imports: bool) -> str | None:
        """The test that kills a mutant; a test that fails alone without the mutant is left out from then on."""
        while True:
            tests = self._chosen([it for it in names if it in self._seconds])
            if imports:
                found = checked(in_child(partial(imported, tests, self._place, mutant.text)))
            else:
                found = self._session.run(Order(tests, self._place, mutant.text))
            if "unfit" in found:
                return "unfit"
            name: str | None = found.get("killer", "no end")
            if name is None or name not in self._seconds or self._passes_alone(name, imports=imports):
                self._kills[name or ""] += 1
                return name
            print(f"    {name} fails alone, and is left out", flush=True)
            del self._seconds[name]

    def _passes_alone(self, name: str, *, imports: bool) -> bool:
        if (name, imports) not in self._alone:
            tests = {name: self._seconds[name]}
            if imports:
                found = checked(in_child(partial(imported, tests, self._place, self._place.source)))
            else:
                found = self._session.run(Order(tests))
            self._alone[name, imports] = found.get("killer", "no end") is None
        return self._alone[name, imports]

    def _chosen(self, names: Sequence[str]) -> Seconds:
        """Tests that take no longer than the budget: those that have killed most first, then the quickest."""
        chosen: Seconds = {}
        left = BUDGET
        for name in sorted(names, key=lambda it: (-self._kills[it], self._seconds[it])):
            left -= self._seconds[name]
            if left >= 0 or not chosen:
                chosen[name] = self._seconds[name]
        return chosen


# ------------------------------------------------------------------------------------------- what is kept


def digest(*texts: str) -> str:
    """A short name of texts that changes when they do."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def seen_by(session: Session, places: Sequence[Place], kept: Path) -> dict[str, Any]:
    """What each test takes of some files; measured once for each module of tests, until it or one of them changes."""
    kept.mkdir(parents=True, exist_ok=True)
    sources = digest(*(it.source for it in places))
    paths = tuple(os.path.realpath(it.path) for it in places)
    seen: dict[str, Any] = {}
    for module in dict.fromkeys(name.partition("::")[0] for name in session.tests):
        tests = [it for it in session.tests if it.partition("::")[0] == module]
        text = (ROOT / module).read_text(encoding="utf-8")
        store = kept / f"{digest(*tests, text, sources)}.json"
        if not store.exists():
            told = session.run(Order(dict.fromkeys(tests, 0.0), lines_of=paths))
            if not told:
                raise SystemExit(f"mutation.py: the tests of {module} end their process")
            store.write_text(json.dumps(told), encoding="utf-8")
        seen |= json.loads(store.read_text(encoding="utf-8"))
    failing = [name for name, it in seen.items() if not it["passed"]]
    if failing:
        print(
            f"    {len(failing)} tests fail without a mutant, and are left out; the first is {failing[0]}", flush=True
        )
    return {name: it for name, it in seen.items() if it["passed"]}


Reasons = dict[tuple[str, str, str], str]
"""Why mutants are equivalent, by what is changed: where, what it was, and what it is now."""


def reasons(file: str) -> Reasons:
    """The equivalent mutants of a file."""
    known = [it for it in TOLD.get("equivalent", ()) if it["file"] == file]
    return {(it["where"], was, now): it["why"] for it in known for was, now in it["changes"]}


def measure(file: str, tests: Sequence[str], kept: Path, known: Reasons) -> dict[str, Any]:
    """Judge every mutant of a file that is not judged yet, and return the figures."""
    place = Place.of(file)
    every = mutants(place.source, str(place.path))
    store = kept / f"{file.replace('/', '.')}.jsonl"
    store.parent.mkdir(parents=True, exist_ok=True)
    judged: dict[str, str | None] = {}
    if store.exists():
        judged = {it["key"]: it["killer"] for it in map(json.loads, store.read_text(encoding="utf-8").splitlines())}
    todo = [
        it
        for it in every
        if it.key not in judged or (judged[it.key] is None and (it.where, it.was, it.now) not in known)
    ]
    print(f"{file}: {len(every)} mutants, {len(todo)} to judge", flush=True)
    if todo:
        paths = [str(ROOT / it) for it in tests]
        early = set(checked(in_child(partial(lines_of_imports, paths, place)))["lines"])
        session = Session(paths)
        places = [Place.of(it) for it in FILES if FILES[it] == tests] or [place]
        judge = Judge(place, session, seen_by(session, places, kept / "tests"), early)
        with store.open("a", encoding="utf-8") as log:
            for mutant in todo:
                begun = time.monotonic()
                judged[mutant.key] = killer = judge.killer(mutant)
                taken = round(time.monotonic() - begun, 2)
                log.write(json.dumps({"key": mutant.key, "killer": killer, "seconds": taken}) + "\n")
                log.flush()
                if killer is None and (mutant.where, mutant.was, mutant.now) not in known:
                    place_in_file = f"{file}:{mutant.lines.start} {mutant.where}"
                    print(f"  {place_in_file}\n    - {mutant.was}\n    + {mutant.now}", flush=True)
        session.close()
    survivors = [(it.where, it.was, it.now) for it in every if judged[it.key] is None]
    return {
        "mutants": len(every),
        "killed": len(every) - len(survivors),
        "without_end": sum(judged[it.key] == "no end" for it in every),
        "survivors": sorted(survivors),
    }


def commit() -> str:
    """The commit that is checked out, with a plus if files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    differs = git("status", "--porcelain", "model", "runtime", "tests/model", "tests/runtime")
    return git("rev-parse", "--short", "HEAD") + ("+" if differs else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure files; return 1 if a mutant survived that is not known to be equivalent."""
    parser = argparse.ArgumentParser(prog="mutation.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="as model/mode.py (default: all of mutation.toml)")
    parser.add_argument("--tests", action="append", help="run these tests, and write no figures")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "mutation", help="where to keep what is measured")
    given = parser.parse_args(arguments)
    for name in LIBRARIES:
        import_module(name)
    alive = 0
    for file in given.files or FILES:
        if not given.tests and file not in FILES:
            parser.error(f"{file} is not among the files to measure: {', '.join(FILES)}")
        known = reasons(file)
        found = measure(file, given.tests or FILES[file], given.kept, known)
        alive += sum(tuple(it) not in known for it in found["survivors"])
        print(f"{file}: {found['killed']} of {found['mutants']} mutants killed", flush=True)
        if not given.tests:
            every = json.loads(MEASURED.read_text(encoding="utf-8"))
            every[file] = {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), **found}
            ordered = {name: every[name] for name in FILES if name in every}
            MEASURED.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
