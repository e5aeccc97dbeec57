"""Four threads over shared pools, with real signals, forks, checked memories, and a shadow of every byte.

``python signals_and_forks.py SECONDS SEED`` ends with status 0 if every byte is right, no lock is held, no child hangs,
nobody is told of a stale write that nobody made, and no block is left at the end.  It prints how many interrupts there
were.  The first thread is the main one, where Python runs handlers of signals; they raise KeyboardInterrupt and
TimeoutError in turn.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from syncedmem.runtime import (
    CPUDeviceAllocator,
    GuardingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
    TrackingAllocator,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1, 7, 64, 1000, 70_000)
INTERRUPTS: tuple[type[BaseException], ...] = (KeyboardInterrupt, TimeoutError)
DELAYS = [microseconds / 1e6 for microseconds in range(20, 1500, 7)]
CHILD_STEPS, CHILD_SECONDS = 50, 60

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Known:
    """A memory, and what its bytes may be: one of several after calls that were interrupted."""

    def __init__(self, memory: SyncedMemory) -> None:
        self.memory = memory
        self.may_be = [bytes(memory.size)]

    def write(self, new: bytes, act: Callable[[], object]) -> None:
        """Write new bytes; if that is interrupted, nobody knows whether they are there."""
        self.may_be.append(new)
        act()
        self.may_be = [new]

    def read(self, act: Callable[[], Bytes]) -> None:
        """Read the bytes, and compare."""
        found = act().tobytes()
        assert found in self.may_be, f"wrong bytes of {self.memory!r}"
        self.may_be = [found]


class Worker:
    """Makes memories, uses them and drops them."""

    def __init__(self, seed: int, where: dict[str, Any]) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- no secret
        self.where = where
        self.known: list[Known] = []

    def step(self) -> None:
        """Make one call, or a few."""
        if not self.known or (len(self.known) < 10 and self.random.random() < 0.1):
            size, checked = self.random.choice(SIZES), self.random.random() < 0.7
            self.known.append(Known(SyncedMemory(size, checked=checked, **self.where)))
            return
        known = self.random.choice(self.known)
        act: Callable[[Known], None] = self.random.choice([self.write, self.write, self.push, self.adopt, self.drop])
        act(known) if self.random.random() < 0.6 else self.read(known)

    def steps(self) -> None:
        """The calls of a child."""
        for _ in range(CHILD_STEPS):
            self.step()

    def new(self, known: Known) -> bytes:
        """New bytes for a memory."""
        return self.random.randbytes(known.memory.size)

    def write(self, known: Known) -> None:
        """Write on one of the sides."""
        new, memory = self.new(known), known.memory
        row = np.frombuffer(new, np.uint8)
        if self.random.random() < 0.5:
            known.write(new, lambda: np.copyto(memory.mutable_cpu_data(), row))
        else:
            known.write(new, lambda: memory.mutable_gpu_data().set(row))

    def push(self, known: Known) -> None:
        """Write on the host and push."""
        new, memory = self.new(known), known.memory
        known.write(new, lambda: np.copyto(memory.mutable_cpu_data(), np.frombuffer(new, np.uint8)))
        memory.async_gpu_push(stream=self.where["device"].stream())

    def adopt(self, known: Known) -> None:
        """Give a memory a buffer of the caller."""
        new, memory = self.new(known), known.memory
        row = np.frombuffer(bytearray(new), np.uint8)
        if self.random.random() < 0.5:
            known.write(new, lambda: memory.set_cpu_data(row))
        else:
            theirs = self.where["device"].empty(memory.size)
            theirs.set(row)
            known.write(new, lambda: memory.set_gpu_data(theirs))

    def read(self, known: Known) -> None:
        """Read one of the sides."""
        memory = known.memory
        known.read(memory.cpu_data if self.random.random() < 0.6 else lambda: memory.gpu_data().get())

    def drop(self, known: Known) -> None:
        """Close or drop a memory."""
        self.known.remove(known)
        if self.random.random() < 0.5:
            known.memory.close()


class Alarm:
    """A timer whose handler raises, while it is armed."""

    def __init__(self) -> None:
        self.armed = False
        self.number, self.raised = count(), 0
        signal.signal(signal.SIGALRM, self.handle)

    def handle(self, *_: object) -> None:
        """Raise one of the interrupts."""
        if self.armed:
            self.raised += 1
            raise INTERRUPTS[self.raised % 2]

    def during(self, act: Callable[[], object]) -> None:
        """Do something that may be interrupted; an interrupt may be the cause of an error, too."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, DELAYS[next(self.number) % len(DELAYS)])
                self.armed = True
                act()
            finally:
                self.armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except INTERRUPTS:
            pass
        except Exception as error:
            if not isinstance(error.__cause__ or error.__context__, INTERRUPTS):
                raise


