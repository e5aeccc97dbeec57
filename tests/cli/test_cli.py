"""The command line: what it prints, what it writes, and its exit status."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import command_fixtures
import pytest
from mutants.memory import MEMORY_BUGS
from subjects import device_subject, failing, host_subject

from syncedmem import __version__, cli
from syncedmem.cli import main, output
from syncedmem.model import EDITIONS, InvalidArgumentError, MissingPackageError, caffe
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.formats import ENDINGS, FORMATS, export
from syncedmem.model.exports.mermaid import mermaid
from syncedmem.model.files import SIGN
from syncedmem.runtime import SimulatedDeviceAllocator
from syncedmem.spec.engine.search import Generated
from syncedmem.spec.engine.supervisor import Death
from syncedmem.spec.requirements import requirements_of
from syncedmem.verification import (
    KINDS,
    MARKS,
    DeviceVerdict,
    ModelVerdict,
    Verification,
    checks,
)
from syncedmem.verification.allocators import allocators_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from syncedmem.spec import Subject
    from syncedmem.spec.engine.report import SuiteRun

VERIFY_PART = checks.verify_part
MODEL = {"configurations": 17, "cells": 153, "refusals": 45, "states": 62, "transitions": 558}


PROCESSORS = "syncedmem.spec.engine.supervisor.processors"


@pytest.fixture(autouse=True)
def _one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one processor `verify` makes all checks in this process, where tests can replace parts of it."""
    monkeypatch.setattr(PROCESSORS, lambda: 1)


def run(*arguments: str, code: int = 0) -> Result:
    return command_fixtures.run(*arguments, code=code)


def verified(folder: Path, *arguments: str, code: int = 0) -> tuple[Result, dict[str, Any]]:
    """Run a quick ``verify`` in this process, and return its result and its report."""
    quick = ("--steps", "60")
    result = run("verify", *quick, "--out", str(folder / "report"), *arguments, code=code)
    return result, json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))


def _always(subject: Subject) -> Callable[[str, int], Subject]:
    def make(name: str, seed: int) -> Subject:
        del name, seed
        return subject

    return make


def use(monkeypatch: pytest.MonkeyPatch, subject: Subject) -> None:
    """Make ``verify`` use this subject for every device, and check no blobs."""
    monkeypatch.setattr(checks, "make_subject", _always(subject))
    monkeypatch.setattr("syncedmem.spec.blob.kit.SUITES", {})


@cache
def found(job: str) -> DeviceVerdict:
    """Return the verdict about a part of a device. It is made once, for all tests of how verdicts are shown."""
    return VERIFY_PART(job, steps=60, seed=0)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``verify`` return verdicts that are already known."""

    def here(job: str, **_: object) -> DeviceVerdict:
        return found(job)

    monkeypatch.setattr(checks, "verify_part", here)


# --- verify


@pytest.mark.deep
def test_verify_passes_and_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device of this machine passes, every transition is taken, and the report and the page say so."""
    monkeypatch.setattr(PROCESSORS, lambda: 2)
    result, report = verified(tmp_path)
    devices = {device["name"]: device for device in report["devices"]}

    assert (3, True, __version__) == (report["format"], report["passed"], report["syncedmem"])
    assert MODEL == {key: report["model"][key] for key in MODEL}
    assert ["cpu", "simulated", "opencl", "cuda"] == list(devices)
    passed = {name for name, device in devices.items() if device["status"] == "passed"}
    assert {"cpu", "simulated"} <= passed
    counted = {
        (name, part): (item["count"], item["missing"])
        for name in passed
        for part, item in devices[name]["parts"].items()
    }
    assert (558, 0) == counted["simulated", "memories"]
    assert (48, 0) == counted["cpu", "memories"]
    assert (144, 0) == counted["simulated", "blobs"]
    assert list(requirements_of(*KINDS)) == [requirement["id"] for requirement in report["requirements"]]
    assert {"B44-int-count"} == {
        requirement["id"] for requirement in report["requirements"] if requirement["status"] != "passed"
    }  # only in Caffe
    assert "17 configurations, 153 cells (45 refused), 62 states, 558 transitions; agrees with Caffe" in result.output
    assert "The table does what the oracle expects, by 9 invariants in 128 states" in result.output
    assert "558/558" in result.output

    # Six of the allocators keep released memory, and are exempt from one requirement.
    allocators = len(allocators_over(SimulatedDeviceAllocator())) * len(requirements_of("device allocator")) - 6
    assert (allocators, 0) == counted["simulated", "allocators"]
    assert all(report[key] for key in ("date", "host", "processor", "platform", "python"))
    assert version("numpy") == report["libraries"]["numpy"]

    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")

    assert ([], 2) == (
        re.findall(r"(?:src|href)=", text),
        text.count("<svg"),
    )  # it loads nothing, and draws two machines
    assert "<script" not in text
    assert 'name="viewport"' in text
    assert "✓" in text
    assert "✗" not in text.partition("<h2>Requirements</h2>")[0].replace("✗ not covered", "")  # every edge is taken
    assert all(name in text for name in requirements_of(*KINDS))


