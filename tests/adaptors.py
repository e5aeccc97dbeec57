"""Every adaptor, ready to be put over any allocator, and stacks of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from subjects import devices

from syncedmem.runtime import (
    Adaptor,
    CPUDeviceAllocator,
    DeviceAllocator,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    LoggingAllocator,
    PoolAllocator,
    StatisticsAllocator,
    ThreadSafeAllocator,
    TrackingAllocator,
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


MAKERS: dict[str, Callable[[DeviceAllocator], DeviceAllocator]] = {
    "adaptor": Adaptor,
    "failing": FailingAllocator,
    "guarding": GuardingAllocator,
    "limiting": limiting,
    "logging": logging,
    "pool": PoolAllocator,
    "statistics": StatisticsAllocator,
    "thread-safe": ThreadSafeAllocator,
    "tracking": TrackingAllocator,
}
COUNTING = ("limiting", "statistics", "tracking")


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
