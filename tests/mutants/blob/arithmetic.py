"""Wrong arithmetic, and wrong copies."""

from __future__ import annotations

from math import isfinite, isnan, prod
from typing import Any

from syncedmem.model import Mode, SyncedHead, current_mode
from syncedmem.spec.blob.elements import decoded, encoded, itemsize, pour, shown

from ..registry import seeded_bug
from .handmade import HandmadeBlob


def as_float(value: float) -> float:
    """The nearest number of 32 bits."""
    found: float = decoded(encoded((value,), "float32"), "float32")[0]
    return found


@seeded_bug("B28-update-numbers", "blob.cpp:174-197: data - diff")
class UpdateAdds(HandmadeBlob):
    """update adds the diff."""

    def stepped(self, value: float, step: float) -> float:
        return value + step


@seeded_bug("B28-update-numbers", "one block of 1000 threads, and no grid")
class UpdatesAThousand(HandmadeBlob):
    """Only the first thousand elements are updated."""

    def differences(self, values: tuple[float, ...], steps: tuple[float, ...]) -> tuple[float, ...]:
        return (*super().differences(values[:1000], steps), *values[1000:])


@seeded_bug("B28-update-numbers", "two at a time, and no loop for the rest")
class UpdatesInPairs(HandmadeBlob):
    """The last of an odd number of elements above a thousand is not updated."""

    def differences(self, values: tuple[float, ...], steps: tuple[float, ...]) -> tuple[float, ...]:
        even = len(values) & ~1 if len(values) > 1000 else len(values)
        return (*super().differences(values[:even], steps), *values[even:])


@seeded_bug("B28-update-numbers", "a grid has at most 65,535 blocks in its second dimension")
class UpdatesIn16Bits(HandmadeBlob):
    """The count of an update has 16 bits."""

    def differences(self, values: tuple[float, ...], steps: tuple[float, ...]) -> tuple[float, ...]:
        count = len(values) & 0xFFFF
        return (*super().differences(values[:count], steps), *values[count:])


@seeded_bug("B28-update-numbers", "one kernel, in float, for all types")
class UpdatesAsFloat(HandmadeBlob):
    """The difference of doubles is rounded to a float."""

    def stepped(self, value: float, step: float) -> float:
        return as_float(super().stepped(value, step))


@seeded_bug("B29-update-side", "H11: by the head, not by the mode")
class UpdateByMode(HandmadeBlob):
    """update works on the side of the mode."""

    def update(self) -> None:
        side = "gpu" if current_mode() is Mode.GPU and self.device is not None else "cpu"
        if not self.unwritten(self.data_memory):
            getattr(self.data_memory, f"mutable_{side}_data")()
        super().update()


@seeded_bug("B29-update-side", "blob.cpp:184: SYNCED is the device")
class SyncedUpdatesOnHost(HandmadeBlob):
    """A blob that is fresh on both sides is updated on the host."""

    def where(self, memory: Any) -> str:
        return "gpu" if memory.head is SyncedHead.HEAD_AT_GPU else "cpu"


@seeded_bug("B30-update-unwritten", "blob.cpp:194")
class UpdatesNothing(HandmadeBlob):
    """update of a blob that was never written subtracts from zero."""

    def check_written(self) -> None:
        pass


@seeded_bug("B31-asum", "blob.cpp:210-267: L1")
class AsumOfSigned(HandmadeBlob):
    """asum does not take the magnitudes."""

    def asum(self, memory: Any) -> float:
        return float(sum(self.values(memory)))


@seeded_bug("B31-asum", "cublasSasum for all types")
class AsumAsFloat(HandmadeBlob):
    """The sum of doubles is rounded to a float."""

    def asum(self, memory: Any) -> float:
        return as_float(super().asum(memory))


@seeded_bug("B31-asum", "numpy.nan_to_num")
class AsumOfTheFinite(HandmadeBlob):
    """A sum that is NaN or infinite is zero."""

    def asum(self, memory: Any) -> float:
        found = super().asum(memory)
        return found if isfinite(found) else 0.0


@seeded_bug("B32-sumsq", "cublasSdot for all types")
class SumsqAsFloat(HandmadeBlob):
    """The sum of the squares of doubles is rounded to a float."""

    def sumsq(self, memory: Any) -> float:
        return as_float(super().sumsq(memory))


@seeded_bug("B32-sumsq", "the type of a field in a message of a protocol")
class SumsqInWords(HandmadeBlob):
    """sumsq is a string."""

    def sumsq(self, memory: Any) -> Any:
        return str(super().sumsq(memory))


@seeded_bug("B32-sumsq", "blob.cpp:280-341 misread: sumsq as the L1 norm")
class SumsqIsL1(HandmadeBlob):
    """sumsq is the sum of the magnitudes."""

    def sumsq(self, memory: Any) -> float:
        return self.asum(memory)


@seeded_bug("B33-norm-unwritten", "blob.cpp:226")
class NormAllocates(HandmadeBlob):
    """The norm of memory that was never written reads zeros."""

    def unwritten(self, memory: Any) -> bool:
        memory.cpu_data()
        return False


@seeded_bug("B34-norm-side", "pycaffe: everything through cpu_data")
class NormOnHost(HandmadeBlob):
    """Norms are taken on the host."""

    def read(self, memory: Any) -> tuple[Any, ...]:
        return decoded(shown(self.raw(memory, "cpu_data")), self.dtype)


