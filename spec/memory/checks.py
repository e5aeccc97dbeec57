"""What the contracts share: memories in known states, and calls that must be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input, caffe
from syncedmem.model.suites import access_sequences

from ..engine.subject import Subject
from ..engine.violation import Violation
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.reproducer import Reproducer

__all__ = ["SIZE", "Contract", "Refusable", "adopting", "everywhere", "refused", "started"]

SIZE = 48
_UNCHANGED = "R32-strong-guarantee"
_ATTRIBUTES = ("head", "size", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda")

Contract = Callable[[Subject], Iterable[MemoryDriver]]
"""A check; it yields the drivers that it used, so that their calls are counted."""


class Refusable(NamedTuple):
    """A call that must raise.

    Attributes
    ----------
    requirement : str
        The requirement that it breaks if it does not raise.
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


def adopting(subject: Subject) -> tuple[str, ...]:
    """The sides on which a buffer can be adopted here."""
    calls = subject.machine.calls.values()
    return tuple(it.side for it in calls if it.does == "adopt" and subject.place(it.side) is not None)


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
    """Read both sides, also a stale one, and release."""
    for call in (caffe.CPU_DATA, caffe.GPU_DATA):
        driver.perform(Input(call))
    driver.finish()


def refused(driver: MemoryDriver, *calls: Refusable) -> None:
    """Check that calls raise and change nothing that can be observed.

    Raises
    ------
    Violation
    """
    for requirement, call, buffer, within in calls:
        if buffer:
            driver.reproducer.run(f"buffer = {buffer}")
        before, called = _seen(driver), _called(driver)
        raised = driver.reproducer.call(call, driver.mode, within=within).raised
        if raised is None:
            raise driver.run.violation(requirement, "the last call was not refused")
        driver.run.require(
            _called(driver) == called, requirement, "the last call was refused, but it called allocators"
        )
        unchanged = _UNCHANGED if _UNCHANGED in driver.run.judged else requirement
        driver.run.require(_seen(driver) == before, unchanged, "the last call was refused, but it changed something")
        try:
            driver.compare_untouched()
        except Violation as found:
            raise Violation(unchanged, f"the last call was refused, but {found.message}", found.statements) from found
        driver.reproducer.expect(raised)


def _called(driver: MemoryDriver) -> tuple[object, ...]:
    """The calls to the allocators, also refused ones."""
    log = driver.log
    return len(log.calls), set(log.live), len(log.stray), len(log.freed_in_flight)


def _seen(driver: MemoryDriver) -> list[object]:
    """The public attributes of a memory."""
    return [] if driver.oracle.released else [getattr(driver.memory, name, None) for name in _ATTRIBUTES]
