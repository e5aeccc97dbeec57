"""PETSc's offload mask: which sides of a vector hold its values, and which are allocated.

Sources: PETSc, include/petscdevicetypes.h (PetscOffloadMask), and include/petsc/private/veccupmimpl.h
(HostAllocateCheck_, DeviceAllocateCheck_, and access to arrays).  A call here is Get and Restore together: the mask
changes when the array is given back.  Arrays that are placed or replaced are left out.

    syncedmem diagram --edition examples/machines/petsc.py:OFFLOAD_MASK -o petsc.svg
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import Rule, declare

if TYPE_CHECKING:
    from collections.abc import Iterator


def side(name: str, head: str, other: str) -> Iterator[Rule]:
    """The three ways to get the array of one side; the two sides behave alike."""
    new, copy = f"allocate_{name}", f"copy_to_{name}"
    for how, after in (("read", "BOTH"), ("readwrite", head), ("write", head)):
        call = f"get_{name}_{how}"
        bring = "" if how == "write" else copy
        yield Rule(call, "UNALLOCATED", head, new)
        yield Rule(call, head, head)
        yield Rule(call, "BOTH", after)
        yield Rule(call, other, after, bring, when=f"{name}_array")
        yield Rule(call, other, after, f"{new} {bring}", when=f"!{name}_array")


def destroy() -> Iterator[Rule]:
    """Free what is allocated."""
    yield Rule("destroy", "UNALLOCATED")
    yield Rule("destroy", "BOTH", actions="free_gpu free_cpu")
    for head, own, other in (("CPU", "cpu", "gpu"), ("GPU", "gpu", "cpu")):
        yield Rule("destroy", head, actions="free_gpu free_cpu", when=f"{other}_array")
        yield Rule("destroy", head, actions=f"free_{own}", when=f"!{other}_array")


OFFLOAD_MASK = declare(
    "petsc",
    "PETSc's offload mask of a vector",
    heads="UNALLOCATED CPU GPU BOTH",
    facts="cpu_array gpu_array",
    calls="get_cpu_read get_cpu_readwrite get_cpu_write get_gpu_read get_gpu_readwrite get_gpu_write destroy",
    ends="destroy",
    actions={
        "allocate_cpu": "+cpu_array",
        "allocate_gpu": "+gpu_array",
        "copy_to_cpu": "",
        "copy_to_gpu": "",
        "free_cpu": "-cpu_array",
        "free_gpu": "-gpu_array",
    },
    rows=[*side("cpu", "CPU", "GPU"), *side("gpu", "GPU", "CPU"), *destroy()],
    cite="include/petsc/private/veccupmimpl.h",
)
