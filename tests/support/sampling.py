"""Samples of long families of tests: the seed of the run chooses them, and ``make bugs`` takes all."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

__all__ = ["sampled"]

ThingT = TypeVar("ThingT")


def sampled(config: pytest.Config, things: Iterable[tuple[str, ThingT]], *, of: int) -> list[ThingT]:
    """Return about one of so many things, and at least one, each given with its name; with ``--every-suite`` all."""
    if config.getoption("--every-suite"):
        return [thing for _, thing in things]
    seed = config.getoption("--hypothesis-seed") or 0
    drawn = [(crc32(f"{seed} {name}".encode()) % of, number, thing) for number, (name, thing) in enumerate(things)]
    return [thing for place, _, thing in drawn if place == 0] or [min(drawn)[2]]
