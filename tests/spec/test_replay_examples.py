"""The runners in examples/replay*, and ``syncedmem replay``: a right port passes, and each finds its seeded bugs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from programs import program

from syncedmem.spec.vectors import SUITES, write

if TYPE_CHECKING:
    from collections.abc import Callable

    Build = Callable[..., Path]
    Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = Path(__file__).parents[1] / "support" / "ports" / "port.c"
LANGUAGES = ("c", "rs")
OURS = "replay"
RUNNERS = (*LANGUAGES, OURS)
C = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
RUST = ("--edition", "2021", "-O", "--deny", "warnings")


class Mistake(NamedTuple):
    """A text of a port, what stands in its place, a suite that must fail, and the port: an example or the smallest."""

    text: str
    instead: str
    suite: str = "tour"
    port: str = "small"


MISTAKES = {
    "the last byte is not copied": Mistake(
        "copy(own, it->cpu, it->gpu, it->size)", "copy(own, it->cpu, it->gpu, it->size - 1)"
    ),
    "sizes are cut to multiples of four": Mistake(
        "zero(own, it->cpu, it->size)", "zero(own, it->cpu, it->size / 4 * 4)", "sizes"
    ),
    "a byte too many is filled": Mistake("zero(own, it->gpu, it->size)", "zero(own, it->gpu, it->size + 1)"),
    "nothing is copied up": Mistake("return from->copy(own, it->gpu, it->cpu, it->size)", "return 0"),
    "a byte is changed behind the allocators": Mistake(
        "case SMD_COPY_TO_CPU:", "case SMD_COPY_TO_CPU: ((char *)it->gpu)[0] ^= 1;"
    ),
    "it writes beyond the buffer": Mistake(
        "case SMD_ADOPT_CPU: it->cpu = asked->data;",
        "case SMD_ADOPT_CPU: it->cpu = asked->data; ((char *)it->cpu)[it->size] = 0;",
    ),
    "it leaks": Mistake("return from->deallocate(own, SMP_DEVICE, it->gpu)", "return 0"),
    "it frees twice": Mistake("case SMD_FREE_GPU:", "case SMD_FREE_GPU: from->deallocate(own, SMP_DEVICE, it->gpu);"),
    "it frees pageable memory as page-locked": Mistake(
        "it->facts & SMD_CPU_MALLOC_USE_CUDA ? SMP_PINNED : SMP_HOST", "SMP_PINNED", "modes"
    ),
    "host memory is always pageable": Mistake(
        "asked->mode == SMP_MODE_GPU ? SMP_PINNED : SMP_HOST", "SMP_HOST", "modes"
    ),
    "a flag is wrong": Mistake("seen->flags = it->facts", "seen->flags = ~it->facts"),
    "the head is wrong": Mistake("it->head = row->dest", "it->head = (smd_head)(row->dest & 1)"),
    "it refuses nothing": Mistake("return SMP_REFUSED", "return SMP_OK", "cells"),
    "the thirteenth copy is lost": Mistake(
        "case SMD_COPY_TO_GPU:", "case SMD_COPY_TO_GPU: { static int n; if (++n % 13 == 0) return 0; }", "counters"
    ),
    "a push waits": Mistake(
        "copy_async(own, it->gpu, it->cpu, it->size, asked->stream)", "copy(own, it->gpu, it->cpu, it->size)"
    ),
    "the view is another's": Mistake("? it->cpu : it->gpu", "? it->gpu : it->cpu"),
    "the size is that of the first memory": Mistake(
        "it->size = size", "static size_t first; it->size = first ? first : (first = size)", "several"
    ),
    "a failure leaks": Mistake("if (effect->verb != SMD_VERB_ALLOCATE) return;", "return;", "failures", port="c"),
    "what failed is done": Mistake(
        "      return SYNCEDMEM_FAILED;\n    }", "      return 0;\n    }", "failures", port="c"
    ),
    "it adopts its own buffer": Mistake("it->facts & owns", "0 & owns", "aliases", port="c"),
}
"""Seeded bugs of the ports, which every runner must find."""


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all vectors, and return their folder."""
    folder = tmp_path_factory.mktemp("vectors")
    write(folder)
    return folder


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds an example port, or a port with a mistake."""
    ports = tmp_path_factory.mktemp("built") / "ports"
    ignored = shutil.ignore_patterns("*.so", "machine.*")
    shutil.copytree(EXAMPLES / "ports", ports, ignore=ignored)

    def built(port: str, mistake: Mistake | None = None) -> Path:
        place = ports / port
        if mistake is not None:
            place = ports / f"{port}{[*MISTAKES.values()].index(mistake)}"
            shutil.copytree(EXAMPLES / "ports" / ("c" if port == "small" else port), place, ignore=ignored)
            if port == "small":
                shutil.copy(SMALL, place)
            source = next(path for path in sorted(place.iterdir()) if mistake.text in path.read_text(encoding="utf-8"))
            text = source.read_text(encoding="utf-8").replace(mistake.text, mistake.instead)
            source.write_text(text, encoding="utf-8")
        if not (place / "libport.so").exists():
            program("c++" if port == "cpp" else "cc")
            make = [program("make"), "--silent", f"SYNCEDMEM={shlex.quote(sys.executable)} -m syncedmem"]
            subprocess.run([*make, "CFLAGS=-O1 -I.. -w", "CXXFLAGS=-O0"], cwd=place, check=True)
        return place / "libport.so"

    return built


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a runner with a port on a file."""
    folder = tmp_path_factory.mktemp("runners")
    runners = dict[tuple[str, Path], list[str]]()

    def command(language: str, library: Path) -> list[str]:
        source, runner, where = str(EXAMPLES / f"replay.{language}"), str(folder / f"{len(runners)}"), library.parent
        if language == "c":
            made = [program("gcc"), *C, f"-I{EXAMPLES / 'ports'}", "-o", runner, source, f"-L{where}", "-lport"]
            subprocess.run([*made, f"-Wl,-rpath,{where}"], check=True)
        else:
            made = [program("rustc"), *RUST, "-L", str(where), "-l", "port", "-o", runner, source]
            subprocess.run([*made, "-C", f"link-arg=-Wl,-rpath,{where}"], check=True)
        return [runner]

    def ran(language: str, library: Path, file: Path) -> subprocess.CompletedProcess[str]:
        key = language, library
        if language == OURS:
            ours = [sys.executable, "-m", "syncedmem", "replay", str(file), str(library)]
            return subprocess.run(ours, capture_output=True, text=True, check=False)
        if key not in runners:
            runners[key] = command(*key)
        return subprocess.run([*runners[key], str(file)], capture_output=True, text=True, check=False)

    return ran


