"""What a child of a fork can use: the simulated device, whoever was inside; and no driver of the parent."""

from __future__ import annotations

import subprocess
import sys

import pytest
from subjects import devices

pytestmark = pytest.mark.deep

SIMULATED = """
import os, signal, threading
from syncedmem import SyncedMemory
from syncedmem.runtime.devices.simulated.block import exclusive

inside, forking = threading.Event(), threading.Event()

def work():
    with exclusive:
        inside.set()
        forking.wait()

thread = threading.Thread(target=work)
thread.start()
inside.wait()
os.register_at_fork(before=forking.set)  # before the hooks that were registered earlier
child = os.fork()
if not child:
    signal.alarm(30)
    with SyncedMemory(8, device="simulated") as memory:
        memory.mutable_cpu_data()[:] = 7
        os._exit(int(memory.gpu_data().get().tolist() != [7] * 8))
thread.join()
with SyncedMemory(8, device="simulated") as memory:
    memory.gpu_data()
print(os.waitpid(child, 0)[1])
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
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_a_fork_while_another_thread_is_inside_the_simulated_device_waits_for_it() -> None:
    assert printed(SIMULATED) == "0"


@pytest.mark.parametrize("name", ["opencl", "cuda"])
def test_a_driver_that_was_opened_before_the_fork_refuses_calls_in_the_child(name: str) -> None:
    """It would wait for threads that the child does not have.  The host side can still be used."""
    if not any(it.name.startswith(name) for it in devices()):
        pytest.skip(f"there is no {name} here")

    assert printed(DRIVER.format(name=name)) == "0"
