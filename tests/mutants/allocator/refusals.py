"""Requests and frees that are refused although they are right, or accepted although they are wrong."""

from __future__ import annotations

import os
import threading

from ..registry import seeded_bug
from .pool import Pool


@seeded_bug("A05-served", "KuiperLLama logs and returns null")
class NullWhenFull(Pool):
    """Without room the result is null, which was not promised."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        if size > self.limit:
            raise MemoryError
        return super().allocate(size, alignment, stream)

    def refuse(self, size: int) -> int:
        return 0


@seeded_bug("A05-served", "std::length_error in place of std::bad_alloc")
class WrongErrorWhenFull(Pool):
    """Without room the error is of another kind."""

    def refuse(self, size: int) -> int:
        if size > self.limit:
            return super().refuse(size)
        raise RuntimeError(f"no hole of {size} bytes")


@seeded_bug("A06-out-of-memory", "Caffe: host allocation of size -1655996416")
class CutsSizes(Pool):
    """Sizes have 32 bits, so an impossibly large request gets a few bytes."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        return super().allocate(size % (1 << 32) or (size and 64), alignment, stream)


@seeded_bug("A06-out-of-memory", "a size that is multiplied before it is checked")
class OverflowsOnTooMuch(Pool):
    """An impossibly large request leads to an arithmetic error."""

    def refuse(self, size: int) -> int:
        if size > 1 << 48:
            raise OverflowError("int too large to convert")
        return super().refuse(size)


@seeded_bug("A18-limit", "an error path that forgets a lock or a counter")
class RefusesForever(Pool):
    """After one refused request it refuses every request."""

    refused = False

    def refuse(self, size: int) -> int:
        self.refused = True
        return super().refuse(size)

    def place(self, room: int, alignment: int) -> int:
        return 0 if self.refused else super().place(room, alignment)


@seeded_bug("A09-zero-size", "CuPy UnownedMemory; malloc(0) of other systems", zero_size="null")
class ZeroIsOneByte(Pool):
    """Zero bytes get a block, although null was promised."""

    def nothing(self) -> int:
        return self.allocate(1)

    def verify(self, pointer: int, size: int) -> None:
        del pointer, size


@seeded_bug("A09-zero-size", "a request for nothing that takes the first block", zero_size="any")
class ZeroIsSomebodyElses(Pool):
    """Zero bytes get the address of a block that is in use."""

    def nothing(self) -> int:
        return next(iter(self.sizes), 0)


@seeded_bug("A10-wrong-size", "RMM: the size of a deallocate is trusted", wrong_size="detect")
class TrustsSizes(Pool):
    """A free with a wrong size is not noticed."""

    def verify(self, pointer: int, size: int) -> None:
        super().verify(pointer, self.sizes.get(pointer, size))


@seeded_bug("A11-foreign-free", "KuiperLLama frees unknown pointers", foreign_free="detect")
class TakesAnything(Pool):
    """A free of a pointer that was never allocated is not noticed."""

    def deallocate(self, pointer: int, size: int, stream: object = None) -> None:
        if pointer in self.sizes:
            super().deallocate(pointer, size, stream)


@seeded_bug("A12-double-free", "a flag that is checked but never set", double_free="detect")
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
    """Without room the process is ended."""

    def refuse(self, size: int) -> int:
        if size < 1 << 48:
            os.abort()
        return super().refuse(size)


@seeded_bug("A23-no-hang", "a lock that its owner takes again")
class WaitsForItself(Pool):
    """The lock is not reentrant, and a realloc takes it twice."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def realloc(self, pointer: int, size: int) -> int:
        with self.lock:
            return super().realloc(pointer, size)


@seeded_bug("A24-closes", "rmm#157: a teardown in the wrong order")
class CannotBeClosed(Pool):
    """A pool that has been used cannot be closed."""

    used = False

    def count(self, size: int) -> None:
        super().count(size)
        self.used = True

    def close(self) -> None:
        if self.used:
            raise RuntimeError("the arena is gone already")
