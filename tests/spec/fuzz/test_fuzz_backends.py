"""Real allocators pass the fuzzer."""

from __future__ import annotations

import pytest
from backends import BACKENDS, Backend

from syncedmem.spec.fuzz import Finding, FuzzWanted, HeapStep, Replay, fuzz


@pytest.mark.deep
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_real_allocator_passes(backend: Backend) -> None:
    """It is called from several threads too, if it allows that."""
    report = fuzz(
        backend.target(),
        promises=backend.promises,
        threads=backend.threads,
        steps=backend.steps,
        seconds=600,  # a limit for hangs: rounds that age an allocator make hundreds of calls a step
        skip=backend.known,
    )

    assert [] == [(finding.requirement, finding.message) for finding in report.findings]
    assert report.operations >= backend.steps


@pytest.mark.parametrize("name", ["glibc", "jemalloc", "mimalloc", "tcmalloc"])
def test_the_libraries_are_named_as_the_guide_names_them(name: str) -> None:
    """All of their functions are called; with four of them the page said that two libraries passed."""
    assert "*" in str(next(backend for backend in BACKENDS if backend.name == name).target())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("mimalloc", [("allocate", 0, 256, 256)]),
        (
            "tcmalloc",
            [
                *(("allocate", number, 576) for number in range(64)),
                *(("resize", number, 512) for number in range(64)),
                *(("free", number) for number in range(64)),
                *(("allocate", number, 7, 512) for number in range(64, 128)),
            ],
        ),
    ],
)
def test_what_is_known_of_a_library_is_so(name: str, steps: list[tuple[str, *tuple[int, ...]]]) -> None:
    backend = next(backend for backend in BACKENDS if backend.name == name)
    program = [[operation, *numbers] for operation, *numbers in steps]
    finding = Finding("A03-aligned", "", tuple(map(HeapStep.from_json, program)))
    again = Replay(FuzzWanted(str(backend.target()), backend.promises), finding).run()

    assert again is not None
    assert ["A03-aligned"] == [again.requirement] == list(backend.known)