@pytest.mark.parametrize("language", RUNNERS)
def test_a_right_port_passes_everything(language: str, build: Build, run: Run, vectors: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.jsonl"
    for suite in SUITES:
        lines = (vectors / "caffe" / f"{suite}.jsonl").read_text(encoding="utf-8").splitlines()[:600]
        some.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        done = run(language, build("c"), some)
        assert (0, f"{len(lines)} vectors, 0 failed\n") == (done.returncode, done.stdout), suite


@pytest.mark.parametrize("name", MISTAKES)
def test_every_runner_finds_a_seeded_bug(name: str, build: Build, run: Run, vectors: Path) -> None:
    """Each prints the same ids, and says the step, and what is expected; our own names the requirement."""
    mistake, found = MISTAKES[name], list[list[str]]()
    library = build(mistake.port, mistake)
    for language in RUNNERS:
        if language == "rs" and shutil.which("rustc") is None:
            continue
        done = run(language, library, vectors / "caffe" / f"{mistake.suite}.jsonl")
        assert done.returncode == 1, done.stdout
        *lines, last = [
            line for line in done.stdout.splitlines() if " left out: " not in line and " of them promise " not in line
        ]
        assert not last.endswith(" 0 failed")
        said = re.compile(r" step \d+,? \w+: " + (r"[PR]\d\d-" if language == OURS else "expected .*, seen "))
        assert [] == [line for line in lines if not said.search(line)]
        found.append([line.split()[0].rstrip(":") for line in lines])
    assert [found[0]] * len(found) == found


CUT = '{"edition":"caffe","sizes":[4],"steps":[{"call":"cpu_da\n'


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_vector_fails(language: str, build: Build, run: Run, vectors: Path, tmp_path: Path) -> None:
    """A file without vectors, one that was cut short, and vectors of another edition must not count as replayed."""
    for number, text in enumerate(("", "garbage\n", "{}\n", CUT)):
        (tmp_path / f"{number}.jsonl").write_text(text, encoding="utf-8")
    files = [*tmp_path.iterdir(), vectors / "early" / "tour.jsonl"]
    done = [run(language, build("c"), file) for file in files]

    assert {1} == {item.returncode for item in done}
    assert "edition" in done[-1].stdout
