"""The conventions of C, C++, Rust, UMF, PyTorch and gt4py: correct allocators pass, and seeded bugs are caught."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from array_allocators import Buffers, Cached, Crooked, Device, Overlapping, Twice, cut, empty

from syncedmem.spec.fuzz import Source, TargetError, driver_of, fuzz
from syncedmem.spec.fuzz.campaign import Outcome, campaign
from syncedmem.spec.fuzz.journal import Journal

SUPPORT = Path(__file__).parents[2] / "support"
EXAMPLES = Path(__file__).parents[3] / "examples"
STEPS = 4_000


def broken(target: object, **promises: str) -> tuple[str, str]:
    """The requirement and the message of the first finding."""
    report = fuzz(target, steps=STEPS, hang=20, first=True, promises=promises)

    assert report.findings, f"{target} is wrong, and nothing was found"
    assert len(report.replay(report.findings[0]).python().splitlines()) <= 10
    return report.findings[0].requirement, report.findings[0].message


def passed(target: object, **promises: str) -> Outcome:
    """What the fast generator did with an allocator that is correct."""
    source = Source(target)
    record = source.open().capabilities.with_promises(promises)
    outcome = campaign(source, record, Journal(), seed=0, steps=STEPS, seconds=600)

    assert outcome.wrong is None, outcome.wrong
    assert not outcome.unread
    assert outcome.checked["A04-contents-kept"]
    return outcome


# --- C: malloc and its relatives


@pytest.fixture(scope="module")
def relatives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("c") / "librelatives.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", made, SUPPORT / "conventions.c"], check=True)
    return made


@pytest.mark.deep
@pytest.mark.parametrize(
    "symbols",
    [
        "good_*",
        "lean_*",
        "good_malloc,good_free,aligned_alloc=good_aligned_alloc",
        "good_malloc,good_free,aligned_alloc=good_aligned_alloc,free_sized=good_free_sized,realloc=good_realloc",
        "good_*,free_sized=,realloc=",
        "tight_*",
    ],
)
def test_correct_relatives_of_malloc_pass(relatives: Path, symbols: str) -> None:
    assert passed(f"{relatives}:{symbols}", alignment="16").checked["A03-aligned"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("symbols", "requirement", "said"),
    [
        ("crooked_*", "A03-aligned", "is not at a multiple of"),
        ("boastful_*", "", ""),
        ("modest_*", "A08-size-known", "has a usable size of"),
        ("mute_*", "A05-served", "posix_memalign returned 0, and the pointer None"),
        pytest.param("rounding_*", "", "", marks=pytest.mark.deep),
        ("wrapping_*", "A06-out-of-memory", "was met"),
        ("partial_*", "A14-resize-keeps", "resized to"),
    ],
)
def test_wrong_relatives_of_malloc_are_caught(relatives: Path, symbols: str, requirement: str, said: str) -> None:
    found, message = broken(f"{relatives}:{symbols}")

    # A block that is too small is written beyond its end; what notices that first depends on the heap.
    assert found == requirement or (
        not requirement and found in {"A02-no-overlap", "A04-contents-kept", "A22-no-crash"}
    )
    assert said in message


def test_an_object_without_the_parts_that_it_may_lack_passes(relatives: Path) -> None:
    target = f"{relatives}:object_*?abi=resource"
    with driver_of(target) as driver:
        driver.allocate(0, 100, 256)
        driver.resize_too_much(0, 1 << 62)
        driver.resize(0, 300)
        driver.calloc(1, 64)
        driver.resize(1, 100)

        assert not driver.blocks[0].address % 256
    assert {"A13-zeroed", "A14-resize-keeps", "A24-closes"} <= passed(target).checked.keys()


def test_aligned_memory_is_freed_as_c23_wants(relatives: Path) -> None:
    """free_sized may not free it, also after a resize that was refused; after one that was not, it may."""
    with driver_of(f"{relatives}:good_*") as driver:
        driver.allocate(0, 100, 64)
        driver.resize_too_much(0, 1 << 62)
        driver.allocate(1, 101, 64)
        driver.allocate(2, 102, 64)
        driver.resize(2, 200)

        assert [0, 1, 2] == list(driver.blocks)


@pytest.mark.deep
def test_a_state_that_is_made_as_new_shows_what_an_old_one_hides(relatives: Path) -> None:
    """KuiperLLama's pool keeps its state for as long as the library is loaded."""
    assert [False, True] == [Source(f"{relatives}:{it}").makes_fresh for it in ("stale_*", "stale_*,reset=stale_reset")]
    with driver_of(f"{relatives}:stale_*,reset=stale_reset") as driver:
        assert driver.allocate(0, 100)
    assert passed(f"{relatives}:stale_*").operations >= STEPS
    assert broken(f"{relatives}:stale_*,reset=stale_reset")[0] == "A16-no-leaks"


