"""What is checked one by one: what holds at the edges, what may be adopted, and how long things live."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model import Call, Input, Mode, SyncedHead
from syncedmem.model.suites import tour

from ..engine.finding import Violation
from ..engine.reproducer import Script
from .adoptions import ADOPTIONS, DEVICE_ADOPTIONS
from .checks import SIZE, Contract, Refusable, everywhere, refused, started
from .lifetimes import LIFETIMES
from .suites import SUITES, Case, Fail, Move, run_case

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..engine.subject import Bench
    from .driver import Trial

__all__ = ["CONTRACTS", "DEVICE_CONTRACTS"]

_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_PUSH, _RELEASE = Input(Call.ASYNC_GPU_PUSH), Input(Call.RELEASE)

_SHORT = 3
"""Failures are looked at after words up to this length; every allocator call of every kind of call is among them."""


def bad_sizes(bench: Bench) -> Iterator[Trial]:
    """Sizes no memory can have are refused when it is made (R45)."""
    trial, beyond = started(bench), sys.maxsize + 1
    bad: tuple[object, ...] = (-1, -beyond, -(1 << 70), beyond, 2 * beyond, 1.5, 5.0, "5", b"5", None, True, [5])
    for size in bad:
        refused(trial, Refusable("R45-bad-size-refused", f"bench.make({size!r}, host=host, device=device)"))
    trial.finish()
    yield trial


@everywhere
def bad_streams(trial: Trial) -> None:
    """What is no stream of the device is not pushed on, wherever a push is legal (R52)."""
    if trial.oracle.head is not SyncedHead.HEAD_AT_CPU:
        return
    streams = ["None", "0", "'stream'", "object()"]
    if trial.bench.elsewhere is not None:
        streams.append("bench.elsewhere.stream()")
    push = "memory.async_gpu_push(stream=buffer)"
    refused(trial, *(Refusable("R52-bad-stream-refused", push, stream) for stream in streams))


def elsewhere(bench: Bench) -> Iterator[Trial]:
    """While another device is current the memory works on its own, and leaves that current, failing or not (R50)."""
    if bench.elsewhere is None:
        return
    failing = [case for case in SUITES["failures"](bench) if len(case.moves) <= _SHORT and _plain(case.moves[-1])]
    for case in (*(Case(word, SIZE) for word in tour(bench.edition)), *failing):
        try:
            with bench.elsewhere.using():
                trial = run_case(bench, case)
        except Violation as found:
            script = ("with bench.elsewhere.using():", *(f"    {line}" for line in found.script))
            raise Violation(found.requirement, found.message, script) from found
        yield trial


def _plain(move: Move) -> bool:
    """Whether a move is an allocator call that just fails."""
    return isinstance(move, Fail) and move == Fail(move.entry, move.k)


def device_check(bench: Bench) -> Iterable[Trial]:
    """With the check on, every call is refused while another device is current, and works again after (R51)."""
    return _checks_device(bench) if bench.check_device and bench.elsewhere is not None else ()


@partial(everywhere, check_device=True)
def _checks_device(trial: Trial) -> None:
    """Make every call that would be legal here while another device is current."""
    calls = [
        ("cpu_data()", ""),
        ("mutable_cpu_data()", ""),
        ("gpu_data()", ""),
        ("mutable_gpu_data()", ""),
        ("set_cpu_data(buffer)", f"bytearray({SIZE})"),
        ("set_gpu_data(buffer)", f"bench.device.empty({SIZE})"),
        ("close()", ""),
    ]
    if trial.oracle.head is SyncedHead.HEAD_AT_CPU:
        calls.append(("async_gpu_push(stream=buffer)", "bench.device.stream()"))
    other = "bench.elsewhere.using()"
    refused(trial, *(Refusable("R51-device-check", f"memory.{call}", buffer, other) for call, buffer in calls))


def several_at_once(bench: Bench) -> Iterable[Trial]:
    """What is done to one memory leaves its neighbours alone (R53)."""
    word = (_WRITE, _GPU_READ, _ADOPT, _GPU_WRITE, _READ) if bench.device is not None else (_WRITE, _ADOPT, _READ)
    script = Script(bench)
    trials = [started(bench, *word[:length], script=script) for length in range(len(word))]
    for entry in word:
        for trial in trials:
            trial.perform(entry)
            for other in trials:
                other.compare_untouched()
    for trial in trials:
        trial.finish()
        for other in trials:
            other.compare_untouched()
    return trials


@contextmanager
def _in_mode(trial: Trial, mode: Mode) -> Generator[None]:
    before, trial.mode = trial.mode, mode
    yield
    trial.mode = before


def mode_between(bench: Bench) -> Iterator[Trial]:
    """Memory is freed as it was allocated although the mode has changed in between (R25)."""
    for mode in Mode:
        trial = started(bench)
        with _in_mode(trial, mode):
            trial.perform(_WRITE)
        with _in_mode(trial, Mode.CPU if mode is Mode.GPU else Mode.GPU):
            trial.perform(_ADOPT)
        trial.finish()
        yield trial


CONTRACTS: tuple[Contract, ...] = (
    *ADOPTIONS,
    *LIFETIMES,
    bad_sizes,
    several_at_once,
    mode_between,
)
"""The checks that every bench can be put to."""

DEVICE_CONTRACTS: tuple[Contract, ...] = (
    *DEVICE_ADOPTIONS,
    bad_streams,
    elsewhere,
    device_check,
)
"""The checks for benches with a device."""
