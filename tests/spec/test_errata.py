"""The errata: a seeded bug or a test shows each of them, and a compiler shows the misprints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mutants.allocator import ALLOCATOR_BUGS
from mutants.blob import BLOB_BUGS
from mutants.memory import MEMORY_BUGS

from syncedmem import Blob, CPUDeviceAllocator, DeviceType, SimulatedDeviceAllocator
from syncedmem.spec import REQUIREMENTS
from syncedmem.spec.errata import ERRATA, SOURCES, Erratum

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).relative_to(ROOT).as_posix()
MISPRINT = f"{HERE}::test_a_misprint_does_not_compile"
SEEDED_BUGS = {*MEMORY_BUGS, *BLOB_BUGS, *ALLOCATOR_BUGS}

RIGHT_AND_WRONG = {
    "000:33": ("void CaffeFreeHost(void* ptr, bool use_cuda)", "void Caffe_FreeHost(void* ptr, bool* use_cuda)"),
    "000:48": ("class SyncedMemory {", "class SynedMemory {"),
    "000:65": ("head() const {", "head() {"),
    "000:66": ("size() const {", "size() {"),
    "000:111": (": cpu_ptr_(NULL), gpu_ptr_(NULL)", ": cpu_ptr(NULL), gpu_ptr(NULL)"),
    "000:127": ("cudaFree(gpu_ptr_);", "cudaFree(gpu_ptr);"),
    "000:144": ("CaffeMallocHost(&cpu_ptr_, size_, ", "CaffeMallocHost(&cpu_ptr_, size, "),
    "000:232": ("head_ = HEAD_AT_CPU;", "head_ = HEAD_AT_CPU();"),
    "000:236": ("inline void* SyncedMemory::mutable_gpu_data()", "inline void SyncedMemory::mutable_gpu_data()"),
    "000:264": ("  check_device();", "  chenck_device();"),
    "000:290": ("  caffe_gpu_memcpy(", "  caffe_gpu_memory("),
    "004:13": ("  virtual ~DeviceAllocator() = default;\n", ""),
    "004:49": (
        "void memcpy(const void*, void*, size_t, int, void*, bool) const override",
        "void memcpy(const void*, void*, size_t) const override",
    ),
}
GUARD = "000:6"

BEHAVIOUR = {
    "000": ("35", "36", "57", "59", "125", "127", "142", "236", "249"),
    "001": ("63", "97", "throughout"),
}


def compiles(text: str) -> bool:
    """Return whether it compiles as C++14; a base class without a virtual destructor is an error."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler: make system-deps")
    command = [compiler, "-std=c++14", "-fsyntax-only", "-Werror=non-virtual-dtor", "-x", "c++", "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode == 0


def printed() -> str:
    return (ROOT / "tests" / "support" / "misprints.hpp").read_text(encoding="utf-8")


@pytest.mark.deep
def test_without_misprints_it_compiles() -> None:
    assert compiles(printed())


@pytest.mark.deep
@pytest.mark.parametrize("line", [*RIGHT_AND_WRONG, GUARD])
def test_a_misprint_does_not_compile(line: str) -> None:
    text = printed()
    if line == GUARD:
        misprinted = text + text
        guarded = f"#ifndef CAFFE_SYNCEDMEM_HPP_\n#define CAFFE_SYNCEDMEM_HPP_\n{text}\n#endif\n"
        assert compiles(guarded + guarded)
    else:
        right, wrong = RIGHT_AND_WRONG[line]
        misprinted = text.replace(right, wrong)
        assert 1 == text.count(right)

    assert not compiles(misprinted)


def test_every_misprint_of_the_list_is_tried() -> None:
    """No other misprint is tried."""
    listed = {f"{it.source}:{re.split('[-,]', it.place)[0]}" for it in ERRATA if MISPRINT in it.shown}

    assert listed | {"000:66"} == {*RIGHT_AND_WRONG, GUARD}


def shows(name: str) -> bool:
    """Return whether a seeded bug or a test has this name."""
    file, _, test = name.partition("::")
    path = ROOT / file
    return name in SEEDED_BUGS or bool(test and path.is_file() and f"def {test}(" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda it: f"{it.source}-{it.place}")
def test_an_erratum_is_shown_by_something_that_is_there(erratum: Erratum) -> None:
    assert erratum.source in SOURCES
    assert erratum.shown
    assert [] == [name for name in erratum.shown if not shows(name)]


@pytest.mark.parametrize(("source", "place"), [(source, place) for source in BEHAVIOUR for place in BEHAVIOUR[source]])
def test_every_erratum_of_behaviour_is_seeded(source: str, place: str) -> None:
    """These are errors of a running memory; misspelt names and missing guards are not."""
    shown = [name for it in ERRATA if (it.source, it.place) == (source, place) for name in it.shown]

    assert any(name in MEMORY_BUGS for name in shown)


def test_every_hazard_of_blobs_is_decided() -> None:
    """Each decision is a requirement of blobs, and a seeded bug that shows the hazard breaks it."""
    about_blobs = [it for it in ERRATA if it.requirement]
    hazards = {it.place.partition(";")[0] for it in about_blobs if it.place.startswith("H")}

    assert {"H1", "H2", "H4", "H5", "H8", "H10", "H11", "H14", "H15", "H16", "H19", "H20"} == hazards
    assert all(REQUIREMENTS[it.requirement].kind == "blob" for it in about_blobs)
    broken = {it.place: {BLOB_BUGS[name].requirement for name in it.shown if name in BLOB_BUGS} for it in about_blobs}
    assert [] == [it.place for it in about_blobs if it.requirement not in broken[it.place]]


def test_nothing_is_said_twice() -> None:
    assert len(ERRATA) == len({(it.source, it.place, it.says) for it in ERRATA})


def test_every_source_has_errata() -> None:
    assert set(SOURCES) == {it.source for it in ERRATA}


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_an_extent_of_zero_may_be_anywhere(shape: tuple[int, ...]) -> None:
    """Caffe once divided by the product of the extents so far, which could be zero."""
    assert (0, shape) == ((blob := Blob(shape, device="simulated")).count, blob.shape)


def test_an_allocator_knows_its_device() -> None:
    assert DeviceType.CPU is CPUDeviceAllocator().device_type
    assert DeviceType.SIMULATED is SimulatedDeviceAllocator().device_type
