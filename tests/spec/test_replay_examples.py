"""The runners in examples/replay.*: right ports pass, and each refuses the seeded bugs that its vectors refuse."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from abi_bridge import Bridge
from mutants.memory import MEMORY_BUGS
from programs import program
from subjects import device_subject, host_subject
from vector_kills import first_refusing, known

from syncedmem.model import EDITIONS
from syncedmem.model.exports.formats import export
from syncedmem.spec import ReferenceMemory
from syncedmem.spec.vectors import SUITES, write
from syncedmem.spec.vectors.vector import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.spec import Maker

    Replay = Callable[[Bridge, Path], int]

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
PORT = Path(__file__).parents[1] / "support" / "ports" / "port.c"
LANGUAGES = ("c", "rs", "py")
C = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
SHARED = ("-std=c99", "-O1", "-shared", "-fPIC")
RUST = ("--edition", "2021", "-O", "--deny", "warnings")
MOST_LINES = 150

OTHERWISE = {("ReturnsNothing", "zero"): "a pointer to no bytes may be NULL"}
"""Seeded bugs that a suite refuses, and that a runner need not refuse, with the reason."""

LOOKS_AROUND = {"ZeroesItsNeighbour", "SharesAScratchThatIsTooShort"}
"""Seeded bugs that look at other memories that are still alive: which vectors show them depends on those before."""


class Mistake(NamedTuple):
    """A text of the port in C, what stands in its place, and a suite that must fail."""

    text: str
    instead: str
    suite: str = "tour"


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
}
"""Seeded bugs of the port in C, which every runner must find."""


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
    """Compile the port in C as a library."""
    source = PORT.read_text(encoding="utf-8")
    if mistake is not None:
        assert mistake.text in source
        source = source.replace(mistake.text, mistake.instead)
    (folder / "port.c").write_text(source, encoding="utf-8")
    library = folder / "libport.so"
    command = [
        program("gcc"),
        "-std=c99",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{header}",
        "-o",
        str(library),
        str(folder / "port.c"),
    ]
    subprocess.run(command, check=True)
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


@pytest.fixture(scope="session")
def runners(header: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Replay]:
    """Return what makes a runner that works in this process, so that a port can be a memory of Python."""
    folder = tmp_path_factory.mktemp("runners")

    def load(language: str) -> Replay:
        if language == "py":
            return in_python
        built_port(header, folder)
        library = folder / f"replay-{language}.so"
        if language == "c":
            made = [
                program("gcc"),
                *C,
                "-shared",
                "-fPIC",
                f"-I{header}",
                "-o",
                str(library),
                str(EXAMPLES / "replay.c"),
            ]
            subprocess.run([*made, "-L", str(folder), "-lport", f"-Wl,-rpath,{folder}"], check=True)
        else:
            made = [program("rustc"), *RUST, "--allow", "dead_code", "--crate-type", "cdylib", "-o", str(library)]
            made += [str(EXAMPLES / "replay.rs"), "-L", str(folder), "-l", "port"]
            subprocess.run([*made, "-C", f"link-arg=-Wl,-rpath,{folder}"], check=True)
        entry: Any = ctypes.CDLL(str(library)).replay
        entry.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        return lambda bridge, path: entry(ctypes.addressof(bridge.table), str(path).encode())

    return load


def in_python(bridge: Bridge, path: Path) -> int:
    """Run the runner in Python."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        lent: Any = import_module("lent")
        replay: Any = import_module("replay")
    finally:
        sys.path.remove(str(EXAMPLES))
    kind: Any = lent.Port
    port = kind.from_address(ctypes.addressof(bridge.table))
    with path.open(encoding="utf-8") as lines:
        return int(replay.replay(port, lines)[0])


def bridge_to(make: Maker, edition: str) -> Bridge:
    return Bridge((host_subject if edition == "cpu_only" else device_subject)(make), edition)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_runner_is_short(language: str) -> None:
    for name in ("replay", "lent"):
        extension = {"c": "h"}.get(language, language) if name == "lent" else language
        lines = (EXAMPLES / f"{name}.{extension}").read_text(encoding="utf-8").splitlines()
        assert len(lines) < MOST_LINES + 20 * (name == "lent"), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_right_port_passes_everything_of_its_profile(
    language: str, vectors: Path, header: Path, tmp_path: Path
) -> None:
    """The port in C keeps Caffe's promises and no others."""
    run = command(language, header, built_port(header, tmp_path), tmp_path)
    for name in SUITES:
        lines = (vectors / "caffe" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if '"profile":"caffe"' in line][:600]
        (tmp_path / "some.jsonl").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        if kept:
            done = subprocess.run([*run, str(tmp_path / "some.jsonl")], capture_output=True, text=True, check=False)
            assert (0, f"{len(kept)} vectors, 0 failed\n") == (done.returncode, done.stdout), name


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


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_our_reference_passes_every_suite(
    language: str, edition: str, vectors: Path, runners: Callable[[str], Replay]
) -> None:
    run, bridge = runners(language), bridge_to(ReferenceMemory, edition)
    names = [name for name in SUITES if name not in ("hsi-extra", "pairs", "hsi")]

    assert [] == [name for name in names if run(bridge, vectors / edition / f"{name}.jsonl") != 0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_runner_refuses_what_the_kills_say(language: str, runners: Callable[[str], Replay], tmp_path: Path) -> None:
    """For each suite and each seeded bug that it refuses, the first vector that does."""
    run, missed, count = runners(language), list[tuple[str, str, str]](), 0
    for bug, edition, chosen in refusing():
        path = tmp_path / "some.jsonl"
        path.write_text("".join(f"{line}\n" for line in chosen.values()), encoding="utf-8")
        bridge = bridge_to(MEMORY_BUGS[bug].make, edition)
        count += len(chosen)
        if run(bridge, path) == len(chosen):
            continue
        for suite, line in chosen.items():
            path.write_text(f"{line}\n", encoding="utf-8")
            if run(bridge, path) == 0:
                missed.append((bug, edition, suite))
    assert count > 1000
    assert {(bug, suite) for bug, _, suite in missed if bug not in LOOKS_AROUND} <= set(OTHERWISE)


def refusing() -> Iterator[tuple[str, str, dict[str, str]]]:
    """For each seeded bug and edition, the first line of each suite that refuses it."""
    for name, bug in MEMORY_BUGS.items():
        chosen: dict[str, dict[str, str]] = {}
        for edition, suite in (pair.split("/") for pair in known()[name]):
            if vector := first_refusing(bug, edition, suite):
                chosen.setdefault(edition, {})[suite] = canonical(vector)
        yield from ((name, edition, lines) for edition, lines in chosen.items())


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