def forked(act: Callable[[], object]) -> None:
    """Do something in a child of a fork, which must end well and in time."""
    child = os.fork()
    if not child:
        status = 1
        try:
            act()
            status = 0
        except BaseException:  # noqa: BLE001 -- the child must not go on as the parent does
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + CHILD_SECONDS
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < end:
        time.sleep(0.005)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (True, 0) == (bool(ended), status), f"a child of a fork: ended {bool(ended)}, status {status}"


class Run:
    """Four workers, of which the first one is interrupted and forks."""

    def __init__(self, seed: int) -> None:
        self.pools = [
            PoolAllocator(TrackingAllocator(GuardingAllocator(base)))
            for base in (CPUDeviceAllocator(), SimulatedDeviceAllocator(seed=seed))
        ]
        self.where: dict[str, Any] = {"host": self.pools[0], "pinned": self.pools[0], "device": self.pools[1]}
        self.workers = [Worker(4 * seed + number, self.where) for number in range(4)]
        self.problems: list[object] = []
        self.over = threading.Event()
        self.alarm = Alarm()

    def print_unraisable(self, shown: Any) -> None:
        """In place of ``sys.unraisablehook``: only interrupts may end a finaliser."""
        if not isinstance(shown.exc_value, INTERRUPTS):
            self.problems.append(shown.exc_value)

    def work(self, worker: Worker) -> None:
        """Work without interrupts, in a thread."""
        try:
            while not self.over.is_set():
                worker.step()
        except BaseException:  # noqa: BLE001 -- told at the end
            self.problems.append(traceback.format_exc())

    def be_interrupted(self, end: float) -> None:
        """Work with interrupts, and fork now and then, until a time."""
        number = 0
        while not self.problems and time.monotonic() < end:
            self.alarm.during(self.workers[0].step)
            number += 1
            if number % 1000 == 0:
                child = Worker(number, self.where)
                forked(child.steps)

    def run(self, seconds: float) -> None:
        """Run for some seconds; the first problem is raised."""
        threads = [threading.Thread(target=self.work, args=(worker,)) for worker in self.workers[1:]]
        for thread in threads:
            thread.start()
        try:
            self.be_interrupted(time.monotonic() + seconds)
        finally:
            self.over.set()
        for thread in threads:
            thread.join(CHILD_SECONDS)
            assert not thread.is_alive(), "a lock is held"
        for worker in self.workers:
            worker.known.clear()
        gc.collect()
        assert not self.problems, self.problems[0]
        assert [0, 0] == [pool.live_blocks for pool in self.pools]


if __name__ == "__main__":
    warnings.simplefilter("error", RuntimeWarning)  # late writes, of which there are none
    warnings.simplefilter("ignore", ResourceWarning)  # blocks that were being allocated when an interrupt came
    whole = Run(int(sys.argv[2]))
    sys.unraisablehook = whole.print_unraisable
    whole.run(float(sys.argv[1]))
    sys.stdout.write(f"{whole.alarm.raised}\n")
