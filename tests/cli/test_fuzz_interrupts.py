"""Nothing of a run of the fuzzer is lost: it may be interrupted, or its disk may be full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.spec.fuzz import Replay

pytestmark = pytest.mark.deep

BUG = "mutants.allocator.placement:OneByteShort"
POOL = "mutants.allocator:Pool"
MARK = "SYNCEDMEM_TEST_OF_INTERRUPTS"


def processes(mark: str) -> list[str]:
    """The processes that have a mark in their environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if mark.encode() in (process / "environ").read_bytes():
                found.append(process.name)
    return found


def begun(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Begin a run without an end that has found something."""
    words = [sys.executable, "-m", "syncedmem", "fuzz", BUG, "--steps", "1000000000", "--seconds", "3600"]
    environment = {**os.environ, **environment, MARK: str(folder)}
    run = subprocess.Popen([*words, "--out", str(folder / "out")], env=environment, stdout=subprocess.PIPE, text=True)
    while not (folder / "out" / "A02-no-overlap.json").exists():
        assert run.poll() is None
        time.sleep(0.05)
    return run


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_with_a_report(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Replays are kept, and there is no temporary folder and no process left."""
    temporary, out, mark = tmp_path / "temporary", tmp_path / "out", f"{MARK}={tmp_path}"
    temporary.mkdir()
    run = begun(tmp_path, TMPDIR=str(temporary))
    run.send_signal(number)
    said, _ = run.communicate(timeout=120)

    assert status == run.returncode
    assert f"Interrupted by {number.name}: this is a report of what was done until then." in said
    assert "A02-no-overlap" in said
    assert "A02-no-overlap" == Replay.read(out / "A02-no-overlap.json").finding.requirement
    assert number.name == json.loads((out / "report.json").read_text(encoding="utf-8"))["interrupted"]
    assert [] == list(temporary.iterdir())
    assert [] == processes(mark)


def test_what_was_interrupted_has_not_passed(tmp_path: Path) -> None:
    """However much of it was done."""
    words = [sys.executable, "-m", "syncedmem", "fuzz", "syncedmem.runtime:CPUDeviceAllocator", "--seconds", "60"]
    report = tmp_path / "out" / "report.json"
    words += ["--steps", "400000", "--out", str(report.parent)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
        while not report.exists():
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGHUP)
        said = run.communicate()[0]

    assert (129, False) == (run.returncode, "passed" in said), said
    assert json.loads(report.read_text(encoding="utf-8"))["passed"] is False


def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """Nobody can end what it has started, so each process ends with the one that has started it."""
    run, mark = begun(tmp_path), f"{MARK}={tmp_path}"
    assert len(processes(mark)) > 1
    run.kill()
    run.communicate(timeout=120)
    while processes(mark):
        time.sleep(0.05)


def interrupted_in(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Send SIGTERM to this process as soon as a function is called."""

    def interrupt(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr(place, interrupt)


def test_a_run_that_has_begun_nothing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_in(monkeypatch, "syncedmem.spec.fuzz.fuzz")
    result = CliRunner().invoke(app, ["fuzz", POOL, "--out", str(tmp_path)])

    assert 143 == result.exit_code
    assert "interrupted by SIGTERM before anything was tested" in result.output


def test_an_interrupt_in_the_first_job_gives_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal changes nothing."""
    before, caught = signal.getsignal(signal.SIGTERM), list[type[BaseException]]()

    def interrupt_twice(*_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                os.kill(os.getpid(), number)
            except KeyboardInterrupt as error:
                caught.append(type(error))
        raise caught[0]

    monkeypatch.setattr("syncedmem.spec.fuzz.kit.stages", interrupt_twice)
    result = CliRunner().invoke(app, ["fuzz", POOL, "--out", str(tmp_path)])

    assert 143 == result.exit_code
    assert "Interrupted by SIGTERM" in result.output
    assert [KeyboardInterrupt] == caught
    assert before == signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize("name", ["placement:OneByteShort", "refusals:WaitsForItself", "contents:WritesBehindItsEnd"])
def test_an_interrupt_while_a_finding_is_shortened_claims_nothing_of_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the steps, taken again, had not shown it; nobody had taken them."""
    interrupted_in(monkeypatch, "syncedmem.spec.fuzz.examiner.Examiner._looked_at")
    result = CliRunner().invoke(app, ["fuzz", f"mutants.allocator.{name}", "--hang", "1", "--out", str(tmp_path)])
    (found,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]

    assert 143 == result.exit_code
    assert (False, False, False) == (found["examined"], found["repeats"], found["shrunk"])
    assert "was interrupted, so nobody knows" in result.output
    for claim in ("taken again", "did not show", "driver_of", "The same in C", "another heap", "as they were found"):
        assert claim not in result.output


def test_a_thread_may_run_the_command(tmp_path: Path) -> None:
    """Only the main thread can have handlers."""
    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(
            CliRunner().invoke(app, ["fuzz", POOL, "--steps", "200", "--out", str(tmp_path)]).exit_code
        )
    )
    thread.start()
    thread.join()

    assert [0] == found


def test_a_known_finding_a_skipped_requirement_and_a_failure_of_ours_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("A02  # a bug of ours\nA24-closes\n", encoding="utf-8")
    arguments = ["fuzz", BUG, "--steps", "500", "--first", "--out", str(tmp_path), "--known", str(known)]
    result = CliRunner().invoke(app, [*arguments, "--skip", "A17"])

    assert 0 == result.exit_code, result.output
    assert "known: A02-no-overlap:allocate: " in result.output
    assert "Known, and not found this time: A24-closes" in result.output

    def broken(*_: object, **__: object) -> None:
        raise AssertionError("not here")

    monkeypatch.setattr("syncedmem.spec.fuzz.jobs.WORKER", "import sys; sys.stdin.readline(); sys.exit(7)")
    monkeypatch.setattr("syncedmem.cli.fuzz._print_finding", broken)
    failed = CliRunner().invoke(app, ["fuzz", POOL, "--out", str(tmp_path)])
    assert 3 == failed.exit_code
    assert failed.stderr.startswith("syncedmem: the process that watches the target ended with status 7")


def test_a_failure_of_ours_in_the_middle_is_status_three(tmp_path: Path) -> None:
    """What was done until then is reported."""
    file = tmp_path / "unruly.py"
    file.write_text(
        "import os\nfrom mutants.allocator import Pool\n"
        "class Unruly(Pool):\n    def calloc(self, size):\n        os.kill(os.getppid(), 9)\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(app, ["fuzz", f"{file}:Unruly", "--steps", "500", "--out", str(tmp_path / "out")])

    assert 3 == result.exit_code
    assert "the process that watches the target was ended by SIGKILL" in result.output


@pytest.mark.parametrize(("steps", "native"), [("300", True), ("4000", False)])
def test_what_a_target_has_begun_ends_with_the_run(steps: str, native: bool, tmp_path: Path) -> None:
    """Also if it has left its session; in the worker, and below the native driver, which takes other steps."""
    source = tmp_path / "leaves.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nextern char *program_invocation_name;\n"
        "static int n;\nvoid *take(size_t size) {\n"
        f'    if (!!strstr(program_invocation_name, "driver") == {int(native)} && n++ < 4 && !fork())\n'
        "        { setsid(); if (fork()) _exit(0); sleep(600); _exit(0); }\n"
        "    return malloc(size); }\nvoid give(void *p) { free(p); }\n",
        encoding="utf-8",
    )
    words = [sys.executable, "-m", "syncedmem", "fuzz", f"{source}:take,give", "--steps", steps]
    environment = {**os.environ, MARK: str(tmp_path)}
    subprocess.run([*words, "--out", str(tmp_path / "out")], env=environment, check=False, capture_output=True)

    assert [] == processes(f"{MARK}={tmp_path}")
