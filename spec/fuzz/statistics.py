"""The statistics that targets report, under their various names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

__all__ = ["Gauge", "device_of", "gauges", "limit_of"]

Meaning = Literal["count", "bytes", "peak count", "peak bytes"]


class Gauge(NamedTuple):
    """A number that a target reports."""

    name: str
    meaning: Meaning
    exact: bool


_GAUGES = (
    Gauge("live_blocks", "count", True),
    Gauge("active_blocks", "count", True),  # PyOpenCL
    Gauge("current_count", "count", True),
    Gauge("peak_count", "peak count", True),
    Gauge("live_bytes", "bytes", True),
    Gauge("current_bytes", "bytes", True),
    Gauge("peak_bytes", "peak bytes", True),
    Gauge("active_bytes", "bytes", False),  # PyOpenCL
    Gauge("used_bytes", "bytes", False),  # CuPy
    Gauge("get_allocated_bytes", "bytes", False),  # RMM, limiting adaptor
    Gauge("get_outstanding_allocations_bytes", "bytes", False),  # RMM, tracking adaptor
)
_CONTAINERS = ("statistics", "allocation_counts")
_LIMITS = ("limit", "capacity", "get_limit", "allocation_limit", "get_allocation_limit")
_DEVICES = ("current_ordinal", "current_device")


def gauges(subject: Any) -> dict[Gauge, int]:
    """The present statistics of a target."""
    sources = [subject, *(member for name in _CONTAINERS if (member := _member(subject, name)) is not None)]
    return {
        gauge: value
        for gauge in _GAUGES
        for source in sources
        if isinstance(value := _member(source, gauge.name), int) and not isinstance(value, bool)
    }


def limit_of(subject: Any) -> int:
    """The limit of live bytes that a target reports; 0 if it reports none."""
    limits = (_member(subject, name) for name in _LIMITS)
    return next((value for value in limits if isinstance(value, int) and not isinstance(value, bool)), 0)


def device_of(subject: Any) -> object:
    """The current device that a target reports; None if it reports none."""
    return next((value for name in _DEVICES if (value := _member(subject, name)) is not None), None)


def _member(source: Any, name: str) -> Any:
    """The attribute or entry with this name, or the result of the method with this name."""
    if isinstance(source, Mapping):
        return cast("Mapping[str, Any]", source).get(name)
    value = getattr(source, name, None)
    try:
        return value() if callable(value) else value
    except TypeError:  # it needs arguments, so it has another meaning
        return None