@pytest.mark.deep
def test_a_process_that_dies_loses_only_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report still has the other parts and the other devices. So has a device that some part could not open."""
    ends: dict[str, object] = {
        "simulated blobs": Death("crash", "SIGSEGV", "cells", 12),
        "opencl memories": DeviceVerdict("opencl", "the driver is busy"),
        **{f"cuda {part}": DeviceVerdict("cuda", "no GPU") for part in checks.PARTS},
    }

    def answers(_: object, jobs: list[str], **__: object) -> list[tuple[str, object]]:
        return [(job, ends.get(job) or found(f"cpu {job.split()[1]}")) for job in jobs]

    monkeypatch.setattr(checks, "side_by_side", answers)
    monkeypatch.setattr(PROCESSORS, lambda: 2)
    names = ("cpu", "simulated", "opencl", "cuda")
    result, report = verified(tmp_path, *(f"--device={name}" for name in names), code=1)
    devices = {device["name"]: device for device in report["devices"]}
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")

    assert ["passed", "failed", "failed", "unavailable"] == [device["status"] for device in report["devices"]]
    assert "simulated breaks crash: blobs: the process was ended by SIGSEGV; done last: 12 of cells" in result.output
    assert "crash: memories: the device was not available: the driver is busy" in result.output
    assert "crash: blobs: the process was ended by SIGSEGV" in text
    assert devices["cpu"]["parts"]["memories"]["suites"] == devices["simulated"]["parts"]["memories"]["suites"]
    assert devices["cpu"]["parts"]["blobs"] == devices["opencl"]["parts"]["blobs"]
    assert ("passed", "not checked") == tuple(
        devices["simulated"]["requirements"][name] for name in ("R01-lazy", "B01-empty")
    )


def test_wrong_numbers_are_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidArgumentError, match="steps"):
        checks.verify(steps=-1, seed=0, processes=2)
    for processes in (0, -1, 1.5, True):
        with pytest.raises(InvalidArgumentError, match=f"processes.*{processes}"):
            checks.verify(steps=0, seed=0, processes=cast("Any", processes))
    with pytest.raises(InvalidArgumentError, match="gpu"):
        checks.verify(("gpu",), steps=1, seed=0)


@pytest.mark.parametrize(
    ("named", "problems", "passed", "verdict"),
    [
        ((), [], True, "passed"),
        (("cpu",), [], True, "passed"),
        (("cpu", "cuda"), [], True, "incomplete"),
        (("cuda",), [], True, "incomplete"),
        (("cuda",), ["differs"], True, "failed"),
        (("cuda",), [], False, "failed"),
    ],
)
def test_a_failure_is_one_and_without_a_device_that_was_named_the_verdict_is_incomplete(
    named: tuple[str, ...], problems: list[str], passed: bool, verdict: str
) -> None:
    here: Any = SimpleNamespace(passed=passed)
    devices = [DeviceVerdict("cpu", "", {"memories": here}), DeviceVerdict("cuda", "CUDA needs CuPy")]
    found = Verification(0, ModelVerdict({}, problems), devices, named=named)
    assert (found.verdict, found.passed) == (verdict, verdict == "passed")
    assert found.missing == (["cuda"] if "cuda" in named else [])


@pytest.mark.parametrize(
    ("names", "verdict"),
    [(["cuda"], "nothing could be checked"), (["cpu", "cuda"], "incomplete. You asked for cuda, and it is not here")],
)
def test_a_named_device_that_is_not_here_is_said_and_is_status_one(
    names: list[str], verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(job: str, **_: object) -> DeviceVerdict:
        return found(job) if job.startswith("cpu") else DeviceVerdict("cuda", "CUDA <needs> CuPy")

    monkeypatch.setattr(checks, "verify_part", here)
    result, report = verified(tmp_path, *(f"--device={name}" for name in names), code=1)
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")

    assert {"name": "cuda", "status": "unavailable", "reason": "CUDA <needs> CuPy"} == report["devices"][-1]
    assert (False, ["cuda"]) == (report["passed"], report["missing"])
    assert "cuda: CUDA <needs> CuPy" in result.output
    assert f"{verdict}. Report: " in " ".join(result.output.split())
    assert "CUDA &lt;needs&gt; CuPy" in text
    assert all(f"{mark} {status}" in text for status, mark in MARKS.items())  # the page explains its marks
    if names == ["cuda"]:
        assert not [line for line in result.output.splitlines() if "R01" in line or "walks" in line]
        assert {"not checked"} == {requirement["status"] for requirement in report["requirements"]}


@pytest.mark.deep
@pytest.mark.parametrize("columns", ["80", "40"])
def test_nothing_in_the_tables_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """The width is 80 in a file, and less in a narrow terminal. All possible devices are listed."""

    def here(job: str, **_: object) -> DeviceVerdict:
        name, part = job.split()
        slow = replace(found(f"cpu {part}").parts[part], seconds=1234.5 / len(checks.PARTS))
        return DeviceVerdict(name, "", {part: slow})

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(checks, "verify_part", here)
    result, _ = verified(tmp_path)
    tables = [line for line in result.output.splitlines() if line.startswith(" ")]
    heads = [line.split() for line in tables if line.split()[:1] in (["device"], ["requirement"])]

    assert ["requirement", "cpu", "simulated", "opencl", "cuda"] == heads[0]
    assert ["device", "status", "checks", "transitions", "walks", "steps", "seconds"] == heads[1]
    assert all(any(line.split()[:1] == [name] for line in tables) for name in requirements_of(*KINDS))
    assert 4 == result.output.count("1234.5")
    assert "…" not in result.output
    assert max(map(len, tables)) <= 80
    assert all(report in run("devices").output for report in ("available", "what it is, or what is missing"))


@pytest.mark.deep
def test_the_report_of_some_devices_takes_not_the_place_of_that_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ``--out`` they go to different folders. A device that is named twice is checked once."""
    monkeypatch.chdir(tmp_path)

    def here(job: str, **_: object) -> DeviceVerdict:
        name, part = job.split()
        return replace(found(f"cpu {part}"), name=name)

    monkeypatch.setattr(checks, "verify_part", here)
    some = run("verify", "--steps", "0", *("--device", "cpu", "--device", "opencl", "--device", "cpu"))
    every = run("verify", "--steps", "0")
    reordered = run("verify", "--steps", "0", *(f"--device={name}" for name in reversed(checks.CHECKED)))
    report = json.loads((tmp_path / "build" / "verify-cpu+opencl" / "report.json").read_text(encoding="utf-8"))

    assert "Report: build/verify-cpu+opencl/index.html" in some.output
    assert ["cpu", "opencl"] == [device["name"] for device in report["devices"]]
    assert "Report: build/verify/index.html" in every.output
    assert "Report: build/verify/index.html" in reordered.output
    assert {"verify", "verify-cpu+opencl"} == {path.name for path in (tmp_path / "build").iterdir()}


