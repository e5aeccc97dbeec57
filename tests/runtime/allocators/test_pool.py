"""`PoolAllocator`: who gets which block."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pools import MIB, lent_and_returned, paper_pool

from syncedmem.model import InvalidArgumentError, InvalidSizeError
from syncedmem.runtime import CPUDeviceAllocator, PoolAllocator


def reference(steps: list[tuple[str, int]]) -> list[int]:
    """KuiperLLama's choice of blocks, written as simply as possible: for each allocation, the number of its block."""
    blocks: list[list[Any]] = []  # size, busy
    chosen: list[int] = []
    for step, number in steps:
        if step == "release":
            blocks[chosen[number]][1] = False
            continue
        fitting = [at for at, (size, busy) in enumerate(blocks) if not busy and size >= number]
        if number <= MIB:
            fitting = [at for at in fitting if blocks[at][0] <= MIB]
        else:
            fitting = [at for at in fitting if blocks[at][0] > MIB and blocks[at][0] - number < MIB]
            fitting.sort(key=lambda at: blocks[at][0])
        if not fitting:
            blocks.append([number, False])
            fitting = [len(blocks) - 1]
        chosen.append(fitting[0])
        blocks[fitting[0]][1] = True
    return chosen


@pytest.mark.parametrize("seed", range(10))
def test_blocks_are_chosen_as_kuiperllama_chooses_them(seed: int) -> None:
    """The pool and the reference make the same choices for a few hundred random calls."""
    chance = random.Random(seed)  # noqa: S311 -- replayable calls, not secrets
    pool, paper = paper_pool()
    steps: list[tuple[str, int]] = []
    out: dict[int, Any] = {}
    numbers: dict[int, int] = {}
    mine: list[int] = []
    for _ in range(300):
        if out and chance.random() < 0.5:
            number = chance.choice(list(out))
            pool.release(out.pop(number))
            steps.append(("release", number))
            continue
        size = chance.choice((chance.randrange(1, MIB + 2), chance.randrange(MIB, 5 * MIB), 1 << chance.randrange(23)))
        block: Any = pool.allocate(size)
        assert size == len(block) <= len(block.root)
        out[len(mine)] = block
        mine.append(numbers.setdefault(id(block.root), len(numbers)))
        steps.append(("allocate", size))

    assert reference(steps) == mine
    assert len(paper.allocated) == len(numbers)
    for block in out.values():
        pool.release(block)


def test_limits_can_be_chosen() -> None:
    pool, paper = paper_pool(small_limit=10, waste_limit=5, idle_limit=12)
    lent_and_returned(pool, 20)
    kept: Any = [pool.allocate(15), pool.allocate(16)]
    assert [20, 15] == paper.allocated
    lent_and_returned(pool, 6)
    assert [] == paper.released
    pool.release(pool.allocate(10))
    assert [6, 10] == paper.released
    for block in kept:
        pool.release(block)


@pytest.mark.parametrize("name", ["small_limit", "waste_limit", "idle_limit"])
@pytest.mark.parametrize(("limit", "error"), [(-1, InvalidSizeError), ("1", InvalidArgumentError)])
def test_what_is_no_limit_is_refused(name: str, limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        PoolAllocator(CPUDeviceAllocator(), **{name: limit})
