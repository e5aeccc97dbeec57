"""Which targets are recognised, what they are taken to promise, and how their bytes are reached."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.spec.fuzz import Capabilities, Source, TargetError, fuzz, trial_of
from syncedmem.spec.fuzz.access import HandleAccess, NoAccess, host_can_write, through_handle
from syncedmem.spec.fuzz.ledger import Block, Pattern
from syncedmem.spec.fuzz.native import LibraryAddress
from syncedmem.spec.fuzz.recognition import look_up, spelling
from syncedmem.spec.fuzz.targets import address_of, giving_of, size_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBC = "libc.so.6:malloc,free"


class Memory:
    """Keeps what it hands out alive."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}

    def take(self, size: int) -> int:
        if size > 1 << 40:
            raise MemoryError
        block = ctypes.create_string_buffer(max(size, 1))
        address = ctypes.addressof(block)
        self.held[address] = block
        return address

    def give(self, pointer: int) -> None:
        del self.held[pointer]


class Rmm(Memory):
    """RMM: a stream with a default, a sized free."""

    def allocate(self, nbytes: int, stream: object = None) -> int:
        assert stream is None
        return self.take(nbytes)

    def deallocate(self, ptr: int, nbytes: int, stream: object = None) -> None:
        assert nbytes >= 0
        assert stream is None
        self.give(ptr)


class Warp(Memory):
    """Warp: no stream."""

    def allocate(self, size: int) -> int:
        return self.take(size)

    def deallocate(self, ptr: int, size: int) -> None:
        assert size >= 0
        self.give(ptr)


class CudaCore(Memory):
    """cuda.core: the stream is a keyword that has to be said, and a buffer comes back."""

    class Buffer:
        def __init__(self, handle: int, size: int) -> None:
            self.handle, self.size = handle, size

    def allocate(self, size: int, *, stream: object) -> CudaCore.Buffer:
        assert stream is None
        return self.Buffer(self.take(size), size)

    def deallocate(self, ptr: CudaCore.Buffer, size: int, *, stream: object) -> None:
        assert stream is None
        assert ptr.size == size
        self.give(ptr.handle)


class Unsized(Memory):
    """One pointer, no size; and a stream to free on."""

    def malloc(self, size: int, stream: object = None) -> int:
        del stream
        return self.take(size)

    def free(self, ptr: int, stream: object = None) -> None:
        del stream
        self.give(ptr)


class Numba(Memory):
    """Numba's external memory management: what comes back frees itself."""

    class Pointer:
        def __init__(self, owner: Numba, size: int) -> None:
            self.owner, self.device_pointer = owner, owner.take(size)

        def free(self) -> None:
            self.owner.give(self.device_pointer)

    def memalloc(self, size: int) -> Numba.Pointer:
        return self.Pointer(self, size)


class Cupy(Memory):
    """CuPy: freed when nobody refers to it any more."""

    class Pointer:
        def __init__(self, owner: Cupy, size: int) -> None:
            self.owner, self.ptr = owner, 0
            self.ptr = owner.take(size)

        def __del__(self) -> None:
            if self.ptr:
                self.owner.give(self.ptr)

    def malloc(self, size: int) -> Cupy.Pointer:
        return self.Pointer(self, size)


class Closing:
    """A callable whose buffers are closed, and are memory themselves."""

    class Buffer(bytearray):
        def close(self) -> None:
            """Nothing is left to do."""

    def __call__(self, size: int) -> Closing.Buffer:
        if size > 1 << 40:
            raise MemoryError
        return self.Buffer(size)


SHARED = Memory()


def pair_take(size: int, device: int) -> int:
    assert device == 0
    return SHARED.take(size)


def pair_give(ptr: int, size: int, stream: object) -> None:
    assert size >= 0
    assert stream is None
    SHARED.give(ptr)


def plain_give(ptr: int) -> None:
    SHARED.give(ptr)


def sized_give(ptr: int, size: int) -> None:
    assert size >= 0
    SHARED.give(ptr)


def make_rmm() -> Rmm:
    return Rmm()


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
    """Without a base class, and without a word of configuration."""
    report = fuzz(target, steps=1_500)

    assert kind == report.kind
    assert [] == [(it.property_id, it.message) for it in report.findings]
    assert {"passed"} == {it.status for it in report.verdicts() if it.property_id == "A04-contents-kept"}


