"""The runners in examples/replay.*: a right port passes, and each runner finds its seeded bugs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from programs import program

from syncedmem.model.exports.formats import export
from syncedmem.spec.vectors import SUITES, write

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
PORT = Path(__file__).parents[1] / "support" / "ports"
EXAMPLE = EXAMPLES / "ports" / "c"
LANGUAGES = ("c", "rs", "py")
C = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
RUST = ("--edition", "2021", "-O", "--deny", "warnings")
MOST_LINES = 150


class Mistake(NamedTuple):
    """A text of a port in C, what stands in its place, a suite that must fail, and whether it is the example port."""

    text: str
    instead: str
    suite: str = "tour"
    of_example: bool = False


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
    "a failure leaks": Mistake(
        "if (effect->verb != SMD_VERB_ALLOCATE) return;", "return;", "failures", of_example=True
    ),
    "what failed is done": Mistake(
        "      return SYNCEDMEM_FAILED;\n    }", "      return 0;\n    }", "failures", of_example=True
    ),
    "it adopts its own buffer": Mistake("it->facts & owns", "0 & owns", "aliases", of_example=True),
}
"""Seeded bugs of the smallest port and of the example port in C, which every runner must find."""


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all vectors, and return their folder."""
    folder = tmp_path_factory.mktemp("vectors")
    write(folder)
    return folder


@pytest.fixture(scope="session")
def header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the generated headers."""
    folder = tmp_path_factory.mktemp("include")
    (folder / "syncedmem_port.h").write_text(str(export("port-header")), encoding="utf-8")
    (folder / "machine.h").write_text(str(export("c")), encoding="utf-8")
    return folder


def built_port(header: Path, folder: Path, mistake: Mistake | None = None) -> Path:
    """Compile the example port in C, or a port with a mistake, as a library."""
    names = ("port.c", "syncedmem.c", "syncedmem.h") if mistake is None or mistake.of_example else ("port.c",)
    sources = [(EXAMPLE if len(names) > 1 else PORT).joinpath(name) for name in names]
    texts = {source.name: source.read_text(encoding="utf-8") for source in sources}
    if mistake is not None:
        assert sum(text.count(mistake.text) for text in texts.values()) >= 1
        texts = {name: text.replace(mistake.text, mistake.instead) for name, text in texts.items()}
    for name, text in texts.items():
        (folder / name).write_text(text.replace("../syncedmem_port.h", "syncedmem_port.h"), encoding="utf-8")
    library = folder / "libport.so"
    made = [program("gcc"), "-std=c99", "-O1", "-shared", "-fPIC", f"-I{header}", "-o", str(library)]
    subprocess.run([*made, *(str(folder / name) for name in names if name.endswith(".c"))], check=True)
    return library


def command(language: str, header: Path, library: Path, folder: Path) -> list[str]:
    """Build a runner with a port, and return its command."""
    if language == "py":
        return [sys.executable, str(EXAMPLES / "replay.py"), str(library)]
    runner = str(folder / "replay")
    port = ["-L", str(library.parent)]
    if language == "c":
        made = [program("gcc"), *C, f"-I{header}", "-o", runner, str(EXAMPLES / "replay.c"), *port, "-lport"]
        subprocess.run([*made, f"-Wl,-rpath,{library.parent}"], check=True)
    else:
        made = [program("rustc"), *RUST, *port, "-l", "port", "-o", runner, str(EXAMPLES / "replay.rs")]
        subprocess.run([*made, "-C", f"link-arg=-Wl,-rpath,{library.parent}"], check=True)
    return [runner]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_runner_is_short(language: str) -> None:
    for name in ("replay", "lent"):
        extension = {"c": "h"}.get(language, language) if name == "lent" else language
        lines = (EXAMPLES / f"{name}.{extension}").read_text(encoding="utf-8").splitlines()
        assert len(lines) < MOST_LINES + 20 * (name == "lent"), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_right_port_passes_everything(language: str, vectors: Path, header: Path, tmp_path: Path) -> None:
    run = command(language, header, built_port(header, tmp_path), tmp_path)
    for name in SUITES:
        lines = (vectors / "caffe" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:600]
        (tmp_path / "some.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        done = subprocess.run([*run, str(tmp_path / "some.jsonl")], capture_output=True, text=True, check=False)
        assert (0, f"{len(lines)} vectors, 0 failed\n") == (done.returncode, done.stdout), name


@pytest.mark.parametrize("name", MISTAKES)
def test_every_runner_finds_a_seeded_bug(name: str, vectors: Path, header: Path, tmp_path: Path) -> None:
    """Each prints the same ids, and says step, expected and seen."""
    mistake = MISTAKES[name]
    library, found = built_port(header, tmp_path, mistake), list[list[str]]()
    for language in LANGUAGES:
        if language == "rs" and shutil.which("rustc") is None:
            continue
        run = [*command(language, header, library, tmp_path), str(vectors / "caffe" / f"{mistake.suite}.jsonl")]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        *lines, last = done.stdout.splitlines()
        assert not last.endswith(" 0 failed")
        assert all(" step " in line and ": expected " in line and ", seen " in line for line in lines)
        found.append([line.split()[0] for line in lines])
    assert all(ids == found[0] for ids in found)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("text", ["", "garbage\n", "{}\n", '{"edition":"caffe","sizes":[4],"steps":[{"call":"cpu_da\n'])
def test_what_is_no_vector_fails(language: str, text: str, header: Path, tmp_path: Path) -> None:
    """A file without vectors, or one that was cut short, must not count as replayed."""
    run = command(language, header, built_port(header, tmp_path), tmp_path)
    (tmp_path / "some.jsonl").write_text(text, encoding="utf-8")
    done = subprocess.run([*run, str(tmp_path / "some.jsonl")], capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_vector_of_another_edition_fails(language: str, vectors: Path, header: Path, tmp_path: Path) -> None:
    run = command(language, header, built_port(header, tmp_path), tmp_path)
    done = subprocess.run([*run, str(vectors / "early" / "tour.jsonl")], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "edition" in done.stdout
