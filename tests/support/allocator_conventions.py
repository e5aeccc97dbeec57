"""Allocators over memory of C that follow the conventions of several libraries; the fuzzer has to recognise each."""

from __future__ import annotations

import ctypes
from typing import Any

from syncedmem.spec.fuzz.streams import Stream

LIBC = "libc.so.6:malloc,free"


class Memory:
    """Keeps the memory that it returns alive."""

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
    """RMM's convention: a stream with a default, and a release with the size."""

    def allocate(self, nbytes: int, stream: object = None) -> int:
        assert stream is None
        return self.take(nbytes)

    def deallocate(self, ptr: int, nbytes: int, stream: object = None) -> None:
        assert nbytes >= 0
        assert stream is None
        self.give(ptr)


class Warp(Memory):
    """Warp's convention: no stream."""

    def allocate(self, size: int) -> int:
        return self.take(size)

    def deallocate(self, ptr: int, size: int) -> None:
        assert size >= 0
        self.give(ptr)


class CudaCore(Memory):
    """cuda.core's convention: a stream that is a required keyword, and a buffer as the result."""

    class Buffer:
        def __init__(self, handle: int, size: int) -> None:
            self.handle, self.size = handle, size

    def allocate(self, size: int, *, stream: object) -> CudaCore.Buffer:
        assert isinstance(stream, Stream)
        return self.Buffer(self.take(size), size)

    def deallocate(self, ptr: CudaCore.Buffer, size: int, *, stream: object) -> None:
        assert isinstance(stream, Stream)
        assert ptr.size == size
        self.give(ptr.handle)


class Unsized(Memory):
    """One pointer, no size, and a stream for the release."""

    def malloc(self, size: int, stream: object = None) -> int:
        del stream
        return self.take(size)

    def free(self, ptr: int, stream: object = None) -> None:
        del stream
        self.give(ptr)


class Numba(Memory):
    """Numba's convention for external memory: the result frees itself."""

    class Pointer:
        def __init__(self, owner: Numba, size: int) -> None:
            self.owner, self.device_pointer = owner, owner.take(size)

        def free(self) -> None:
            self.owner.give(self.device_pointer)

    def memalloc(self, size: int) -> Numba.Pointer:
        return self.Pointer(self, size)


class Cupy(Memory):
    """CuPy's convention: memory is freed when nobody refers to it any more."""

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
    """A callable whose results are buffers that are closed, and are memory themselves."""

    class Buffer(bytearray):
        def close(self) -> None:
            """Do nothing: there is nothing to free."""

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
    assert isinstance(stream, Stream)
    SHARED.give(ptr)


def plain_give(ptr: int) -> None:
    SHARED.give(ptr)


def sized_give(ptr: int, size: int) -> None:
    assert size >= 0
    SHARED.give(ptr)


def make_rmm() -> Rmm:
    return Rmm()