@pytest.mark.parametrize("sized", [True, False])
def test_streams_are_passed_to_those_who_take_them(sized: bool) -> None:
    seen: set[str] = set()

    class Ordered(Memory):
        def allocate(self, size: int, *, stream: object = None) -> int:
            seen.add(f"allocate {stream}")
            return self.take(size)

    class Sized(Ordered):
        def deallocate(self, ptr: int, size: int, *, stream: object = None) -> None:
            seen.add(f"free {bool(size)} {stream}")
            self.give(ptr)

    class Unsized(Ordered):
        def deallocate(self, ptr: int, *, stream: object = None) -> None:
            seen.add(f"free True {stream}")
            self.give(ptr)

    fuzz(Sized if sized else Unsized, steps=3_000, promises={"stream_ordered": "yes"})

    assert {"allocate <stream 1>", "free True <stream 1>", "allocate None"} <= seen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("json", "names no target"),
        (":x", "names no target"),
        ("no_such_module_here:x", "cannot import no_such_module_here: ModuleNotFoundError"),
        ("os:nothing", "os has no attribute nothing"),
        ("no/such/file.py:x", "cannot import no/such/file.py: FileNotFoundError"),
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
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(TargetError) as caught:
        Source(text).open()

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", [(print,), [print, 3], 3, "x:y:z"])
def test_what_is_no_pair_and_no_allocator_is_refused(target: object) -> None:
    with pytest.raises(TargetError):
        Source(target).open()


def test_a_method_that_wants_more_is_said() -> None:
    class Typed:
        def allocate(self, shape: object, dtype: object) -> int:
            raise AssertionError((shape, dtype))

        def deallocate(self, pointer: int) -> None:
            raise AssertionError(pointer)

    with pytest.raises(TargetError, match=r"Typed\.allocate wants shape, dtype; the fuzzer has a size"):
        Source(Typed()).open()


def test_methods_that_have_no_signature_are_called_with_what_they_need() -> None:
    """Those written in another language often have none."""
    unsigned: Any = dict
    target = Source(types.SimpleNamespace(allocate=unsigned, deallocate=unsigned)).open()

    assert not target.capabilities.sized_free
    assert {} == target.give((), 3)


def test_a_pair_without_signatures_takes_one_argument_each() -> None:
    unsigned: Any = dict
    target = Source((unsigned, unsigned)).open()

    assert {} == target.take(unsigned())
    assert {} == target.give([], 3)


def test_variable_arguments_take_a_size() -> None:
    class Loose(Memory):
        def allocate(self, *arguments: int) -> int:
            return self.take(*arguments)

        def deallocate(self, *arguments: int) -> None:
            assert len(arguments) == 2
            self.give(arguments[0])

    assert fuzz(Loose(), steps=500).passed


def test_a_file_of_python_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def make():\n    raise ValueError('two\\nlines')\n", encoding="utf-8")

    with pytest.raises(TargetError, match=r"mine.py:make cannot be called without arguments \(ValueError: two lines\)"):
        Source(f"{file}:make").open()


def test_what_a_file_defines_lives_as_long_as_the_process(tmp_path: Path) -> None:
    """Libraries go on calling its functions after it was loaded again: the collector must not take their names."""
    file = tmp_path / "twice.py"
    file.write_text("class Mark:\n    pass\nmark = Mark()\ndef make():\n    return mark\n", encoding="utf-8")
    first = weakref.ref(look_up(f"{file}:mark"))
    second = weakref.ref(look_up(f"{file}:mark"))
    gc.collect()

    assert first() is not None
    assert second() is not first()


def no_spec(name: str, path: Path) -> None:
    assert name == path.stem


def test_a_file_that_is_no_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.spec_from_file_location", no_spec)

    with pytest.raises(TargetError, match=r"x\.py is no Python file"):
        Source("x.py:make")


def test_the_current_directory_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [it for it in sys.path if it])
    Source("json:dumps")

    assert not sys.path[0]


def test_a_library_is_told_by_its_name() -> None:
    assert LibraryAddress("libc.so.6", ("a", "b"), "torch") == LibraryAddress.parse("libc.so.6:a, b?abi=torch")
    assert LibraryAddress.parse("os:path") is None


def test_names_of_targets() -> None:
    assert ["Rmm", "an object of type Rmm", "pair_take, plain_give", LIBC] == [
        Source(it).name for it in (Rmm, Rmm(), (pair_take, plain_give), LIBC)
    ]


# --- the capability record


