"""The allocators that are checked on a device: its own, each adaptor over it, and stacks of adaptors."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from syncedmem.model.interface import DeviceType, is_host
from syncedmem.runtime import Adaptor, LimitingAllocator, allocators
from syncedmem.spec.contracts import check_allocator
from syncedmem.spec.engine.checklist import run_checks
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.runtime import DeviceAllocator
    from syncedmem.spec import Conformance
    from syncedmem.spec.engine.checklist import Checklist
    from syncedmem.spec.engine.supervisor import Progress

__all__ = ["ADAPTORS", "LIMIT", "MAKERS", "STACKS", "allocators_over", "check_allocators", "stacked"]

LIMIT = 1 << 26
"""Of a limiting adaptor, in bytes; more than the checks need."""

LATE = "D07-late-reader"
"""The one requirement that adaptors which keep released memory do not meet; their documentation says so."""


def limiting(upstream: DeviceAllocator) -> LimitingAllocator:
    """A limiting adaptor with `LIMIT`."""
    return LimitingAllocator(upstream, LIMIT)


def _word(kind: type[Adaptor]) -> str:
    """The short name of an adaptor: ``thread-safe`` for ``ThreadSafeAllocator``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Allocator")).lower()


ADAPTORS: list[type[Adaptor]] = [
    kind for kind in (getattr(allocators, name) for name in allocators.__all__) if issubclass(kind, Adaptor)
]
MAKERS: dict[str, Callable[[DeviceAllocator], DeviceAllocator]] = {
    **{_word(kind): kind for kind in ADAPTORS},
    "limiting": limiting,
}
"""Every adaptor; the last ones need more than an upstream."""

STACKS: list[tuple[str, ...]] = [
    ("tracking", "limiting", "statistics", "failing", "guarding", "thread-safe", "pool"),
    ("pool", "guarding", "thread-safe", "statistics", "failing", "limiting", "tracking"),
    ("guarding", "pool", "tracking", "thread-safe", "limiting", "failing", "statistics"),
    ("limiting", "pool", "tracking"),
]
"""Stacks of them, the first one on top."""


def stacked(names: Sequence[str], upstream: DeviceAllocator) -> DeviceAllocator:
    """A stack of adaptors, given by their names, over an allocator; the first name is the top."""
    for name in reversed(names):
        upstream = MAKERS[name](upstream)
    return upstream


def allocators_over(device: Any) -> dict[str, Any]:  # noqa: ANN401 -- any allocator
    """Every allocator of a device, by name: its own, that of its page-locked memory, each adaptor, and `STACKS`."""
    by_name = {device.name: device}
    if not is_host(device):
        by_name[f"page-locked memory of {device.name}"] = device.pinned_host()
    if device.device_type is DeviceType.CUDA:
        pooled = type(device)(device.ordinal, pool=True)
        by_name |= {f"{device.name} with CuPy's pools": pooled, "its page-locked memory": pooled.pinned_host()}
    by_name |= {f"{name} over {device.name}": make(device) for name, make in MAKERS.items()}
    return by_name | {f"{' over '.join(order)} over {device.name}": stacked(order, device) for order in STACKS}


def keeps_memory(allocator: object) -> bool:
    """Whether an adaptor of a stack keeps released memory, so that a view of it may show bytes of others."""
    while isinstance(allocator, Adaptor):
        if allocator.keeps_memory:
            return True
        allocator = allocator.upstream
    return False


def check_allocators(
    name: str,
    device: object,
    source: str,
    progress: Progress | None = None,
) -> Conformance[Checklist]:
    """Check every allocator of a device with the contract of allocators.

    Parameters
    ----------
    name : str
        The name of the device in the report.
    device : DeviceAllocator
    source : str
        Statements that define ``device`` for a reproducer.
    progress : callable, optional
        Called with a requirement and the number of its checks until now.
    """
    by_name = allocators_over(device)

    def reproducer(requirement: str, case: str) -> tuple[str, ...]:
        return (
            "from syncedmem.spec.contracts import check_allocator",
            "from syncedmem.verification.allocators import allocators_over",
            source,
            f"check_allocator(allocators_over(device)[{case!r}], {requirement!r})",
        )

    checks = {
        requirement: {
            case: partial(check_allocator, tested, requirement)
            for case, tested in by_name.items()
            if requirement != LATE or not keeps_memory(tested)
        }
        for requirement in requirements_of("device allocator")
    }
    return run_checks(name, checks, reproducer, progress)
