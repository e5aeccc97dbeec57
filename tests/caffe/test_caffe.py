"""Caffe's own SyncedMemory as a port, and Caffe's own tests; ``make test-caffe`` builds what is tested here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syncedmem.spec import check_blobs
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.evidence import (
    CAFFE_BLOBS_EXCEPT,
    CAFFE_BLOBS_VIOLATE,
    CAFFE_LIBRARIES,
    CAFFE_TESTS,
    CAFFE_VIOLATES,
)
from syncedmem.spec.ports.targets import ProgramTarget, subject_of, target

ROOT = Path(__file__).parents[2]
TRANSLATED = ROOT / "tests" / "runtime" / "test_caffe_tests.py"
EDITIONS = pytest.mark.parametrize("edition", list(CAFFE_LIBRARIES))


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder with the libraries."""
    folder = os.environ.get("CAFFE")
    if folder is None:
        pytest.skip("needs Caffe's own files: make test-caffe")
    return Path(folder)


@pytest.fixture(scope="session")
def sources(built: Path) -> Path:
    """Return the folder with Caffe's files."""
    (found,) = built.glob("brocolli-caffe-*/src")
    return found.parent


def conform(library: Path, *options: str) -> dict[str, Any]:
    """Return the report of ``syncedmem conform``."""
    command = [sys.executable, "-m", "syncedmem", "conform", str(library), "--json", "-", *options]
    done = subprocess.run(
        [*command, "--out", str(library.parent / "conform")], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def violated(report: dict[str, Any]) -> set[str]:
    """Return the requirements that a report says are violated."""
    return {violation["requirement"] for level in report["levels"] for violation in level["violations"]}


@EDITIONS
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_caffe_is_caffe(edition: str, seed: int, built: Path) -> None:
    """The kit finds nothing, at the default number of steps, in every transition of the model."""
    report = conform(built / CAFFE_LIBRARIES[edition], "--profile", "caffe", "--seed", str(seed))
    (level,) = report["levels"]
    assert f"\n{report['verdict']}\n" in (ROOT / "docs" / "caffe-itself.md").read_text(encoding="utf-8")
    assert (report["edition"], report["reached"]) == (edition, "L4")
    assert violated(report) == set()
    assert report["verdict"].endswith(
        {"caffe": " 558 of 558 transitions", "cpu_only": " 48 of 48 transitions"}[edition]
    )
    assert {requirement["status"] for requirement in level["requirements"]} == {"passed"}


@pytest.mark.deep
@EDITIONS
def test_caffe_has_the_declared_machine(edition: str, built: Path, tmp_path: Path) -> None:
    """What is learned of it from outside is the declaration, in every cell."""
    command = [sys.executable, "-m", "syncedmem", "learn", str(built / CAFFE_LIBRARIES[edition]), "--json", "-"]
    extra = {"caffe": "0", "cpu_only": "2"}[edition]
    done = subprocess.run(
        [*command, "--extra", extra, "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["cells"] == report["judged"] == {"caffe": 170, "cpu_only": 27}[edition]
    assert report["right"] == {"caffe": 35, "cpu_only": 6}[edition]


@pytest.mark.deep
@EDITIONS
def test_caffe_is_not_safe(edition: str, built: Path) -> None:
    """Beyond Caffe's promises the kit finds exactly what is known of Caffe."""
    library = built / CAFFE_LIBRARIES[edition]
    report = conform(library, "--profile", "safe", "--level", "L4", "--keep-going")
    assert violated(report) == set(CAFFE_VIOLATES[edition])


@EDITIONS
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_the_blobs_of_caffe_are_caffes(edition: str, seed: int, built: Path) -> None:
    """The kit finds only what is known of this form of Caffe, in every cell of the tables."""
    excepted = [option for name in CAFFE_BLOBS_EXCEPT for option in ("--except", name)]
    report = conform(built / CAFFE_LIBRARIES[edition], "--blobs", "--level", "L4", "--seed", str(seed), *excepted)
    assert f"\n{report['verdict']}\n" in (ROOT / "docs" / "caffe-itself.md").read_text(encoding="utf-8")
    assert (report["edition"], report["reached"]) == (edition, "L4")
    assert violated(report) == set()
    (level,) = report["levels"]
    assert {
        requirement["requirement"] for requirement in level["requirements"] if requirement["status"] != "passed"
    } == set(CAFFE_BLOBS_EXCEPT)


@pytest.mark.deep
@EDITIONS
def test_the_blobs_of_caffe_are_not_safe(edition: str, built: Path) -> None:
    """Beyond Caffe's promises the kit finds exactly what is known; the extents would hide everything else."""
    lazy, tolerance = "B67-shape-lazy", Tolerance(["B67-shape-lazy"], keep_going=True)
    library = target(str(built / CAFFE_LIBRARIES[edition]), (object, object))
    assert isinstance(library, ProgramTarget)
    with library.connect(Limits(seconds=60), "") as port:
        subject = subject_of(port, "Caffe", "safe", "L4")
        found = check_blobs(subject, steps=0, tolerance=tolerance, shorten=False)
    assert tolerance.met == {lazy}
    assert {violation.requirement for violation in found.violations} | {lazy} == set(CAFFE_BLOBS_VIOLATE[edition])


def test_a_caffe_that_is_wrong_is_found_out(built: Path, sources: Path, tmp_path: Path) -> None:
    """Caffe's file with one line changed, so that a read on the device makes the host side stale, is no Caffe."""
    text = (sources / "src/caffe/syncedmem.cpp").read_text(encoding="utf-8")
    changed = text.replace("caffe_gpu_memcpy(size_, cpu_ptr_, gpu_ptr_);\n    head_ = SYNCED", "head_ = SYNCED")
    assert changed != text
    (tmp_path / "syncedmem.cpp").write_text(changed, encoding="utf-8")
    here, headers = Path(__file__).parent, ROOT / "examples" / "ports"
    include = [f"-I{source}" for source in (sources / "include", built / "standins", here, headers)]
    options = ["-std=c++11", "-w", "-fPIC", "-shared", "-fvisibility=hidden", *include]
    library = tmp_path / "libwrong.so"
    command = ["g++", *options, str(here / "port.cpp"), str(tmp_path / "syncedmem.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    report = conform(library, "--profile", "caffe", "--level", "L4", "--steps", "0", "--keep-going")
    assert "R08-copy-up" in violated(report)


# --- Caffe's own tests


def cases(file: Path) -> dict[str, list[str]]:
    """Return the test cases of a file in C++: the suite of each, and its name."""
    found = re.findall(r"^(?:TYPED_)?TEST(?:_F)?\((\w+), (\w+)\)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {suite: [name for other, name in found if other == suite] for suite, _ in found}


def test_every_test_of_caffe_is_translated(sources: Path) -> None:
    names = re.findall(r"^def test_(?:blob_)?(Test\w+)\(", TRANSLATED.read_text(encoding="utf-8"), re.MULTILINE)
    memory = cases(sources / "src/caffe/test/test_syncedmem.cpp")
    blob = cases(sources / "src/caffe/test/test_blob.cpp")
    assert {*memory, *blob} == {"SyncedMemoryTest", "BlobSimpleTest", "BlobMathTest"}
    assert names == [name for suite in (memory, blob) for found in suite.values() for name in found]


def test_the_calls_of_caffes_tests_are_those_of_the_evidence(sources: Path) -> None:
    """Each call of a case of test_syncedmem.cpp is in the evidence, in the order of the file."""
    text = (sources / "src/caffe/test/test_syncedmem.cpp").read_text(encoding="utf-8")
    bodies = dict(re.findall(r"^TEST_F\(\w+, (\w+)\) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    made = {name: re.findall(r"mem\.((?:mutable_)?[cg]pu_data)\(\)", body) for name, body in bodies.items()}
    assert {test.name: [call.name for call in test.calls] for test in CAFFE_TESTS} == made
