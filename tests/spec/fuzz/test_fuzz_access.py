"""The handles that a target returns, and how the fuzzer reads and writes the bytes behind them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mutants.allocator import Pool

from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.fuzz.access import Access, contents
from syncedmem.spec.fuzz.handles import through_handle
from syncedmem.spec.fuzz.oracle import OF_CONTENTS
from syncedmem.spec.fuzz.shadow_heap import Block

if TYPE_CHECKING:
    from collections.abc import Callable


def test_what_is_no_memory_is_a_finding() -> None:
    """A string, a float or a bool is not a pointer."""

    def ignore(pointer: object) -> None:
        assert pointer

    def giving(handle: object) -> Callable[[int], object]:
        def allocate(size: int) -> object:
            return handle if size else None

        return allocate

    for handle in ("text", 1.5, True):
        report = fuzz((giving(handle), ignore), steps=100)
        assert "A05-served" in [finding.requirement for finding in report.findings]
        assert f"gave {handle!r}, which is no memory" in report.findings[0].message


class Device:
    """Memory that the host reaches only by copies, as with CuPy's pointers."""

    def __init__(self, size: int) -> None:
        self.bytes = ctypes.create_string_buffer(size)

    def copy_to_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(host, self.bytes, size)

    def copy_from_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(self.bytes, host, size)


HANDLES = {
    "buffer": bytearray(8),
    "cupy": Device(8),
    "array": np.zeros(8, np.uint8),
}


@pytest.mark.parametrize("kind", HANDLES)
def test_bytes_are_reached_through_the_handle(kind: str) -> None:
    handle: Any = HANDLES[kind]
    functions = through_handle(handle)
    assert functions is not None
    access = Access(*functions)
    block = Block(0, handle, 0, 8, 5, 0)
    access.fill(block)

    assert not access.differs(block, 8)
    assert contents(5, 8) == access.read(block, 8)
    functions[1](handle, bytes(8))
    assert "byte 0 is 00" in access.differs(block, 8)


def test_a_target_without_readable_memory_is_checked_for_the_rest() -> None:
    class Far:
        """Returns addresses at which there is no memory."""

        def __init__(self) -> None:
            self.next = 1 << 60

        def allocate(self, size: int) -> int:
            if size > 1 << 40:
                raise MemoryError
            self.next += (1 << 30) + size
            return self.next - size

        def deallocate(self, pointer: int) -> None:
            """Do nothing: no address is used again."""

    report = fuzz(Far, steps=1_000)
    verdict = next(verdict for verdict in report.verdicts() if verdict.requirement == "A04-contents-kept")

    assert [] == [(finding.requirement, finding.message) for finding in report.findings]
    assert ("not checked", "the host cannot read the memory, and the target has no read and write") == (
        verdict.status,
        verdict.detail,
    )


def test_a_target_may_have_its_own_read_and_write() -> None:
    class Own:
        """Returns numbers that are not addresses; ``read`` and ``write`` reach the memory."""

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

    assert [] == [(finding.requirement, finding.message) for finding in report.findings]


def test_where_bytes_cannot_be_read_nothing_about_them_has_passed() -> None:
    """Calls of calloc, realloc and copy alone say nothing about contents."""
    report = fuzz(Pool, promises={"host_readable": "no"}, steps=2_000)
    verdicts = {verdict.requirement: verdict for verdict in report.verdicts()}

    for requirement in OF_CONTENTS:
        assert ("not checked", report.unread) == (verdicts[requirement].status, verdicts[requirement].detail)
    assert "the host cannot read the memory" in report.unread
    assert "passed" == verdicts["A02-no-overlap"].status