@pytest.mark.deep
def test_a_failing_device_prints_the_shortest_reproducer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit status is 1, and the output has the requirement and a reproducer, which runs on the real memory."""
    subject = device_subject(MEMORY_BUGS["CopiesUpOnlyOnce"].make)
    use(monkeypatch, replace(subject, source=checks.make_subject("simulated", 0).source))
    result, report = verified(tmp_path, "--device", "simulated", code=1)
    program = result.output.partition("Shortest reproducer:")[2].partition("\nsimulated: ")[0]

    assert "simulated breaks R08-copy-up" in result.output
    assert "memory.gpu_data()" in program
    violation, *_ = report["devices"][0]["parts"]["memories"]["violations"]
    assert program.strip().splitlines()[:-1] == violation["statements"]
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert "failed" == report["devices"][0]["status"]
    assert "failed" == next(
        requirement["status"] for requirement in report["requirements"] if requirement["id"] == "R08-copy-up"
    )
    assert "Failures of simulated" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.deep
def test_a_transition_that_was_not_taken_is_a_failure_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All checks pass, but some transitions are not taken; the page shows which the device took."""
    use(monkeypatch, device_subject())

    def no_suites(_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr("syncedmem.spec.conformance.suites_of", no_suites)
    result, report = verified(tmp_path, "--device", "simulated", "--steps", "0", code=1)
    missing = report["devices"][0]["parts"]["memories"]["missing"]

    assert missing == MODEL["transitions"]
    assert f"simulated: {missing} transitions of memories were never taken" in result.output
    assert diagram_svg("caffe", covered=()) in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.deep
def test_too_few_generated_moves_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All checks pass, but the generator has nothing new, so there are fewer moves than were wanted."""
    use(monkeypatch, host_subject())

    def nothing(_: object, suite: SuiteRun, steps: int, __: int, *, share: float) -> None:
        del share
        suite.generated = Generated(steps, 1)

    monkeypatch.setattr("syncedmem.spec.conformance.search", nothing)
    result, report = verified(tmp_path, "--device", "cpu", "--steps", "60", code=1)

    assert {"asked": 60, "walks": 0, "moves": {}, "starts": 0} == report["devices"][0]["parts"]["memories"]["generated"]
    assert "cpu: only 0 of 60 generated moves were taken, in 0 distinct walks" in result.output


@pytest.mark.usefixtures("known")
def test_a_model_that_differs_from_caffe_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "compare_model", lambda: ["caffe C:o- gpu_data: something else"])
    result, report = verified(tmp_path, "--device", "cpu", code=1)

    assert "is wrong" in result.output
    assert ["caffe C:o- gpu_data: something else"] == report["model"]["problems"]
    assert "something else" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.deep
@pytest.mark.usefixtures("known")
def test_what_is_not_checked_for_want_of_a_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output, the page and the data say how to install the package. If nothing is missing, they say nothing."""
    said = "B50 to B55 are not checked: a BlobProto message needs the package protobuf: pip install protobuf"
    whole = verified(tmp_path / "whole", "--device", "cpu")
    unpacked = failing(MissingPackageError, "a BlobProto message", "protobuf", "proto")
    monkeypatch.setattr("syncedmem.runtime.Blob.to_proto", unpacked)
    result, report = verified(tmp_path, "--device", "cpu")

    assert said in result.output
    assert said == report["unchecked"]
    assert said in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert ("", False) == (whole[1]["unchecked"], "are not checked" in whole[0].output)


@pytest.mark.deep(quick=1)
@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("place", ["-", "deep/r.json", os.devnull])
def test_the_report_goes_where_it_is_wanted(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard output is nothing else; a device is written to as it is."""
    monkeypatch.chdir(tmp_path)
    result, report = verified(tmp_path, "--device", "cpu", "--json", place, "--seed", "41")

    assert (True, 41) == (report["passed"], report["seed"])
    written = result.stdout if place == "-" else Path(place).read_text(encoding="utf-8")
    signature = {} if place == "-" else {"$comment": SIGN}  # what somebody pipes on has no sign
    assert SIGN == report.pop("$comment")
    assert not written if place == os.devnull else {**report, **signature} == json.loads(written)


@pytest.mark.parametrize("option", ["--json", "--out"])
@pytest.mark.parametrize("place", ["file/report", "taken"])
def test_where_a_report_cannot_be_written_nothing_is_checked(
    option: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    """The place is in a file, or is a folder where a file has to be. The error comes before the run."""
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "verify_model", lambda: pytest.fail("it began"))

    assert place.partition("/")[0] in refused("verify", "--device", "cpu", option, place)
    assert {"file", "taken"} == {path.name for path in tmp_path.iterdir()}


# --- devices and diagram


def test_devices_lists_all_with_reasons() -> None:
    listed = {row["name"]: row for row in json.loads(run("devices", "--json").output)}
    table = run("devices").output

    assert ["cpu", "simulated", "opencl", "cuda"] == list(listed)
    assert listed["simulated"]["available"]
    assert all(row["detail"] for row in listed.values())
    assert all(name in table for name in listed)


@pytest.mark.parametrize(
    ("value", "found"),
    [("cpu", "cpu"), ("simulated", "simulated"), ("gpu", "nothing: SYNCEDMEM_DEVICE='gpu': unknown")],
)
def test_devices_says_what_auto_is(value: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If ``auto`` is no device, the list is still printed, without an error in it."""
    monkeypatch.setenv("SYNCEDMEM_DEVICE", value)
    listed = run("devices", "--json")

    assert f'device="auto" is {found}' in run("devices").output
    assert [value] * (value != "gpu") == [row["name"] for row in json.loads(listed.stdout) if row["auto"]]
    assert listed.stderr.startswith("syncedmem: SYNCEDMEM_DEVICE='gpu': unknown device 'gpu'; ") is (value == "gpu")


def test_verify_refuses_a_variable_without_meaning_before_any_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Callable[..., str]
) -> None:
    monkeypatch.setenv("SYNCEDMEM_DEVICE", "gpu")

    assert "SYNCEDMEM_DEVICE=gpu" in refused("verify", "--device", "cpu", "--steps", "0", "--out", tmp_path / "report")
    assert not [*tmp_path.iterdir()]


def test_diagram_passes_its_options_on() -> None:
    """The options are an edition, calls, detail, a trace with and without a size, and a theme."""
    few = run("diagram", "--calls", "cpu_data,gpu_data", "--calls", "release", "--detail", "guards").output
    drawn = run("diagram", "--format", "svg", "--trace", "gpu_data, cpu_data", "--size", "1000").output

    assert mermaid("cpu_only") == run("diagram", "--edition", "cpu_only").output
    assert mermaid(calls=(caffe.CPU_DATA, caffe.GPU_DATA, caffe.RELEASE), detail=Detail.GUARDS) == few
    assert diagram_svg(trace=trace_of("gpu_data cpu_data", size=1000)) == drawn
    assert "1,000 bytes to CPU" in drawn
    assert "all bytes to CPU" in run("diagram", "--format", "text", "--trace", "gpu_data cpu_data").output
    for theme in Theme:
        assert diagram_svg(theme=theme) == run("diagram", "--format", "svg", "--theme", theme).output


def test_diagram_writes_a_file_and_checks_it(tmp_path: Path) -> None:
    """``--check`` reports a file that is missing or out of date, and does not write it."""
    path = tmp_path / "docs" / "machine.svg"
    arguments = ("diagram", "--format", "svg", "-o", str(path))
    missing = run(*arguments, "--check", code=1)
    path.parent.mkdir()
    run(*arguments)
    run(*arguments, "--check")
    path.write_text("<svg/>", encoding="utf-8")
    stale = run(*arguments, "--check", code=1)

    assert "<svg/>" == path.read_text(encoding="utf-8")
    assert "not up to date" not in missing.output
    assert "not up to date" in stale.output
    assert all(str(path) in item.output for item in (missing, stale))


def test_a_reader_who_has_gone_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typer then ends without a message."""

    def gone(_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=SimpleNamespace(write=gone)))

    with pytest.raises(BrokenPipeError):
        output.write(None, b"text")


def said_by(arguments: tuple[str, ...], stdout: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command that ends with status 2, and return its standard error."""
    errors = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["syncedmem", *arguments])
        patched.setattr(sys, "stdout", stdout)
        patched.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as stopped:
            main()
    assert 2 == stopped.value.code
    return errors.getvalue()


