"""Buffers of the caller, in every state: which must be refused, which must be adopted, and how long they live."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model.suites import access_sequences

from ..engine.contents import fetch, pattern
from ..requirements import REQUIREMENTS
from .checks import SIZE, Refusable, adopting, everywhere, inputs, pushes, refused, started, starts
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model import Input

    from ..engine.subject import Subject
    from .checks import Contract

__all__ = [
    "UNSUITABLE",
    "adopted_buffers_are_dropped",
    "adopted_buffers_live",
    "own_buffers",
    "suitable_buffers",
    "unsuitable_buffers",
]

_AROUND = 16
_CANARY = b"\xee"
_OWN, _SMALL, _FROZEN, _SPREAD, _KIND = (
    "R35-own-buffer-refused",
    "R36-too-small-refused",
    "R37-read-only-refused",
    "R38-not-contiguous-refused",
    "R39-wrong-kind-refused",
)

UNSUITABLE = (_SMALL, _FROZEN, _SPREAD, _KIND)
"""The requirements about buffers that are not adopted."""


# --- refused buffers


@everywhere
def own_buffers(driver: MemoryDriver) -> None:
    """The memory's own buffers are not adopted, fresh or stale, through any kind of object."""
    for side in adopting(driver.subject):
        if driver.oracle.copy(side).owner == "memory":
            refused(driver, *(_adoption(driver, side, _OWN, text) for text in _own(driver, side)))


def _own(driver: MemoryDriver, side: str) -> Iterator[str]:
    """Expressions for the memory's own block on a side, as objects of many kinds."""
    driver.reproducer.run(f"(own,) = log.owned({side!r})")
    yield "own"
    if driver.subject.on_host(side):
        yield from ("memoryview(own)", "memoryview(own).cast('B').cast('d')", "memoryview(own[:])")
        yield f"(c_char * {SIZE}).from_buffer(own)"
    else:
        yield from ("own.view()", f"own[:{SIZE}]")
    here = inputs(driver.subject, side)
    if "read" in here and side in driver.oracle.fresh:
        yield f"{driver.name}.{here['read']}()"
    if "write" in here and driver.oracle.fresh == frozenset((side,)):
        yield f"{driver.name}.{here['write']}()"


_UNSUITABLE_ON_HOST = (
    (_SMALL, f"bytearray({SIZE - 1})"),
    (_SMALL, f"memoryview(bytearray({2 * SIZE}))[:{SIZE - 1}]"),
    (_SMALL, "bytearray()"),
    (_FROZEN, f"bytes({SIZE})"),
    (_FROZEN, f"memoryview(bytearray({SIZE})).toreadonly()"),
    (_SPREAD, f"memoryview(bytearray({2 * SIZE}))[::2]"),
    (_SPREAD, f"memoryview(bytearray({2 * SIZE}))[::-1]"),
    (_KIND, f"'0' * {SIZE}"),
)


def unsuitable_buffers(requirement: str) -> Contract:
    """Buffers that are unsuitable in one way are not adopted."""

    def unsuitable(driver: MemoryDriver) -> None:
        for side in adopting(driver.subject):
            buffers = (it for it in _unsuitable(driver, side) if it[0] == requirement)
            refused(driver, *(_adoption(driver, side, *buffer) for buffer in buffers))

    unsuitable.__doc__ = REQUIREMENTS[requirement].text
    return everywhere(unsuitable)


def _unsuitable(driver: MemoryDriver, side: str) -> Iterator[tuple[str, str]]:
    """Requirements, and expressions for buffers that break them."""
    subject, here = driver.subject, driver.subject.named(side)
    yield from ((_SMALL, f"{here}.empty({size})") for size in (SIZE - 1, 1))
    others = [it for it in subject.sides if subject.is_host(it) != subject.is_host(side)]
    yield from ((_KIND, f"{subject.named(other)}.empty({SIZE})") for other in others)
    yield from ((_KIND, f"log.owned({other!r})[0]") for other in others if driver.log.owned(other))
    yield from ((_KIND, text) for text in ("object()", "12345"))
    if subject.on_host(side):
        yield from _UNSUITABLE_ON_HOST
        if hasattr(subject.place(side).empty(SIZE), "reshape"):  # only NumPy's arrays can be in column order
            yield _SPREAD, f"{here}.empty({SIZE}).reshape(6, -1).T"
        return
    yield from ((_SMALL, f"{here}.empty(0)"), (_KIND, f"bytearray({SIZE})"))
    yield _KIND, f"{here}.pinned_host().empty({SIZE})"
    if subject.elsewhere is not None and subject.place(side) is subject.device:
        yield _KIND, f"subject.elsewhere.empty({SIZE})"


def _adoption(driver: MemoryDriver, side: str, requirement: str, buffer: str) -> Refusable:
    return Refusable(requirement, f"{driver.name}.{inputs(driver.subject, side)['adopt']}(buffer)", buffer)


