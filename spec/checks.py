"""What the contracts have in common: memories in known states, and things that they must refuse."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input, using_mode
from syncedmem.model.suites import access_words

from .subject import Bench, Violation
from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SIZE", "Refusable", "everywhere", "raw", "refused", "require", "started", "write_raw"]

SIZE = 48
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_UNCHANGED = "R32-strong-guarantee"
_ATTRIBUTES = ("head", "size", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda")

Refusable = tuple[str, str, "Callable[[], object]"]
"""A requirement, the line that reports show, and a call that has to raise."""


def require(trial: Trial, holds: bool, requirement: str, message: str) -> None:
    """Report what does not hold of a trial.

    Raises
    ------
    Violation
    """
    if not holds:
        raise Violation(requirement, message, tuple(trial.script))


def started(bench: Bench, *word: Input, size: int = SIZE) -> Trial:
    """A memory that was brought to a state."""
    trial = Trial(bench, size)
    for entry in word:
        trial.perform(entry)
    return trial


def everywhere(check: Callable[[Trial], None]) -> Callable[[Bench], None]:
    """A contract of a check: made in every state there is, and then the memory must work as if nothing had been."""

    @wraps(check)
    def contract(bench: Bench) -> None:
        for word in access_words(bench.edition).values():
            trial = started(bench, *word)
            check(trial)
            try:
                _use(trial)
            except Violation as found:
                _use(started(bench, *word))  # what is wrong anyway was not done by the refused calls
                message = f"after calls that were refused: {found}"
                raise Violation(_UNCHANGED, message, found.script) from found

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
    for requirement, line, call in calls:
        trial.script.append(line)
        before, called = _seen(trial), _called(trial)
        _raises(trial, requirement, call)
        require(trial, _called(trial) == called, requirement, "it was refused, but not without allocator calls")
        require(trial, _seen(trial) == before, _UNCHANGED, "it was refused, and yet it changed something")
        try:
            trial.compare_untouched()
        except Violation as found:
            raise Violation(_UNCHANGED, f"it was refused, and yet {found.message}", found.script) from found
        # A script that went through a refusal would end there.
        trial.script[-1] = f"# refused: {line}"


def _raises(trial: Trial, requirement: str, call: Callable[[], object]) -> None:
    try:
        with using_mode(trial.mode):
            call()
    except Exception:  # noqa: BLE001 -- a subject refuses with whatever it likes
        return
    require(trial, False, requirement, "it was not refused")


def _called(trial: Trial) -> tuple[object, ...]:
    """What the allocators were asked for, even in vain."""
    ledger = trial.ledger
    return len(ledger.entries), set(ledger.live), len(ledger.stray), len(ledger.freed_in_flight)


def _seen(trial: Trial) -> list[object]:
    """What a memory says of itself."""
    return [] if trial.oracle.released else [getattr(trial.subject, name, None) for name in _ATTRIBUTES]


def raw(bench: Bench, array: Any, size: int) -> bytes:
    """The first bytes of a device array, fetched by the bench."""
    scratch, device = bench.host.empty(size), _device(bench)
    device.memcpy(array, scratch, size, _DEVICE_TO_HOST)
    return bytes(memoryview(scratch))


def write_raw(bench: Bench, array: Any, content: bytes) -> None:
    """Overwrite the first bytes of a device array."""
    scratch, device = bench.host.empty(len(content)), _device(bench)
    memoryview(scratch)[:] = content
    device.memcpy(scratch, array, len(content), _HOST_TO_DEVICE)


def _device(bench: Bench) -> Any:
    return bench.device
