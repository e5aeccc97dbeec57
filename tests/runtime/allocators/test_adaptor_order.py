"""Stacks of adaptors: any order composes, and changes nothing for callers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from adaptors import COUNTING, LIMIT, SAMPLE, counts, stacked

from syncedmem.model import AllocationError
from syncedmem.runtime import (
    CPUDeviceAllocator,
    LimitingAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
)
from syncedmem.spec import Subject, check_conformance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


ORDERS = list(itertools.permutations(COUNTING))


def scenario(allocator: Any, limit: int) -> list[Any]:
    """What a caller sees of an allocator with a limit: the results, and the messages of the errors."""
    seen: list[Any] = []
    blocks: list[Any] = []

    def tell(act: Callable[..., Any], *arguments: Any) -> None:
        try:
            answer = act(*arguments)
        except Exception as error:  # noqa: BLE001 -- what is compared
            seen.append((type(error), str(error)))
        else:
            blocks.append(answer)
            seen.append(None if answer is None else len(answer))

    for size in (10, limit, limit - 10, 0, -1, "x", 1):
        tell(allocator.allocate, size)
    for block in (blocks[0], blocks[0], np.zeros(3, np.uint8), None):
        tell(allocator.release, block)
    tell(allocator.allocate, 10)
    return seen


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_the_order_of_adaptors_changes_nothing_for_callers(order: tuple[str, ...]) -> None:
    """The stacks are tracking over limiting, limiting over tracking, and both with statistics between them."""
    expected = scenario(LimitingAllocator(CPUDeviceAllocator(), LIMIT), LIMIT)
    stack = stacked(order, CPUDeviceAllocator())

    assert expected == scenario(stack, LIMIT)
    assert AllocationError in {entry[0] for entry in expected if isinstance(entry, tuple)}
    live = sorted(map(repr, counts(stack)))
    assert sorted(map(repr, counts(stack_after_scenario(COUNTING)))) == live


def stack_after_scenario(order: Sequence[str]) -> Any:
    """The stack of a scenario, after the scenario."""
    stack = stacked(order, CPUDeviceAllocator())
    scenario(stack, LIMIT)
    return stack


@pytest.mark.deep
@pytest.mark.parametrize("order", SAMPLE[:2], ids="-".join)
def test_a_memory_over_adaptors_conforms(order: tuple[str, ...]) -> None:
    """The adaptors are on the host side and on the device side."""
    subject = Subject(
        "adaptors",
        SyncedMemory,
        stacked(order, CPUDeviceAllocator()),
        stacked(order, SimulatedDeviceAllocator()),
        elsewhere=SimulatedDeviceAllocator(1),
        check_device=True,
    )

    check_conformance(subject, steps=300).require()
