"""The ports in examples/replay.*: a correct port passes every suite of every edition, and wrong ports fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from programs import program

from syncedmem.model import EDITIONS
from syncedmem.spec.vectors import SUITES

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITE_NAMES = tuple(f"{edition}/{suite}" for edition in EDITIONS for suite in SUITES)
C = ("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o")
RUST = ("rustc", "--deny", "warnings", "-o")


class Mistake(NamedTuple):
    """The text to replace in each port, and the suites that must then fail."""

    suites: tuple[str, ...]
    c: tuple[str, str]
    rs: tuple[str, str]
    py: tuple[str, str]


MISTAKES = {
    "every side is fresh": Mistake(
        SUITE_NAMES,
        ("m->head = side", "m->head = 3"),
        ("self.head = side", "self.head = 3"),
        ("self.fresh = {side}", 'self.fresh = {"cpu", "gpu"}'),
    ),
    "reading moves the head": Mistake(
        tuple(f"{edition}/{suite}" for edition in ("caffe", "early") for suite in ("tour", "hsi", "zero")),
        ("m->head |= side", "m->head = side"),
        ("self.head |= side", "self.head = side"),
        ("self.fresh | {side}", "{side}"),
    ),
    "NULL is taken": Mistake(
        ("caffe/cells", "early/cells", "cpu_only/cells"),
        ('argument, "null", 4', 'argument, "none", 4'),
        ('starts_with("null")', 'starts_with("none")'),
        ("argument is None", "argument is False"),
    ),
    "its own pointer is taken": Mistake(
        ("caffe/aliases", "early/aliases", "cpu_only/aliases"),
        ('"{\\"own\\"", 6', '"{\\"me\\"", 6'),
        ('starts_with("{\\"own\\"")', 'starts_with("{\\"me\\"")'),
        ('{"own": True}', '{"me": True}'),
    ),
    "it finds a device that is not there": Mistake(
        ("cpu_only/cells", "cpu_only/tour", "cpu_only/pairs", "cpu_only/hsi", "cpu_only/zero"),
        ("!m->has_gpu", "m->has_gpu > 1"),
        ("&& !self.has_gpu", "&& self.has_gpu != self.has_gpu"),
        ("and not self.has_gpu", "and self.has_gpu is None"),
    ),
    "a failure is not told": Mistake(
        ("caffe/failures", "early/failures", "cpu_only/failures"),
        ("if (fails)\n", "if (fails > 1)\n"),
        ("if fails {\n            return", "if fails && self.head > 3 {\n            return"),
        ("        if fails:", "        if fails is None:"),
    ),
}


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all vectors with the command, as a user does, and return their folder."""
    folder = tmp_path_factory.mktemp("vectors")
    subprocess.run([sys.executable, "-m", "syncedmem", "vectors", "--out", folder], check=True, stdout=subprocess.PIPE)
    return folder


def replay(command: list[str], vectors: Path, name: str) -> tuple[int, str]:
    """Return the exit status, and the last line, which has the counts."""
    with (vectors / f"{name}.jsonl").open("rb") as lines:
        done = subprocess.run(command, stdin=lines, capture_output=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout.decode().splitlines()[-1]


def made(language: str, folder: Path, change: tuple[str, str] = ("", "")) -> list[str]:
    """Return the command that runs an example, with one text replaced by another everywhere in its source."""
    for name in ("port.py", f"replay.{language}"):
        shutil.copy(EXAMPLES / name, folder)
    source = folder / ("port.py" if language == "py" else f"replay.{language}")
    right = source.read_text(encoding="utf-8")
    assert change[0] in right
    source.write_text(right.replace(*change) if change[0] else right, encoding="utf-8")
    if language == "py":
        return [sys.executable, str(folder / "replay.py")]
    compiler, *options = C if language == "c" else RUST
    subprocess.run([program(compiler), *options, str(folder / "replay"), str(source)], check=True)
    return [str(folder / "replay")]


@pytest.mark.no_cover
@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_a_right_port_passes_every_suite(language: str, vectors: Path, tmp_path: Path) -> None:
    command = made(language, tmp_path)
    suites = json.loads((vectors / "manifest.json").read_text(encoding="utf-8"))["suites"]
    wanted = {it["file"].removesuffix(".jsonl"): (0, f"{it['vectors']} vectors, 0 failed") for it in suites}

    assert set(wanted) == set(SUITE_NAMES)
    assert wanted == {name: replay(command, vectors, name) for name in SUITE_NAMES}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_a_wrong_port_does_not(language: str, name: str, vectors: Path, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    command = made(language, tmp_path, getattr(mistake, language))
    found = {suite: replay(command, vectors, suite) for suite in mistake.suites}

    assert [] == [suite for suite, (status, said) in found.items() if status != 1 or said.endswith(" 0 failed")]


@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_nothing_replayed_is_nothing_passed(language: str, tmp_path: Path) -> None:
    done = subprocess.run(made(language, tmp_path), input="", text=True, capture_output=True, check=False)

    assert (1, "0 vectors, 0 failed\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize("language", ["c", "rs", "py"])
@pytest.mark.parametrize("line", ["garbage", "", "{}", '{"edition":"caffe","steps":[{"call":"cpu_da'])
def test_what_is_no_vector_fails(language: str, line: str, tmp_path: Path) -> None:
    """A truncated file must not count as a replayed one."""
    done = subprocess.run(made(language, tmp_path), input=f"{line}\n", text=True, capture_output=True, check=False)

    assert done.returncode == 1, done.stdout
