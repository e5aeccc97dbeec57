"""MFEM's memory flags: VALID_HOST and VALID_DEVICE, and whether there is device memory yet.

Sources: MFEM, general/mem_manager.cpp (MemoryManager::Read_, Write_, ReadWrite_, Delete_), general/mem_manager.hpp
(Memory::New).  This is a Memory that MFEM allocates on the host and uses on a device with memory of its own.
Aliases, and Memory that is wrapped around a pointer of somebody else, are left out.

    syncedmem diagram --edition examples/machines/mfem.py:FLAGS -o mfem.svg
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import Rule, declare

if TYPE_CHECKING:
    from collections.abc import Iterator


def on_host() -> Iterator[Rule]:
    """Host memory is always there, and device memory must be if the host is not valid."""
    for call, after, bring in (
        ("host_read", "BOTH", "copy_to_cpu"),
        ("host_read_write", "HOST", "copy_to_cpu"),
        ("host_write", "HOST", ""),
    ):
        yield Rule(call, "HOST", "HOST")
        yield Rule(call, "BOTH", after)
        yield Rule(call, "DEVICE", after, bring)


def on_device() -> Iterator[Rule]:
    """Device memory is allocated when it is needed first."""
    for call, after, bring in (
        ("read", "BOTH", "copy_to_gpu"),
        ("read_write", "DEVICE", "copy_to_gpu"),
        ("write", "DEVICE", ""),
    ):
        yield Rule(call, "DEVICE", "DEVICE")
        yield Rule(call, "BOTH", after)
        yield Rule(call, "HOST", after, bring, when="device_memory")
        yield Rule(call, "HOST", after, f"allocate_gpu {bring}", when="!device_memory")


FLAGS = declare(
    "mfem",
    "MFEM's flags of a Memory",
    heads="HOST DEVICE BOTH",
    facts="device_memory",
    calls="host_read host_read_write host_write read read_write write delete",
    ends="delete",
    actions={
        "allocate_gpu": "+device_memory",
        "copy_to_cpu": "",
        "copy_to_gpu": "",
        "free_cpu": "",
        "free_gpu": "-device_memory",
    },
    rows=[
        *on_host(),
        *on_device(),
        Rule("delete", "DEVICE BOTH", actions="free_cpu free_gpu"),
        Rule("delete", "HOST", actions="free_cpu free_gpu", when="device_memory"),
        Rule("delete", "HOST", actions="free_cpu", when="!device_memory"),
    ],
    cite="general/mem_manager.cpp",
)
