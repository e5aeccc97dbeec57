"""The contracts of a memory, checked one by one: bad arguments, order, devices, several memories, and lifetimes.

Those of buffers of the caller are in `buffers`.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import TYPE_CHECKING

from syncedmem.model import Call, Input, space
from syncedmem.model.suites import access_sequences, tour

from ..engine.contents import pattern
from ..engine.reproducer import Reproducer
from ..engine.violation import Violation
from . import buffers
from .checks import SIZE, Contract, Refusable, everywhere, inputs, pushes, refused, started
from .claims import requirements_for
from .suites import SUITES, Fail, Move, SuiteCase, endings, legal_pushes, run_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..engine.subject import Subject
    from .driver import MemoryDriver

__all__ = ["contracts_for", "dropped"]

_SHORT = 3
"""Failures are tested after sequences up to this length; these include every allocator call of every kind of call."""


# --- bad arguments, and order


def bad_sizes(subject: Subject) -> Iterator[MemoryDriver]:
    """A memory with an impossible size is refused when it is made."""
    driver, beyond = started(subject), sys.maxsize + 1
    bad: tuple[object, ...] = (-1, -beyond, -(1 << 70), beyond, 2 * beyond, 1.5, 5.0, "5", b"5", None, True, [5])
    for size in bad:
        refused(driver, Refusable("R45-bad-size-refused", f"subject.make({size!r}{driver.run.arguments})"))
    driver.finish()
    yield driver


@everywhere
def bad_streams(driver: MemoryDriver) -> None:
    """A push on an object that is not a stream of the device is refused, wherever a push is legal."""
    streams = ["None", "0", "'stream'", "object()"]
    if driver.subject.elsewhere is not None:
        streams.append("subject.elsewhere.stream()")
    for push in pushes(driver.subject):
        if not driver.predict(push).refused:
            call = f"{driver.name}.{push}(stream=buffer)"
            refused(driver, *(Refusable("R52-bad-stream-refused", call, stream) for stream in streams))


_HEAVY = 64 << 20
"""The bytes of a block, half of which is copied to the other half to keep a stream busy."""
_LOADS = 1, 2, 4, 8, 16
"""How many of these copies are tried, until the stream is still busy after the push; a GPU does one in 20 us."""


def pushed_in_order(subject: Subject) -> Iterator[MemoryDriver]:
    """A push writes only after work of the current stream that reads the old bytes."""
    for push in map(_call, pushes(subject)):
        if subject.place(push.side) is not subject.device or not _can_show_order(subject, push):
            continue
        for _ in range(6):  # where a scheduler decides, one try in two shows an order that is missing
            driver = started(subject)
            _push_behind(driver, push, 0)
            yield driver
        for load in _LOADS:
            driver = started(subject)
            busy = _push_behind(driver, push, load)
            yield driver
            if busy:
                break


def _call(entry: Input) -> Call:
    assert entry.call is not None  # noqa: S101 -- for the type checkers
    return entry.call


def _can_show_order(subject: Subject, push: Call) -> bool:
    """Whether the host side that is pushed can be written, and the device side read."""
    return (
        subject.on_host(push.source)
        and "write" in inputs(subject, push.source)
        and "read" in inputs(subject, push.side)
    )


def _push_behind(driver: MemoryDriver, push: Call, load: int) -> bool:
    """Push while work that is queued behind some heavy copies has to read; whether it was still to come afterwards."""
    run, name = driver.reproducer.run, driver.name
    read, write = inputs(driver.subject, push.side)["read"], inputs(driver.subject, push.source)["write"]
    run("work, stream = subject.device.current_stream(), subject.device.stream()")
    run(f"memoryview({name}.{write}()).cast('B')[:] = pattern(1, {SIZE})")
    run(f"old, seen = {name}.{read}(), subject.device.empty({SIZE})")
    if load:
        half = _HEAVY // 2
        run(f"heavy = subject.device.empty({_HEAVY})")
        run(f"for _ in range({load}): subject.device.memcpy(heavy[:{half}], heavy[{half}:], {half}, 3, work)")
    run(f"subject.device.memcpy(old, seen, {SIZE}, 3, work)")
    run("reading = subject.device.record(work)")
    run(f"memoryview({name}.{write}()).cast('B')[:] = pattern(2, {SIZE})")
    run(f"{name}.{push}(stream=stream)")
    busy = not driver.reproducer.names["reading"].done
    run("subject.device.record(stream).synchronize()")
    run("reading.synchronize()")
    run("shown = bytes(seen.get())")
    in_order = driver.reproducer.names["shown"] == pattern(1, SIZE)
    driver.run.require(in_order, "R57-push-in-order", "the push wrote before work of the current stream had read")
    driver.end()
    return busy


# --- another device


def elsewhere(subject: Subject) -> Iterator[MemoryDriver]:
    """While another device is current, the memory works on its own device, and changes no current device."""
    if subject.elsewhere is None:
        return
    failing = [case for case in SUITES["failures"](subject) if len(case.moves) <= _SHORT and _plain(case.moves[-1])]
    for case in (*(SuiteCase(sequence, SIZE) for sequence in tour(subject.machine)), *failing):
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


@partial(everywhere, check_device=True)
def device_check(driver: MemoryDriver) -> None:
    """With the check on, every call that is legal here is refused while another device is current."""
    subject = driver.subject
    calls = [(f"{driver.ending}()", "")] if driver.ending else []
    for side in subject.sides:
        for does, entry in inputs(subject, side).items():
            place = subject.named(side)
            adopted = f"bytearray({SIZE})" if subject.on_host(side) else f"{place}.empty({SIZE})"
            if does == "adopt":
                calls.append((f"{entry}(buffer)", adopted))
            elif entry in pushes(subject):
                if not driver.predict(entry).refused:
                    calls.append((f"{entry}(stream=buffer)", f"{place}.stream()"))
            else:
                calls.append((f"{entry}()", ""))
    other = "subject.elsewhere.using()"
    refused(driver, *(Refusable("R51-device-check", f"{driver.name}.{call}", it, other) for call, it in calls))


# --- several memories, and their ends


def several_at_once(subject: Subject) -> Iterable[MemoryDriver]:
    """Calls on one memory do not affect other memories."""
    here, *others = [inputs(subject, side) for side in subject.sides] or [{}]
    sequence = [
        entry
        for does, calls in (("write", [here]), ("read", others), ("adopt", [here]), ("write", others), ("read", [here]))
        for entry in (it[does] for it in calls if does in it)
    ]
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


def released_again(subject: Subject) -> Iterator[MemoryDriver]:
    """A second and a third release do nothing, in every state and for zero bytes."""
    release, *_ = endings(subject)
    for sequence in access_sequences(subject.machine).values():
        for size in (SIZE, 0) if subject.smallest == 0 else (SIZE,):
            driver = started(subject, *sequence, release, size=size)
            for _ in range(2):
                try:
                    driver.perform(release)
                except Violation as violation:
                    raise Violation("R49-release-twice", violation.message, violation.statements) from violation
            yield driver


def dropped(subject: Subject) -> Iterator[MemoryDriver]:
    """A dropped memory frees what it owns, in every state, with a push in flight, and after a release."""
    reached, steps = access_sequences(subject.machine), space(subject.machine).steps
    queued = [(*before, push) for state, before in reached.items() for push in legal_pushes(steps[state])]
    longest = max(reached.values(), key=len)
    sequences = [*reached.values(), *queued, *((*longest, ending) for ending in endings(subject))]
    drivers = [started(subject, *it) for it in sequences]
    for driver in drivers:
        _drop(driver)
    gc.collect()  # this takes long, so many objects are dropped before
    for driver in drivers:
        _compare_dropped(driver)
        yield driver


def _drop(driver: MemoryDriver) -> None:
    if not driver.run.safe:
        driver.synchronize()  # in Caffe the caller must wait
    driver.reproducer.run(f"del {driver.name}")
    driver.reproducer.note("gc.collect()")


def _compare_dropped(driver: MemoryDriver) -> None:
    """Check that a dropped memory has freed what it owned, once, and nothing that a push still used."""
    stray = [sentence for _, sentence in driver.log.stray]
    driver.run.require(not stray, "R28-freed-once", "; ".join(stray))
    early = driver.log.freed_in_flight
    driver.run.require(not early, "R42-in-flight-not-freed", "; ".join(early))
    left = ", ".join(f"{entry.byte_size} bytes on {entry.side}" for _, entry in driver.log.live.values())
    driver.run.require(not left, "R55-dropped-freed", f"still allocated after the memory was dropped: {left}")


# --- which of them run

_ABOUT: dict[str, Contract] = {
    "R35": buffers.own_buffers,
    # One for each: a run that goes on after a violation ends the contract with it.
    **{name[:3]: buffers.unsuitable_buffers(name) for name in buffers.UNSUITABLE},
    "R14 R15": buffers.suitable_buffers,
    "R40": buffers.adopted_buffers_live,
    "R56": buffers.adopted_buffers_are_dropped,
    "R49": released_again,
    "R55": dropped,
    "R45": bad_sizes,
    "R53": several_at_once,
    "R52": bad_streams,
    "R57": pushed_in_order,
    "R50": elsewhere,  # with many calls, which break other requirements too
    "R51": device_check,
}
"""The contracts in their order, by the numbers of the requirements that they are about."""


def contracts_for(subject: Subject) -> tuple[Contract, ...]:
    """The contracts about a requirement that a subject is judged by, in their order."""
    judged = {name.partition("-")[0] for name in requirements_for(subject)}
    return tuple(contract for numbers, contract in _ABOUT.items() if not judged.isdisjoint(numbers.split()))
