"""Measures which seeded bugs each test vector refuses; unchanged results are not measured again.

The results of a bug are stored in a folder, in a file with its name, together with a digest of all that they depend on:
the bug's own source, the kit that replays, the device of the replay, and the vectors.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import inspect
import json
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS
from syncedmem.spec.engine.call_log import CallLog
from syncedmem.spec.engine.contents import fetch
from syncedmem.spec.engine.subject import Subject
from syncedmem.spec.engine.supervisor import Death, side_by_side
from syncedmem.spec.vectors import ALL_SUITES, SUITES, Kills, replay, vectors
from syncedmem.spec.vectors.blob_replay import replay_blobs
from syncedmem.spec.vectors.kills import names_of
from syncedmem.spec.vectors.memory_replay import replay_memories

from .blob import BLOB_BUGS
from .blob.handmade import HandmadeBlob
from .memory import MEMORY_BUGS
from .memory.handmade import HandmadeMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from syncedmem.spec.engine.supervisor import Progress

    from .registry import SeededBug

__all__ = ["BUGS", "measure", "refused"]

BUGS: dict[str, SeededBug] = {**MEMORY_BUGS, **BLOB_BUGS}
"""The bugs that are measured: those of memories by suites of memories, those of blobs by suites of blobs."""

Makers = tuple["Callable[[], Subject]", "Callable[[], Subject]"]


def refused(bug: SeededBug, subject: Subject, vector: dict[str, Any]) -> bool:
    """Whether a vector refuses a seeded bug."""
    wrong = replace(subject, name=bug.name, make=bug.make)
    try:
        return replay(wrong, vector) is not None
    except Exception:  # noqa: BLE001 -- a bug may prevent the making of a memory
        return True


def measure(  # noqa: PLR0913 -- most are given by keyword
    device: Callable[[], Subject],
    no_device: Callable[[], Subject],
    *,
    only: Iterable[str] = ALL_SUITES,
    kept: Path | None = None,
    processes: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> Kills:
    """Replay every vector on every seeded bug of memories or of blobs.

    Parameters
    ----------
    device, no_device : callable
        Make subjects; their makers are replaced by the bugs.  With several processes they must be picklable.
    only : iterable of str
        Names of suites.
    kept : Path or None
        The folder of earlier results, which also gets the new ones.
    processes : int
        The number of processes at a time; 1 is this process.
    progress : callable
        Called with the name of each bug when its measurement starts.

    Raises
    ------
    ChildProcessError
        If one of several processes ends before it has measured all its bugs.
    """
    suites, makers = tuple(only), (device, no_device)
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        keys = {name: _key(bug, makers, suites) for name, bug in BUGS.items()}
        changed = [name for name, key in keys.items() if _found(place, name).get("key") != key]
        job = partial(_measure, makers=makers, suites=suites, folder=place)
        if processes == 1:
            job(" ".join(changed), progress=lambda name, _: progress(name))
        else:
            _together(job, changed, processes, progress)
        return _joined({name: _found(place, name)["refused"] for name in BUGS}, suites)


_SHARE = 4
"""How many bugs are measured in one process, if there are several."""


def _together(job: Callable[..., None], names: Sequence[str], processes: int, progress: Callable[[str], None]) -> None:
    def watch(_: str) -> AbstractContextManager[Progress]:
        return nullcontext(lambda name, _: progress(name))

    # A process has few of them: what a bug leaves behind must not count for the next one.
    shares = [" ".join(names[start : start + _SHARE]) for start in range(0, len(names), _SHARE)]
    for share, answer in side_by_side(job, shares, processes=processes, watch=watch):
        if isinstance(answer, Death):
            raise ChildProcessError(f"the process that measured {share} {answer.how}, at {answer.stage}")


def _measure(names: str, /, *, progress: Progress, makers: Makers, suites: Sequence[str], folder: Path) -> None:
    """Measure some bugs, each on a subject of its own, and store the results."""
    for bug in map(BUGS.__getitem__, names.split()):
        progress(bug.name, 0)
        subject = makers[_DEVICES.index(bug.shows_on)]() if bug.shows_on in _DEVICES else None
        found: dict[str, str] = {}
        for edition in EDITIONS:
            gc.collect()  # some bugs count the live memories; those of the last edition must not count
            if subject is not None and _shown_by(edition) == bug.shows_on:
                for suite in _for(bug, suites):
                    marks = (str(int(refused(bug, subject, it))) for it in _replayed(edition, suite))
                    found[f"{edition}/{suite}"] = "".join(marks)
        data = {"key": _key(bug, makers, suites), "refused": found}
        (folder / f"{bug.name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


_DEVICES = ("device", "no device")


def _for(bug: SeededBug, suites: Iterable[str]) -> tuple[str, ...]:
    """The suites that a bug is measured with."""
    return tuple(suite for suite in suites if (suite in SUITES) == (bug.name in MEMORY_BUGS))


def _shown_by(edition: str) -> str:
    """The kind of subject for which the vectors of an edition are."""
    return "no device" if edition == "cpu_only" else "device"


def _groups(suites: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((edition, suite) for edition in EDITIONS for suite in suites)


@cache
def _replayed(edition: str, suite: str) -> tuple[dict[str, Any], ...]:
    return tuple(vector.as_json() for vector in vectors(suite, edition))


def _found(folder: Path, name: str) -> dict[str, Any]:
    """The stored results of a bug."""
    path = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _joined(refused_by: dict[str, dict[str, str]], suites: Sequence[str]) -> Kills:
    """The results of all bugs, by vector."""
    sets: dict[int, int] = {}
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for edition, suite in _groups(suites):
        group, names = f"{edition}/{suite}", names_of(vectors(suite, edition))
        rows = [(1 << k, marks[group]) for k, marks in enumerate(refused_by.values()) if group in marks]
        each = (sum(bit for bit, row in rows if row[at] == "1") for at in range(len(_replayed(edition, suite))))
        found[group] = names, tuple(sets.setdefault(bits, len(sets)) for bits in each)
    return Kills(tuple(BUGS), tuple(sets), found)


# --- what results depend on

_REPLAYS = (replay, replay_memories, replay_blobs)


def _key(bug: SeededBug, makers: Makers, suites: Sequence[str]) -> str:
    """A digest of everything that the results of a bug depend on."""
    told = (
        bug.shows_on,
        _own_source(bug.make),
        _sources_of(makers),
        *(_digest_of(*it) for it in _groups(_for(bug, suites))),
    )
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


@cache
def _sources_of(makers: Makers) -> str:
    """The source of the kit that replays, and of the allocators that it uses."""
    homes = dict.fromkeys(it.__module__ for it in (*_REPLAYS, CallLog, fetch, Subject, HandmadeMemory, HandmadeBlob))
    made = [maker() for maker in makers]
    allocators = {type(it): None for subject in made for it in (subject.host, subject.device) if it is not None}
    homes |= {base.__module__: None for kind in allocators for base in kind.__mro__ if base.__module__ != "builtins"}
    return "\n".join(inspect.getsource(sys.modules[home]) for home in homes)


@cache
def _digest_of(edition: str, suite: str) -> str:
    return hashlib.sha256(json.dumps(_replayed(edition, suite)).encode()).hexdigest()


def _own_source(make: type) -> str:
    """The source of a bug's class and of its base classes, and of their modules without the other bugs."""
    classes = {base.__name__ for base in make.__mro__}
    homes = {base.__module__: None for base in make.__mro__ if base.__module__.startswith(f"{__package__}.")}
    return "\n".join(
        ast.unparse(node)
        for home in homes
        for node in _parsed(home).body
        if not isinstance(node, ast.ClassDef) or node.name in classes or not node.decorator_list
    )


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))
