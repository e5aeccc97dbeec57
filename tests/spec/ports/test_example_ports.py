"""The example ports: each is built with its Makefile, is small and conforms; and the kit finds bugs in the C++ port."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from ctypes import byref, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from port_bugs import HARMLESS, NOT_IN_VECTORS, PORT_BUGS, PortBug
from programs import program

from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Claim, PortReport, conform_program
from syncedmem.spec.ports.harness.abi import CALLS, HEADS, STATUSES, STRUCTURES
from syncedmem.spec.ports.harness.heap import Heap
from syncedmem.spec.ports.harness.library import load
from syncedmem.spec.ports.targets import library_target
from syncedmem.spec.requirements import requirements_of
from syncedmem.spec.vectors import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.engine.violation import Violation

    Build = Callable[..., Path]
    Replayed = Callable[..., tuple[int, list[str]]]

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[3]
PORTS = ROOT / "examples" / "ports"
COMPILERS = {"c": "cc", "cpp": "c++", "rust": "rustc"}
SIZES = {
    "c": (("syncedmem.h", "syncedmem.c"), "port.c"),
    "cpp": (("syncedmem.hpp", "cuda.hpp"), "port.cpp"),
    "rust": (("memory.rs", "allocator.rs"), "port.rs"),
}
"""The files of the memory, and that of the glue; declarations of the ABI are not among them."""

NOT_JUDGED = {
    "about objects of Python": "R37 R38 R40 R45 R46 R47 R50 R51 R52 R54 R55 R56 R57",
    "about a memory without a device": "R30",
}
"""The requirements of profile safe that are not judged for a port with the C ABI, and why."""


def lines_of(name: str, *files: str) -> int:
    """Return the number of lines of some files."""
    return sum(len((PORTS / name / file).read_text(encoding="utf-8").splitlines()) for file in files)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds a port as its users do, once; or the C++ port with a bug."""
    folder = tmp_path_factory.mktemp("examples") / "ports"
    ignored = shutil.ignore_patterns("*.so", "machine.*")
    shutil.copytree(PORTS, folder, ignore=ignored)

    def built(name: str, bug: PortBug | None = None) -> Path:
        program(COMPILERS[name])
        program("make")
        place = folder / name
        if bug is not None:
            place = folder / f"bug{PORT_BUGS.index(bug) if bug in PORT_BUGS else ''}"
            if (place / "libport.so").exists():
                return place / "libport.so"
            built(name)
            shutil.copytree(folder / name, place, ignore=shutil.ignore_patterns("*.so"), dirs_exist_ok=True)
            bug.seed(place)
        make = ["make", "--silent", f"SYNCEDMEM={shlex.quote(sys.executable)} -m syncedmem", "CXXFLAGS=-O0 -Wno-error"]
        subprocess.run(make[: 3 if bug is None else 4], cwd=place, check=True)
        return place / "libport.so"

    return built


def conformed(
    library: Path,
    level: str = "",
    on_change: Callable[[PortReport], None] | None = None,
    seconds: float = 60,
    *,
    blobs: bool = False,
) -> PortReport:
    """Return the verdict on a library, which may take some seconds for an answer."""
    limits = Limits(seconds=seconds, first=60)
    wanted = Claim("caffe" if blobs else "safe", level=level, steps=62, seed=1, blobs=blobs)
    return conform_program(library_target(str(library)), wanted, limits, on_change=on_change)


