"""NumPy's handlers (NEP 49), both ways: driven by NumPy, and function by function as C does."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

from syncedmem import interop
from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.runtime.interop.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

handlers: Any = interop.numpy
SIZE = 1000


class Tracking(CPUDeviceAllocator):
    """Host memory with a limit; it records the requests, and is not zeroed."""

    def __init__(self, limit: int = 1 << 30) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.failing: Exception | None = None
        self._limit = limit

    def allocate(self, byte_size: int) -> Any:
        self.asked.append(byte_size)
        if byte_size > self._limit:
            raise AllocationError(self.name, byte_size, "the limit")
        block = super().allocate(byte_size)
        if block is not None:
            block[:] = 0xCD
        return block

    def memset_zero(self, ptr: Any, byte_size: int, *more: Any, **options: Any) -> None:
        self._fail()
        super().memset_zero(ptr, byte_size, *more, **options)

    def memcpy(self, src: Any, dest: Any, byte_size: int, *more: Any, **options: Any) -> None:
        self._fail()
        super().memcpy(src, dest, byte_size, *more, **options)

    def _fail(self) -> None:
        if self.failing:
            raise self.failing


class Driven:
    """The functions of a handler, found in its capsule as NumPy finds them."""

    def __init__(self, capsule: object) -> None:
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )(capsule, b"mem_handler")
        self.name = ctypes.string_at(pointer)
        self.version = ctypes.c_uint8.from_address(pointer + 127).value
        ctx, *functions = (ctypes.c_size_t * 5).from_address(pointer + 128)
        word, size = ctypes.c_void_p, ctypes.c_size_t
        signatures: list[Any] = [
            (word, word, size),
            (word, word, size, size),
            (word, word, word, size),
            (None, word, word, size),
        ]
        self._functions = [ctypes.CFUNCTYPE(*types)(at) for types, at in zip(signatures, functions, strict=True)]
        self._ctx = ctx

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = self._functions[("malloc", "calloc", "realloc", "free").index(name)]
        return lambda *arguments: function(self._ctx, *arguments)


@pytest.fixture
def memory() -> Tracking:
    return Tracking()


@pytest.fixture
def driven(memory: Tracking) -> Driven:
    return Driven(handlers.as_resource(memory))


# --- theirs from ours


def test_numpy_takes_its_arrays_from_our_allocator(memory: Tracking) -> None:
    """It does so inside the block and not after it; arrays that were made inside give their memory back to it."""
    handler, before = handlers.as_resource(memory, name="mine"), get_handler_name()
    with handlers.using(handler):
        assert "mine" == get_handler_name()
        mine = np.arange(SIZE, dtype=np.uint8)
        zeros = np.zeros(SIZE, np.uint8)
    theirs = np.empty(SIZE, np.uint8)

    assert (before, "mine", before) == (get_handler_name(), get_handler_name(mine), get_handler_name(theirs))
    assert (2, False, 999 % 256) == (memory.live_blocks, bool(zeros.any()), mine[999])
    del mine, zeros
    assert 0 == memory.live_blocks


def test_a_handler_is_restored_after_an_error_and_inside_another(memory: Tracking) -> None:
    inner, outer = handlers.as_resource(memory, name="inner"), handlers.as_resource(memory, name="outer")
    with handlers.using(outer):
        with pytest.raises(KeyError), handlers.using(inner):
            raise KeyError
        assert ("outer", "syncedmem") == (get_handler_name(), Driven(handlers.as_resource(memory)).name.decode())
    assert "default_allocator" == get_handler_name()


def test_other_threads_keep_their_handler(memory: Tracking) -> None:
    names: list[str | None] = []
    with handlers.using(handlers.as_resource(memory)):
        thread = threading.Thread(target=lambda: names.append(get_handler_name()))
        thread.start()
        thread.join()

    assert ["default_allocator"] == names


def test_an_allocator_that_makes_arrays_does_not_call_itself(memory: Tracking) -> None:
    """Our host allocator is such a one: its blocks are NumPy arrays."""
    with handlers.using(handlers.as_resource(memory)):
        array = np.empty(SIZE, np.uint8)
        assert [SIZE] == memory.asked
        array.resize(2 * SIZE, refcheck=False)
    assert 2 * SIZE == array.nbytes
    assert [SIZE, 2 * SIZE] == memory.asked
    del array

    assert 0 == memory.live_blocks


def test_no_room_is_numpys_memory_error() -> None:
    memory = Tracking(limit=SIZE)
    with (
        handlers.using(handlers.as_resource(memory)),
        pytest.raises(MemoryError, match=r"Unable to allocate 9\.77 KiB"),
    ):
        np.empty(10 * SIZE, np.uint8)

    assert 0 == memory.live_blocks


def test_the_handler_is_what_nep_49_says(driven: Driven) -> None:
    assert (b"syncedmem", 1) == (driven.name, driven.version)


def test_malloc_is_aligned_and_never_null(driven: Driven, memory: Tracking) -> None:
    blocks = [driven.malloc(size) for size in (0, 1, SIZE)]
    assert [0] * 3 == [block % 16 for block in blocks]
    assert 3 == len(set(blocks)) == memory.live_blocks
    for block in blocks:
        driven.free(block, SIZE)  # NumPy's size is often not that of the block

    assert 0 == memory.live_blocks


def test_calloc_zeroes(driven: Driven, memory: Tracking) -> None:
    block = driven.calloc(10, 100)
    empty = driven.calloc(0, 100)
    assert bytes(SIZE) == ctypes.string_at(block, SIZE)
    assert b"\0" == ctypes.string_at(empty, 1)
    driven.free(block, SIZE)
    driven.free(empty, 0)

    assert 0 == memory.live_blocks


@pytest.mark.parametrize("size", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE])
def test_realloc_keeps_what_fits(driven: Driven, memory: Tracking, size: int) -> None:
    block = driven.malloc(SIZE)
    content = bytes(i % 251 for i in range(SIZE))
    ctypes.memmove(block, content, SIZE)
    moved = driven.realloc(block, size)
    kept = min(size, SIZE)
    assert content[:kept] == ctypes.string_at(moved, kept)
    assert 1 == memory.live_blocks
    driven.free(moved, size)

    assert 0 == memory.live_blocks


def test_realloc_of_null_is_malloc_and_free_of_null_is_nothing(driven: Driven, memory: Tracking) -> None:
    block = driven.realloc(None, SIZE)
    assert 1 == memory.live_blocks
    driven.free(block, SIZE)
    driven.free(None, SIZE)

    assert 0 == memory.live_blocks


def test_what_fails_is_null_and_changes_nothing(
    driven: Driven, memory: Tracking, printed: list[BaseException | None]
) -> None:
    """For a lack of memory nothing is printed; other errors are printed."""
    block = driven.malloc(SIZE)
    huge = 1 << 40
    assert (None, None, None) == (driven.malloc(huge), driven.calloc(huge, 2), driven.realloc(block, huge))
    assert (None, [b"\xcd" * SIZE]) == (driven.calloc(1 << 40, 1 << 40), [ctypes.string_at(block, SIZE)])
    printed.clear()
    memory.failing = RuntimeError("the host is tired")
    assert (None, None) == (driven.calloc(1, 1), driven.realloc(block, 1))
    assert [memory.failing] * 2 == printed
    assert 1 == memory.live_blocks
    assert driven.realloc(block + 1, SIZE) is None
    driven.free(block + 1, SIZE)
    driven.free(block, SIZE)

    assert 0 == memory.live_blocks
    assert [True] * 2 == [isinstance(error, InvalidPointerError) for error in printed[2:]]


@pytest.mark.parametrize("allocator", [None, SimulatedDeviceAllocator(), Tracking])
def test_only_host_memory_can_be_numpys(allocator: object) -> None:
    with pytest.raises(InvalidArgumentError, match="an allocator of memory with addresses, on the host"):
        handlers.as_resource(allocator)


def test_a_name_that_is_too_long_is_refused(memory: Tracking) -> None:
    assert handlers.as_resource(memory, name="n" * 126)
    with pytest.raises(InvalidArgumentError, match="name must be at most 126 bytes long, got 'nnn"):
        handlers.as_resource(memory, name="n" * 127)


@pytest.mark.parametrize("handler", [7, "default_allocator", np.dtype(np.uint8)])
def test_what_is_no_handler_is_refused(handler: Any) -> None:
    for use in (handlers.using(handler).__enter__, lambda: handlers.from_resource(handler)):
        with pytest.raises(InvalidArgumentError, match="handler must be a capsule named mem_handler"):
            use()


def test_nothing_is_given_back_when_python_goes(memory: Tracking) -> None:
    exporter = Exporter(memory)
    functions = handlers._ExportedHandler(exporter)
    functions._is_over = lambda: True
    functions.free(None, functions.malloc(None, SIZE), SIZE)

    assert 1 == memory.live_blocks


# --- ours from theirs


def test_the_memory_of_numpys_handler_is_ours_to_allocate() -> None:
    allocator = handlers.from_resource()
    block: Any = allocator.allocate(SIZE)
    block[:] = 7
    allocator.release(block)

    assert "NumPy's default_allocator" == allocator.name
    with pytest.raises(AllocationError, match="the address is null"):
        allocator.allocate(1 << 62)


def test_a_round_trip_through_a_handler_is_the_same_memory(memory: Tracking) -> None:
    """The handler stays as long as one of its blocks."""
    again = handlers.from_resource(handlers.as_resource(memory, name="mine"))
    block: Any = again.allocate(SIZE)
    del again
    gc.collect()
    assert (1, 0xCD) == (memory.live_blocks, block[-1])
    del block
    assert 0 == memory.live_blocks


def test_a_block_keeps_the_handler_that_it_goes_back_to(memory: Tracking) -> None:
    """It holds also when the allocator is gone."""
    handler = handlers.as_resource(memory)
    before = sys.getrefcount(handler)
    block: Any = handlers.from_resource(handler).allocate(SIZE)
    assert before < sys.getrefcount(handler)
    del block

    assert before == sys.getrefcount(handler)
