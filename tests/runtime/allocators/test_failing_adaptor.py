"""`FailingAllocator`: which calls fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE

from syncedmem.model import AllocationError, DeviceError, InvalidArgumentError
from syncedmem.runtime import CPUDeviceAllocator, FailingAllocator

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_even(size: int) -> bool:
    """A reason for a call to fail."""
    return size % 2 == 0


def outcomes(failing: FailingAllocator, sizes: Sequence[int]) -> list[bool]:
    """For each allocation whether it failed."""
    failed: list[bool] = []
    for size in sizes:
        try:
            failing.release(failing.allocate(size))
        except AllocationError as error:
            assert "told to fail" in str(error)  # noqa: PT017 -- of many calls
            failed.append(True)
        else:
            failed.append(False)
    return failed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [False] * 5),
        ({"at": 3}, [False, False, True, False, False]),
        ({"from_size": 4}, [False, False, False, True, True]),
        ({"when": is_even}, [False, True, False, True, False]),
        ({"probability": 1}, [True] * 5),
        ({"at": 1, "from_size": 5}, [True, False, False, False, True]),
    ],
)
def test_calls_fail_where_they_are_told_to(options: dict[str, Any], expected: list[bool]) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, **options)

    assert expected == outcomes(failing, [1, 2, 3, 4, 5])
    assert (5, sum(expected), 0) == (failing.calls, failing.failures, upstream.live_blocks)


def test_failures_by_chance_come_again_with_their_seed() -> None:
    """Whatever other reasons there are."""
    first, again = (
        outcomes(FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=7), [1] * 64) for _ in range(2)
    )
    other = outcomes(FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=8), [1] * 64)
    more = outcomes(
        FailingAllocator(CPUDeviceAllocator(), probability=0.5, seed=7, at=first.index(False) + 1), [1] * 64
    )

    assert (first, True, True) == (again, first != other, 10 < sum(first) < 54)
    assert 1 == sum(one != two for one, two in zip(first, more, strict=True))


@pytest.mark.parametrize("operation", ["release", "memcpy", "memset_zero"])
def test_other_calls_can_fail_too(operation: str) -> None:
    upstream = CPUDeviceAllocator()
    failing = FailingAllocator(upstream, operation=operation, at=1)
    block = failing.allocate(SIZE)

    def act() -> None:
        if operation == "release":
            failing.release(block)
        elif operation == "memcpy":
            failing.memcpy(np.ones(SIZE, np.uint8), block, SIZE)
        else:
            failing.memset_zero(block, SIZE)

    with pytest.raises(DeviceError, match=f"{operation} failed on cpu:0: RuntimeError: this call was told to fail"):
        act()
    assert 1 == upstream.live_blocks
    act()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"operation": "free"}, "operation must be one of allocate, release, memcpy, memset_zero, got 'free'"),
        ({"at": "2"}, "at must be the number of a call, or None, got '2'"),
        ({"seed": "x"}, "seed must be an integer, or None, got 'x'"),
        ({"probability": 1.5}, "probability must be a number from 0 to 1, got 1.5"),
        ({"probability": "1"}, "probability must be a number from 0 to 1, got '1'"),
        ({"probability": float("nan")}, "got nan"),
        ({"from_size": "3"}, "from_size must be an integer number of bytes"),
    ],
)
def test_what_says_nothing_of_which_calls_fail_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        FailingAllocator(CPUDeviceAllocator(), **options)
