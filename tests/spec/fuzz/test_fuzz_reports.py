"""What the fuzzer produces: replays, the output of the command, tests for pytest, and pages."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, ClassVar
from unittest import SkipTest
from xml.etree import ElementTree as ET

import pytest
from command_fixtures import run
from mutants.allocator import Pool
from promises import ALL

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import (
    AllocatorTests,
    Capabilities,
    Finding,
    FuzzWanted,
    HeapStep,
    Replay,
    Report,
    TargetError,
    fuzz,
)
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


POOL = "mutants.allocator:Pool"
TWICE = "mutants.allocator.placement:PutBackTwice"


pytestmark = pytest.mark.usefixtures("no_signs_of_life")


@pytest.mark.deep
def test_a_replay_file_says_whether_it_still_fails(tmp_path: Path) -> None:
    report = fuzz(TWICE, steps=2_000, first=True)
    found = report.replay(report.findings[0])
    file = tmp_path / "replay.json"
    file.write_text(found.text(), encoding="utf-8")
    other = tmp_path / "other.json"
    other.write_text(found.text().replace("A01-distinct-pointers", "A02-no-overlap"), encoding="utf-8")

    assert found.as_json() == Replay.read(file).as_json()
    assert "still breaks A01-distinct-pointers" in run("replay", file, TWICE, code=1).output
    assert "now breaks A01-distinct-pointers" in run("replay", str(other), TWICE, code=1).output
    assert "no longer breaks A01-distinct-pointers" in run("replay", file, POOL, code=0).output
    with pytest.raises(Violation, match="A01"):
        exec(found.python(), {})  # noqa: S102 -- the printed program must run


@pytest.mark.deep
def test_a_replay_makes_a_run_again_with_its_seconds_and_says_if_it_cannot_know(tmp_path: Path) -> None:
    """Whatever had kept it from finding anything, the target no longer broke it, with status 0."""
    target, file = tmp_path / "slow.py", tmp_path / "replay.json"
    target.write_text(
        "import time\nfrom mutants.allocator import Pool\n\nclass Slow(Pool):\n"
        "    def place(self, room, alignment):\n        time.sleep(0.05)\n"
        "        return super().place(room, alignment)\n",
        encoding="utf-8",
    )
    report = fuzz(f"{target}:Slow", steps=3_000, seconds=0.5)
    file.write_text(report.replay(Finding("A22-no-crash", "it died", ())).text(), encoding="utf-8")

    assert 0.5 == Replay.read(file).wanted.seconds
    run("replay", str(file), f"{target}:Slow", code=1)


def test_a_replay_whose_run_failed_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Report(FuzzWanted(POOL), "", Capabilities(), protected=True, errors=["a worker was lost"])

    def fail(**_: object) -> Report:
        return failed

    monkeypatch.setattr("syncedmem.spec.fuzz.kit.fuzz", fail)
    file = tmp_path / "replay.json"
    file.write_text(Replay(FuzzWanted(POOL), Finding("A22-no-crash", "it died", ())).text(), encoding="utf-8")

    run("replay", str(file), POOL, code=1)


def test_a_replay_of_before_has_the_seconds_that_it_was_repeated_with(tmp_path: Path) -> None:
    data = Replay(FuzzWanted(POOL, seconds=7.0), Finding("A22-no-crash", "it died", ())).as_json()
    del data["seconds"]
    file = tmp_path / "replay.json"
    file.write_text(json.dumps(data), encoding="utf-8")

    assert FuzzWanted(POOL).seconds == Replay.read(file).wanted.seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no replay: this is broken JSON: .*Expecting"),
        ("", "is no replay: the file is empty"),
        ("3", "is no replay of format 1 to 4; wanted is a replay of fuzz$"),
        ('{"format": 5}', "is no replay of format 1 to 4; wanted is a replay of fuzz$"),
        *((text, "is no replay of format 1 to 4; wanted is a replay of fuzz$") for text in ("{}", "[1]", "null")),
        ('{"format": 1}', "is no replay: it has no 'target'; wanted is a replay of fuzz$"),
        ('{"format": 1, "target": "a:b"}', "it has no 'promises'"),
    ],
)
def test_what_is_no_replay_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "replay.json"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(TargetError, match=said):
        Replay.read(file)


WRONG: dict[str, list[Any]] = {
    "target": [1, None, "x" * ((1 << 20) + 1)],
    "promises": [["ab"], {"alignment": 64}],
    "property": ["A99", []],
    "message": [0],
    "repeats": [1],
    "program": [{}, "fly"],
    "seed": [True, 0.5],
    "steps": [-1, "1", 1 << 64],
    "threads": [0, 1.0, 1 << 64],
    "hang": [0, -1.0, "5", 86_401, float("inf")],
    "seconds": [0, -1.0, "5", float("inf")],
    "named": ["yes"],
    "skip": ["A01", ["A99"], [1]],
}
"""Values that the fields of a replay must not have."""


@pytest.mark.parametrize(("field", "values"), WRONG.items())
def test_a_field_that_cannot_be_is_named(tmp_path: Path, field: str, values: list[Any]) -> None:
    """The file is refused before anything is run."""
    good = Replay(FuzzWanted(POOL), Finding("A01-distinct-pointers", "", ())).as_json()
    file = tmp_path / "replay.json"
    for value in values:
        file.write_text(json.dumps(good | {field: value}).replace("Infinity", "1e999"), encoding="utf-8")
        with pytest.raises(TargetError, match=f"is no replay: it has a wrong '{field}': "):
            Replay.read(file)

    assert set(good) == {"format", "kind", *WRONG}


@pytest.mark.deep
def test_a_replay_imports_nothing_that_only_the_file_names(tmp_path: Path, refused: Callable[..., str]) -> None:
    """It shows the target that the file names and a command that allows it; that command imports and runs it."""
    mark, module, file = tmp_path / "mark", tmp_path / "it's mine.py", tmp_path / "replay.json"
    module.write_text(
        f"import pathlib; pathlib.Path({str(mark)!r}).touch()\nfrom mutants.allocator import Pool\n",
        encoding="utf-8",
    )
    target = f"{module}:Pool"
    for repeats in (True, False):  # the two kinds are replayed differently
        finding = Finding("A01-distinct-pointers", "", (HeapStep("compare", ()),), repeats=repeats)
        file.write_text(Replay(FuzzWanted(target, steps=100), finding).text(), encoding="utf-8")
        line = refused("replay", file)
        command = shlex.split(line.partition("if you trust that: ")[2])

        assert ["syncedmem", "replay", str(file), target] == command
        assert repr(target) in line
        assert not mark.exists()

        run(*command[1:], code=0 if repeats else 1)

        assert mark.exists()
        mark.unlink()


@pytest.mark.parametrize("name", ["a\x1b[2Jb:c", "a\nb:c", "a" * 2000 + ":c", "\ud800:c"])
def test_a_name_that_a_terminal_would_act_on_is_quoted_and_not_advised(
    name: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    file = tmp_path / "replay.json"
    file.write_text(Replay(FuzzWanted(name), Finding("A01-distinct-pointers", "", ())).text(), encoding="utf-8")
    line = refused("replay", file)

    assert line.startswith("syncedmem: a replay imports and runs its target, so you have to name it after the file")
    assert line[:-1].isprintable()
    assert "trust" not in line


@pytest.mark.deep
def test_a_replay_of_an_object_says_that_it_has_no_name(tmp_path: Path, refused: Callable[..., str]) -> None:
    """You can name a target for it on the command line."""
    file = tmp_path / "replay.json"
    finding = Finding("A01-distinct-pointers", "", (HeapStep("compare", ()),))
    found = Replay(FuzzWanted("<an object>", named=False), finding)
    file.write_text(found.text(), encoding="utf-8")

    assert "it came from an object in a program, '<an object>'" in refused("replay", file)
    assert "no longer breaks A01-distinct-pointers" in run("replay", file, POOL, code=0).output


@pytest.mark.deep
def test_the_command_passes_what_passes(tmp_path: Path) -> None:
    arguments = ("fuzz", "libc.so.6:malloc,free", "--steps", "3000", "--out", str(tmp_path), "--threads", "2")
    result = run(*arguments, "--json", str(tmp_path / "report.json"), "--junit", str(tmp_path / "junit.xml"), code=0)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    suite = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 -- this test has written it

    assert "passed. Seed 0." in result.output
    assert (4, True, []) == (report["format"], report["passed"], report["findings"])
    required = requirements_of("allocator")
    assert list(required) == [item["requirement"] for item in report["requirements"]]
    assert {"tests": str(len(required)), "failures": "0"} == {key: suite.attrib[key] for key in ("tests", "failures")}
    assert len(suite) == len(required)


@pytest.mark.deep
def test_reasons_name_what_is_missing() -> None:
    report = fuzz("libc.so.6:malloc,free", steps=500)
    reasons = {verdict.requirement: verdict.detail for verdict in report.verdicts() if verdict.status == "not checked"}

    assert "stream_ordered" in reasons["A19-stream-order"]
    assert "say --threads N" == reasons["A20-threads"]
    assert "it has no realloc" == reasons["A14-resize-keeps"]


@pytest.mark.parametrize(("threads", "wanted"), [(1, True), (2, False)])
def test_threads_are_asked_for_only_if_there_were_none(threads: int, wanted: bool) -> None:
    """The time may be over before it is their turn; that was told as if they had not been asked for."""
    report = fuzz(Pool, steps=200, seconds=1e-9, threads=threads, promises={"thread_safe": "yes"})
    for report.lost in (False, True):  # a process that ended has not done it either
        verdict = report.verdict("A20-threads")

        assert ("not checked", wanted) == (verdict.status, "--threads" in verdict.detail)
        assert "lost" not in verdict.detail


class Correct(AllocatorTests):
    """The suite on a correct pool: pytest collects its tests."""

    target = Pool
    promises: ClassVar[dict[str, str]] = ALL
    steps = 4_000


class TestPool(Correct):
    """Every requirement is a test."""


@pytest.mark.deep
def test_the_suite_fails_skips_and_expects_failures(tmp_path: Path) -> None:
    class Twice(AllocatorTests):
        target = TWICE
        promises: ClassVar[dict[str, str]] = {"alignment": "1"}
        steps = 1_000

    broken, fine = "A01-distinct-pointers", "A03-aligned"
    with pytest.raises(AssertionError, match="with driver_of"):
        Twice().check(broken)
    Twice().check(fine)
    with pytest.raises(SkipTest, match="not checked"):
        Twice().check("A08-size-known")

    file = tmp_path / "known.txt"
    file.write_text(f"# ours\n{broken}  # because\n{fine}\n", encoding="utf-8")

    class Known(Twice):
        known = file
        skip = ("A04",)

    with pytest.raises(SkipTest, match="known, because: "):
        Known().check(broken)
    with pytest.raises(AssertionError, match="lists A03-aligned as known, and it was not found: A03-aligned passed"):
        Known().check(fine)
    with pytest.raises(SkipTest, match="it was to be skipped"):
        Known().check("A04-contents-kept")
