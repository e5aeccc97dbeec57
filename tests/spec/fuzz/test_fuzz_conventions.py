"""The conventions of C, C++, Rust and PyTorch: correct allocators pass, and seeded bugs are caught."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from array_allocators import Cached, Device, cut, empty

from syncedmem.spec.fuzz import TargetError, TargetSource, driver_of, fuzz
from syncedmem.spec.fuzz.campaign import Stage, campaign
from syncedmem.spec.fuzz.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.fuzz.outcome import Outcome

SUPPORT = Path(__file__).parents[2] / "support"
EXAMPLES = Path(__file__).parents[3] / "examples"
STEPS = 4_000
C, CPP, RUST = "conventions.c", "conventions.cpp", "conventions.rs"
COMMANDS = {
    C: "cc -shared -fPIC -O1 -w",
    CPP: "c++ -Wall -Wextra -Werror -std=c++17 -shared -fPIC -O1 -I.",
    RUST: "rustc --crate-type cdylib -C panic=abort -O",
}


def deep(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.deep)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles a source, once."""

    @cache
    def compiled(source: str) -> Path:
        folder, command = tmp_path_factory.mktemp("library"), COMMANDS[source].split()
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]} here: make system-deps")
        for file in (SUPPORT / source, EXAMPLES / "fuzz_target.hpp", EXAMPLES / "fuzz_target.rs"):
            shutil.copy(file, folder)
        subprocess.run([*command, "-o", "lib.so", source], cwd=folder, check=True)
        return folder / "lib.so"

    return compiled


def passed(target: object, **promises: str) -> Outcome:
    """What the fast generator did with an allocator that is correct."""
    source = TargetSource(target)
    record = source.open().capabilities.with_promises(promises)
    outcome = campaign(source, record, Journal(), Stage(STEPS), seed=0, seconds=600)

    assert outcome.finding is None, outcome.finding
    assert not outcome.unread
    assert outcome.checked["A04-contents-kept"]
    return outcome


def check_broken(target: object, requirement: str | tuple[str, ...], message: str = "", **promises: str) -> None:
    """Check the requirement and the message of the first finding, and that its program is short."""
    report = fuzz(target, steps=STEPS, hang=20, first=True, promises=promises)

    assert report.findings, f"{target} is wrong, and nothing was found"
    assert len(report.replay(report.findings[0]).python().splitlines()) <= 10
    assert report.findings[0].requirement.startswith(requirement)
    assert message in report.findings[0].message


# --- libraries


@pytest.mark.parametrize(
    ("source", "symbols", "kind", "promises", "checked"),
    [
        *(
            deep(C, symbols, "C functions (malloc)", {"alignment": "16"}, {"A03-aligned"})
            for symbols in (
                "good_*",
                "lean_*",
                "good_malloc,good_free,aligned_alloc=good_aligned_alloc",
                "good_malloc,good_free,aligned_alloc=good_aligned_alloc,free_sized=good_free_sized,realloc=good_realloc",
                "good_*,free_sized=,realloc=",
                "tight_*",
            )
        ),
        (C, "object_*?abi=resource", "an object of a library (resource)", {}, {"A13-zeroed", "A14-resize-keeps"}),
        (C, "counted_*?abi=nep49", "C functions (NumPy, NEP 49)", {}, set[str]()),
        (CPP, "device_*?abi=nep49", "C functions (NumPy, NEP 49)", {"zero_size": "null"}, set[str]()),
        (CPP, "pool_*?abi=nep49", "C functions (NumPy, NEP 49)", {"zero_size": "null"}, set[str]()),
        # It is equal to another object, which then frees half of its blocks; and it is equal only to itself.
        deep(CPP, "good_*?abi=resource", "an object of a library (resource)", {}, {"A03-aligned"}),
        deep(CPP, "own_*?abi=resource", "an object of a library (resource)", {}, {"A03-aligned"}),
        deep(RUST, "good_*?abi=resource", "an object of a library (resource)", {}, {"A13-zeroed", "A14-resize-keeps"}),
    ],
)
def test_a_correct_library_passes(  # noqa: PLR0913, PLR0917 -- the columns of the table
    library: Callable[[str], Path], source: str, symbols: str, kind: str, promises: dict[str, str], checked: set[str]
) -> None:
    target = f"{library(source)}:{symbols}"
    counts = passed(target, **promises).checked

    assert kind == TargetSource(target).open().kind
    assert checked <= counts.keys()
    assert (counts["A24-closes"] > 1) == TargetSource(target).makes_fresh == (source != C or "abi" in symbols)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("source", "symbols", "requirement", "message"),
    [
        (C, "modest_*", "A08-size-known", "has a usable size of"),
        (C, "mute_*", "A05-served", "posix_memalign returned 0, and the pointer None"),
        # A block that is too small is written beyond its end; what notices that first depends on the heap.
        (C, "rounding_*", ("A02-no-overlap", "A04-contents-kept", "A22-no-crash"), ""),
        (C, "wrapping_*", "A06-out-of-memory", "was met"),
        (C, "partial_*", "A14-resize-keeps", "resized to"),
        (CPP, "types_*?abi=resource", "A07-free-accepts", "this block is of another resource"),
        (CPP, "unequal_*?abi=resource", "A07-free-accepts", "is_equal: the object is not equal to itself"),
        (CPP, "lopsided_*?abi=resource", "A07-free-accepts", "of two objects, only one is equal to the other"),
        (CPP, "throwing_*?abi=resource", "A05-served", "larger than 2048 bytes"),
        (CPP, "odd_*?abi=resource", "A05-served", "an exception that is no std::exception"),
        # The defects of KuiperLLama's pool: each round has a new one, so what an old one hides is found.
        (CPP, "forgets_*?abi=nep49", "A16-no-leaks", ""),
        (CPP, "shares_*?abi=nep49", "A09-zero-size", ""),
    ],
)
def test_a_wrong_library_is_caught(
    library: Callable[[str], Path], source: str, symbols: str, requirement: str | tuple[str, ...], message: str
) -> None:
    promises = {"zero_size": "null"} if symbols.endswith("?abi=nep49") else {}
    check_broken(f"{library(source)}:{symbols}", requirement, message, **promises)


