"""The interpreter's exit: what is alive then is freed without a word, in whatever order Python takes things apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from subjects import devices

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


@pytest.mark.no_cover
@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("device", [None, *(device.device_type.name.lower() for device in devices())])
def test_what_is_alive_at_the_exit_goes_quietly(device: str | None, keeping: str) -> None:
    """In Python's development mode, which shows each warning and each error of a finaliser."""
    program = MAKING.format(device=device) + KEEPING[keeping]
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