@pytest.mark.parametrize(
    ("promises", "said"),
    [
        ({"alignment": "3"}, "alignment must be a power of two up to 1048576, got 3"),
        ({"alignment": "many"}, "alignment must be a number, got 'many'"),
        ({"alignment": "0"}, "power of two"),
        ({"limit": "-1"}, "limit must be a number of bytes"),
        ({"zero_size": "maybe"}, "zero_size must be one of any, null, unique, error, got 'maybe'"),
        ({"thread_safe": "true"}, "thread_safe must be one of yes, no, got 'true'"),
        ({"host_readable": "true"}, "host_readable must be one of yes, no, ask, got 'true'"),
        ({"speed": "high"}, "there is no promise 'speed'; there are alignment, zero_size"),
        ({"wrong_size": "detect"}, "wrong_size=detect contradicts sized_free=no"),
        ({"out_of_memory": ""}, "out_of_memory names no exception"),
        ({"foreign_free": "detect", "double_free": "ignore"}, "contradicts double_free=ignore"),
    ],
)
def test_a_contradictory_record_is_refused(promises: dict[str, str], said: str) -> None:
    with pytest.raises(TargetError) as caught:
        Capabilities().with_promises(promises)

    assert said in str(caught.value)


def test_a_record_is_data_and_back() -> None:
    record = Capabilities().with_promises(
        {"alignment": "64", "host_readable": "ask", "zeroed": "yes", "out_of_memory": "null,MemoryError"}
    )

    assert record == Capabilities().with_promises(record.as_json())
    assert Capabilities().with_promises({"host_readable": "no"}).host_readable is False


def test_promises_that_the_target_cannot_keep_are_refused() -> None:
    with pytest.raises(TargetError, match="stream_ordered=yes contradicts the target"):
        fuzz(Warp, promises={"stream_ordered": "yes"})
    with pytest.raises(TargetError, match="2 threads, but thread_safe=no"):
        fuzz(Warp, threads=2)
    with pytest.raises(TargetError, match="threads must be at most 256, got 257"):
        fuzz(Warp, threads=257)
    with pytest.raises(TargetError, match="sized_free=no contradicts the target: its free is told the size"):
        fuzz(Rmm, promises={"sized_free": "no"})
    with pytest.raises(TargetError, match="sized_free=yes contradicts the target: its free is told no size"):
        fuzz("libc.so.6:malloc,free", promises={"sized_free": "yes"})
    with pytest.raises(TargetError, match="out_of_memory=OutOfPaper: no exception of that name is known"):
        fuzz(Rmm, promises={"out_of_memory": "MemoryError,OutOfPaper,null"})


@pytest.mark.parametrize("name", ["steps", "seconds", "threads", "hang"])
@pytest.mark.parametrize("number", [0, -1, float("nan")])
def test_numbers_have_to_be_more_than_none(name: str, number: float) -> None:
    numbers: dict[str, Any] = {name: number}
    with pytest.raises(TargetError, match=f"{name} must be more than 0, got {number:g}"):
        fuzz(Warp, **numbers)


def test_a_method_without_its_object_is_told_from_a_function() -> None:
    with pytest.raises(TargetError, match=r"Rmm\.allocate is a method without its object: name the class"):
        Source((Rmm.allocate, Rmm.deallocate)).open()


def test_what_is_no_memory_is_a_finding() -> None:
    """Text, numbers with a point, and truth are no pointers."""

    def ignore(pointer: object) -> None:
        assert pointer

    def giving(handle: object) -> Callable[[int], object]:
        def allocate(size: int) -> object:
            return handle if size else None

        return allocate

    for handle in ("text", 1.5, True):
        report = fuzz((giving(handle), ignore), steps=100)
        assert "A05-served" in [it.property_id for it in report.findings]
        assert f"gave {handle!r}, which is no memory" in report.findings[0].message


def test_targets_are_spelt_so_that_they_are_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Rmm.__module__
    main = types.ModuleType("__main__")
    script = type("Script", (), {"__module__": "__main__", "__qualname__": "Script"})
    main.Script = script  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert [f"{here}:Rmm", f"{here}:pair_take,plain_give"] == [spelling(Rmm), spelling((pair_take, plain_give))]
    assert [None] * 4 == [spelling(it) for it in (Rmm(), lambda: None, (pair_take, len), script)]
    main.__file__ = str(tmp_path / "script.py")
    assert f"{tmp_path}/script.py:Script" == spelling(script)
    assert look_up(f"{here}:Rmm") is Rmm


def test_a_library_in_this_folder_is_pointed_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loader looks for a bare name elsewhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.so").write_bytes(b"")

    with pytest.raises(TargetError, match=r"; for the file in this folder write \./mine\.so"):
        Source("mine.so:a,b").open()
    with pytest.raises(TargetError) as caught:
        Source("yours.so:a,b").open()
    assert "this folder" not in str(caught.value)


# --- handles, and how bytes are reached