@seeded_bug("B35-scale-numbers", "blob.cpp:358: count_")
class ScalesTheFirst(HandmadeBlob):
    """Only the first element is scaled."""

    def scale(self, memory: Any, factor: float) -> None:
        self.check_arithmetic()
        if self.untouched(memory) or not self.elements:
            return
        row = self.raw(memory, f"mutable_{self.where(memory)}_data")
        first, *rest = decoded(shown(row), self.dtype)
        pour(row, encoded((first * factor, *rest), self.dtype))


@seeded_bug("B35-scale-numbers", "a learning rate that is counted in steps")
class FactorInHalves(HandmadeBlob):
    """The factor is rounded to halves, so a rate of 0.1 becomes zero."""

    def scale(self, memory: Any, factor: float) -> None:
        super().scale(memory, factor // 0.5 * 0.5)


@seeded_bug("B35-scale-numbers", "cublasSscal for all types")
class FactorAsFloat(HandmadeBlob):
    """The factor for doubles is rounded to a float."""

    def scale(self, memory: Any, factor: float) -> None:
        super().scale(memory, as_float(factor))


@seeded_bug("B35-scale-numbers", "mixed precision: the factor has the type of the activations")
class FactorAsHalf(HandmadeBlob):
    """The factor is rounded to a half-precision float."""

    def scale(self, memory: Any, factor: float) -> None:
        super().scale(memory, decoded(encoded((factor,), "float16"), "float16")[0])


@seeded_bug("B35-scale-numbers", "a factor that is not given is NaN")
class NanFactorIsZero(HandmadeBlob):
    """A factor that is NaN counts as zero."""

    def scale(self, memory: Any, factor: float) -> None:
        super().scale(memory, 0.0 if isnan(factor) else factor)


@seeded_bug("B36-scale-side", "BLAS: alpha = 1 returns at once")
class ScaleByOneIsNothing(HandmadeBlob):
    """Scaling the diff by one moves no head."""

    def scale_diff(self, factor: float) -> None:
        if factor != 1:
            super().scale_diff(factor)


@seeded_bug("B36-scale-side", "blob.cpp:361: SYNCED is the device")
class ScalesOnHost(HandmadeBlob):
    """A blob that is fresh on both sides is scaled on the host."""

    def side_of_scale(self, memory: Any) -> str:
        return "gpu" if memory.head is SyncedHead.HEAD_AT_GPU else "cpu"


@seeded_bug("B37-scale-unwritten", "blob.cpp:370")
class ScaleAllocates(HandmadeBlob):
    """Scaling memory that was never written allocates zeros."""

    def untouched(self, memory: Any) -> bool:
        return False


@seeded_bug("B38-integers-refused", "blob.cpp:170: NOT_IMPLEMENTED")
class IntegersToo(HandmadeBlob):
    """Integers have arithmetic too."""

    def check_arithmetic(self) -> None:
        pass


@seeded_bug("B39-copy-numbers", "blob.cpp:444: count_, not bytes")
class CopiesAllButTheLast(HandmadeBlob):
    """The last element is not copied."""

    def copy(self, given: Any, taken: Any, side: str) -> None:
        kept = shown(taken)[-itemsize(self.dtype) :]
        super().copy(given, taken, side)
        pour(taken, shown(given)[: -itemsize(self.dtype)] + kept)


@seeded_bug("B40-copy-by-mode", "H11: by the mode, not by the head")
class CopiesByHead(HandmadeBlob):
    """A copy is made on the side of the source."""

    def side_of_copy(self, _mine: Any, theirs: Any) -> str:
        return self.where(theirs)


@seeded_bug("B41-copy-reshape", "blob.cpp:436")
class CopyKeepsShape(HandmadeBlob):
    """A copy keeps its shape if the source fits, and fills the beginning."""

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        before, count = self.axes, self.elements
        super().shape_like_source(source, reshape)
        if prod(source.shape) <= count:
            self.axes, self.elements = before, count


@seeded_bug("B42-copy-shape", "blob.cpp:434: count or shape")
class CopiesByCount(HandmadeBlob):
    """A copy needs only equal counts."""

    def shape_like_source(self, source: Any, reshape: bool) -> None:
        super().shape_like_source(source, reshape or source.count == self.count)


@seeded_bug("B43-copy-self", "math_functions.cpp:89: X != Y")
class SelfCopyIsNothing(HandmadeBlob):
    """A copy from the blob itself does nothing at all."""

    def copy_from(self, source: Any, copy_diff: bool = False, reshape: bool = False) -> None:
        if source is not self:
            super().copy_from(source, copy_diff, reshape)


@seeded_bug("B43-copy-self", "math_functions.cpp:89 left out: memcpy, whatever X and Y are")
class CopiesOntoItself(HandmadeBlob):
    """A copy from the blob itself copies the elements onto themselves on the device."""

    def copy_part(self, source: Any, copy_diff: bool) -> None:
        super().copy_part(source, copy_diff)
        mine, theirs = self.parts(source, copy_diff)
        side = self.side_of_copy(mine, theirs)
        if mine is theirs:
            self.copy_itself(self.raw(mine, f"mutable_{side}_data"), side)

    def copy_itself(self, row: Any, side: str) -> None:
        if side == "gpu":
            self.copy(row, row, side)


@seeded_bug("B43-copy-self", "math_functions.cpp:89 left out: memcpy, whatever X and Y are")
class CopiesOntoItselfOnTheHost(CopiesOntoItself):
    """A copy from the blob itself copies the elements onto themselves on the host."""

    def copy_itself(self, row: Any, side: str) -> None:
        if side == "cpu":
            pointer = self.host.adopt(row, self.bytes())
            self.host.memcpy(pointer, pointer, self.bytes())