@pytest.mark.parametrize(
    ("source", "symbols", "message"),
    [
        (C, "nothing_*", "has no symbol nothing_malloc, nothing_free"),
        (C, "good_malloc,calloc=good_calloc", "has no symbol free"),
        (C, "good_*,size=x", "size=x: malloc has no part 'size'; it has malloc, free, calloc"),
        (C, "good_*,calloc=no_such", "has no symbol no_such"),
        (C, "good_*,,", "name the symbols as"),
        (C, "make=a?abi=malloc", "malloc has no part 'make'"),
        (C, ",good_*", "or the prefix that all have"),
        (C, "failing_*?abi=nep49", "the library made no allocator: null"),
        (CPP, "unmade_*?abi=resource", "the library made no allocator: no device"),
    ],
)
def test_a_library_that_cannot_be_used_is_refused_in_one_line(
    library: Callable[[str], Path], source: str, symbols: str, message: str
) -> None:
    with pytest.raises(TargetError) as caught:
        TargetSource(f"{library(source)}:{symbols}").open()

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_object_without_the_parts_that_it_may_lack_is_called(library: Callable[[str], Path]) -> None:
    with driver_of(f"{library(C)}:object_*?abi=resource") as driver:
        driver.allocate(0, 100, 256)
        driver.resize_too_much(0, 1 << 62)
        driver.resize(0, 300)
        driver.calloc(1, 64)
        driver.resize(1, 100)

        assert not driver.blocks[0].address % 256


def test_aligned_memory_is_freed_as_c23_wants(library: Callable[[str], Path]) -> None:
    """free_sized may not free it, also after a resize that was refused; after one that was not, it may."""
    with driver_of(f"{library(C)}:good_*") as driver:
        driver.allocate(0, 100, 64)
        driver.resize_too_much(0, 1 << 62)
        driver.allocate(1, 101, 64)
        driver.allocate(2, 102, 64)
        driver.resize(2, 200)

        assert [0, 1, 2] == list(driver.blocks)


@pytest.mark.deep
def test_a_state_that_is_made_as_new_shows_what_an_old_one_hides(library: Callable[[str], Path]) -> None:
    """KuiperLLama's pool keeps its state for as long as the library is loaded."""
    old, new = f"{library(C)}:stale_*", f"{library(C)}:stale_*,reset=stale_reset"

    assert [False, True] == [TargetSource(target).makes_fresh for target in (old, new)]
    with driver_of(new) as driver:
        assert driver.allocate(0, 100)
    assert passed(old).operations >= STEPS
    check_broken(new, "A16-no-leaks")


# --- PyTorch: stand-ins of its shapes, and the library itself where it is installed


@pytest.mark.parametrize(
    ("target", "kind", "promises", "checked"),
    [
        (empty, "a callable, then drop", {}, "A08-size-known"),  # tensors are measured through their storage
        (Device(), "a callable, then drop", {"host_readable": "no"}, "A08-size-known"),
    ],
)
def test_a_correct_allocator_of_arrays_passes(
    target: object, kind: str, promises: dict[str, str], checked: str
) -> None:
    opened = TargetSource(target).open()

    assert kind == opened.kind
    assert ("RuntimeError" in opened.capabilities.out_of_memory) == ("drop" in kind)
    assert passed(target, **promises).checked[checked]


@pytest.mark.parametrize(
    ("target", "requirement"),
    [
        (cut, "A08-size-known"),
        (Cached(), "A01-distinct-pointers"),
    ],
)
def test_a_wrong_allocator_of_arrays_is_caught(target: object, requirement: str) -> None:
    check_broken(target, requirement)


def test_tensors_of_pytorch_pass() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

    def tensors(size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8)

    passed(tensors)