class FullDisk(io.StringIO):
    """A stream to a full disk; the error comes when it writes, or only when it flushes."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self._when = when

    def write(self, text: str) -> int:
        return self._said("write") or super().write(text)

    def flush(self) -> None:
        self._said("flush")

    def _said(self, when: str) -> int:
        if when == self._when:
            raise OSError(errno.ENOSPC, "No space left on device")
        return 0


@pytest.mark.deep
@pytest.mark.parametrize("when", ["write", "flush"])
@pytest.mark.parametrize("command", ["devices", "devices --json", "--help", "--version", "vectors --suite tour --out"])
def test_a_full_standard_output_is_said_by_name(
    command: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not name the folder, whose files were all written."""
    arguments = (*command.split(), str(tmp_path)) if command.endswith("--out") else tuple(command.split())

    assert "syncedmem: standard output: No space left on device\n" == said_by(arguments, FullDisk(when), monkeypatch)


def test_a_full_folder_of_vectors_is_said_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    """The error names a file in the folder, and no file is left incomplete."""
    monkeypatch.setattr(os, "fsync", failing(OSError, errno.ENOSPC, "No space left on device"))
    said = refused("vectors", "--suite", "tour", "--out", tmp_path)

    assert re.fullmatch(f"syncedmem: {tmp_path}/.*tour.jsonl: No space left on device\n", said)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output.write(pipe, "text")
    found = os.read(reader, 100)
    os.close(reader)

    assert (b"text", True) == (found, pipe.is_fifo())