def test_a_context_is_made_for_each_target(relatives: Path) -> None:
    assert passed(f"{relatives}:counted_*?abi=nep49").checked["A24-closes"] > 1
    with pytest.raises(TargetError, match="the library made no allocator: null"):
        Source(f"{relatives}:failing_*?abi=nep49").open()


@pytest.mark.parametrize(
    ("symbols", "said"),
    [
        ("nothing_*", "has no symbol nothing_malloc, nothing_free"),
        ("good_malloc,calloc=good_calloc", "has no symbol free"),
        ("good_*,size=x", "size=x: malloc has no part 'size'; it has malloc, free, calloc"),
        ("good_*,calloc=no_such", "has no symbol no_such"),
        ("good_*,,", "name the symbols as"),
        ("make=a?abi=malloc", "malloc has no part 'make'"),
        (",good_*", "or the prefix that all have"),
    ],
)
def test_names_that_fit_nothing_are_said(relatives: Path, symbols: str, said: str) -> None:
    with pytest.raises(TargetError) as caught:
        Source(f"{relatives}:{symbols}").open()

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["libc.so.6:*", "libjemalloc.so.2:*", "libtcmalloc_minimal.so.4:*"])
def test_real_libraries_pass_with_all_their_functions(name: str) -> None:
    try:
        report = fuzz(name, steps=STEPS, hang=20)
    except TargetError as error:
        pytest.skip(f"{name.partition('.')[0]} is not installed: make system-deps ({error})")

    assert report.passed


# --- C++: std::pmr::memory_resource, and the shape of KuiperLLama's DeviceAllocator


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler: make system-deps")
    made = tmp_path_factory.mktemp("cpp") / "libobjects.so"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    options = [*warnings, "-std=c++17", "-shared", "-fPIC", "-O1", f"-I{EXAMPLES}"]
    subprocess.run(["c++", *options, "-o", made, SUPPORT / "conventions.cpp"], check=True)
    return made


@pytest.mark.deep
@pytest.mark.parametrize("name", ["good", "own"])
def test_a_correct_memory_resource_passes(objects: Path, name: str) -> None:
    """It may be equal only to itself; and if it is equal to another, the other frees half of its blocks."""
    target = f"{objects}:{name}_*?abi=resource"

    assert Source(target).open().kind == "an object of a library (resource)"
    assert passed(target).checked["A24-closes"] > 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "requirement", "said"),
    [
        ("crooked", "A03-aligned", "is not at a multiple of"),
        ("types", "A07-free-accepts", "this block is of another resource"),
        ("unequal", "A07-free-accepts", "is_equal: the object is not equal to itself"),
        ("lopsided", "A07-free-accepts", "is_equal: of two objects, only one is equal to the other"),
        ("throwing", "A05-served", "larger than 2048 bytes"),
        ("odd", "A05-served", "an exception that is no std::exception"),
    ],
)
def test_a_wrong_memory_resource_is_caught(objects: Path, name: str, requirement: str, said: str) -> None:
    found, message = broken(f"{objects}:{name}_*?abi=resource")

    assert found == requirement
    assert said in message


def test_a_resource_that_cannot_be_made_is_said(objects: Path) -> None:
    with pytest.raises(TargetError, match="the library made no allocator: no device"):
        Source(f"{objects}:unmade_*?abi=resource").open()


@pytest.mark.parametrize("name", ["device", "pool"])
def test_a_correct_device_allocator_passes(objects: Path, name: str) -> None:
    passed(f"{objects}:{name}_*?abi=nep49", zero_size="null")


@pytest.mark.deep
@pytest.mark.parametrize(("name", "requirement"), [("forgets", "A16-no-leaks"), ("shares", "A09-zero-size")])
def test_the_defects_of_kuiperllamas_pool_show_in_its_shape(objects: Path, name: str, requirement: str) -> None:
    """Each round has a new pool, so what an old one hides is found."""
    assert broken(f"{objects}:{name}_*?abi=nep49", zero_size="null")[0] == requirement


# --- Rust: GlobalAlloc


