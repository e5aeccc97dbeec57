"""`PoolAllocator`: who gets which block."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pools import MIB, lent_and_returned, paper_pool
from subjects import SIZE, devices

from syncedmem.model import InvalidArgumentError, InvalidSizeError
from syncedmem.runtime import CPUDeviceAllocator, PoolAllocator


def test_a_small_request_gets_the_first_block_that_is_large_enough() -> None:
    """In order of allocation, whatever the order of release, and however much it wastes."""
    pool, paper = paper_pool()
    blocks: Any = [pool.allocate(size) for size in (10, 100, MIB, 20)]
    for block in (blocks[3], blocks[2], blocks[1], blocks[0]):
        pool.release(block)
    got: Any = [pool.allocate(size) for size in (15, 5, 6, 7)]

    assert [blocks[1].root, blocks[0].root, blocks[2].root, blocks[3].root] == [block.root for block in got]
    assert ([15, 5, 6, 7], 4) == ([len(block) for block in got], len(paper.allocated))
    for block in got:
        pool.release(block)


def test_a_big_request_gets_the_smallest_block_that_wastes_less_than_a_mebibyte() -> None:
    """Strictly less; of equal ones the first; small blocks are not for big requests, nor big for small."""
    pool, paper = paper_pool()
    roots = lent_and_returned(pool, 4 * MIB, 2 * MIB + 1, 2 * MIB, 2 * MIB, MIB)
    got: Any = [pool.allocate(size) for size in (MIB + 1, MIB + 1, MIB + 1, 3 * MIB, 3 * MIB + 1, 1)]

    assert [roots[2], roots[3]] == [block.root for block in got[:2]]
    assert [MIB + 1, 3 * MIB] == paper.allocated[5:]  # 2 MiB + 1 and 4 MiB would waste exactly a mebibyte
    assert (roots[0], roots[4]) == (got[4].root, got[5].root)
    for block in got:
        pool.release(block)


def reference(steps: list[tuple[str, int]]) -> list[int]:
    """KuiperLLama's choice of blocks, as plainly as it can be said: for each allocation the number of its block."""
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
    """Over a few hundred random calls."""
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


@pytest.mark.parametrize("upstream", [CPUDeviceAllocator(), *devices()], ids=lambda upstream: upstream.name)
def test_a_block_is_lent_in_the_size_that_was_asked_for(upstream: Any) -> None:
    """As an array of its own each time, whose bytes are those of the block."""
    before = upstream.live_blocks
    with PoolAllocator(upstream) as pool:
        first: Any = pool.allocate(SIZE)
        pool.release(first)
        second: Any = pool.allocate(SIZE - 8)
        assert (SIZE - 8, True, True) == (len(second), second is not first, pool.overlaps(first, second))
        pool.release(second)
        third = pool.allocate(SIZE - 8)
        assert (True, 1, upstream.live_blocks) == (third is not second, pool.live_blocks, before + 1)
        pool.memset_zero(third, SIZE - 8)
        pool.release(third)
        assert (1, SIZE) == (pool.idle_blocks, pool.idle_bytes)
    assert before == upstream.live_blocks


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
