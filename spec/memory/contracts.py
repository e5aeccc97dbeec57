"""Contracts, checked one by one: edge cases, adoption, and lifetimes."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model import Input, Mode, caffe
from syncedmem.model.suites import tour

from ..engine.contents import pattern
from ..engine.reproducer import Reproducer
from ..engine.violation import Violation
from .adoptions import (
    ADOPTIONS,
    DEVICE_ADOPTIONS,
    device_shapes,
    host_shapes,
    misplaced_buffers,
    own_buffers,
    unsuitable_device_buffers,
    unsuitable_host_buffers,
)
from .checks import SIZE, Contract, Refusable, everywhere, refused, started
from .claims import requirements_for, speaks_caffe
from .lifetimes import LIFETIMES, after_release, dropped_by_program, released_again
from .suites import SUITES, Case, Fail, Move, run_case

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..engine.subject import Subject
    from ..requirements import Level
    from .driver import MemoryDriver

__all__ = ["contracts_for"]

_READ, _WRITE, _ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(caffe.GPU_DATA), Input(caffe.MUTABLE_GPU_DATA), Input(caffe.SET_GPU_DATA)
_PUSH, _RELEASE = Input(caffe.ASYNC_GPU_PUSH), Input(caffe.RELEASE)

_SHORT = 3
"""Failures are tested after sequences up to this length; these include every allocator call of every kind of call."""


def bad_sizes(subject: Subject) -> Iterator[MemoryDriver]:
    """A memory with an impossible size is refused when it is made (R45)."""
    driver, beyond = started(subject), sys.maxsize + 1
    bad: tuple[object, ...] = (-1, -beyond, -(1 << 70), beyond, 2 * beyond, 1.5, 5.0, "5", b"5", None, True, [5])
    for size in bad:
        refused(driver, Refusable("R45-bad-size-refused", f"subject.make({size!r}, host=host, device=device)"))
    driver.finish()
    yield driver


@everywhere
def bad_streams(driver: MemoryDriver) -> None:
    """A push on an object that is not a stream of the device is refused, wherever a push is legal (R52)."""
    if driver.head != caffe.HEAD_AT_CPU:
        return
    streams = ["None", "0", "'stream'", "object()"]
    if driver.subject.elsewhere is not None:
        streams.append("subject.elsewhere.stream()")
    push = "memory.async_gpu_push(stream=buffer)"
    refused(driver, *(Refusable("R52-bad-stream-refused", push, stream) for stream in streams))


_HEAVY = 64 << 20
"""The bytes of a block, half of which is copied to the other half to keep a stream busy."""
_LOADS = 1, 2, 4, 8, 16
"""How many of these copies are tried, until the stream is still busy after the push; a GPU does one in 20 us."""


def pushed_in_order(subject: Subject) -> Iterator[MemoryDriver]:
    """A push writes only after work of the current stream that reads the old bytes (R57)."""
    for _ in range(6):  # where a scheduler decides, one try in two shows an order that is missing
        driver = started(subject)
        _push_behind(driver, 0)
        yield driver
    for load in _LOADS:
        driver = started(subject)
        busy = _push_behind(driver, load)
        yield driver
        if busy:
            return


def _push_behind(driver: MemoryDriver, load: int) -> bool:
    """Push while work that is queued behind some heavy copies has to read; whether it was still to come afterwards."""
    run = driver.reproducer.run
    run("work, stream = subject.device.current_stream(), subject.device.stream()")
    run(f"memoryview(memory.mutable_cpu_data()).cast('B')[:] = pattern(1, {SIZE})")
    run(f"old, seen = memory.gpu_data(), subject.device.empty({SIZE})")
    if load:
        half = _HEAVY // 2
        run(f"heavy = subject.device.empty({_HEAVY})")
        run(f"for _ in range({load}): subject.device.memcpy(heavy[:{half}], heavy[{half}:], {half}, 3, work)")
    run(f"subject.device.memcpy(old, seen, {SIZE}, 3, work)")
    run("reading = subject.device.record(work)")
    run(f"memoryview(memory.mutable_cpu_data()).cast('B')[:] = pattern(2, {SIZE})")
    run("memory.async_gpu_push(stream=stream)")
    busy = not driver.reproducer.names["reading"].done
    run("subject.device.record(stream).synchronize()")
    run("reading.synchronize()")
    run("shown = bytes(seen.get())")
    in_order = driver.reproducer.names["shown"] == pattern(1, SIZE)
    driver.run.require(in_order, "R57-push-in-order", "the push wrote before work of the current stream had read")
    run("memory.close()")
    return busy


def elsewhere(subject: Subject) -> Iterator[MemoryDriver]:
    """While another device is current, the memory works on its own device, and changes no current device (R50)."""
    if subject.elsewhere is None:
        return
    failing = [case for case in SUITES["failures"](subject) if len(case.moves) <= _SHORT and _plain(case.moves[-1])]
    for case in (*(Case(sequence, SIZE) for sequence in tour(subject.machine)), *failing):
        try:
            with subject.elsewhere.using():
                driver = run_case(subject, case)
        except Violation as found:
            reproducer = ("with subject.elsewhere.using():", *(f"    {line}" for line in found.statements))
            raise Violation(found.requirement, found.message, reproducer) from found
        yield driver


def _plain(move: Move) -> bool:
    """Whether a move is a simple failure of an allocator call."""
    return isinstance(move, Fail) and move == Fail(move.entry, move.k)


def device_check(subject: Subject) -> Iterable[MemoryDriver]:
    """With the check on, every call is refused while another device is current, and works afterwards (R51)."""
    return _checks_device(subject) if subject.check_device and subject.elsewhere is not None else ()


@partial(everywhere, check_device=True)
def _checks_device(driver: MemoryDriver) -> None:
    """Make every call that would be legal in this state, while another device is current."""
    calls = [
        ("cpu_data()", ""),
        ("mutable_cpu_data()", ""),
        ("gpu_data()", ""),
        ("mutable_gpu_data()", ""),
        ("set_cpu_data(buffer)", f"bytearray({SIZE})"),
        ("set_gpu_data(buffer)", f"subject.device.empty({SIZE})"),
        ("close()", ""),
    ]
    if driver.head == caffe.HEAD_AT_CPU:
        calls.append(("async_gpu_push(stream=buffer)", "subject.device.stream()"))
    other = "subject.elsewhere.using()"
    refused(driver, *(Refusable("R51-device-check", f"memory.{call}", buffer, other) for call, buffer in calls))


def several_at_once(subject: Subject) -> Iterable[MemoryDriver]:
    """Calls on one memory do not affect other memories (R53)."""
    sequence = (_WRITE, _GPU_READ, _ADOPT, _GPU_WRITE, _READ) if subject.device is not None else (_WRITE, _ADOPT, _READ)
    reproducer = Reproducer(subject)
    drivers = [started(subject, *sequence[:length], reproducer=reproducer) for length in range(len(sequence))]
    for entry in sequence:
        for driver in drivers:
            driver.perform(entry)
            for other in drivers:
                other.compare_untouched()
    for driver in drivers:
        driver.finish()
        for other in drivers:
            other.compare_untouched()
    return drivers


@contextmanager
def _in_mode(driver: MemoryDriver, mode: Mode) -> Generator[None]:
    before, driver.mode = driver.mode, mode
    yield
    driver.mode = before


def mode_between(subject: Subject) -> Iterator[MemoryDriver]:
    """Memory is freed in the way it was allocated, although the mode has changed since (R25)."""
    for mode in Mode:
        driver = started(subject)
        with _in_mode(driver, mode):
            driver.perform(_WRITE)
        with _in_mode(driver, Mode.CPU if mode is Mode.GPU else Mode.GPU):
            driver.perform(_ADOPT)
        driver.finish()
        yield driver


_CONTRACTS: tuple[Contract, ...] = (
    *ADOPTIONS,
    *LIFETIMES,
    bad_sizes,
    several_at_once,
    mode_between,
)
_DEVICE_CONTRACTS: tuple[Contract, ...] = (
    *DEVICE_ADOPTIONS,
    misplaced_buffers,
    bad_streams,
    pushed_in_order,
    elsewhere,
    device_check,
)
_CAFFE: tuple[Contract, ...] = (host_shapes, device_shapes, several_at_once, mode_between, dropped_by_program)
"""Those that plain Caffe passes."""
_OF_PROGRAMS: tuple[Contract, ...] = (
    *(own_buffers, unsuitable_host_buffers, misplaced_buffers, host_shapes, unsuitable_device_buffers, device_shapes),
    *(several_at_once, mode_between, after_release, released_again, dropped_by_program),
)
"""Those for memories that are not Python objects."""
_ONLY_OF_PROGRAMS: tuple[Contract, ...] = (misplaced_buffers, dropped_by_program)
"""Those of which memories that are Python objects have others."""
_REQUESTS: dict[Contract, str] = {own_buffers: "own_buffer", dropped_by_program: "drop"}
"""The optional requests that a contract makes of a program."""
_LEVELS: dict[Contract, Level] = {
    **dict.fromkeys((several_at_once, after_release, released_again, bad_sizes), "L0"),
    **dict.fromkeys((host_shapes, device_shapes, unsuitable_host_buffers, unsuitable_device_buffers), "L1"),
    misplaced_buffers: "L1",
    **dict.fromkeys((own_buffers, mode_between, dropped_by_program), "L2"),
}
"""The lowest level at which a contract is checked, if it is not L4."""


def contracts_for(subject: Subject) -> tuple[Contract, ...]:
    """The checks for a subject, in their order; they make Caffe's calls."""
    if not speaks_caffe(subject.machine):
        return ()
    found = _CONTRACTS if subject.device is None else _CONTRACTS + _DEVICE_CONTRACTS
    return tuple(
        it
        for it in found
        if (subject.profile == "safe" or it in _CAFFE)
        and (it in _OF_PROGRAMS if subject.program is not None else it not in _ONLY_OF_PROGRAMS)
        and (subject.program is None or _REQUESTS.get(it, "") in {*subject.program.offers, ""})
        and (it is not pushed_in_order or "R57-push-in-order" in requirements_for(subject))
        and (it not in DEVICE_ADOPTIONS or caffe.SET_GPU_DATA.name in subject.machine.calls)
        and _LEVELS.get(it, "L4") <= subject.level
    )