@pytest.fixture(scope="module")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc here: make system-deps")
    folder = tmp_path_factory.mktemp("rust")
    shutil.copy(EXAMPLES / "fuzz_target.rs", folder)
    shutil.copy(SUPPORT / "conventions.rs", folder)
    options = ["--crate-type", "cdylib", "-C", "panic=abort", "-O", "-o", "librust.so", "conventions.rs"]
    subprocess.run(["rustc", *options], cwd=folder, check=True)
    return folder / "librust.so"


@pytest.mark.deep
def test_a_correct_global_alloc_passes(rust: Path) -> None:
    checked = passed(f"{rust}:good_*?abi=resource").checked

    assert {"A03-aligned", "A13-zeroed", "A14-resize-keeps"} <= checked.keys()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "requirement"), [("crooked", "A03-aligned"), ("dirty", "A13-zeroed"), ("moving", "A14-resize-keeps")]
)
def test_a_wrong_global_alloc_is_caught(rust: Path, name: str, requirement: str) -> None:
    assert broken(f"{rust}:{name}_*?abi=resource")[0] == requirement


# --- UMF


@pytest.fixture(scope="module")
def umf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("umf") / "libumf_stand_in.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", made, SUPPORT / "umf_stand_in.c"], check=True)
    return made


@pytest.mark.deep
@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("pool=goodPoolOps", "a pool of UMF"),
        ("pool=oldPoolOps", "a pool of UMF"),
        ("pool=barePoolOps,provider=umfOsMemoryProviderOps", "a pool of UMF"),
        ("provider=umfOsMemoryProviderOps", "a provider of UMF"),
    ],
)
def test_correct_pools_and_providers_pass(umf: Path, names: str, kind: str) -> None:
    target = f"{umf}:{names}?abi=umf"

    assert Source(target).open().kind == kind
    assert passed(target).checked["A24-closes"] > 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("names", "requirement"),
    [
        ("pool=movingPoolOps", "A14-resize-keeps"),
        ("provider=crookedProviderOps", "A03-aligned"),
        ("provider=brokenProviderOps", "A05-served"),
        ("provider=strictProviderOps", "A07-free-accepts"),
    ],
)
def test_wrong_pools_and_providers_are_caught(umf: Path, names: str, requirement: str) -> None:
    assert broken(f"{umf}:{names}?abi=umf", alignment="8" if "crooked" in names else "1")[0] == requirement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{umf}:pool=needyPoolOps?abi=umf", "libumf refuses needyPoolOps: result 7"),
        ("{umf}:pool=absentPoolOps?abi=umf", "absentPoolOps returned null: libumf was built without it"),
        ("libc.so.6:provider=malloc?abi=umf", "has no symbol umfMemoryProviderCreate; link it with libumf"),
    ],
)
def test_what_libumf_refuses_is_said(umf: Path, text: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        Source(text.format(umf=umf)).open()


# --- PyTorch and gt4py: correct stand-ins of their shapes, and PyTorch itself where it is installed


def test_tensors_are_measured_through_their_storage() -> None:
    target = Source(empty).open()

    assert target.kind == "a callable, then drop"
    assert target.capabilities.out_of_memory == ("MemoryError", "RuntimeError")
    assert passed(empty).checked["A08-size-known"]


def test_tensors_of_a_device_are_read_through_the_host() -> None:
    passed(Device(), host_readable="no")


@pytest.mark.parametrize(("target", "requirement"), [(cut, "A08-size-known"), (Cached(), "A01-distinct-pointers")])
def test_wrong_tensors_are_caught(target: object, requirement: str) -> None:
    assert broken(target)[0] == requirement


def test_tensors_of_pytorch_pass() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

    def tensors(size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8)

    passed(tensors)


@pytest.mark.parametrize("target", [Buffers, Buffers()])
def test_an_allocator_of_arrays_passes(target: object) -> None:
    assert Source(target).open().kind == "allocate with a shape"
    assert passed(target).checked["A03-aligned"]


@pytest.mark.parametrize(
    ("target", "requirement"),
    [(Crooked, "A03-aligned"), (Overlapping, "A04-contents-kept"), (Twice, "A01-distinct-pointers")],
)
def test_wrong_allocators_of_arrays_are_caught(target: object, requirement: str) -> None:
    assert broken(target)[0] == requirement


def test_allocators_of_gt4py_pass() -> None:
    reason = "gt4py is not installed: pip install gt4py"
    allocators: Any = pytest.importorskip("gt4py.storage.allocators", reason=reason)
    definitions: Any = pytest.importorskip("gt4py._core.definitions", reason=reason)

    def make() -> Any:
        return allocators.NDArrayBufferAllocator(definitions.DeviceType.CPU, allocators.numpy_array_utils)

    passed(make, out_of_memory="MemoryError,OverflowError")