def test_a_closed_standard_output_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "syncedmem: standard output: it is closed\n" == said_by(("diagram", "--format", "svg"), None, monkeypatch)


# --- all of it


def test_help_says_how_it_exits_and_what_there_is() -> None:
    """It lists the exit statuses, every device, format and edition, and the place of the report."""
    said = run("verify", "--help").output
    drawn = run("diagram", "--help").output

    assert re.search(r"Exit status:\n +0  .*\n +1  .*\n +2  ", said)
    assert all(name in said for name in (*checks.SUBJECTS, "build/verify", "build/verify-NAME+NAME"))
    assert all(name in drawn for name in (*FORMATS, *Detail, *EDITIONS, *Theme))
    assert "missing" in run("devices", "--help").output


@pytest.mark.parametrize("command", ["diagram", "explore"])
def test_the_folder_of_a_file_is_made(command: str, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.html"

    assert 0 == run(command, "-o", str(path)).exit_code
    assert path.is_file()


def test_a_dash_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    """Both commands that write one file accept a dash. ``--check`` needs a file and refuses it."""
    monkeypatch.chdir(tmp_path)

    assert run("diagram").output == run("diagram", "-o", "-").output
    assert run("explore", "-o", "-").output.startswith("<!doctype html>")
    assert "--check needs a file" in refused("diagram", "-o", "-", "--check")
    assert not [*tmp_path.iterdir()]


KEEPING: dict[str, tuple[str, ...]] = {
    "fuzz": ("fuzz", "syncedmem:CPUDeviceAllocator", "--steps", "200", "--seconds", "2", "--hang", "60"),
    "verify": ("verify", "--device", "cpu", "--steps", "60"),
}


@pytest.mark.deep
@pytest.mark.parametrize("command", KEEPING)
def test_nothing_is_left_in_the_current_folder_but_reports(command: str, tmp_path: Path) -> None:
    """Hypothesis keeps files only in a folder that the user names."""
    clean = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_STORAGE_DIRECTORY"}

    def ran(env: dict[str, str]) -> set[str]:
        line = [sys.executable, "-m", "syncedmem", *KEEPING[command]]
        done = subprocess.run(line, cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
        assert 0 == done.returncode, done.stdout + done.stderr
        return {path.name for path in tmp_path.iterdir()}

    assert {"build"} >= ran(clean)

    found = ran(clean | {"HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "kept")})

    assert {"build", "kept"} >= found
    # Hypothesis keeps data about modules of a checkout.  In fuzz it does so only if the machine is fast enough.
    assert command == "fuzz" or "site-packages" in cli.__file__ or "kept" in found


@pytest.mark.parametrize("told", ["", "elsewhere"])
def test_the_environment_is_as_before_when_a_command_has_ended(
    told: str, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", told)
    refused("diagram", "--format", "tex")

    assert told == os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", "")


@pytest.mark.parametrize(
    ("name", "option", "format_"),
    [
        ("x.svg", "", "svg"),
        ("x.SVG", "", "svg"),
        ("x.h", "", "c"),
        ("x.md", "", "markdown"),
        ("x.json", "", "json"),
        ("x", "", "mermaid"),
        ("x.mmd", "", "mermaid"),
        ("y.md", "mermaid", "mermaid"),
        ("y.picture", "svg", "svg"),
        ("y", "svg", "svg"),
    ],
)
def test_a_file_has_the_format_of_its_name(name: str, option: str, format_: str, tmp_path: Path) -> None:
    """``--format`` selects another format for the same ending, or for an ending that is not known."""
    run("diagram", "-o", str(tmp_path / name), *(["--format", option] if option else []))

    signed = output.signed(str(export(format_)), FORMATS[format_].extension)
    assert signed == (tmp_path / name).read_bytes()


def test_every_format_has_an_ending() -> None:
    assert set(FORMATS) == {name for names in ENDINGS.values() for name in names}


@pytest.mark.deep
def test_importing_the_command_line_loads_neither_numpy_nor_hypothesis() -> None:
    program = "import sys, syncedmem.cli; print([m for m in ('numpy', 'hypothesis') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("verify --device gpu", f"{', '.join(checks.SUBJECTS)}, got 'gpu'"),
        ("verify --device cpu:1", "'cpu:1'"),
        ("verify --device simulated-seeded:1", "'simulated-seeded:1'"),
        ("verify --device cuda:x", "'cuda:x'"),
        ("diagram --edition late", f"'late'; there are {', '.join(EDITIONS)}"),
        ("diagram -o /proc/nowhere/x", "/proc/nowhere: "),
        ("diagram -o /proc", "/proc: "),
        ("diagram -o /proc --check", "/proc: "),
        ("diagram -o x.pdf --check", "--check"),
        ("diagram -o x.svgz", "'.svgz' (did you mean .svg?); there are .mmd, "),
        ("diagram -o x.xyz", "--format, one of mermaid, dot,"),
        ("diagram -o x.png --format svg", "x.png"),
        ("diagram -o x.md --format c", "x.md is for markdown, mermaid"),
        ("diagram -o ''", "''"),
        ("diagram --check", "-o FILE"),
        ("diagram --format xyz", "'xyz'; there are mermaid, dot"),
        ("diagram --format SVG", "'SVG' (did you mean svg?)"),
        ("diagram --format svg --theme grey", "'grey'; there are auto, light, dark"),
        ("diagram --detail head", "'head' (did you mean heads?); there are heads, guards, configurations"),
        ("diagram --calls copy", "'copy'; there are cpu_data"),
        ("diagram --calls ''", "''; there are cpu_data"),
        ("diagram --calls ,", "','; there are cpu_data"),
        ("diagram --calls gpu_dta", "'gpu_dta' (did you mean gpu_data?)"),
        ("diagram --edition early --calls set_gpu_data", "early has no call 'set_gpu_data'; it has"),
        ("diagram --format svg --trace copy", "'copy'"),
        ("diagram --format svg --trace ''", "got none"),
        ("diagram --size 4096", "--size needs --trace"),
        ("diagram --trace cpu_data --size 4k", "'4k'"),
        ("diagram --trace cpu_data --size -4", "got -4"),
        ("vectors --out ''", "''"),
        ("vectors --out /proc/nowhere", "/proc/nowhere: "),
    ],
)
def test_errors_are_one_line_with_the_wrong_value_and_exit_with_2(
    arguments: str, text: str, refused: Callable[..., str]
) -> None:
    assert text in refused(*shlex.split(arguments))


def test_the_package_runs_as_a_program() -> None:
    """The command is ``python -m syncedmem``."""
    done = subprocess.run([sys.executable, "-m", "syncedmem", "--version"], capture_output=True, text=True, check=False)

    assert (0, f"{__version__}\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["simulated:1", "simulated:2"])
def test_a_device_is_verified_by_its_number(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its allocators are; the rest, which takes long, is asked for by the same name."""
    asked: list[str] = []

    def part(job: str, **options: Any) -> DeviceVerdict:
        asked.append(job)
        known = job.split()[1] in ("memories", "blobs")
        return replace(found(f"simulated {job.split()[1]}"), name=name) if known else VERIFY_PART(job, **options)

    monkeypatch.setattr(checks, "verify_part", part)
    device: Any = checks.make_subject(name, 0).device
    done = run("verify", "--device", name, "--steps", "0", "--out", str(tmp_path))
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    assert (f"simulated:{name[-1]}", 0) == (device.name, done.exit_code)
    assert [f"{name} {part}" for part in checks.PARTS] == asked
    assert [name] == [device["name"] for device in report["devices"]]


def test_simulated_subjects_use_a_seeded_scheduler_where_they_say_so() -> None:
    subject = checks.make_subject("simulated-seeded", 7)

    assert isinstance(subject.device, SimulatedDeviceAllocator)
    assert "make_subject('simulated-seeded', 7)" in subject.source
