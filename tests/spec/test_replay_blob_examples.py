"""The runners in examples/replay_blobs.*: they judge blobs with the C ABI by vectors, each in another language."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from programs import program

from syncedmem.spec.vectors import write
from syncedmem.spec.vectors.blobs import BLOB_SUITES

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[str, Path, Path], subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
LANGUAGES = ("c", "rs", "py")
C = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
RUST = ("--edition", "2021", "-O", "--deny", "warnings")
MOST_LINES = 150


class Mistake(NamedTuple):
    """A text of the blob in C++, what stands in its place, and a suite that must fail."""

    text: str
    instead: str
    suite: str = "blob-cells"


MISTAKES = {
    "it scales by another number": Mistake("at[k] *= factor;", "at[k] *= factor + 1;"),
    "a copy follows the head": Mistake("const bool up = mode == SMD_MODE_GPU;", "const bool up = on_device(part);"),
    "nothing is refused": Mistake("if (!condition) throw", "if (false && !condition) throw", "blob-refusals"),
}


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the vectors of blobs, and return their folder."""
    folder = tmp_path_factory.mktemp("vectors")
    write(folder, [*BLOB_SUITES, "caffe/tour"])
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that builds the C++ port, or one with a mistake."""
    folder = tmp_path_factory.mktemp("ports") / "ports"
    shutil.copytree(EXAMPLES / "ports", folder, ignore=shutil.ignore_patterns("*.so", "machine.*"))

    def build(name: str = "") -> Path:
        program("c++")
        place = folder / f"cpp{[*MISTAKES].index(name) if name else ''}"
        library = place / "libport.so"
        if library.exists():
            return library
        if name:
            shutil.copytree(folder / "cpp", place, ignore=shutil.ignore_patterns("*.so"))
            text = (place / "blob.hpp").read_text(encoding="utf-8")
            assert text.count(MISTAKES[name].text) == 1
            (place / "blob.hpp").write_text(text.replace(*MISTAKES[name][:2]), encoding="utf-8")
        make = [program("make"), "--silent", f"SYNCEDMEM={sys.executable} -m syncedmem", "CXXFLAGS=-O0"]
        subprocess.run(make, cwd=place, check=True)
        return library

    return build


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a runner with a port on a file."""
    folder = tmp_path_factory.mktemp("runners")
    runners = dict[tuple[str, Path], list[str]]()

    def command(language: str, library: Path) -> list[str]:
        if language == "py":
            return [sys.executable, str(EXAMPLES / "replay_blobs.py"), str(library)]
        runner, where = str(folder / f"{language}{len(runners)}"), library.parent
        source = str(EXAMPLES / f"replay_blobs.{language}")
        if language == "c":
            made = [program("gcc"), *C, f"-I{EXAMPLES / 'ports'}", "-o", runner, source, f"-L{where}", "-lport", "-lm"]
            subprocess.run([*made, f"-Wl,-rpath,{where}"], check=True)
        else:
            made = [program("rustc"), *RUST, "-L", str(where), "-l", "port", "-o", runner, source]
            subprocess.run([*made, "-C", f"link-arg=-Wl,-rpath,{where}"], check=True)
        return [runner]

    def ran(language: str, library: Path, file: Path) -> subprocess.CompletedProcess[str]:
        key = language, library
        if key not in runners:
            runners[key] = command(language, library)
        return subprocess.run([*runners[key], str(file)], capture_output=True, text=True, check=False)

    return ran


@pytest.fixture(scope="session")
def without_blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the example port in C, which has no blobs."""
    folder = tmp_path_factory.mktemp("without") / "ports"
    shutil.copytree(EXAMPLES / "ports", folder, ignore=shutil.ignore_patterns("*.so", "machine.*"))
    make = [program("make"), "--silent", f"SYNCEDMEM={sys.executable} -m syncedmem"]
    subprocess.run(make, cwd=folder / "c", check=True)
    return folder / "c" / "libport.so"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_runner_is_short(language: str) -> None:
    lines = (EXAMPLES / f"replay_blobs.{language}").read_text(encoding="utf-8").splitlines()
    assert 100 < len(lines) < MOST_LINES


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_port_in_cpp_passes_all_vectors_of_blobs(
    language: str, built: Callable[..., Path], run: Run, vectors: Path
) -> None:
    for suite, count in (("blob-cells", 144), ("blob-refusals", 96)):
        done = run(language, built(), vectors / "caffe" / f"{suite}.jsonl")
        assert (0, f"{count} vectors, 0 failed\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize("name", MISTAKES)
def test_every_runner_finds_a_mistake(name: str, built: Callable[..., Path], run: Run, vectors: Path) -> None:
    """Each prints the same ids, and says step, expected and seen."""
    found = list[list[str]]()
    for language in LANGUAGES:
        if language == "rs" and shutil.which("rustc") is None:
            continue
        done = run(language, built(name), vectors / "caffe" / f"{MISTAKES[name].suite}.jsonl")
        assert done.returncode == 1, done.stdout
        *lines, last = done.stdout.splitlines()
        assert not last.endswith(" 0 failed")
        assert all(" step " in line and ": expected " in line and ", seen " in line for line in lines)
        found.append([line.split()[0] for line in lines])
    assert all(ids == found[0] for ids in found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_port_without_blobs_is_not_judged(language: str, without_blobs: Path, run: Run, vectors: Path) -> None:
    done = run(language, without_blobs, vectors / "caffe" / "blob-cells.jsonl")
    assert (0, "no blobs, 144 vectors left out\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_vector_of_blobs_fails(
    language: str, built: Callable[..., Path], run: Run, vectors: Path, tmp_path: Path
) -> None:
    """A file without vectors, one that was cut short, vectors of memories, and those of another edition."""
    cut = tmp_path / "cut.jsonl"
    cut.write_text('{"edition":"caffe","type":"float32","shapes":[[2]],"steps":[{"call":"cpu_da\n', encoding="utf-8")
    (tmp_path / "empty.jsonl").touch()
    files = (cut, tmp_path / "empty.jsonl", vectors / "caffe" / "tour.jsonl", vectors / "cpu_only" / "blob-cells.jsonl")
    assert [1, 1, 1, 1] == [run(language, built(), file).returncode for file in files]
