"""Views that outlive their block: its pool tells who wrote into it, and lends it to nobody while a view is in use."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE, devices, failing

from syncedmem.model import InvalidArgumentError, ReleaseError, StaleWriteError
from syncedmem.model.interface import MemcpyKind
from syncedmem.runtime import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    GuardingAllocator,
    LimitingAllocator,
    PoolAllocator,
    SyncedMemory,
)
from syncedmem.runtime.allocators.late_writes import POISON

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).name
SIDES = ["host", "device"]


class Pools:
    """A pool of host memory and one of device memory, and owners of their blocks."""

    def __init__(self, device: Any) -> None:
        self.host: Any = PoolAllocator(CPUDeviceAllocator())
        self.device: Any = PoolAllocator(device)

    def of(self, side: str) -> Any:
        """The pool of a side."""
        return self.host if side == "host" else self.device

    def memory(self, size: int = SIZE, *, checked: bool = True) -> SyncedMemory:
        """A memory with both sides in these pools."""
        return SyncedMemory(size, host=self.host, pinned=self.host, device=self.device, checked=checked)

    def left_by_memory(self, side: str) -> Any:
        """What a memory has shown on a side, which is closed now."""
        with self.memory() as memory:
            view: Any = memory.mutable_gpu_data() if side == "device" else escaped(memory)
        return view

    def left_by_buffer(self, side: str) -> Any:
        """What a buffer has shown, which is closed now."""
        with Buffer(SIZE, self.of(side), checked=True) as buffer:
            return buffer.ptr

    def left_by_dropped_buffer(self, side: str) -> Any:
        """What a buffer has shown, which nobody has any more."""
        return Buffer(SIZE, self.of(side), checked=True).ptr

    def left_by_blob(self, side: str) -> Any:
        """What a blob has shown before it has grown."""
        blob: Any = Blob((SIZE,), np.uint8, host=self.host, pinned=self.host, device=self.device, checked=True)
        view = blob.mutable_gpu_data() if side == "device" else memoryview(blob.mutable_cpu_data())
        blob.reshape(2 * SIZE)
        return view

    def left_by_adoption(self, side: str) -> Any:
        """What a memory has shown before it has adopted another buffer on that side."""
        memory = self.memory()
        if side == "device":
            view: Any = memory.mutable_gpu_data()
            memory.set_gpu_data(self.device.upstream.empty(SIZE))
        else:
            view = escaped(memory)
            memory.set_cpu_data(bytearray(SIZE))
        memory.close()
        return view


LEFT: dict[str, Callable[[Pools, str], Any]] = {
    "closed memory": Pools.left_by_memory,
    "closed buffer": Pools.left_by_buffer,
    "dropped buffer": Pools.left_by_dropped_buffer,
    "grown blob": Pools.left_by_blob,
    "adoption": Pools.left_by_adoption,
}


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def pools(request: pytest.FixtureRequest) -> Pools:
    return Pools(request.param)


def escaped(memory: Any) -> Any:
    """The host side to write, in a form that does not become read-only with the view."""
    return memoryview(memory.mutable_cpu_data())


def write(view: Any, value: int) -> None:
    """Write all bytes, of an array of a device or of a buffer of the host."""
    if hasattr(view, "set"):
        view.set(np.full(SIZE, value, np.uint8))
    else:
        np.asarray(view)[:] = value


def bytes_in(view: Any) -> set[int]:
    """The values of its bytes."""
    return {*(view.get() if hasattr(view, "get") else np.asarray(view)).tolist()}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("call", ["allocate", "trim", "close"])
def test_who_writes_to_an_idle_block_is_told_once_with_both_lines(
    pools: Pools, left: str, side: str, call: str
) -> None:
    view, pool = LEFT[left](pools, side), pools.of(side)
    write(view, 5)
    idle = pool.idle_bytes
    act: Callable[[], Any] = {"allocate": lambda: pool.allocate(SIZE), "trim": pool.trim, "close": pool.close}[call]
    with pytest.raises(StaleWriteError) as caught:
        act()

    error = caught.value
    assert (call, side, 0, True) == (error.call, error.side, error.position, error.freed)
    assert error.taken is not None
    assert error.ended is not None
    assert [HERE, HERE] == [Path(line.file).name for line in (error.taken, error.ended)]
    if call == "allocate":
        assert idle <= pool.idle_bytes
        pool.release(act())
    pool.trim()
    pool.close()


@pytest.mark.parametrize("side", SIDES)
def test_the_next_owner_keeps_its_numbers_while_a_view_is_in_use(pools: Pools, side: str) -> None:
    """It gets another block; when the view is gone, the block is lent again."""
    view = pools.left_by_memory(side)
    with pools.memory() as owner:
        written = owner.mutable_gpu_data() if side == "device" else owner.mutable_cpu_data()
        write(written, 2)
        write(view, 5)
        assert {2} == {*owner.cpu_data().tolist()}
        del written
    pool = pools.of(side)
    with pytest.raises(StaleWriteError):
        pool.trim()
    kept = pools.left_by_memory(side)
    del view, kept
    gc.collect()
    idle = pool.idle_blocks
    pool.release(pool.allocate(SIZE))
    assert idle == pool.idle_blocks


@pytest.mark.parametrize("part", ["slice", "other type", "part of a part"])
@pytest.mark.parametrize("side", SIDES)
def test_what_was_made_of_a_view_counts_as_the_view(pools: Pools, side: str, part: str) -> None:
    view = np.asarray(pools.left_by_memory(side)) if side == "host" else pools.left_by_memory(side)
    view = view[4:] if part == "slice" else view.view(np.float32) if part == "other type" else view[2:][2:]
    gc.collect()
    idle = pools.of(side).idle_blocks
    block = pools.of(side).allocate(SIZE)

    assert idle == pools.of(side).idle_blocks, f"{view!r} is in use"
    pools.of(side).release(block)


@pytest.mark.parametrize("side", SIDES)
def test_who_reads_a_block_that_was_given_back_sees_poison(pools: Pools, side: str) -> None:
    assert {POISON} == bytes_in(pools.left_by_memory(side))


def test_owners_that_are_not_checked_leave_their_block_as_it_is(pools: Pools) -> None:
    with pools.memory(checked=False) as memory:
        view = escaped(memory)
        view[0] = 9
    assert 9 == view[0]
    view[0] = 8
    pools.host.trim()


def test_a_right_program_is_told_nothing_and_its_blocks_are_lent_again(pools: Pools) -> None:
    for value in range(5):
        with pools.memory() as memory, Buffer(SIZE, pools.device, checked=True) as buffer:
            memory.mutable_cpu_data()[:] = value
            assert {value} == {*memory.gpu_data().get().tolist()}
            shown: Any = buffer.ptr
            shown.set(np.full(SIZE, value, np.uint8))
            del shown
    assert (1, 2) == (pools.host.idle_blocks, pools.device.idle_blocks)
    pools.host.close()
    pools.device.close()


@pytest.mark.parametrize("over", [partial(LimitingAllocator, limit=1 << 20), PoolAllocator], ids=["limit", "pool"])
def test_a_pool_below_an_adaptor_is_told_of_its_blocks(pools: Pools, over: Callable[[Any], Any]) -> None:
    host = over(pools.host)
    memory = SyncedMemory(SIZE, host=host, pinned=host, device=pools.device, checked=True)
    view = escaped(memory)
    memory.close()
    view[0] = 0
    with pytest.raises(StaleWriteError):
        host.trim()


def test_a_block_that_is_larger_than_its_owner_was_is_compared_as_far_as_the_owner_saw_it(pools: Pools) -> None:
    pools.host.release(pools.host.allocate(2 * SIZE))
    view = pools.left_by_memory("host")
    write(view, 1)
    with pytest.raises(StaleWriteError):
        pools.host.allocate(2 * SIZE)
    del view
    pools.host.release(pools.host.allocate(2 * SIZE))


def test_a_guard_above_a_pool_finds_it_by_itself(pools: Pools) -> None:
    host = GuardingAllocator(pools.host)
    memory = SyncedMemory(SIZE, host=host, pinned=host, device=pools.device, checked=True)
    memory.mutable_cpu_data()
    memory.close()
    host.check()
    host.clear()
    pools.host.close()


def test_a_close_that_is_refused_leaves_the_bytes_as_they_are(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pools.memory()
    memory.mutable_cpu_data()[:] = 7
    with monkeypatch.context() as patch:
        patch.setattr(pools.host, "release", failing(RuntimeError, "dead"))
        with pytest.raises(ReleaseError):
            memory.close()
    assert {7} == {*memory.cpu_data().tolist()}
    memory.close()


def test_work_in_flight_finds_its_bytes(pools: Pools) -> None:
    """The pool is told of it, by the copy or by `hold`; it may be about to use the block, so nothing is filled."""
    device = pools.device.upstream
    stream, found = device.stream(), [device.empty(SIZE) for _ in range(2)]
    with pools.memory() as memory:
        memory.mutable_cpu_data()[:] = 7
        memory.gpu_data()
        pools.device.memcpy(memory.gpu_data(), found[0], SIZE, MemcpyKind.CUDA2CUDA, stream)
    with Buffer(SIZE, pools.host, checked=True) as buffer:
        shown: Any = buffer.ptr
        shown[:] = 8
        device.memcpy(shown, found[1], SIZE, MemcpyKind.CPU2CUDA, stream)
        pools.host.hold(shown, device.record(stream))
    device.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, stream, need_sync=True)

    assert [{7}, {8}] == [bytes_in(target) for target in found]


@pytest.mark.parametrize("wrong", ["yes", 1, []])
def test_what_a_pool_is_to_tell_has_a_type_and_whether_it_is_to_tell_is_a_bool(pools: Pools, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Buffer(SIZE, pools.host, checked=wrong)
    assert (0, 0) == (pools.host.live_blocks, pools.host.idle_blocks)
    block = pools.host.allocate(SIZE)
    with pytest.raises(InvalidArgumentError):
        pools.host.watch_idle(block, wrong)
    pools.host.release(block)


def test_a_pool_that_is_dropped_warns(pools: Pools) -> None:
    view = pools.left_by_memory("host")
    view[0] = 1
    with pytest.warns(RuntimeWarning, match="was written after its owner had given it back"):
        pools.host = None


@pytest.mark.deep
def test_what_was_written_into_a_pool_is_told_at_the_exit() -> None:
    program = """
from syncedmem import Buffer, CPUDeviceAllocator, PoolAllocator
pool = PoolAllocator(CPUDeviceAllocator())
kept = Buffer(4, pool, checked=True).ptr
kept[0] = 1
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)

    assert (0, True) == (done.returncode, "RuntimeWarning: at the exit: byte 0 of host memory" in done.stderr)
