"""Which targets the fuzzer recognises, how they are named, and its messages about targets that it cannot use."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from allocator_conventions import (
    LIBC,
    SHARED,
    Closing,
    CudaCore,
    Cupy,
    Memory,
    Numba,
    Rmm,
    Unsized,
    Warp,
    make_rmm,
    pair_give,
    pair_take,
    plain_give,
    sized_give,
)

from syncedmem.spec.fuzz import TargetError, TargetSource, fuzz
from syncedmem.spec.fuzz.c_functions import calls_of
from syncedmem.spec.fuzz.native import ABIS
from syncedmem.spec.fuzz.recognition import look_up, spelling

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.deep
@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (Rmm, "allocate and deallocate"),
        (Rmm(), "allocate and deallocate"),
        (make_rmm, "allocate and deallocate"),
        (Warp, "allocate and deallocate"),
        (CudaCore, "allocate and deallocate"),
        (Unsized, "malloc and free"),
        (Numba, "memalloc, then free"),
        (Cupy, "malloc, then drop"),
        (Closing(), "a callable, then close"),
        ((pair_take, pair_give), "a pair of callables"),
        ([SHARED.take, plain_give], "a pair of callables"),
        ((SHARED.take, sized_give), "a pair of callables"),
        (LIBC, "C functions (malloc)"),
    ],
)
def test_every_convention_is_recognised_and_fuzzed(target: object, kind: str) -> None:
    """No base class and no configuration is needed."""
    report = fuzz(target, steps=1_500)

    assert kind == report.kind
    assert [] == [(finding.requirement, finding.message) for finding in report.findings]
    assert {"passed"} == {verdict.status for verdict in report.verdicts() if verdict.requirement == "A04-contents-kept"}


class Wrong:
    """Methods that cannot be called with what the fuzzer has; none of them ever is."""

    def nothing(self) -> int:
        raise AssertionError

    def keyword(self, size: int, *, flavour: str) -> int:
        raise AssertionError((size, flavour))

    def one(self, number: int) -> int:
        raise AssertionError(number)


def with_methods(**names: str) -> object:
    """An allocator with methods of `Wrong`."""
    return types.SimpleNamespace(
        **{name: getattr(Wrong(), method) for name, method in {"allocate": "one", "free": "one", **names}.items()}
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("json", "names no target"),
        (":x", "names no target"),
        ("no_such_module_here:x", "cannot import no_such_module_here: ModuleNotFoundError"),
        ("os:nothing", "os has no attribute nothing"),
        ("no/such/file.py:x", "cannot import no/such/file.py: FileNotFoundError"),
        ("no/such/file.txt:malloc,free", "there is no file no/such/file.txt"),
        ("/proc/version:x", "/proc/version is neither a shared library (.so), nor a Python file (.py), nor a source"),
        ("libc.so.6:malloc,no_such_symbol", "libc.so.6 has no symbol no_such_symbol"),
        ("libnothing.so:a,b", "cannot load libnothing.so"),
        ("libc.so.6:malloc", "name the symbols as"),
        ("libc.so.6:malloc,free,a,b,c", "name the symbols as"),
        ("libc.so.6:malloc,free?abi=rust", "there is no abi 'rust'"),
        ("os:sep", "is not recognised as an allocator"),
        ("json:dumps", "returned '64', which has neither release, free nor close"),
        ("os:rmdir", "cannot be called with a size of 64"),
        ("json:JSONDecoder", "is not recognised as an allocator"),
        ("ctypes:CDLL", "cannot be called without arguments"),
        ("sys:version_info", "is not recognised as an allocator"),
        ("os:getcwd,getpid", "getcwd takes 0 arguments"),
        ((Rmm.allocate, Rmm.deallocate), "Rmm.allocate is a method without its object: name the class"),
        (with_methods(allocate="nothing"), "Wrong.nothing wants no argument; the fuzzer has a size"),
        (with_methods(allocate="keyword"), "Wrong.keyword wants size, flavour; the fuzzer has a size"),
        (with_methods(free="nothing"), "Wrong.nothing wants no argument; the fuzzer has a pointer"),
        (with_methods(calloc="nothing"), "Wrong.nothing wants no argument; the fuzzer has a size"),
        (with_methods(realloc="one"), "Wrong.one wants number; the fuzzer has a pointer and a size"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(target: object, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        TargetSource(target).open()

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class RefusesAtFirst(Cupy):
    """Its first requests are refused: what is below it needs a moment, or refuses at random."""

    refusals: Any = (MemoryError, None, OSError)

    def __init__(self) -> None:
        super().__init__()
        self.left = list(self.refusals)

    def malloc(self, size: int) -> Any:
        if not self.left:
            return super().malloc(size)
        if refusal := self.left.pop(0):
            raise refusal
        return None


def test_an_allocator_that_refuses_at_first_is_recognised() -> None:
    """It was refused as one that cannot be called."""
    assert "malloc, then drop" == TargetSource(RefusesAtFirst).open().kind


def test_a_file_of_python_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def make():\n    raise ValueError('two\\nlines')\n", encoding="utf-8")

    with pytest.raises(TargetError, match=r"mine.py:make cannot be called without arguments \(ValueError: two lines\)"):
        TargetSource(f"{file}:make").open()


def test_what_a_file_defines_lives_as_long_as_the_process(tmp_path: Path) -> None:
    """A library may call the functions at any later time: their globals must not be collected."""
    file = tmp_path / "twice.py"
    file.write_text("class Mark:\n    pass\nmark = Mark()\n", encoding="utf-8")
    first = weakref.ref(look_up(f"{file}:mark"))
    gc.collect()

    assert first() is look_up(f"{file}:mark")


def test_targets_are_spelt_so_that_they_are_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Rmm.__module__
    main = types.ModuleType("__main__")
    script = type("Script", (), {"__module__": "__main__", "__qualname__": "Script"})
    main.Script = script  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert [f"{here}:Rmm", f"{here}:pair_take,plain_give"] == [spelling(Rmm), spelling((pair_take, plain_give))]
    assert [None] * 4 == [spelling(item) for item in (Rmm(), lambda: None, (pair_take, len), script)]
    main.__file__ = str(tmp_path / "script.py")
    assert f"{tmp_path}/script.py:Script" == spelling(script)
    assert look_up(f"{here}:Rmm") is Rmm


def test_a_library_in_this_folder_is_pointed_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loader does not look in this folder for a name without a path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.so").write_bytes(b"")

    with pytest.raises(TargetError, match=r"; for the file in this folder write \./mine\.so"):
        TargetSource("mine.so:a,b").open()
    with pytest.raises(TargetError) as caught:
        TargetSource("yours.so:a,b").open()
    assert "this folder" not in str(caught.value)


def test_a_copy_is_called_as_its_parameters_say() -> None:
    """Nothing is passed that a signature does not have, and a signature that says too little is not called."""
    calls: list[tuple[object, ...]] = []

    def as_kuiperllama(src: int, dest: int, size: int, kind: object, *, need_sync: bool) -> None:
        calls.append((src, dest, size, kind is not None, need_sync))

    def as_c(dst: int, src: int, size: int) -> None:
        calls.append((src, dst, size))

    def plain(source: int, target: int, n: int, /) -> None:
        calls.append((source, target, n))

    def with_more(source: int, target: int, n: int, queue: object) -> None:
        raise AssertionError((source, target, n, queue))

    def short(source: int, target: int) -> None:
        raise AssertionError((source, target))

    unsigned: Any = dict
    found: list[Any] = []
    for copy in (as_kuiperllama, as_c, plain, with_more, short, unsigned):
        memory = Memory()
        found.append(TargetSource(types.SimpleNamespace(malloc=memory.take, free=memory.give, memcpy=copy)).open().copy)
    for call in found[:3]:
        call(1, 2, 3)

    assert [(1, 2, 3, True, True), (1, 2, 3), (1, 2, 3)] == calls
    assert [None] * 3 == found[3:]


@pytest.mark.parametrize(
    ("calls", "native"),
    [
        ("malloc=s:p free=p realloc=ps:p", ["malloc", "free"]),  # it takes its functions by their places
        ("malloc=ps:i free=p", []),  # a status, and the block in a pointer
        ("malloc=s:p free=tp", []),
        ("malloc=1s:p free=ps calloc=1s:p realloc=cps:p", ["malloc", "free", "calloc", "realloc"]),
    ],
)
def test_only_what_the_driver_can_call_is_given_to_it(calls: str, native: list[str]) -> None:
    abi = ABIS["malloc"]._replace(calls=calls_of(calls))

    assert native == list(abi.native_calls({part: part for part in abi.calls}))
    assert not abi.native_calls({part: part for part in (*abi.calls, "make")})
