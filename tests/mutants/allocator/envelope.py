"""Bugs at the edge of what is usual: very large sizes, very many blocks, very old and very young processes."""

from __future__ import annotations

from ..registry import seeded_bug
from .pool import Pool

_MIB = 1 << 20
_SIZES = 1 << 64
_MANY, _VERY_MANY = 300, 1 << 16
_OLD, _YOUNG = 100_000, 100


class UsablePool(Pool):
    """A correct pool that says how many bytes of a block are usable."""

    def usable_size(self, pointer: int) -> int:
        """The bytes that a block occupies."""
        return self.room(self.sizes[pointer])


@seeded_bug("A25-no-starvation", "memcached, slab calcification: a class that never gets a page")
class StarvesOneClass(Pool):
    """Sizes from 1000 to 1100 are always refused."""

    def place(self, room: int, alignment: int) -> int:
        return 0 if 1000 <= room <= 1100 else super().place(room, alignment)


@seeded_bug("A25-no-starvation", "a calloc whose own check of sizes is wrong")
class StarvesCalloc(Pool):
    """A calloc of less than 64 bytes is always refused."""

    def calloc(self, size: int) -> int:
        if 0 < size < 64:
            raise MemoryError
        return super().calloc(size)


@seeded_bug("A02-no-overlap", "a large class that is one size for all")
class ShortAboveFourMebibytes(Pool):
    """Blocks of more than 4 MiB occupy 4 MiB."""

    def room(self, size: int) -> int:
        return super().room(min(size, 4 * _MIB))


@seeded_bug("A18-limit", "a size that is kept in 32 bits")
class WrapsAtFourGibibytes(Pool):
    """Sizes of 4 GiB and more, up to a terabyte, are cut to 32 bits."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        if 1 << 32 < size < 1 << 40:
            size %= 1 << 32
        return super().allocate(size, alignment, stream)


@seeded_bug("A06-out-of-memory", "CWE-190: a header is added before the size is checked")
class AddsAHeader(Pool):
    """The size with a header of 16 bytes wraps around, so that SIZE_MAX - 1 becomes 14."""

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        with_header = size + 16
        return super().allocate(size if with_header < _SIZES else with_header % _SIZES, alignment, stream)


@seeded_bug("A01-distinct-pointers", "a table of handles with 299 entries")
class FailsAtManyBlocks(Pool):
    """The 300th live block is the first one."""

    def place(self, room: int, alignment: int) -> int:
        return super().place(room, alignment) if len(self.sizes) < _MANY - 1 else next(iter(self.sizes))


@seeded_bug("A01-distinct-pointers", "an index of 16 bits")
class FailsAtVeryManyBlocks(Pool):
    """The 65,537th live block is the first one."""

    def place(self, room: int, alignment: int) -> int:
        return super().place(room, alignment) if len(self.sizes) < _VERY_MANY else next(iter(self.sizes))


@seeded_bug("A02-no-overlap", "a counter of 16 bits that overflows in a long-lived process")
class GrowsOld(Pool):
    """After 100,000 allocations of one process, blocks are one byte short."""

    taken = 0

    def room(self, size: int) -> int:
        GrowsOld.taken += 1
        return super().room(size if GrowsOld.taken < _OLD else max(size - 1, 1))


@seeded_bug("A14-resize-keeps", "a table that is filled while the first calls run")
class NotReadyYet(Pool):
    """Among the first hundred allocations of a process, a realloc copies nothing."""

    taken = 0

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        NotReadyYet.taken += 1
        return super().allocate(size, alignment, stream)

    def realloc(self, pointer: int, size: int) -> int:
        if NotReadyYet.taken > _YOUNG:
            return super().realloc(pointer, size)
        old, address = self.sizes[pointer], self.allocate(size)
        self.deallocate(pointer, old)
        return address


@seeded_bug("A08-size-known", "a header that is counted as usable, or not")
class UsableIsTooSmall(UsablePool):
    """The usable size is less than was requested."""

    def usable_size(self, pointer: int) -> int:
        return self.sizes[pointer] - 1


@seeded_bug("A02-no-overlap", "a usable size that is rounded up to a class")
class UsableIsTooLarge(UsablePool):
    """The usable size reaches into the next block."""

    def usable_size(self, pointer: int) -> int:
        return self.room(self.sizes[pointer]) + 1