class Found(Exception):
    """The first violation was found."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation)
        self.violation = violation


def first_violation(library: Path, seconds: float, *, blobs: bool) -> Violation:
    """Return the first violation, without looking for others."""

    def stop(report: PortReport) -> None:
        raise Found(report.unfinished[0])

    with pytest.raises(Found) as found:
        conformed(library, "L4", stop, seconds, blobs=blobs)
    return found.value.violation


# --- the ports


@pytest.mark.parametrize("name", COMPILERS)
def test_an_example_port_reaches_the_highest_level(name: str, build: Build) -> None:
    report = conformed(build(name))
    assert re.fullmatch(r"conforms to safe/L4: (\d+) of \1 requirements, 558 of 558 transitions", report.line)
    assert report.reached is not None
    left = report.reached.left
    assert {name.partition("-")[0]: why for name, why in left.items()} == {
        number: why for why, numbers in NOT_JUDGED.items() for number in numbers.split()
    }
    assert {*left, *report.reached.checked} == {*requirements_of("memory", "port")}


def test_the_example_ports_are_small() -> None:
    assert all(100 < lines_of(name, *memory) < 300 for name, (memory, _) in SIZES.items())
    assert all(20 < lines_of(name, glue) <= 40 for name, (_, glue) in SIZES.items())
    assert 100 < lines_of("cpp", "blob.hpp") < 300
    assert lines_of("cpp", "port_blobs.cpp") < 150


def test_the_memory_in_rust_is_safe() -> None:
    """Only the allocator and the ABI have unsafe code."""
    unsafe = {path.name for path in PORTS.glob("rust/*.rs") if re.search(r"\bunsafe\b", path.read_text("utf-8"))}
    assert unsafe - {"machine.rs"} == {"allocator.rs", "abi.rs", "port.rs"}
    assert "#![forbid(unsafe_code)]" in (PORTS / "rust" / "memory.rs").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMPILERS)
def test_an_example_port_refuses_its_own_buffer_and_one_that_is_too_small(name: str, build: Build) -> None:
    """Also a part of its own buffer, which the kit has no name for."""
    table, _ = load(str(build(name)))
    heap, memory = Heap(), c_void_p()
    arguments, result, state = (STRUCTURES[name]() for name in ("arguments", "result", "state"))
    assert table.create(byref(heap.table), 8, byref(memory)) == STATUSES["OK"]
    arguments.call = CALLS.index("mutable_cpu_data")
    assert table.call(memory, byref(arguments), byref(result)) == STATUSES["OK"]
    arguments.call, own = CALLS.index("set_cpu_data"), result.view
    heap.buffer("mine", "cpu", bytes(7))
    for address, size in ((own, 8), (own + 7, 8), (heap.buffers["mine"].address, 7)):
        arguments.data, arguments.data_size = address, size
        assert table.call(memory, byref(arguments), byref(result)) == STATUSES["REFUSED"]
    table.state(memory, byref(state))
    table.destroy(memory)
    assert HEADS[state.head] == "HEAD_AT_CPU"
    assert [action["action"] for action in heap.actions] == ["allocate_cpu", "zero_cpu", "free_cpu"]


# --- bugs in the C++ port


@pytest.mark.parametrize("bug", PORT_BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_found_and_its_message_says_what_is_wrong(
    bug: PortBug, build: Build, refuse: Callable[[str, str, str], None]
) -> None:
    # Only one that hangs is not waited for; the others have time on a busy machine.
    seconds = 2 if bug.name.startswith("hangs") else 60
    found = first_violation(build("cpp", bug), seconds, blobs=bug.of_blobs)
    refuse("ports in C++", bug.name, found.requirement)
    assert found.requirement.partition("-")[0] == bug.found, found
    assert re.search(bug.says, found.message), found
    assert found.statements


SUITES = ("tour", "modes", "sizes", "large", "several", "failures", "aliases", "counters")
"""The suites that the runner in C takes."""


@pytest.fixture(scope="session")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Return a function that replays vectors on a library with a runner in C: its status, and what it prints."""
    folder = tmp_path_factory.mktemp("replayed")
    write(folder, [f"caffe/{suite}" for suite in SUITES])

    def replay(library: Path) -> tuple[int, list[str]]:
        runner = library.with_name("replay")
        command = [program("cc"), "-O1", f"-I{PORTS}", "-o", str(runner), str(ROOT / "examples" / "replay.c")]
        subprocess.run([*command, str(library), f"-Wl,-rpath,{library.parent}"], check=True)
        files = [str(folder / "caffe" / f"{suite}.jsonl") for suite in SUITES]
        limited = [program("timeout"), "-s", "ABRT", "20", str(runner), *files]
        done = subprocess.run(limited, capture_output=True, text=True, check=False)
        return done.returncode, [line for line in done.stdout.splitlines() if " vectors, " not in line]

    return replay


@pytest.mark.parametrize("name", COMPILERS)
def test_an_example_port_replays_all_vectors(name: str, build: Build, replayed: Replayed) -> None:
    assert replayed(build(name)) == (0, [])


def test_the_blobs_of_the_port_in_cpp_reach_the_highest_level(build: Build) -> None:
    report = conformed(build("cpp"), blobs=True)
    assert re.fullmatch(r"conforms to caffe/L4: (\d+) of \1 requirements, 144 of 144 cells", report.line)


@pytest.mark.parametrize("bug", [bug for bug in PORT_BUGS if not bug.of_blobs], ids=lambda bug: bug.name)
def test_the_runner_in_c_says_where_a_bug_shows(bug: PortBug, build: Build, replayed: Replayed) -> None:
    status, lines = replayed(build("cpp", bug))
    assert (status == 0) is (bug.name in NOT_IN_VECTORS), lines[:1]
    assert status == 0 or re.match(r"[0-9a-f]{16} step \d+ \w+: expected .+, seen .+", lines[0])


def test_a_library_may_print(build: Build) -> None:
    """The harness keeps standard output for its answers."""
    report = conformed(build("cpp", HARMLESS), "L2")
    assert report.passed, report.line
