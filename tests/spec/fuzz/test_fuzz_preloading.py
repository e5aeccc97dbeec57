"""Libraries for preloading: beside the malloc of the process they call that one, and are not accused of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controls.allocators import PRELOADED
from programs import program

from syncedmem.spec.fuzz import Finding, FuzzWanted, HeapStep, Replay, fuzz
from syncedmem.spec.fuzz.jobs import Isolated
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> str:
    """The library as a target, in a source that is compiled for the run."""
    monkeypatch.setenv("CFLAGS", f"-fno-builtin {f'-D{wrong}' * bool(wrong)}")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    program("cc")
    source = folder / "preloaded.c"
    source.write_text(PRELOADED.read_text(encoding="utf-8"), encoding="utf-8")
    return f"{source}:malloc,free,calloc,realloc"


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [("", set[str]()), ("WRAPS", {"A06-out-of-memory"}), ("ABORTS", {"A22-no-crash"})],
    ids=["right", "wraps", "aborts"],
)
def test_a_library_for_preloading_is_judged_as_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, broken: set[str]
) -> None:
    """One that aborts cannot be preloaded, because Python ends with it."""
    target = made(tmp_path, monkeypatch, wrong)

    assert TargetSource(target).preload
    report = fuzz(target, steps=4_000, first=True)

    assert broken == {finding.requirement for finding in report.findings}, [item.message for item in report.findings]
    assert report.passed is not bool(broken)
    assert broken or any("defines malloc" in note for note in report.notes)


@pytest.mark.deep
def test_what_shows_only_in_a_library_that_is_preloaded_is_replayed_with_it_preloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened beside the malloc of the process, and said to break nothing any more."""
    report = fuzz(made(tmp_path, monkeypatch, "LATER"), steps=4_000, first=True)
    (finding,) = report.findings
    again = report.replay(finding).run()

    assert "A06-out-of-memory" == finding.requirement
    assert finding.repeats
    assert again is not None
    assert "A06-out-of-memory" == again.requirement


@pytest.mark.deep
def test_a_replay_says_nothing_wrong_of_a_right_library_that_only_was_not_preloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = made(tmp_path, monkeypatch, "")
    steps = (HeapStep("allocate", (0, 100, 0, 0)), HeapStep("resize", (0, 5000)), HeapStep("free", (0, 0)))
    found = Replay(FuzzWanted(target), Finding("A04-contents-kept", "it was mended", steps))
    alone = Isolated(target, 5.0)
    with alone:
        job: dict[str, Any] = {"job": "program", "program": [step.as_json() for step in steps], "promises": {}}
        beside = alone.perform(job).finding

    assert beside is not None
    assert "A22-no-crash" == beside.requirement
    assert found.run() is None


def test_who_is_no_malloc_of_its_own_is_not_meant_for_preloading() -> None:
    assert "" == TargetSource("libc.so.6:malloc,free").preload
    assert "" == TargetSource("syncedmem:CPUDeviceAllocator").preload