# --- adopted buffers


class _Shape(NamedTuple):
    """A buffer that must be adopted.

    Attributes
    ----------
    whole : str
        The expression that makes the whole memory that contains the buffer.
    buffer : str
        The expression for the buffer, which may use ``whole``.
    start : int
        Where the memory's bytes begin in the whole.
    """

    whole: str
    buffer: str = "whole"
    start: int = 0


_ON_HOST = (
    _Shape(f"array('d', bytes({SIZE}))"),
    _Shape(f"array('d', bytes({SIZE + _AROUND}))"),
    _Shape(f"bytearray({SIZE})", f"memoryview(whole).cast('B', (6, {SIZE // 6}))"),
    _Shape(f"(c_char * {SIZE})()"),
    _Shape(f"bytearray({SIZE + 2 * _AROUND})", f"memoryview(whole)[{_AROUND}:-{_AROUND}]", _AROUND),
    _Shape(f"bytearray({SIZE + 2 * _AROUND})", f"memoryview(whole)[{_AROUND}:]", _AROUND),
)


def _shapes(subject: Subject, side: str) -> Iterator[_Shape]:
    """The buffers to adopt."""
    if subject.on_host(side):
        yield from _ON_HOST
        return
    here = subject.named(side)
    yield from (_Shape(f"{here}.empty({size})") for size in (SIZE, SIZE + _AROUND))
    yield _Shape(f"{here}.empty({SIZE + 2 * _AROUND})", f"whole[{_AROUND}:{_AROUND + SIZE}]", _AROUND)


class _Lent:
    """A buffer that is adopted again whenever its side adopts.

    Parameters
    ----------
    side : str
    shape : _Shape
    """

    def __init__(self, side: str, shape: _Shape) -> None:
        self._side = side
        self._shape = shape

    def driver(self, subject: Subject) -> MemoryDriver:
        """A driver whose adoptions use this buffer."""
        driver = MemoryDriver(subject, SIZE, buffers=self._fill)
        driver.reproducer.run(f"whole = {self._shape.whole}")
        driver.reproducer.run(f"buffer = {self._shape.buffer}")
        return driver

    def _fill(self, driver: MemoryDriver, side: str, number: int) -> str:
        """Fill the buffer with the pattern, and its surroundings with canaries."""
        if side != self._side:
            return driver.hand_in(side, number)
        before = self._shape.start
        after = len(self._whole(driver)) - before - SIZE
        canaries = [f"{_CANARY!r} * {length}" if length else "" for length in (before, after)]
        content = " + ".join(filter(None, (canaries[0], f"pattern({number}, {SIZE})", canaries[1])))
        here = driver.subject.on_host(side)
        driver.reproducer.run(
            f"memoryview(whole).cast('B')[:] = {content}" if here else f"put(subject, whole, {content}, {side!r})"
        )
        return "buffer"

    def _whole(self, driver: MemoryDriver) -> bytes:
        whole = driver.reproducer.names["whole"]
        here = driver.subject.on_host(self._side)
        return bytes(whole) if here else fetch(driver.subject, whole, whole.size, self._side)

    def compare_canaries(self, driver: MemoryDriver) -> None:
        """Check the bytes around the adopted buffer."""
        whole, start = self._whole(driver), self._shape.start
        around = whole[:start] + whole[start + SIZE :]
        untouched = around == _CANARY * len(around)
        driver.run.require(untouched, "R04-exact-size", "bytes around the adopted buffer were written")


def suitable_buffers(subject: Subject) -> Iterator[MemoryDriver]:
    """Any writable contiguous buffer is adopted, also twice, and no byte around it is touched."""
    for side in adopting(subject):
        for before in starts(subject):
            for shape in _shapes(subject, side):
                lent = _Lent(side, shape)
                driver = lent.driver(subject)
                for entry in (*before, *_uses(subject, side)):
                    driver.perform(entry)
                driver.synchronize()
                lent.compare_canaries(driver)
                driver.finish()
                lent.compare_canaries(driver)
                yield driver


def _uses(subject: Subject, side: str) -> Iterator[Input]:
    """Adoptions on a side between the other calls of this side, and between those of the other sides."""

    def spelled(does: str, there: dict[str, Input]) -> Iterator[Input]:
        return (there[it] for it in does.split() if it in there)

    here = inputs(subject, side)
    yield from spelled("adopt read adopt write adopt", here)
    for other in (it for it in subject.sides if it != side):
        both = {**here, **{f"other-{does}": entry for does, entry in inputs(subject, other).items()}}
        yield from spelled("other-read adopt other-write adopt write other-read other-write read other-write", both)
        yield from pushes(subject)
        yield from spelled("other-read read other-adopt read other-write read write other-read write", both)
        yield from pushes(subject)
        yield from spelled("read", both)


# --- lifetimes


