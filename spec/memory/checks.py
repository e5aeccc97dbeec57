"""What the contracts have in common: memories in known states, and things that they must refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Call, Input
from syncedmem.model.suites import access_words

from ..engine.finding import Violation
from ..engine.subject import Bench
from .driver import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.reproducer import Script

__all__ = ["SIZE", "Contract", "Refusable", "everywhere", "refused", "require", "started"]

SIZE = 48
_UNCHANGED = "R32-strong-guarantee"
_ATTRIBUTES = ("head", "size", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda")

Contract = Callable[[Bench], Iterable[Trial]]
"""A check: it gives the memories it was made with, so that their calls are counted."""


class Refusable(NamedTuple):
    """A call that has to raise.

    Attributes
    ----------
    requirement : str
        What it breaks if it does not.
    call : str
        As the script has it.
    buffer : str
        What the call's ``buffer`` is to be.
    within : str
        A context manager to make it in.
    """

    requirement: str
    call: str
    buffer: str = ""
    within: str = ""


def require(trial: Trial, holds: bool, requirement: str, message: str) -> None:
    """Report what does not hold of a trial.

    Raises
    ------
    Violation
    """
    if not holds:
        raise trial.violation(requirement, message)


def started(
    bench: Bench, *word: Input, size: int = SIZE, script: Script | None = None, check_device: bool = False
) -> Trial:
    """A memory that was brought to a state."""
    trial = Trial(bench, size, script=script, check_device=check_device)
    for entry in word:
        trial.perform(entry)
    return trial


def everywhere(check: Callable[[Trial], None], *, check_device: bool = False) -> Contract:
    """A contract of a check: made in every state there is, and then the memory must work as if nothing had been."""

    @wraps(check)
    def contract(bench: Bench) -> Iterator[Trial]:
        for word in access_words(bench.edition).values():
            trial = started(bench, *word, check_device=check_device)
            check(trial)
            try:
                _use(trial)
            except Violation as found:
                _use(started(bench, *word))  # what is wrong anyway was not done by the refused calls
                message = f"after calls that were refused: {found.requirement}: {found.message}"
                raise Violation(_UNCHANGED, message, found.script) from found
            yield trial

    return contract


def _use(trial: Trial) -> None:
    """Ask for both sides, also for one that is stale, and release."""
    for call in (Call.CPU_DATA, Call.GPU_DATA):
        trial.perform(Input(call))
    trial.finish()


def refused(trial: Trial, *calls: Refusable) -> None:
    """See that calls raise and change nothing that can be seen.

    Raises
    ------
    Violation
    """
    for requirement, call, buffer, within in calls:
        if buffer:
            trial.script.run(f"buffer = {buffer}")
        before, called = _seen(trial), _called(trial)
        raised = trial.script.call(call, trial.mode, within=within).raised
        if raised is None:
            raise trial.violation(requirement, "the last call was not refused")
        require(trial, _called(trial) == called, requirement, "the last call was refused, but it called allocators")
        require(trial, _seen(trial) == before, _UNCHANGED, "the last call was refused, and yet it changed something")
        try:
            trial.compare_untouched()
        except Violation as found:
            raise Violation(_UNCHANGED, f"the last call was refused, and yet {found.message}", found.script) from found
        trial.script.expect(raised)


def _called(trial: Trial) -> tuple[object, ...]:
    """What the allocators were asked for, even in vain."""
    ledger = trial.ledger
    return len(ledger.entries), set(ledger.live), len(ledger.stray), len(ledger.freed_in_flight)


def _seen(trial: Trial) -> list[object]:
    """What a memory says of itself."""
    return [] if trial.oracle.released else [getattr(trial.subject, name, None) for name in _ATTRIBUTES]
