"""The interpreter's exit: what is alive then is freed without a word, in whatever order Python takes things apart."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest
from subjects import devices

from syncedmem import CPUDeviceAllocator, GuardingAllocator, PoolAllocator, SyncedMemory
from syncedmem.runtime.memory import watch
from syncedmem.runtime.memory.side import finalise

MAKING = """
import gc, sys
from syncedmem import Blob, Buffer, CPUDeviceAllocator, PoolAllocator, SyncedMemory, named_device

gc.disable()
device = {device!r}
allocator = named_device(device) if device else CPUDeviceAllocator()
pool = PoolAllocator(allocator)

def make():
    memory, blob = SyncedMemory(24, device=device), Blob((2, 3), device=device)
    memory.mutable_cpu_data()
    blob.cpu_data()
    pushed = SyncedMemory(24, device=device)
    pushed.mutable_cpu_data()
    if device:
        memory.gpu_data()
        blob.gpu_diff()
        pushed.async_gpu_push(stream=allocator.stream())
    idle = Buffer(48, pool)
    idle.close()
    return memory, blob, pushed, Buffer(24, allocator), Buffer(24, pool), pool
"""

KEEPING = {
    "in a module": "kept = make()",
    "in a module that a function knows": "kept = make()\ndef function(): return kept",
    "in a cycle": "class Cycle: pass\nit = Cycle()\nit.it, it.kept = it, make()\ndel it",
    "in a class": "class Class:\n    kept = make()\n    def method(self): return Class",
    "in another module": "sys.kept = make()",
}


@pytest.mark.deep
@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("device", [None, *(device.device_type.name.lower() for device in devices())])
def test_what_is_alive_at_the_exit_goes_quietly(device: str | None, keeping: str) -> None:
    """In Python's development mode, which shows each warning and each error of a finaliser."""
    program = MAKING.format(device=device) + KEEPING[keeping]
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


def test_a_view_of_freed_memory_that_outlives_the_modules_goes_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the exit the globals of a module become None, and may do so before the last view is gone."""
    host, said = CPUDeviceAllocator(), list[object]()
    with SyncedMemory(24, host=host, pinned=host, device=None, checked=True) as memory:
        kept = memory.mutable_cpu_data()[1:]
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    watched = watch._freed.copy()  # pyright: ignore[reportPrivateUsage] -- what is left behind
    with monkeypatch.context() as gone:
        for name in ("_lock", "_freed"):
            gone.setattr(watch, name, None)
        del kept, memory
        gc.collect()

    assert watched
    assert [] == said


def test_finalisers_do_nothing_at_the_exit() -> None:
    upstream = CPUDeviceAllocator()
    guarding = GuardingAllocator(upstream)
    guarding.release(guarding.allocate(64))
    guarding.__del__(lambda: True)

    assert 1 == upstream.live_blocks
    guarding.__del__()
    assert 0 == upstream.live_blocks
    pool = PoolAllocator(CPUDeviceAllocator())
    pool.release(pool.allocate(64))
    pool.__del__(lambda: True)

    assert 1 == pool.idle_blocks
    pool.__del__()
    assert 0 == pool.idle_blocks


def test_a_finaliser_that_finds_its_module_empty_is_quiet() -> None:
    """At the exit ``except ReleaseError`` may be ``except None``, which is a TypeError."""

    class Torn:
        disposed = 0

        def __init__(self) -> None:
            self.flights: list[Any] = []

        def end(self) -> None:
            self.disposed += 1
            raise TypeError("catching classes that do not inherit from BaseException is not allowed")

    torn = Torn()
    finalise(torn, lambda: True)
    assert torn.disposed == 1
    with pytest.raises(TypeError, match="catching classes"):
        finalise(torn, lambda: False)
    assert torn.disposed == 2
