"""Every adaptor, ready to be put over any allocator, and stacks of them."""

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
    """With room for all tests."""
    return LimitingAllocator(upstream, LIMIT)


def logging(upstream: DeviceAllocator) -> LoggingAllocator:
    """Into a file in memory."""
    return LoggingAllocator(upstream, io.StringIO())


def _word(kind: type[Adaptor]) -> str:
    """``ThreadSafeAllocator`` in short: ``thread-safe``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Allocator")).lower()


ADAPTORS = [kind for name in allocators.__all__ if issubclass(kind := getattr(allocators, name), Adaptor)]
MAKERS: dict[str, Callable[[DeviceAllocator], DeviceAllocator]] = {
    **{_word(kind): kind for kind in ADAPTORS},
    "limiting": limiting,
    "logging": logging,
}
"""Every adaptor that there is; the last ones take more than an upstream."""

COUNTING = ("limiting", "statistics", "tracking")

SAMPLE = [
    ("tracking", "limiting", "statistics", "logging", "failing", "guarding", "thread-safe", "pool"),
    ("pool", "guarding", "thread-safe", "statistics", "failing", "logging", "limiting", "tracking"),
    ("guarding", "pool", "logging", "tracking", "thread-safe", "limiting", "failing", "statistics"),
    ("limiting", "pool", "tracking"),
]
"""Stacks of them, the first one on top."""


def stacked(names: Sequence[str], upstream: DeviceAllocator) -> Any:
    """Adaptors by name over an allocator, the first one on top."""
    for name in reversed(names):
        upstream = MAKERS[name](upstream)
    return upstream


def upstreams() -> list[Any]:
    """Host memory, and every device of this machine."""
    return [CPUDeviceAllocator(), *devices()]


def counts(stack: Any) -> list[Any]:
    """What each adaptor of a stack has counted."""
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
