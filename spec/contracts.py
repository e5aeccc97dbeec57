"""What is checked one by one: what holds at the edges, what may be adopted, and how long things live."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import Call, Input, Mode, SyncedHead
from syncedmem.model.suites import tour

from .adoptions import ADOPTIONS, DEVICE_ADOPTIONS
from .checks import SIZE, Refusable, everywhere, refused, started
from .ledger import RecordingAllocator
from .lifetimes import LIFETIMES
from .suites import SUITES, Case, Fail, Move, run_case

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .subject import Bench
    from .trial import Trial

__all__ = ["CONTRACTS", "DEVICE_CONTRACTS"]

_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_PUSH, _RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)

_SHORT = 3
"""Failures are looked at after words up to this length; every allocator call of every kind of call is among them."""


def bad_sizes(bench: Bench) -> Trial:
    """Sizes no memory can have are refused when it is made (R45)."""
    trial = started(bench)
    host = RecordingAllocator(bench.host, trial.ledger, "cpu")
    device = None if bench.device is None else RecordingAllocator(bench.device, trial.ledger, "gpu")
    beyond = sys.maxsize + 1
    bad: tuple[Any, ...] = (-1, -beyond, -(1 << 70), beyond, 2 * beyond, 1.5, 5.0, "5", b"5", None, True, [5])
    make: Any = bench.make
    for size in bad:
        refused(trial, ("R45-bad-size-refused", f"make({size!r})", partial(make, size, host=host, device=device)))
    return trial


@everywhere
def bad_streams(trial: Trial) -> None:
    """What is no stream of the device is not pushed on, wherever a push is legal (R52)."""
    if trial.oracle.head is not SyncedHead.HEAD_AT_CPU:
        return
    streams: list[tuple[str, object]] = [(repr(stream), stream) for stream in (None, 0, "stream")]
    streams.append(("object()", object()))
    if trial.bench.elsewhere is not None:
        streams.append(("other_device.stream()", trial.bench.elsewhere.stream()))
    for text, stream in streams:
        push = partial(trial.subject.async_gpu_push, stream=stream)
        refused(trial, ("R52-bad-stream-refused", f"memory.async_gpu_push(stream={text})", push))


def elsewhere(bench: Bench) -> None:
    """While another device is current the memory works on its own, and leaves that current, failing or not (R50)."""
    if bench.elsewhere is None:
        return
    failing = [case for case in SUITES["failures"](bench) if len(case.moves) <= _SHORT and _plain(case.moves[-1])]
    with bench.elsewhere.using():
        for case in (*(Case(word, SIZE) for word in tour(bench.edition)), *failing):
            run_case(bench, case)


def _plain(move: Move) -> bool:
    """Whether a move is an allocator call that just fails."""
    return isinstance(move, Fail) and move == Fail(move.entry, move.k)


def device_check(bench: Bench) -> None:
    """With the check on, every call is refused while another device is current, and works again after (R51)."""
    if bench.check_device and bench.elsewhere is not None:
        make: Any = bench.make
        _checks_device(replace(bench, make=partial(make, check_device=True)))


@everywhere
def _checks_device(trial: Trial) -> None:
    """Make every call that would be legal here while another device is current."""
    subject, device, other = trial.subject, cast("Any", trial.bench.device), cast("Any", trial.bench.elsewhere)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("cpu_data()", subject.cpu_data),
        ("mutable_cpu_data()", subject.mutable_cpu_data),
        ("gpu_data()", subject.gpu_data),
        ("mutable_gpu_data()", subject.mutable_gpu_data),
        ("set_cpu_data(host_buffer)", partial(subject.set_cpu_data, bytearray(SIZE))),
        ("set_gpu_data(device_buffer)", partial(subject.set_gpu_data, device.empty(SIZE))),
        ("close()", subject.close),
    ]
    if trial.oracle.head is SyncedHead.HEAD_AT_CPU:
        calls.append(("async_gpu_push(stream=stream)", partial(subject.async_gpu_push, stream=device.stream())))
    found: list[Refusable] = [
        ("R51-device-check", f"memory.{text}  # another device is current", call) for text, call in calls
    ]
    with other.using():
        refused(trial, *found)


def several_at_once(bench: Bench) -> None:
    """What is done to one memory leaves its neighbours alone (R53)."""
    word = (_WRITE, _GPU_READ, _ADOPT, _GPU_WRITE, _READ) if bench.device is not None else (_WRITE, _ADOPT, _READ)
    trials = [started(bench, *word[:length]) for length in range(len(word))]
    for entry in word:
        for trial in trials:
            trial.perform(entry)
            for other in trials:
                other.compare_untouched()
    for trial in trials:
        trial.finish()
        for other in trials:
            other.compare_untouched()


@contextmanager
def _in_mode(trial: Trial, mode: Mode) -> Generator[None]:
    before, trial.mode = trial.mode, mode
    yield
    trial.mode = before


def mode_between(bench: Bench) -> Trial:
    """Memory is freed as it was allocated although the mode has changed in between (R25)."""
    trial = started(bench)
    for mode in Mode:
        trial = started(bench)
        with _in_mode(trial, mode):
            trial.perform(_WRITE)
        with _in_mode(trial, Mode.CPU if mode is Mode.GPU else Mode.GPU):
            trial.perform(_ADOPT)
    return trial


CONTRACTS: tuple[Callable[[Bench], Trial | None], ...] = (
    *ADOPTIONS,
    *LIFETIMES,
    bad_sizes,
    several_at_once,
    mode_between,
)
"""The checks that every bench can be put to."""

DEVICE_CONTRACTS: tuple[Callable[[Bench], Trial | None], ...] = (
    *DEVICE_ADOPTIONS,
    bad_streams,
    elsewhere,
    device_check,
)
"""The checks for benches with a device."""
