"""Every adaptor, ready to be stacked over any allocator, and stacks of adaptors: those that ``verify`` checks."""

from __future__ import annotations

from typing import Any

from subjects import devices

from syncedmem.runtime import (
    Adaptor,
    CPUDeviceAllocator,
    LimitingAllocator,
    StatisticsAllocator,
    TrackingAllocator,
)
from syncedmem.verification.allocators import ADAPTORS, LIMIT, MAKERS, STACKS, stacked

__all__ = ["ADAPTORS", "COUNTING", "LIMIT", "MAKERS", "SAMPLE", "counts", "stacked", "upstreams"]

COUNTING = ("limiting", "statistics", "tracking")

SAMPLE = STACKS


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
