"""Requests and frees that are refused wrongly, or not refused."""

from __future__ import annotations

import os
import threading

from ..registry import seeded_bug
from .pool import Pool


@seeded_bug("A05-served", "KuiperLLama logs and returns null")
class NullWhenFull(Pool):
    """When there is no room it returns null, which was not promised."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        if size > self.limit:
            raise MemoryError
        return super().allocate(size, alignment, stream)

    def refuse(self, size: int) -> int:
        return 0


@seeded_bug("A05-served", "std::length_error where std::bad_alloc is meant")
class WrongErrorWhenFull(Pool):
    """When there is no room it raises an error of another kind."""

    def refuse(self, size: int) -> int:
        if size > self.limit:
            return super().refuse(size)
        raise RuntimeError(f"no hole of {size} bytes")


@seeded_bug("A06-out-of-memory", "Caffe: host allocation of size -1655996416")
class CutsSizes(Pool):
    """Sizes are kept in 32 bits, so a request beyond all memory is met with a few bytes."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        return super().allocate(size % (1 << 32) or (size and 64), alignment, stream)


@seeded_bug("A06-out-of-memory", "a size that is multiplied before it is checked")
class OverflowsOnTooMuch(Pool):
    """A request beyond all memory ends in an arithmetic error."""

    def refuse(self, size: int) -> int:
        if size > 1 << 48:
            raise OverflowError("int too large to convert")
        return super().refuse(size)


@seeded_bug("A18-limit", "a lock, or a counter, that an error path forgets")
class RefusesForever(Pool):
    """After it refused one request it refuses every request."""

    refused = False

    def refuse(self, size: int) -> int:
        self.refused = True
        return super().refuse(size)

    def place(self, room: int, alignment: int) -> int:
        return 0 if self.refused else super().place(room, alignment)


@seeded_bug("A09-zero-size", "CuPy UnownedMemory; malloc(0) of other systems", zero_size="null")
class ZeroIsOneByte(Pool):
    """Zero bytes give a block, where null was promised."""

    def nothing(self) -> int:
        return self.allocate(1)

    def verify(self, pointer: int, size: int) -> None:
        del pointer, size


@seeded_bug("A09-zero-size", "a request for nothing that takes the first block there is", zero_size="any")
class ZeroIsSomebodyElses(Pool):
    """Zero bytes give the address of a block that is in use."""

    def nothing(self) -> int:
        return next(iter(self.sizes), 0)


@seeded_bug("A10-wrong-size", "RMM: the size of a deallocate is trusted", wrong_size="detect")
class TrustsSizes(Pool):
    """A free with a wrong size is not noticed."""

    def verify(self, pointer: int, size: int) -> None:
        super().verify(pointer, self.sizes.get(pointer, size))


@seeded_bug("A11-foreign-free", "KuiperLLama frees what it does not know", foreign_free="detect")
class TakesAnything(Pool):
    """A free of what was never allocated is not noticed."""

    def deallocate(self, pointer: int, size: int, stream: object = None) -> None:
        if pointer in self.sizes:
            super().deallocate(pointer, size, stream)


@seeded_bug("A12-double-free", "a flag that is looked at and not set", double_free="detect")
class ForgetsFrees(Pool):
    """A second free of the same block is not noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()

    def deallocate(self, pointer: int, size: int, stream: object = None) -> None:
        if pointer in self.sizes or pointer not in self.known:
            super().deallocate(pointer, size, stream)
        self.known.add(pointer)


@seeded_bug("A22-no-crash", "KuiperLLama alloc_cu.cpp:12-13 at 978789f, a failed CHECK ends the process")
class EndsTheProcess(Pool):
    """When there is no room the process is ended."""

    def refuse(self, size: int) -> int:
        if size < 1 << 48:
            os.abort()
        return super().refuse(size)


@seeded_bug("A23-no-hang", "a lock that is taken again by the one who has it")
class WaitsForItself(Pool):
    """The lock is not one that its owner may take again, and a realloc takes it twice."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def realloc(self, pointer: int, size: int) -> int:
        with self.lock:
            return super().realloc(pointer, size)


@seeded_bug("A24-closes", "rmm#157: a teardown in the wrong order")
class CannotBeClosed(Pool):
    """A pool that was ever used cannot be closed."""

    def close(self) -> None:
        if self.peak_bytes:
            raise RuntimeError("the arena is gone already")
