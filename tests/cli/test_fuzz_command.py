"""The fuzzer's command line: what it refuses, how it reports findings, and what it says when a result is not known."""

from __future__ import annotations

import importlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from mutants.allocator import ALLOCATOR_BUGS, Pool
from rich.console import Console
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.cli.display import progress_bars
from syncedmem.cli.folder import RunFolder
from syncedmem.spec.fuzz import (
    Capabilities,
    EngineError,
    Finding,
    FuzzWanted,
    HeapStep,
    Replay,
    Report,
    TargetError,
    fuzz,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

fuzz_command: Any = importlib.import_module("syncedmem.cli.fuzz")
POOL, TWICE = "mutants.allocator:Pool", ALLOCATOR_BUGS["PutBackTwice"].target


pytestmark = pytest.mark.usefixtures("no_signs_of_life")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--json", "file/report.json"), "file: "),
        (("--junit", "file/report.xml"), "file: "),
        (("--out", "file"), "file: "),
        (("--json", "."), ".: "),
        (("--json", "-", "--junit", "-"), "'-'"),
        (("--promise", "alignment"), "NAME=VALUE, got 'alignment'"),
        (("--promise", "alignment=16", "--promise", "alignment=64"), "16 and 64"),
        (("--known", "file"), "'nonsense'"),
        (("--known", "missing"), "missing: "),
        (("--skip", "A99"), "'A99'"),
        (("--steps", "0"), "got 0"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_tested(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    """If a report could not be written at the end, its reproducer would be lost."""
    (tmp_path / "file").write_text("nonsense", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert said in refused("fuzz", POOL, *arguments)
    assert not (tmp_path / "build").exists()


@pytest.mark.deep
def test_a_target_that_is_gone_after_its_first_import_is_one_line(tmp_path: Path, refused: Callable[..., str]) -> None:
    """There were a verdict, `failed`, and an error."""
    file = tmp_path / "gone.py"
    file.write_text("import os\nfrom mutants.allocator import Pool\nos.unlink(__file__)\n", encoding="utf-8")

    assert f"cannot import {file}: " in refused("fuzz", f"{file}:Pool", "--out", tmp_path / "out")


@pytest.mark.deep
@pytest.mark.parametrize(("target", "status"), [(TWICE, 1), (POOL, 2)])
def test_a_full_disk_under_a_report_costs_only_that_report(target: str, status: int, tmp_path: Path) -> None:
    """A finding decides the status, if there is one."""
    arguments = ["fuzz", target, "--steps", "500", "--seconds", "20", "--first", "--out", str(tmp_path / "out")]
    run = CliRunner().invoke(app, [*arguments, "--json", "/dev/full", "--junit", str(tmp_path / "report.xml")])

    assert status == run.exit_code
    assert "syncedmem: /dev/full: No space left on device\n" == run.stderr
    assert ("with driver_of(" if status == 1 else "passed. Seed 0.") in run.stdout
    assert (tmp_path / "report.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert (tmp_path / "out" / "report.json").is_file()


@pytest.mark.deep
def test_a_replay_of_what_never_repeated_makes_the_run_again_and_says_what_that_is_worth(tmp_path: Path) -> None:
    steps = (HeapStep("allocate", (0, 8, 0, 0)),)
    unseen = Replay(FuzzWanted(POOL, steps=300), Finding("A22-no-crash", "it died", steps, repeats=False))
    seen = Replay(FuzzWanted(TWICE, steps=3_000), Finding("A01-distinct-pointers", "twice", steps, repeats=False))
    for name, found in (("unseen", unseen), ("seen", seen)):
        (tmp_path / name).write_text(found.text(), encoding="utf-8")
    quiet = CliRunner().invoke(app, ["replay", str(tmp_path / "unseen"), POOL])
    loud = CliRunner().invoke(app, ["replay", str(tmp_path / "seen"), TWICE])

    assert (1, 1) == (quiet.exit_code, loud.exit_code)
    assert "did not break A22-no-crash this time. That says little" in quiet.output
    assert "still breaks A01-distinct-pointers" in loud.output


def test_an_object_is_replayed_where_it_is(tmp_path: Path) -> None:
    class Local(Pool):
        """A class that cannot be imported by name."""

        def place(self, room: int, alignment: int) -> int:
            return super().place(room, alignment) + 1

    report = fuzz(Local, promises={"alignment": "64"}, steps=500)
    found = report.replay(report.findings[0])
    file = tmp_path / "local.json"
    file.write_text(found.text(), encoding="utf-8")

    assert found.python().startswith("# target: ")
    with pytest.raises(AssertionError, match="A03-aligned"):
        exec(found.python(), {"target": Local})  # noqa: S102 -- what is printed has to run
    with pytest.raises(TargetError, match="was an object in a program"):
        Replay.read(file).run()


def printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Report, error: Exception | None = None) -> Result:
    """What the command says of a report, and of an error that comes after it."""

    def run(*_: object, on_change: Callable[[Report], None], **__: object) -> None:
        on_change(report)
        if error is not None:
            raise error

    monkeypatch.setattr("syncedmem.spec.fuzz.fuzz", run)
    return CliRunner().invoke(app, ["fuzz", report.wanted.target, "--out", str(tmp_path / "out")])


def report_of(*findings: Finding) -> Report:
    return Report(FuzzWanted(POOL, steps=100), "a kind", Capabilities(), protected=True, violating=[*findings])


def test_what_is_to_be_known_of_a_finding_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its program breaks before, and how sure it is."""
    step = HeapStep("allocate", (0, 8, 0, 0))
    later = Finding("A17-statistics", "wrong", (step,), after=("A01-distinct-pointers", "A03-aligned"), times=1_001)
    once = Finding("A23-no-hang", "no end", (step, step), repeats=False)
    result = printed(monkeypatch, tmp_path, report_of(later, once))
    shown = " ".join(result.output.split())

    assert 1 == result.exit_code
    assert "A17-statistics: wrong " in shown
    assert ", and 1,000 times more. Its program breaks A01-distinct-pointers and A03-aligned before" in shown
    assert "did not show it; the last 2 steps are in the file. What ended the process may have been hurt" in shown
    assert 1 == shown.count("What ended the process may have been hurt")
    assert f"replay {tmp_path}/out/A23-no-hang.json" in shown
    assert f"fuzz('{POOL}', seed=0, steps=100, threads=1" in shown  # makes the whole run again


@pytest.mark.parametrize(("findings", "status"), [(1, 1), (0, 3)])
def test_a_failure_of_one_of_several_runs_hides_nothing(
    findings: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had been found until then was not printed, and the status was 3."""
    found = [Finding("A17-statistics", "wrong", (HeapStep("compare", ()),))] * findings
    result = printed(monkeypatch, tmp_path, report_of(*found), EngineError("a worker was lost"))

    assert status == result.exit_code
    assert "syncedmem: a worker was lost\n" == result.stderr
    assert findings == result.stdout.count("Replay it: ")


def test_a_run_that_has_only_found_what_is_known_has_to_do_enough() -> None:
    known = Finding("A17-statistics", "wrong", (HeapStep("compare", ()),), known="ours")
    report = replace(report_of(known), planned=1_000)

    assert (True, False) == (bool(report.incomplete), report.passed)


def test_a_finding_of_another_target_in_the_same_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("A17-statistics", "wrong", (HeapStep("compare", ()),))
    printed(monkeypatch, tmp_path, replace(report_of(finding), wanted=FuzzWanted("a:b")))
    shown = printed(monkeypatch, tmp_path, report_of(finding)).output
    again = printed(monkeypatch, tmp_path, report_of(finding)).output

    assert "a:b" == Replay.read(tmp_path / "out" / "A17-statistics.json").wanted.target
    assert f"{tmp_path}/out/A17-statistics-2.json" in shown
    assert f"{tmp_path}/out/A17-statistics-2.json" in again
    assert 3 == len(list((tmp_path / "out").iterdir()))


def test_a_source_of_somebody_else_in_the_same_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was overwritten without --force."""
    theirs = tmp_path / "out" / "A03-aligned.c"
    theirs.parent.mkdir()
    theirs.write_text("int theirs;\n", encoding="utf-8")
    finding = Finding("A03-aligned", "wrong", (HeapStep("allocate", (0, 8, 0, 0)),))
    wanted, parts = FuzzWanted("./lib.so:take,give"), {"malloc": "take", "free": "give"}
    shown = printed(monkeypatch, tmp_path, replace(report_of(finding), wanted=wanted, parts=parts)).output

    assert "int theirs;\n" == theirs.read_text(encoding="utf-8")
    assert "take(8)" in theirs.with_name("A03-aligned-2.c").read_text(encoding="utf-8")
    assert f"{tmp_path}/out/A03-aligned-2.c is the whole program" in shown


@pytest.mark.deep
def test_a_long_program_is_replayed_by_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of 700,000 steps made a report of 99 MB."""
    monkeypatch.setattr("syncedmem.spec.fuzz.kit.MOST_KEPT", 0)
    source = tmp_path / "late.c"
    source.write_text(
        "#include <stdlib.h>\nstatic int n;\nvoid *take(size_t n) { return malloc(n); }\n"
        "void give(void *p) { if (++n > 5000) abort(); free(p); }\n",
        encoding="utf-8",
    )
    target = f"{source}:take,give"
    run = CliRunner().invoke(app, ["fuzz", target, "--steps", "60000", "--first", "--out", str(tmp_path / "out")])
    kept = Replay.read(tmp_path / "out" / "A22-no-crash.json")
    again = CliRunner().invoke(app, ["replay", str(tmp_path / "out" / "A22-no-crash.json"), target])

    assert (1, 1) == (run.exit_code, again.exit_code)
    assert () == kept.finding.program
    assert "It takes so many steps that they are not kept; the seed takes them again." in run.stdout
    assert "still breaks A22-no-crash" in again.stdout


@pytest.mark.deep
def test_a_slow_target_does_not_hold_the_run_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round is taken to its end, and one of them takes more than two thousand steps."""
    monkeypatch.setattr("syncedmem.spec.fuzz.examiner.SHORTENING_SECONDS", 0.1)
    monkeypatch.setattr("syncedmem.spec.fuzz.examiner.LAST_SECONDS", 0.1)
    file = tmp_path / "slow.py"
    file.write_text(
        "import time\nfrom mutants.allocator import Pool\n\nclass Slow(Pool):\n"
        "    def place(self, room, alignment):\n        time.sleep(0.05)\n"
        "        return super().place(room, alignment)\n",
        encoding="utf-8",
    )
    report = fuzz(f"{file}:Slow", seconds=0.5)

    assert ([], True) == (report.findings, bool(report.notes))
    assert report.operations < 100


@pytest.mark.parametrize("generator", ["fast", "native"])
def test_signs_of_life_come_without_a_terminal(
    generator: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, from the start on; with the last progress that was told."""
    console, said = Console(), list[str]()
    monkeypatch.setattr(fuzz_command, "_SIGNS", (0.01, 0.01))

    def wait_for(text: str) -> None:
        while text not in [line.partition(" s: ")[2] for line in said]:  # after how many seconds, nobody knows
            said.extend(capsys.readouterr().err.splitlines())

    with progress_bars(console) as progress, fuzz_command._signs_of_life(console, progress) as follow:
        wait_for("the start")
        follow(generator, 1_000, 2_000_000)
        wait_for(f"{generator}, 1,000 of 2,000,000")
    assert "" == capsys.readouterr().out


def test_a_finding_is_told_when_it_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, although it is made short afterwards, and the report comes again."""
    kept = fuzz_command._FindingFiles(RunFolder(tmp_path, "fuzz", "a:b", force=False), Console())
    report = Report(FuzzWanted("a:b", steps=9), "", Capabilities(), protected=True)
    kept.keep(report)
    report.violating.append(
        Finding("A22-no-crash", "it [has] ended", (HeapStep("allocate", (0, 8, 0, 0)),), operations=7)
    )
    kept.keep(report)
    report.violating[0] = replace(report.violating[0], message="shorter", times=3)
    kept.keep(report)

    assert "found by fast: A22-no-crash: it [has] ended\n" == capsys.readouterr().out


def test_progress_goes_on_within_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar stood still for twelve seconds."""
    monkeypatch.setattr("syncedmem.spec.fuzz.kit.BEAT", 0.001)
    told, is_told = list[int](), threading.Event()

    class Waits(Pool):
        """Its five hundredth request waits until progress is told, by another thread than this one."""

        asked: ClassVar[int] = 0

        def place(self, room: int, alignment: int) -> int:
            Waits.asked += 1
            if Waits.asked == 500:
                is_told.clear()
                assert is_told.wait(60)
            return super().place(room, alignment)

    def tell(generator: str, done: int, of: int) -> None:
        if threading.current_thread() is not threading.main_thread() and generator == "fast" and 0 < done < of:
            told.append(done)
            is_told.set()

    fuzz(Waits, steps=3_000, on_progress=tell)

    assert Waits.asked > 500
    assert told
