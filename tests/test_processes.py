"""Jobs in processes of their own: what they answer, how they die, and that none is left behind."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, nullcontext
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any, cast

import pytest
from jobs import counted, various

from syncedmem.processes import Death, processors, serve, side_by_side

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from syncedmem.processes import Progress


class Watcher:
    """Notes what it is told, and how many run."""

    def __init__(self) -> None:
        self.told: dict[str, list[tuple[str, int]]] = {}
        self.running = self.most = 0

    @contextmanager
    def __call__(self, name: str) -> Generator[Progress]:
        self.running += 1
        self.most = max(self.most, self.running)
        told = self.told[name] = list[tuple[str, int]]()

        def tell(stage: str, cases: int) -> None:
            told.append((stage, cases))

        try:
            yield tell
        finally:
            self.running -= 1


def unwatched(_: str) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.mark.parametrize("processes", [1, 2])
def test_every_job_answers_from_a_process_of_its_own(processes: int) -> None:
    """No more run at a time than were asked for."""
    watcher = Watcher()
    answers = dict(side_by_side(counted, ("a", "b", "c"), processes=processes, watch=watcher))
    pairs = [cast("tuple[str, int]", answers[name]) for name in ("a", "b", "c")]

    assert ["a", "b", "c"] == [name for name, _ in pairs]
    assert 3 == len({process for _, process in pairs} - {os.getpid()})
    assert (processes, 0) == (watcher.most, watcher.running)


def test_progress_is_told_now_and_then() -> None:
    """Every stage, and not every case: who watches has other things to do."""
    watcher = Watcher()
    dict(side_by_side(counted, ("a",), processes=1, watch=watcher))

    assert {("first", 0), ("second", 0)} <= set(watcher.told["a"])
    assert len(watcher.told["a"]) < 500


@pytest.mark.skipif(os.name != "posix", reason="there are no signals elsewhere")
def test_a_process_that_dies_ends_only_itself(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither a crash, nor a leave, nor an exception of its own."""
    answers = dict(side_by_side(various, ("crash", "leave", "fine"), processes=2, watch=unwatched))
    wrong = dict(side_by_side(cast("Any", str), ("a",), processes=1, watch=unwatched))

    assert Death("was ended by SIGSEGV", "begun", 7) == answers["crash"]
    assert Death("ended with status 3", "begun", 7) == answers["leave"]
    assert "fine" == answers["fine"]
    assert Death("ended with status 1", "its start", 0) == wrong["a"]
    assert "TypeError" in capfd.readouterr().err


def test_none_is_left_when_nobody_listens_any_more() -> None:
    """As after an interrupt."""
    watcher = Watcher()
    answers = side_by_side(various, ("fine", "sleep", "sleep again"), processes=2, watch=watcher)
    assert ("fine", "fine") == next(answers)
    assert active_children()
    cast("Generator[object]", answers).close()

    assert not active_children()
    assert 0 == watcher.running


def test_a_job_that_cannot_be_sent_leaves_nothing_behind() -> None:
    watcher = Watcher()

    def nowhere(name: str, *, progress: Progress) -> None:
        """It has no name that another process could look up."""
        del name, progress

    with pytest.raises(Exception, match="pickle"):
        list(side_by_side(nowhere, ("a",), processes=1, watch=watcher))

    assert not active_children()
    assert (1, 0) == (watcher.most, watcher.running)


class Sent(list[object]):
    """What would be sent."""

    def send(self, message: object) -> None:
        self.append(message)


def test_what_a_process_does_is_the_same_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process leaves interrupts to the one that started it."""
    handlers: dict[int, object] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    sent = Sent()
    serve(cast("Any", sent), counted, "a")

    assert {signal.SIGINT: signal.SIG_IGN} == handlers
    assert ("progress", ("first", 0)) == sent[0]
    assert ("answer", ("a", os.getpid())) == sent[-1]


def test_there_is_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody says which may be used, all of them may."""
    assert 1 <= processors()
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert os.cpu_count() == processors()