def adopted_buffers_live(subject: Subject) -> Iterator[MemoryDriver]:
    """A buffer that only the memory refers to still has its bytes."""
    lent: list[tuple[MemoryDriver, str, Callable[[], object]]] = []
    for side in adopting(subject):
        here = inputs(subject, side)
        for before in ((), (here["write"],)) if "write" in here else ((),):
            driver = started(subject, *before)
            lent.append((driver, side, _lend(driver, side)))
    gc.collect()
    for driver, side, watch in lent:
        driver.reproducer.note("gc.collect()")
        _fill_what_was_dropped(driver, side)
        _compare_lent(driver, side)
        # A memory may keep a device buffer through an array object of its own.
        kept = not subject.on_host(side) or watch() is not None
        driver.run.require(kept, "R40-kept-alive", "the adopted buffer was dropped")
        driver.end()
        yield driver


def _lend(driver: MemoryDriver, side: str) -> Callable[[], object]:
    """Have the memory adopt a buffer that nobody else keeps; return a weak reference to the buffer."""
    reproducer, here = driver.reproducer, driver.subject.named(side)
    if driver.subject.on_host(side):
        reproducer.run(f"buffer = Watched(pattern(3, {SIZE}))")
    else:
        reproducer.run(f"buffer = {here}.empty({SIZE})")
        reproducer.run(f"put(subject, buffer, pattern(3, {SIZE}), {side!r})")
    adopt = inputs(driver.subject, side)["adopt"]
    raised = reproducer.call(f"{driver.name}.{adopt}(buffer)", driver.mode).raised
    if raised is not None:
        raise driver.run.violation("R40-kept-alive", f"{adopt} raised {raised!r}") from raised
    watch = weakref.ref(reproducer.names["buffer"])
    reproducer.run("del buffer")
    return watch


def _fill_what_was_dropped(driver: MemoryDriver, side: str) -> None:
    """Make new buffers, which are likely to reuse the bytes of dropped ones."""
    for other in (driver.reproducer.fresh("other") for _ in range(3)):
        if driver.subject.on_host(side):
            driver.reproducer.run(f"{other} = bytearray({SIZE})")
        else:
            driver.reproducer.run(f"{other} = {driver.subject.named(side)}.empty({SIZE})")
            driver.reproducer.run(f"put(subject, {other}, bytes({SIZE}), {side!r})")


def _compare_lent(driver: MemoryDriver, side: str) -> None:
    """Read the adopted side, and then the other sides."""
    subject = driver.subject
    for there in sorted(subject.sides, key=lambda it: it != side):
        read = inputs(subject, there).get("read")
        if read is None:
            continue
        show = f"bytes({driver.name}.{read}(){'' if subject.on_host(there) else '.get()'})"
        raised, shown = driver.reproducer.call(show, driver.mode)
        if raised is not None:
            raise driver.run.violation("R40-kept-alive", f"{read} raised {raised!r}") from raised
        same = shown == pattern(3, SIZE)
        driver.run.require(same, "R40-kept-alive", f"{read} no longer shows the adopted bytes")


def adopted_buffers_are_dropped(subject: Subject) -> Iterator[MemoryDriver]:
    """After release the memory keeps no adopted buffer, neither the last one nor earlier ones."""
    drivers = [started(subject, *sequence) for sequence in access_sequences(subject.machine).values()]
    watched = [(driver, _lend_and_release(driver)) for driver in drivers]
    gc.collect()
    for driver, watches in watched:
        driver.reproducer.note("gc.collect()")
        held = sum(watch() is not None for watch in watches)
        driver.run.require(not held, "R56-adopted-let-go", "an adopted buffer is still held after release")
        yield driver


def _lend_and_release(driver: MemoryDriver) -> list[Callable[[], object]]:
    """Lend two buffers on each side, copy into and out of them, and release; return weak references to all of them.

    The memory may keep a device buffer through an array object of its own, so the pointers in the log are watched too.
    """
    subject, run, known = driver.subject, driver.reproducer.run, len(driver.log.adopted)
    watches: list[Callable[[], object]] = []
    for side in adopting(subject):
        here = inputs(subject, side)
        for _ in range(2):
            # Not a buffer of the driver: only the name in the reproducer may refer to this one.
            run(f"buffer = {'Watched' if subject.on_host(side) else f'{subject.named(side)}.empty'}({SIZE})")
            watches.append(weakref.ref(driver.reproducer.names["buffer"]))
            run(f"{driver.name}.{here['adopt']}(buffer)")
            for push in pushes(subject, side):
                run(f"{driver.name}.{push}(stream={subject.named(push.side)}.stream())")
    for side in subject.sides:
        if read := inputs(subject, side).get("read"):
            run(f"{driver.name}.{read}()")
    driver.end()
    run("del buffer")
    driver.log.flying()  # makes the log drop the copies that have happened
    return watches + [it.pointer for it in driver.log.adopted[known:]]
