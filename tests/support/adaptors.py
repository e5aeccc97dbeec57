"""Every adaptor, ready to be stacked over any allocator, and stacks of adaptors."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from subjects import devices

from syncedmem.runtime import (
    Adaptor,
    CPUDeviceAllocator,
    DeviceAllocator,
    LimitingAllocator,
    LoggingAllocator,
    StatisticsAllocator,
    TrackingAllocator,
    allocators,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


LIMIT = 1 << 26


def limiting(upstream: DeviceAllocator) -> LimitingAllocator:
    """A limiting adaptor whose limit is large enough for all tests."""
    return LimitingAllocator(upstream, LIMIT)


def logging(upstream: DeviceAllocator) -> LoggingAllocator:
    """A logging adaptor that logs into a file in memory."""
    return LoggingAllocator(upstream, io.StringIO())


def _word(kind: type[Adaptor]) -> str:
    """The short name of an adaptor: ``thread-safe`` for ``ThreadSafeAllocator``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Allocator")).lower()


ADAPTORS = [kind for name in allocators.__all__ if issubclass(kind := getattr(allocators, name), Adaptor)]
MAKERS: dict[str, Callable[[DeviceAllocator], DeviceAllocator]] = {
    **{_word(kind): kind for kind in ADAPTORS},
    "limiting": limiting,
    "logging": logging,
}
"""Every adaptor; the last ones need more than an upstream."""

COUNTING = ("limiting", "statistics", "tracking")

SAMPLE = [
    ("tracking", "limiting", "statistics", "logging", "failing", "guarding", "thread-safe", "pool"),
    ("pool", "guarding", "thread-safe", "statistics", "failing", "logging", "limiting", "tracking"),
    ("guarding", "pool", "logging", "tracking", "thread-safe", "limiting", "failing", "statistics"),
    ("limiting", "pool", "tracking"),
]
"""Stacks of them, the first one on top."""


def stacked(names: Sequence[str], upstream: DeviceAllocator) -> Any:
    """A stack of adaptors, given by their names, over an allocator; the first name is the top."""
    for name in reversed(names):
        upstream = MAKERS[name](upstream)
    return upstream


def upstreams() -> list[Any]:
    """Host memory, and every device of this machine."""
    return [CPUDeviceAllocator(), *devices()]


def counts(stack: Any) -> list[Any]:
    """The counts of each adaptor of a stack."""
    found: list[Any] = []
    while isinstance(stack, Adaptor):
        if isinstance(stack, TrackingAllocator):
            found.append((stack.live_blocks, stack.allocated_bytes))
        elif isinstance(stack, LimitingAllocator):
            found.append(stack.allocated_bytes)
        elif isinstance(stack, StatisticsAllocator):
            found.append(stack.statistics)
        stack = stack.upstream
    return found