def test_where_a_handle_is_and_how_large() -> None:
    array = np.zeros(24, np.uint8)
    cuda = types.SimpleNamespace(__cuda_array_interface__={"data": (4096, False)})

    assert [7, array.ctypes.data, 4096, 0] == [address_of(it) for it in (7, array, cuda, object())]
    assert [None, 24, None] == [size_of(it) for it in (7, array, object())]
    assert [None, None, "drop", "close"] == [
        giving_of(it) for it in (None, 7, types.SimpleNamespace(ptr=64), types.SimpleNamespace(close=print))
    ]
    assert giving_of(object()) is None


class Device:
    """Bytes that the host sees by copying only: CuPy's pointers."""

    def __init__(self, size: int) -> None:
        self.bytes = ctypes.create_string_buffer(size)

    def copy_to_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(host, self.bytes, size)

    def copy_from_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(self.bytes, host, size)


@pytest.mark.parametrize("handle", [bytearray(8), Device(8), np.zeros(8, np.uint8)], ids=["buffer", "cupy", "array"])
def test_bytes_are_reached_through_the_handle(handle: Any) -> None:
    functions = through_handle(handle)
    assert functions is not None
    access = HandleAccess(Pattern(), *functions)
    block = Block(0, handle, 0, 8, 5, 0)
    access.fill(block)

    assert not access.differs(block, 8)
    assert Pattern().of(5, 8) == access.read(block, 8)
    functions[1](handle, bytes(8))
    assert "byte 0 is 00" in access.differs(block, 8)


def test_what_cannot_be_read_is_not_checked() -> None:
    nothing = NoAccess("no way in")
    block = Block(0, object(), 0, 8, 5, 0)
    nothing.fill(block)

    assert ("", b"", "no way in") == (nothing.differs(block, 8), nothing.read(block, 8), nothing.reason)
    assert through_handle(object()) is None
    assert through_handle(b"read-only") is None


def test_the_operating_system_says_what_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    buffer = ctypes.create_string_buffer(100)

    assert host_can_write(ctypes.addressof(buffer), 100)
    assert not host_can_write(64, 8)
    maps = tmp_path / "maps"
    maps.write_text("1000-2000 rw-p\n2000-3000 rw-p\n4000-5000 r--p\n", encoding="utf-8")
    monkeypatch.setattr("syncedmem.spec.fuzz.access._MAPS", maps)
    assert [True, True, False, False] == [
        host_can_write(*it) for it in ((0x1000, 8), (0x1F00, 0x200), (0x2F00, 0x200), (0x4000, 8))
    ]
    monkeypatch.setattr("syncedmem.spec.fuzz.access._MAPS", tmp_path / "nothing")
    assert not host_can_write(ctypes.addressof(buffer), 100)


def test_a_target_without_readable_memory_is_checked_for_the_rest() -> None:
    class Far:
        """Addresses that are nowhere."""

        def __init__(self) -> None:
            self.next = 1 << 60

        def allocate(self, size: int) -> int:
            if size > 1 << 40:
                raise MemoryError
            self.next += (1 << 30) + size
            return self.next - size

        def deallocate(self, pointer: int) -> None:
            """Never used again."""

    report = fuzz(Far, steps=1_000)
    verdict = next(it for it in report.verdicts() if it.property_id == "A04-contents-kept")

    assert [] == [(it.property_id, it.message) for it in report.findings]
    assert ("not checked", "the host cannot read the memory, and the target has no read and write") == (
        verdict.status,
        verdict.detail,
    )


def test_a_target_may_have_its_own_read_and_write() -> None:
    class Own:
        """Memory behind numbers."""

        def __init__(self) -> None:
            self.blocks: dict[int, bytearray] = {}
            self.next = 1 << 60

        def allocate(self, size: int) -> int:
            if size > 1 << 40:
                raise MemoryError
            self.next += 1 << 30
            self.blocks[self.next] = bytearray(size)
            return self.next

        def deallocate(self, pointer: int) -> None:
            del self.blocks[pointer]

        def read(self, pointer: int, size: int) -> bytes:
            return bytes(self.blocks[pointer][:size])

        def write(self, pointer: int, data: bytes) -> None:
            self.blocks[pointer][: len(data)] = data

    report = fuzz(Own, steps=1_000, promises={"zeroed": "yes"})

    assert [] == [(it.property_id, it.message) for it in report.findings]


@pytest.mark.parametrize("symbols", ["malloc,free", "malloc,free,calloc,realloc"])
def test_a_library_can_be_driven_by_hand(symbols: str) -> None:
    with trial_of(f"libc.so.6:{symbols}") as trial:
        assert trial.allocate(0, 100)
        assert trial.resize(0, 1000) is trial.calloc(1, 100) is ("calloc" in symbols)
