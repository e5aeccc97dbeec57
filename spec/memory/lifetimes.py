"""How long things live: adopted buffers, and memories that are released or just dropped."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Call, Input, SyncedHead
from syncedmem.model.suites import access_words

from ..engine.contents import pattern
from ..engine.finding import Violation
from .checks import SIZE, Contract, Refusable, refused, require, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.calls import Side
    from ..engine.subject import Bench
    from .driver import Trial

__all__ = ["LIFETIMES"]

_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_PUSH, _RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)
_WORDS: dict[Side, str] = {"cpu": "host", "gpu": "device"}


# --- adopted buffers


class _Adopted(NamedTuple):
    """A memory that holds a buffer on a side, and a weak reference to that buffer."""

    side: Side
    trial: Trial
    watch: Callable[[], object]


def adopted_buffers_live(bench: Bench) -> Iterator[Trial]:
    """A buffer that only the memory knows of still holds its bytes, on both sides (R40)."""
    content = pattern(3, SIZE)
    adopted = [_adopted_and_dropped(started(bench, *word), "cpu") for word in ((), (_WRITE,))]
    if bench.device is not None:
        adopted += [_adopted_and_dropped(started(bench, *word), "gpu") for word in ((), (_GPU_WRITE,))]
    gc.collect()
    for side, trial, watch in adopted:
        trial.script.note("gc.collect()")
        _fill_what_was_let_go(trial, side)
        _compare_kept(trial, side, content)
        require(trial, side == "gpu" or watch() is not None, "R40-kept-alive", "the adopted buffer was let go")
        trial.script.run("memory.close()")
        yield trial


def _fill_what_was_let_go(trial: Trial, side: Side) -> None:
    """New buffers are likely to lie where others were let go."""
    for other in (trial.script.fresh("other") for _ in range(3)):
        if side == "cpu":
            trial.script.run(f"{other} = bytearray({SIZE})")
        else:
            trial.script.run(f"{other} = bench.device.empty({SIZE})")
            trial.script.run(f"put(bench, {other}, bytes({SIZE}))")


def _adopted_and_dropped(trial: Trial, side: Side) -> _Adopted:
    """Adopt a buffer that nobody else holds."""
    buffer, script = f"{_WORDS[side]}_buffer", trial.script
    if side == "cpu":
        script.run(f"{buffer} = Watched(pattern(3, {SIZE}))")
    else:
        trial.hand_in("gpu", 3)
    raised = script.call(f"memory.set_{side}_data({buffer})", trial.mode).raised
    if raised is not None:
        raise trial.violation("R40-kept-alive", f"set_{side}_data raised {raised!r}") from raised
    watch = weakref.ref(script.names[buffer])
    script.run(f"del {buffer}")
    return _Adopted(side, trial, watch)


def _compare_kept(trial: Trial, side: Side, content: bytes) -> None:
    """Read the adopted side, and then the other one."""
    for reading in (side, "gpu" if side == "cpu" else "cpu"):
        if reading == "gpu" and trial.bench.device is None:
            continue
        show = f"bytes(memory.{reading}_data(){'' if reading == 'cpu' else '.get()'})"
        raised, shown = trial.script.call(show, trial.mode)
        if raised is not None:
            raise trial.violation("R40-kept-alive", f"{reading}_data raised {raised!r}") from raised
        require(trial, shown == content, "R40-kept-alive", f"{reading}_data no longer shows the adopted bytes")


def adopted_buffers_are_let_go(bench: Bench) -> Iterator[Trial]:
    """After release the memory holds nothing that was adopted, the last or any before it (R56)."""
    trials = [started(bench, *word) for word in access_words(bench.edition).values()]
    watched = [(trial, _adopted_and_released(trial)) for trial in trials]
    gc.collect()
    for trial, watches in watched:
        trial.script.note("gc.collect()")
        held = sum(watch() is not None for watch in watches)
        require(trial, not held, "R56-adopted-let-go", "an adopted buffer is still held after release")
        yield trial


def _adopted_and_released(trial: Trial) -> list[Callable[[], object]]:
    """Adopt two buffers on each side, copy into and out of them, and release; weak references to all of them.

    The memory may hold a device buffer by an array object of its own, so the pointers in the ledger are watched too.
    """
    known, script = len(trial.ledger.adopted), trial.script
    sides: tuple[Side, ...] = ("cpu",) if trial.bench.device is None else ("cpu", "gpu")
    watches: list[Callable[[], object]] = []
    for side in sides:
        for _ in range(2):
            # Never the one of the trial: the script's own name is all that holds it.
            script.run(f"buffer = {'Watched' if side == 'cpu' else 'bench.device.empty'}({SIZE})")
            watches.append(weakref.ref(script.names["buffer"]))
            script.run(f"memory.set_{side}_data(buffer)")
            if side == "cpu" and len(sides) > 1:
                script.run("memory.async_gpu_push(stream=bench.device.stream())")
    if len(sides) > 1:
        script.run("memory.cpu_data()")
    script.run("memory.close()")
    script.run("del buffer")
    trial.ledger.flying()  # so that the ledger forgets those that have landed
    return watches + trial.ledger.adopted[known:]


# --- memories


def after_release(bench: Bench) -> Iterator[Trial]:
    """After release every call is refused, with NULL and in every state it was released in (R48)."""
    sides = (_READ, _WRITE, _ADOPT, _GPU_READ, _GPU_WRITE, _GPU_ADOPT, _PUSH)
    nulls = (Input(Call.SET_CPU_DATA, data=False), Input(Call.SET_GPU_DATA, data=False))
    for word in access_words(bench.edition).values():
        trial = started(bench, *word, _RELEASE)
        for entry in (*sides, *nulls):
            trial.perform(entry)
        refused(trial, Refusable("R48-released-refuses", "memory.async_gpu_push(stream=None)"))
        yield trial


def released_again(bench: Bench) -> Iterator[Trial]:
    """A second release does nothing, and neither does a third, in every state and of zero bytes (R49)."""
    for word in access_words(bench.edition).values():
        for size in (SIZE, 0):
            trial = started(bench, *word, _RELEASE, size=size)
            for _ in range(2):
                try:
                    trial.perform(_RELEASE)
                except Violation as violation:
                    raise Violation("R49-release-twice", violation.message, violation.script) from violation
            yield trial


def dropped(bench: Bench) -> Iterator[Trial]:
    """A memory that nobody holds any more frees what is ours, in every state and with a push in flight (R55)."""
    trials = [started(bench, *word) for word in access_words(bench.edition).values()]
    pushed = [started(bench, *trial_word, _PUSH) for trial_word in _pushable(bench)]
    released = [started(bench, _WRITE, _RELEASE)]
    for trial in (*trials, *pushed, *released):
        trial.script.run(f"del {trial.name}")
        trial.script.note("gc.collect()")
    gc.collect()
    for trial in (*trials, *pushed, *released):
        stray = [sentence for _, sentence in trial.ledger.stray]
        require(trial, not stray, "R28-freed-once", "; ".join(stray))
        early = trial.ledger.freed_in_flight
        require(trial, not early, "R42-in-flight-not-freed", "; ".join(early))
        left = len(trial.ledger.live)
        require(trial, not left, "R55-dropped-freed", f"{left} blocks are allocated and nobody can free them")
        yield trial


def _pushable(bench: Bench) -> list[tuple[Input, ...]]:
    """The words to the states in which a push is legal."""
    if bench.device is None:
        return []
    return [word for state, word in access_words(bench.edition).items() if state.head is SyncedHead.HEAD_AT_CPU]


LIFETIMES: tuple[Contract, ...] = (
    adopted_buffers_live,
    adopted_buffers_are_let_go,
    after_release,
    released_again,
    dropped,
)
"""The contracts of lifetimes; every bench can be put to them."""
