"""How long things live: adopted buffers, and memories that are released or just dropped."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Call, Input, SyncedHead
from syncedmem.model.suites import access_words

from .checks import SIZE, refused, require, started
from .subject import Violation
from .trial import Trial, pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from .oracle import Side
    from .subject import Bench

__all__ = ["LIFETIMES"]

_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_PUSH, _RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)


# --- adopted buffers


class _Watched(bytearray):
    """A buffer that can be watched."""

    __slots__ = ("__weakref__",)


class _Adopted(NamedTuple):
    """A memory that holds a buffer on a side, and a weak reference to that buffer."""

    side: Side
    trial: Trial
    watch: Callable[[], object]


def adopted_buffers_live(bench: Bench) -> None:
    """A buffer that only the memory knows of still holds its bytes, on both sides (R40)."""
    content = pattern(3, SIZE)
    adopted = [_adopted_and_dropped(started(bench, *word), "cpu", content) for word in ((), (_WRITE,))]
    if bench.device is not None:
        adopted += [_adopted_and_dropped(started(bench, *word), "gpu", content) for word in ((), (_GPU_WRITE,))]
    gc.collect()
    for side, trial, watch in adopted:
        others = [trial.buffer(side, bytes(SIZE)) for _ in range(3)]  # likely to lie where something was let go
        _compare_kept(trial, side, content)
        require(trial, side == "gpu" or watch() is not None, "R40-kept-alive", "the adopted buffer was let go")
        trial.subject.close()
        del others


def _adopted_and_dropped(trial: Trial, side: Side, content: bytes) -> _Adopted:
    """Adopt a buffer that nobody else holds."""
    buffer = _Watched(content) if side == "cpu" else trial.buffer("gpu", content)
    adopt = trial.subject.set_cpu_data if side == "cpu" else trial.subject.set_gpu_data
    trial.script.append(f"memory.set_{side}_data(buffer); del buffer; gc.collect()")
    try:
        adopt(buffer)
    except Exception as error:
        raise Violation("R40-kept-alive", f"set_{side}_data raised {error!r}", tuple(trial.script)) from error
    return _Adopted(side, trial, weakref.ref(buffer))


def _compare_kept(trial: Trial, side: Side, content: bytes) -> None:
    """Read the adopted side, and then the other one."""
    for reading in (side, "gpu" if side == "cpu" else "cpu"):
        if reading == "gpu" and trial.bench.device is None:
            continue
        try:
            view: Any = trial.subject.cpu_data() if reading == "cpu" else trial.subject.gpu_data().get()
            shown = bytes(memoryview(view))
        except Exception as error:
            raise Violation("R40-kept-alive", f"{reading}_data raised {error!r}", tuple(trial.script)) from error
        require(trial, shown == content, "R40-kept-alive", f"{reading}_data no longer shows the adopted bytes")


def adopted_buffers_are_let_go(bench: Bench) -> None:
    """After release the memory holds nothing that was adopted, the last or any before it (R56)."""
    trials = [started(bench, *word) for word in access_words(bench.edition).values()]
    watched = [(trial, _adopted_and_released(trial)) for trial in trials]
    gc.collect()
    for trial, watches in watched:
        held = sum(watch() is not None for watch in watches)
        require(trial, not held, "R56-adopted-let-go", "an adopted buffer is still held after release")


def _adopted_and_released(trial: Trial) -> list[Callable[[], object]]:
    """Adopt two buffers on each side, copy into and out of them, and release; weak references to all of them.

    The memory may hold a device buffer by an array object of its own, so the pointers in the ledger are watched too.
    """
    known, subject = len(trial.ledger.adopted), trial.subject
    hosts = [_Watched(SIZE), _Watched(SIZE)]
    push = "" if trial.bench.device is None else "; memory.async_gpu_push(stream=memory.device.stream())"
    trial.script.append(f"memory.set_cpu_data(host_buffer){push}")
    for buffer in hosts:
        subject.set_cpu_data(buffer)
        if trial.bench.device is not None:
            subject.async_gpu_push(stream=trial.bench.device.stream())
    watches: list[Callable[[], object]] = [weakref.ref(buffer) for buffer in hosts]
    if trial.bench.device is not None:
        devices = [trial.buffer("gpu", bytes(SIZE)) for _ in range(2)]
        trial.script.append("memory.set_gpu_data(device_buffer); memory.cpu_data()")
        for buffer in devices:
            subject.set_gpu_data(buffer)
        watches += [weakref.ref(buffer) for buffer in devices]
        subject.cpu_data()
    subject.close()
    trial.ledger.flying()  # so that the ledger forgets those that have landed
    trial.script.append("memory.close(); del host_buffer, device_buffer; gc.collect()")
    return watches + trial.ledger.adopted[known:]


# --- memories


def after_release(bench: Bench) -> None:
    """After release every call is refused, with NULL and in every state it was released in (R48)."""
    sides = (_READ, _WRITE, _ADOPT, _GPU_READ, _GPU_WRITE, _GPU_ADOPT, _PUSH)
    nulls = (Input(Call.SET_CPU_DATA, data=False), Input(Call.SET_GPU_DATA, data=False))
    for word in access_words(bench.edition).values():
        trial = started(bench, *word, _RELEASE)
        for entry in (*sides, *nulls):
            trial.perform(entry)
        no_stream = partial(trial.subject.async_gpu_push, stream=None)
        refused(trial, ("R48-released-refuses", "memory.async_gpu_push(stream=None)", no_stream))


def released_again(bench: Bench) -> None:
    """A second release does nothing, and neither does a third, in every state and of zero bytes (R49)."""
    for word in access_words(bench.edition).values():
        for size in (SIZE, 0):
            trial = started(bench, *word, _RELEASE, size=size)
            for _ in range(2):
                try:
                    trial.perform(_RELEASE)
                except Violation as violation:
                    raise Violation("R49-release-twice", violation.message, violation.script) from violation


def dropped(bench: Bench) -> None:
    """A memory that nobody holds any more frees what is ours, in every state and with a push in flight (R55)."""
    trials = [started(bench, *word) for word in access_words(bench.edition).values()]
    pushed = [started(bench, *trial_word, _PUSH) for trial_word in _pushable(bench)]
    released = [started(bench, _WRITE, _RELEASE)]
    for trial in (*trials, *pushed, *released):
        trial.script.append("del memory; gc.collect()")
        del trial.subject
    gc.collect()
    for trial in (*trials, *pushed, *released):
        stray = [sentence for _, sentence in trial.ledger.stray]
        require(trial, not stray, "R28-freed-once", "; ".join(stray))
        early = trial.ledger.freed_in_flight
        require(trial, not early, "R42-in-flight-not-freed", "; ".join(early))
        left = len(trial.ledger.live)
        require(trial, not left, "R55-dropped-freed", f"{left} blocks are allocated and nobody can free them")


def _pushable(bench: Bench) -> list[tuple[Input, ...]]:
    """The words to the states in which a push is legal."""
    if bench.device is None:
        return []
    return [word for state, word in access_words(bench.edition).items() if state.head is SyncedHead.HEAD_AT_CPU]


LIFETIMES: tuple[Callable[[Bench], None], ...] = (
    adopted_buffers_live,
    adopted_buffers_are_let_go,
    after_release,
    released_again,
    dropped,
)
"""The contracts of lifetimes; every bench can be put to them."""
