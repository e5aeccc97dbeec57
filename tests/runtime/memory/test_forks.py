"""What a child of a fork can use: everything that no other thread was using, whoever was inside; and no driver."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from subjects import devices

from syncedmem.runtime.allocators.forking import Locks

SHARED = {
    "memory": "host",
    "pool": "PoolAllocator(host)",
    "thread-safe": "ThreadSafeAllocator(host)",
    "thread-safe over a pool": "ThreadSafeAllocator(PoolAllocator(host))",
    "pool over thread-safe": "PoolAllocator(ThreadSafeAllocator(host))",
    "tracking": "TrackingAllocator(PoolAllocator(host))",
    "statistics": "StatisticsAllocator(PoolAllocator(host))",
    "limiting": "LimitingAllocator(PoolAllocator(host), 1 << 30)",
    "guarding": "GuardingAllocator(PoolAllocator(host))",
    "failing": "FailingAllocator(PoolAllocator(host))",
}
"""Allocators that other threads use while a thread forks."""

WITH_LOCKS = ("memory", "pool", "thread-safe", "pool over thread-safe")

# The switch interval is short, so that a fork finds the others in the middle of their calls.
PROGRAM = """
import os, signal, sys, threading
from syncedmem import *

host, device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
shared = {shared}
mine = SyncedMemory(4096, device=device, host=shared, pinned=shared)
everybodys = SyncedMemory(4096, device=device, host=shared, pinned=shared)
buffers = [Buffer(64, shared) for _ in range(2)]
over = threading.Event()

def work(turn):
    while not over.is_set():
        with SyncedMemory(4096, device=device, host=shared, pinned=shared) as memory:
            memory.mutable_cpu_data()
            memory.gpu_data()
        everybodys.mutable_cpu_data()
        everybodys.mutable_gpu_data()
        buffers[turn % 2].copy_from(buffers[(turn + 1) % 2])

threads = [threading.Thread(target=work, args=(turn,)) for turn in range(3)]
sys.setswitchinterval(1e-5)
for thread in threads:
    thread.start()
hung = 0
for _ in range({forks}):
    child = os.fork()
    if not child:
        signal.alarm(20)
        mine.mutable_cpu_data()[:] = 7
        everybodys.mutable_cpu_data()[:] = 7
        buffers[0].copy_from(buffers[1])
        with SyncedMemory(8, device=device, host=shared, pinned=shared) as memory:
            memory.mutable_cpu_data()[:] = 7
            os._exit(int(memory.gpu_data().get().tolist() != [7] * 8 or mine.gpu_data().get()[0] != 7))
    hung += os.waitpid(child, 0)[1] != 0
over.set()
for thread in threads:
    thread.join()
print(hung)
"""

DRIVER = """
import os, signal
from syncedmem import SyncedMemory, named_device
from syncedmem.model import NoDeviceError

name = {name!r}
memory, both = SyncedMemory(8, device=name), SyncedMemory(8, device=name)
memory.mutable_cpu_data()[:] = 7
both.gpu_data()
device, stream = named_device(name), named_device(name).stream()
event = device.record(stream)
calls = [
    memory.gpu_data,
    *[both.gpu_data] * (name == "opencl"),  # CuPy refuses by itself to read such an array; OpenCL would wait
    lambda: device.allocate(8),
    lambda: device.empty(8),
    device.stream,
    lambda: device.memset_zero(None, 0),
    lambda: device.record(stream),
    lambda: device.order_after(event),
    device.arithmetic,
]
child = os.fork()
if not child:
    signal.alarm(30)
    for call in calls:
        try:
            call()
        except NoDeviceError as error:
            assert "does not survive a fork" in str(error)
        else:
            os._exit(1)
    os._exit(int(memory.cpu_data().tolist() != [7] * 8))
print(os.waitpid(child, 0)[1])
"""


def printed(program: str) -> str:
    """The output of a program that forks, in a process of its own."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout.strip()


# Adaptors without a lock of their own are tried in the deep tests.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in WITH_LOCKS else pytest.mark.deep) for name in SHARED]
)
def test_a_child_hangs_on_nothing_while_other_threads_are_busy(name: str) -> None:
    """Forty forks, with three threads in calls on the same allocator, memory, buffers and device."""
    assert printed(PROGRAM.format(shared=SHARED[name], forks=40)) == "0"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["opencl", "cuda"])
def test_a_driver_that_was_opened_before_the_fork_refuses_calls_in_the_child(name: str) -> None:
    """It would wait for threads that the child does not have.  The host side can still be used."""
    if not any(device.name.startswith(name) for device in devices()):
        pytest.skip(f"there is no {name} here")

    assert printed(DRIVER.format(name=name)) == "0"


def test_a_lock_that_another_thread_keeps_delays_a_fork_and_no_more() -> None:
    """All others are held; those who nest locks in another order cannot make the fork wait for ever."""
    locks, kept, free = Locks(patience=0.001), threading.RLock(), threading.RLock()
    for lock in (free, kept):
        locks.add(lock)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(kept.acquire).result()
        locks.hold()
        had = [not thread.submit(lock.acquire, blocking=False).result() for lock in (free,)]
        locks.release()
        thread.submit(kept.release).result()

        assert had == [True]
        assert thread.submit(free.acquire, blocking=False).result()
        thread.submit(free.release).result()


def test_locks_that_nobody_has_any_more_are_forgotten() -> None:
    locks, kept = Locks(), threading.RLock()
    locks.add(kept)
    for _ in range(10_000):
        locks.add(threading.RLock())

    assert len(locks._known) < 3000  # pyright: ignore[reportPrivateUsage] -- the record
    locks.hold()
    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(kept.acquire, blocking=False).result()
    locks.release()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_threads_signals_and_forks_hold_lose_and_double_nothing(seed: int) -> None:
    """Every byte of checked memories over shared pools is right, and no block is left."""
    program = Path(__file__).parents[2] / "support" / "signals_and_forks.py"
    command = [sys.executable, str(program), "20", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 100
