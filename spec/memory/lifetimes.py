"""Lifetimes of adopted buffers, and of memories that are released or dropped."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input, caffe
from syncedmem.model.suites import access_sequences

from ..engine.contents import pattern
from ..engine.violation import Violation
from .checks import SIZE, Contract, Refusable, adopting, refused, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.subject import Subject
    from .driver import MemoryDriver

__all__ = ["LIFETIMES", "after_release", "released_again"]

_READ, _WRITE, _ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(caffe.GPU_DATA), Input(caffe.MUTABLE_GPU_DATA), Input(caffe.SET_GPU_DATA)
_PUSH, _RELEASE = Input(caffe.ASYNC_GPU_PUSH), Input(caffe.RELEASE)
_NAMES: dict[str, str] = {"cpu": "host", "gpu": "device"}


# --- adopted buffers


class _Adopted(NamedTuple):
    """A memory that has adopted a buffer on a side, and a weak reference to that buffer."""

    side: str
    driver: MemoryDriver
    watch: Callable[[], object]


def adopted_buffers_live(subject: Subject) -> Iterator[MemoryDriver]:
    """A buffer that only the memory refers to still has its bytes, on both sides (R40)."""
    content = pattern(3, SIZE)
    adopted = [_adopted_and_dropped(started(subject, *sequence), "cpu") for sequence in ((), (_WRITE,))]
    if "gpu" in adopting(subject):
        adopted += [_adopted_and_dropped(started(subject, *sequence), "gpu") for sequence in ((), (_GPU_WRITE,))]
    gc.collect()
    for side, driver, watch in adopted:
        driver.reproducer.note("gc.collect()")
        _fill_what_was_let_go(driver, side)
        _compare_kept(driver, side, content)
        driver.run.require(side == "gpu" or watch() is not None, "R40-kept-alive", "the adopted buffer was dropped")
        driver.reproducer.run("memory.close()")
        yield driver


def _fill_what_was_let_go(driver: MemoryDriver, side: str) -> None:
    """Make new buffers, which are likely to reuse the bytes of dropped ones."""
    for other in (driver.reproducer.fresh("other") for _ in range(3)):
        if side == "cpu":
            driver.reproducer.run(f"{other} = bytearray({SIZE})")
        else:
            driver.reproducer.run(f"{other} = subject.device.empty({SIZE})")
            driver.reproducer.run(f"put(subject, {other}, bytes({SIZE}))")


def _adopted_and_dropped(driver: MemoryDriver, side: str) -> _Adopted:
    """Adopt a buffer that only the memory keeps."""
    buffer, reproducer = f"{_NAMES[side]}_buffer", driver.reproducer
    if side == "cpu":
        reproducer.run(f"{buffer} = Watched(pattern(3, {SIZE}))")
    else:
        driver.hand_in("gpu", 3)
    raised = reproducer.call(f"memory.set_{side}_data({buffer})", driver.mode).raised
    if raised is not None:
        raise driver.run.violation("R40-kept-alive", f"set_{side}_data raised {raised!r}") from raised
    watch = weakref.ref(reproducer.names[buffer])
    reproducer.run(f"del {buffer}")
    return _Adopted(side, driver, watch)


def _compare_kept(driver: MemoryDriver, side: str, content: bytes) -> None:
    """Read the adopted side, and then the other side."""
    for reading in (side, "gpu" if side == "cpu" else "cpu"):
        if reading == "gpu" and driver.subject.device is None:
            continue
        show = f"bytes(memory.{reading}_data(){'' if reading == 'cpu' else '.get()'})"
        raised, shown = driver.reproducer.call(show, driver.mode)
        if raised is not None:
            raise driver.run.violation("R40-kept-alive", f"{reading}_data raised {raised!r}") from raised
        driver.run.require(shown == content, "R40-kept-alive", f"{reading}_data no longer shows the adopted bytes")


def adopted_buffers_are_let_go(subject: Subject) -> Iterator[MemoryDriver]:
    """After release the memory keeps no adopted buffer, neither the last one nor earlier ones (R56)."""
    drivers = [started(subject, *sequence) for sequence in access_sequences(subject.machine).values()]
    watched = [(driver, _adopted_and_released(driver)) for driver in drivers]
    gc.collect()
    for driver, watches in watched:
        driver.reproducer.note("gc.collect()")
        held = sum(watch() is not None for watch in watches)
        driver.run.require(not held, "R56-adopted-let-go", "an adopted buffer is still held after release")
        yield driver


def _adopted_and_released(driver: MemoryDriver) -> list[Callable[[], object]]:
    """Adopt two buffers on each side, copy into and out of them, and release; return weak references to all of them.

    The memory may keep a device buffer through an array object of its own, so the pointers in the log are watched too.
    """
    known, reproducer = len(driver.log.adopted), driver.reproducer
    sides = adopting(driver.subject)
    watches: list[Callable[[], object]] = []
    for side in sides:
        for _ in range(2):
            # Not a buffer of the driver: only the name in the reproducer may refer to this one.
            reproducer.run(f"buffer = {'Watched' if side == 'cpu' else 'subject.device.empty'}({SIZE})")
            watches.append(weakref.ref(reproducer.names["buffer"]))
            reproducer.run(f"memory.set_{side}_data(buffer)")
            if side == "cpu" and len(sides) > 1:
                reproducer.run("memory.async_gpu_push(stream=subject.device.stream())")
    if len(sides) > 1:
        reproducer.run("memory.cpu_data()")
    reproducer.run("memory.close()")
    reproducer.run("del buffer")
    driver.log.flying()  # makes the log drop the copies that have happened
    return watches + [it.pointer for it in driver.log.adopted[known:]]


# --- memories


def after_release(subject: Subject) -> Iterator[MemoryDriver]:
    """After release in any state every call is refused, also with NULL (R48)."""
    sides = (_READ, _WRITE, _ADOPT, _GPU_READ, _GPU_WRITE, _GPU_ADOPT, _PUSH)
    nulls = (Input(caffe.SET_CPU_DATA, data=False), Input(caffe.SET_GPU_DATA, data=False))
    for sequence in access_sequences(subject.machine).values():
        driver = started(subject, *sequence, _RELEASE)
        for entry in (*sides, *nulls):
            driver.perform(entry)
        refused(driver, Refusable("R48-released-refuses", "memory.async_gpu_push(stream=None)"))
        yield driver


def released_again(subject: Subject) -> Iterator[MemoryDriver]:
    """A second and a third release do nothing, in every state and for zero bytes (R49)."""
    for sequence in access_sequences(subject.machine).values():
        for size in (SIZE, 0):
            driver = started(subject, *sequence, _RELEASE, size=size)
            for _ in range(2):
                try:
                    driver.perform(_RELEASE)
                except Violation as violation:
                    raise Violation("R49-release-twice", violation.message, violation.statements) from violation
            yield driver


def dropped(subject: Subject) -> Iterator[MemoryDriver]:
    """A dropped memory frees what it owns, in every state and with a push in flight (R55)."""
    drivers = [started(subject, *sequence) for sequence in access_sequences(subject.machine).values()]
    pushed = [started(subject, *before, _PUSH) for before in _pushable(subject)]
    released = [started(subject, _WRITE, _RELEASE)]
    for driver in (*drivers, *pushed, *released):
        driver.reproducer.run(f"del {driver.name}")
        driver.reproducer.note("gc.collect()")
    gc.collect()
    for driver in (*drivers, *pushed, *released):
        _compare_dropped(driver, "R55-dropped-freed")
        yield driver


def dropped_by_program(subject: Subject) -> Iterator[MemoryDriver]:
    """A program frees what a dropped memory owns, in every state and with a push in flight (P04)."""
    sequences = [*access_sequences(subject.machine).values(), (_WRITE, _RELEASE)]
    pushed = [(*before, _PUSH) for before in _pushable(subject)] if subject.edition != "early" else []
    for sequence in (*sequences, *pushed):
        driver = started(subject, *sequence)
        if not driver.run.safe:
            driver.synchronize()  # in Caffe the caller must wait
        driver.reproducer.run(f"{driver.name}.drop()")
        _compare_dropped(driver, "P04-dropped-freed")
        yield driver


def _compare_dropped(driver: MemoryDriver, requirement: str) -> None:
    """Check that a dropped memory has freed what it owned, once, and nothing that a push still used."""
    stray = [sentence for _, sentence in driver.log.stray]
    driver.run.require(not stray, "R28-freed-once", "; ".join(stray))
    early = driver.log.freed_in_flight
    driver.run.require(not early, "R42-in-flight-not-freed", "; ".join(early))
    left = ", ".join(f"{entry.byte_size} bytes on {entry.side}" for _, entry in driver.log.live.values())
    driver.run.require(not left, requirement, f"still allocated after the memory was dropped: {left}")


def _pushable(subject: Subject) -> list[tuple[Input, ...]]:
    """The sequences to the states in which a push is legal."""
    if subject.device is None:
        return []
    return [
        sequence
        for state, sequence in access_sequences(subject.machine).items()
        if state.head == caffe.HEAD_AT_CPU.name
    ]


LIFETIMES: tuple[Contract, ...] = (
    adopted_buffers_live,
    adopted_buffers_are_let_go,
    after_release,
    released_again,
    dropped,
    dropped_by_program,
)
"""The contracts of lifetimes, for every subject."""
