"""Several seeds on the command line: what is refused, one report of all, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from rich.console import Console
from subjects import device_subject
from typer.testing import CliRunner

from syncedmem.cli import app, main
from syncedmem.cli.seeds import MOST, asked_for, machines_shown, unfinished
from syncedmem.model import InvalidArgumentError
from syncedmem.report.schema import schema
from syncedmem.report.seeds import unfinished as left_out
from syncedmem.runtime import SyncedMemory
from syncedmem.spec import check_conformance
from syncedmem.spec.engine.cluster import Spread
from syncedmem.spec.engine.seeds import SeedResult
from syncedmem.spec.fuzz import EngineError, Replay
from syncedmem.spec.mutants.allocator import ALLOCATOR_BUGS
from syncedmem.spec.ports.process import PortError
from syncedmem.verification import DeviceVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUG = ALLOCATOR_BUGS["OneByteShort"].target
QUICK = ("--steps", "200", "--seconds", "1", "--first")
VALIDATOR: Any = jsonschema.Draft202012Validator(schema())


def run(*arguments: object, code: int) -> str:
    done = CliRunner().invoke(app, [str(it) for it in arguments])
    assert code == done.exit_code, done.output
    return done.output


# --- the options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--seeds", "64"),
            "must be the first and the last seed, as in 1..64, 100,000 seeds at most, got '64'",
        ),
        (("--seeds", ""), "got ''"),
        (("--seeds", "5..1"), "got '5..1'"),
        (("--seeds", f"0..{MOST}"), f"got '0..{MOST}'"),
        (("--seeds", "0.." + "9" * 5000), "--seeds must be"),
        (("--seeds", "1..2", "--seed", "3"), "--seed must be left out, because --seeds has all of them, got 3"),
        (("--jobs", "1", "--scheduler", "tcp://x:1"), "--jobs must be left out, because --scheduler says where"),
        (("--scheduler", "tcp://x:1"), "--scheduler must be given with --seeds, for example --seeds 1..64, got"),
        (("--scheduler", "foo://x", "--seeds", "1..2"), "must be the address of a Dask scheduler that answers"),
        (("--seeds", "1..2", "--corpus", "nowhere://x"), "nowhere://x cannot be opened: Protocol not known: nowhere"),
        (("--seeds", "1..2", "--corpus", "file:///dev/null/x"), "file:///dev/null/x: Not a directory"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    options: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["syncedmem", "fuzz", BUG, *QUICK, "--out", str(tmp_path / "out"), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()

    assert (2, "", 1) == (ended.value.code, out.strip(), err.count("\n"))
    assert said in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("jobs", ["0", "1025", "x"])
@pytest.mark.parametrize("command", ["fuzz", "conform", "verify"])
def test_a_number_of_jobs_that_cannot_be_is_refused(command: str, jobs: str) -> None:
    target = [] if command == "verify" else [BUG]

    assert "--jobs" in run(command, *target, "--jobs", jobs, code=2)


def test_the_seeds_are_those_of_the_options() -> None:
    assert asked_for(0, None, None, None) is None
    assert (range(5, 8), 3, None) == asked_for(5, None, 3, None)
    assert (range(1, 65), 2, None) == asked_for(0, "1..64", 2, None)
    found = asked_for(0, "7..7", None, "tcp://x:1")
    assert found is not None
    assert (range(7, 8), "tcp://x:1") == (found.seeds, found.scheduler)
    assert found.jobs >= 1


# --- what is shown


def spread_of(*machines: str) -> Spread:
    spread = Spread(range(1, 5))
    for seed, machine in enumerate(machines, 1):
        spread.add(SeedResult(seed, "answer", None, 1000, 1.0, machine, (seed, 1)))
    return spread


def test_the_table_of_machines_is_live_on_a_terminal_and_stays(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w", encoding="utf-8") as file:
        terminal = Console(file=file, force_terminal=True, force_interactive=True, width=80)
        with machines_shown(terminal) as shown:
            shown(spread_of("lark", "wren", "lark"))
    said = (tmp_path / "said").read_text(encoding="utf-8")

    assert said.endswith("3 of 4 seeds on 2 machines, 3 at a time, 3,000 operations\n")
    assert said.count("lark") >= 2


def test_without_an_answer_no_table_is_shown(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w", encoding="utf-8") as file, machines_shown(Console(file=file)) as shown:
        shown(Spread(range(2)))

    assert "" == (tmp_path / "said").read_text(encoding="utf-8")


def test_seeds_without_a_result_give_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    spread = spread_of("lark")
    unfinished(spread.as_json())
    spread.lost[2] = "gone"
    with pytest.raises(import_module("typer").Exit) as ended:
        unfinished(spread.as_json())

    assert 2 == ended.value.exit_code
    assert "syncedmem: seed 2 has no result: gone\n" == capsys.readouterr().err
    assert [("seed 2", "gone"), ("2 seeds", "the run ended before")] == [
        (it.what, it.why) for it in left_out(spread.as_json())
    ]
    spread.lost[3] = "gone"
    assert "2 seeds, 2 to 3" == next(left_out(spread.as_json())).what


# --- fuzz


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Two seeds that find the same seeded bug, and share a corpus at a URL."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        corpus = f"file://{folder}/corpus"
        files = ("--corpus", corpus, "--json", "r.json", "--html", "r.html", "--junit", "r.xml")
        yield folder, run("fuzz", BUG, *QUICK, "--seeds", "3..4", "--jobs", "2", *files, code=1)


def test_the_same_finding_of_two_seeds_is_one(fuzzed: tuple[Path, str]) -> None:
    folder, said = fuzzed
    data = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    (finding,) = data["findings"]
    replay = Replay.read(folder / "build" / "fuzz" / "A02-no-overlap.json")

    assert "A02-no-overlap" == finding["requirement"]
    assert 2 <= finding["times"]
    assert replay.seed in (3, 4)
    assert f"Found by {finding['generator']} with seed {replay.seed}, operation" in said
    assert "2 of 2 seeds on 1 machine, " in said
    assert said.endswith("failed. 2 seeds.\n")
    assert [it.suffix for it in (folder / "corpus").iterdir()]


def test_the_report_of_many_seeds_is_the_same_report(fuzzed: tuple[Path, str]) -> None:
    folder, _ = fuzzed
    data = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    page = (folder / "r.html").read_text(encoding="utf-8")

    VALIDATOR.validate(data)
    assert [3, 4] == data["report"]["provenance"]["seeds"] == data["spread"]["seeds"]
    assert "--seeds 3..4" in data["report"]["provenance"]["again"]
    assert "seeds 3 to 4" in page
    assert f"{data['spread']['line']}." in data["report"]["checked"]
    assert "<h2>Machines</h2>" in page
    assert 'failures="1"' in (folder / "r.xml").read_text(encoding="utf-8")
    data["spread"]["machines"][0]["user"] = "me"
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(data)


def test_a_run_that_has_no_result_is_a_failure_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncedmem.spec.fuzz import seeds

    def broken(*_: object, **__: object) -> None:
        raise EngineError("out of order")

    monkeypatch.setattr(seeds, "fuzz", broken)
    with pytest.raises(RuntimeError, match="out of order"):
        seeds.run_seed({}, 1)
    monkeypatch.setattr(seeds, "fuzz", counted)
    assert 5 == seeds.run_seed({}, 1)[1]
    monkeypatch.setattr(seeds, "take_seeds", lost)
    with pytest.raises(EngineError, match="seed 1 has no result: gone"):
        seeds.fuzz_seeds(BUG, range(1, 2), jobs=1)


def counted(*, seed: int) -> SimpleNamespace:
    return SimpleNamespace(operations=seed + 4)


def lost(*_: object, **__: object) -> Spread:
    return Spread(range(1, 2), lost={1: "gone"})


@pytest.mark.no_cover
def test_an_interrupt_loses_nothing_and_leaves_nobody(tmp_path: Path) -> None:
    """It comes when the first seed has an answer, and another one runs."""
    out, begun = tmp_path / "out", tmp_path / "begun"
    os.mkfifo(begun)
    (tmp_path / "waits.py").write_text(
        "import os\n"
        "from syncedmem.spec.mutants.allocator.placement import OneByteShort\n\n\n"
        "def pool():\n"
        "    if os.path.exists('out/report.json'):\n"
        "        with open('begun', 'w') as file:\n"
        "            file.write('begun')\n"
        "        import threading\n"
        "        threading.Event().wait(600)\n"
        "    return OneByteShort()\n",
        encoding="utf-8",
    )
    words = [sys.executable, "-m", "syncedmem", "fuzz", "waits.py:pool", *QUICK, "--hang", "600", "--out", "out"]
    process = subprocess.Popen(
        [*words, "--seeds", "1..9", "--jobs", "1"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert "begun" == begun.read_text(encoding="utf-8")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=240)

    assert 130 == process.returncode
    assert "1 of 9 seeds on 1 machine, 1 at a time" in said
    assert "Interrupted by SIGINT" in said
    data = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert ("SIGINT", 1) == (data["interrupted"], data["spread"]["done"])


# --- conform


def test_a_port_is_tested_with_each_seed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def maker(size, *, host, device): raise RuntimeError(size)\n", "utf-8")
    files = ("--out", tmp_path, "--html", tmp_path / "r.html")
    quick = (f"{tmp_path / 'broken.py'}:maker", "--steps", "0", "--level", "L0", "--timeout", "300")
    said = run("conform", *quick, *files, "--seeds", "1..2", "--jobs", "2", code=1)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    VALIDATOR.validate(data)
    assert "Shortest program, 2 seeds:\n\n" in said
    assert "2 of 2 seeds on 1 machine" in said
    assert ["R11-head"] == [it["requirement"] for it in data["report"]["failures"]]
    assert "--seeds 1..2" in data["report"]["provenance"]["again"]
    assert "<h2>Machines</h2>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_port_that_cannot_be_tested_with_any_seed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncedmem.spec.engine.supervisor import Limits
    from syncedmem.spec.ports import seeds
    from syncedmem.spec.ports.conformance import PortReport, Wanted
    from syncedmem.spec.ports.targets import command_target

    def checked(target: object, wanted: Wanted, limits: object) -> PortReport:
        del target, limits
        return PortReport("port", "caffe", wanted)

    monkeypatch.setattr(seeds, "conform_program", checked)
    report, calls = seeds.run_seed((command_target("x"), Wanted("caffe"), Limits()), 7)
    assert (7, 0) == (report.wanted.seed, calls)
    monkeypatch.setattr(seeds, "take_seeds", lost)
    with pytest.raises(PortError, match="seed 1 has no result: gone"):
        seeds.conform_seeds(command_target("x"), Wanted("caffe"), Limits(), seeds=range(1, 2), jobs=1)


# --- verify


def test_devices_are_checked_with_each_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine has no result for a seed, so the report is incomplete, with status 2; nothing else is lost."""
    from syncedmem.verification import seeds

    def tour(_: object) -> tuple[str, ...]:
        return ("tour",)

    monkeypatch.setattr("syncedmem.spec.memory.kit.suite_names", tour)
    toured = check_conformance(device_subject(SyncedMemory), steps=0)

    def taken(_: str, __: object, them: range, **more: Any) -> Spread:
        spread = Spread(them)
        spread.add(SeedResult(1, "answer", [DeviceVerdict("simulated", "", {"memories": toured})], 7, 1.0, "a", (1, 1)))
        spread.lost[2] = "gone"
        more["on_result"](spread)
        more["on_answers"](spread)
        return spread

    monkeypatch.setattr(seeds, "take_seeds", taken)
    told = ("verify", "--device", "simulated", "--steps", "0", "--out", tmp_path, "--seeds", "1..2")
    said = run(*told, code=2)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    VALIDATOR.validate(data)
    assert ("incomplete", False) == (data["report"]["verdict"], data["passed"])
    assert {"what": "seed 2", "why": "gone"} == data["report"]["not_checked"][0]
    assert "seed 2 has no result: gone" in said
    assert "1 of 2 seeds on 1 machine, 1 at a time, 7 operations" in said


def test_no_seed_of_the_main_job_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncedmem.verification import seeds

    monkeypatch.setattr(seeds, "take_seeds", lost)
    monkeypatch.setattr(seeds, "verify_model", lambda: None)
    with pytest.raises(InvalidArgumentError, match=r"seeds that can run \(seed 1 has no result: gone\)"):
        seeds.verify_seeds(["simulated"], steps=0, seeds=range(1, 2), jobs=1)


def test_a_seed_of_the_main_job_is_the_verdict_on_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncedmem.verification import checks, seeds

    monkeypatch.setattr(checks, "PARTS", {"memories": checks.PARTS["memories"]})
    verdicts, calls = seeds.run_seed((("cuda:99",), 0), 1)

    assert ["unavailable"] == [it.status for it in verdicts]
    assert 0 == calls
