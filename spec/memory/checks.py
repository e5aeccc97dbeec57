"""What the contracts share: memories in known states, and calls that must be refused.

A contract is a check of a promise that single calls cannot show: of buffers of the caller, of lifetimes, of devices. It
makes the calls of the machine under test, which it finds by what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input
from syncedmem.model.suites import access_sequences

from ..engine.subject import Subject
from ..engine.violation import Violation
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.reproducer import Reproducer

__all__ = [
    "SIZE",
    "Contract",
    "Refusable",
    "adopting",
    "everywhere",
    "inputs",
    "pushes",
    "refused",
    "started",
    "starts",
]

SIZE = 48
_UNCHANGED = "R32-strong-guarantee"

Contract = Callable[[Subject], Iterable[MemoryDriver]]
"""A check; it yields the drivers that it used, so that their calls are counted."""

# --- the calls of a machine, by their meaning


def inputs(subject: Subject, side: str) -> dict[str, Input]:
    """The calls on a side by what they do; none if this build has no such side."""
    calls = subject.machine.calls.values() if subject.place(side) is not None else ()
    return {it.does: Input(it) for it in calls if it.side == side}


def adopting(subject: Subject) -> list[str]:
    """The sides on which a buffer can be adopted here."""
    return [side for side in subject.sides if "adopt" in inputs(subject, side)]


def pushes(subject: Subject, source: str = "") -> list[Input]:
    """The calls here that queue a copy; from one side, if it is given."""
    queued = (it for it in subject.machine.calls.values() if it.queues)
    return [Input(it) for it in queued if subject.place(it.side) is not None and source in ("", it.source)]


def starts(subject: Subject) -> list[tuple[Input, ...]]:
    """For each head the first sequence of calls that leads to it."""
    sequences = access_sequences(subject.machine).items()
    return list({state.head: sequence for state, sequence in reversed(sequences)}.values())[::-1]


# --- memories in known states


def started(
    subject: Subject,
    *sequence: Input,
    size: int = SIZE,
    reproducer: Reproducer | None = None,
    check_device: bool = False,
) -> MemoryDriver:
    """A memory after a sequence of calls."""
    driver = MemoryDriver(subject, size, reproducer=reproducer, check_device=check_device)
    for entry in sequence:
        driver.perform(entry)
    return driver


def everywhere(check: Callable[[MemoryDriver], None], *, check_device: bool = False) -> Contract:
    """A contract that runs a check in every state; afterwards the memory must work as if nothing had happened."""

    @wraps(check)
    def contract(subject: Subject) -> Iterator[MemoryDriver]:
        for sequence in access_sequences(subject.machine).values():
            driver = started(subject, *sequence, check_device=check_device)
            check(driver)
            try:
                _use(driver)
            except Violation as found:
                _use(started(subject, *sequence))  # if this fails too, the refused calls are not the cause
                if _UNCHANGED not in driver.run.judged:
                    raise
                message = f"after calls that were refused: {found.requirement}: {found.message}"
                raise Violation(_UNCHANGED, message, found.statements) from found
            yield driver

    return contract


def _use(driver: MemoryDriver) -> None:
    """Read all sides, also a stale one, and release."""
    for call in driver.subject.machine.calls.values():
        if call.does == "read":
            driver.perform(Input(call))
    driver.finish()


# --- calls that must be refused


class Refusable(NamedTuple):
    """A call that must raise.

    Attributes
    ----------
    requirement : str
        The requirement that it breaks if it does not raise; it is not made if the subject is not judged by that.
    call : str
        The text of the call in the reproducer.
    buffer : str
        The expression for the call's ``buffer``.
    within : str
        A context manager around the call.
    """

    requirement: str
    call: str
    buffer: str = ""
    within: str = ""


def refused(driver: MemoryDriver, *calls: Refusable) -> None:
    """Check that calls raise and change nothing that can be observed.

    Raises
    ------
    Violation
    """
    for requirement, call, buffer, within in (it for it in calls if it.requirement in driver.run.judged):
        if buffer:
            driver.reproducer.run(f"buffer = {buffer}")
        before, called = _attributes(driver), _called(driver)
        raised = driver.reproducer.call(call, driver.mode, within=within).raised
        if raised is None:
            raise driver.run.violation(requirement, "the last call was not refused")
        driver.run.require(
            _called(driver) == called, requirement, "the last call was refused, but it called allocators"
        )
        unchanged = _UNCHANGED if _UNCHANGED in driver.run.judged else requirement
        message = "the last call was refused, but it changed something"
        driver.run.require(_attributes(driver) == before, unchanged, message)
        try:
            driver.compare_untouched()
        except Violation as found:
            raise Violation(unchanged, f"the last call was refused, but {found.message}", found.statements) from found
        driver.reproducer.expect(raised)


def _called(driver: MemoryDriver) -> tuple[object, ...]:
    """The calls to the allocators, also refused ones."""
    log = driver.log
    return len(log.calls), set(log.live), len(log.stray), len(log.freed_in_flight)


def _attributes(driver: MemoryDriver) -> list[object]:
    """The public attributes of a memory: its head, its size, and its flags."""
    names = ("head", "size", *driver.subject.machine.facts)
    return [] if driver.oracle.released else [getattr(driver.memory, name, None) for name in names]
