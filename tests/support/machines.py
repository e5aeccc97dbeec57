"""Machines of others, in their own words: what must work for any machine is tried on these."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from syncedmem.model.declaration import Action, Call, Fact, Machine, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DOOR", "MACHINES", "MSI", "PETSC", "TCP"]

DOOR = Machine(
    "door",
    [
        Row("open", "SHUT", "OPEN", unless="locked"),
        Row("open", "SHUT", when="locked", refused="no_key"),
        Row("close", ["OPEN", "SHUT"], "SHUT", do=["creak", "ring"]),
    ],
)
"""Nothing means anything; nobody changes whether it is locked; who opens an open door is told nothing."""

TCP = Machine(
    "tcp",
    [
        Row("passive_open", "CLOSED", "LISTEN"),
        Row("active_open", "CLOSED", "SYN_SENT"),
        Row("syn", "LISTEN", "SYN_RECEIVED"),
        Row("syn", "SYN_SENT", "SYN_RECEIVED"),
        Row("syn_ack", "SYN_SENT", "ESTABLISHED"),
        Row("ack", "SYN_RECEIVED", "ESTABLISHED"),
        Row("close", "ESTABLISHED", "FIN_WAIT"),
        Row("fin", "ESTABLISHED", "CLOSE_WAIT"),
        Row("close", "CLOSE_WAIT", "LAST_ACK"),
        Row("ack", "LAST_ACK", "CLOSED"),
        Row("fin", "FIN_WAIT", "CLOSED"),
    ],
)
"""Eight heads, no actions."""


def _petsc() -> Machine:
    """PETSc's offload mask, with access that only writes: include/petsc/private/vecimpl.h."""
    rows: list[Row] = []
    for get, new, copy, fact, here, other in (
        ("VecGetArray", "malloc", "VecCUDACopyFromGPU", "array", "CPU", "GPU"),
        ("VecCUDAGetArray", "cudaMalloc", "VecCUDACopyToGPU", "GPUarray", "GPU", "CPU"),
    ):
        for call, both in ((f"{get}Read", "BOTH"), (get, here)):
            rows += [
                Row(call, "UNALLOCATED", here, do=new),
                Row(call, here, here),
                Row(call, "BOTH", both),
                Row(call, other, both, do=(new, copy), unless=fact),
                Row(call, other, both, do=copy, when=fact),
            ]
        write = f"{get}Write"
        rows += [
            Row(write, ("UNALLOCATED", other), here, do=new, unless=fact),
            Row(write, other, here, when=fact),
            Row(write, (here, "BOTH"), here),
        ]
    return Machine(
        "petsc",
        rows,
        sides=("host", "device"),
        heads={"UNALLOCATED": (), "CPU": "host", "GPU": "device", "BOTH": ("host", "device")},
        calls=[
            Call("VecGetArrayRead", "read", "host"),
            Call("VecGetArray", "write", "host"),
            Call("VecGetArrayWrite", "overwrite", "host"),
            Call("VecCUDAGetArrayRead", "read", "device"),
            Call("VecCUDAGetArray", "write", "device"),
            Call("VecCUDAGetArrayWrite", "overwrite", "device"),
        ],
        facts=[Fact("array", "pointer", "host"), Fact("GPUarray", "pointer", "device")],
        actions=[
            Action("malloc", "allocate", "host", sets=("array",)),
            Action("cudaMalloc", "allocate", "device", sets=("GPUarray",)),
            Action("VecCUDACopyToGPU", "copy", "device", "host"),
            Action("VecCUDACopyFromGPU", "copy", "host", "device"),
        ],
    )


def _msi(nodes: Iterable[str] = "abc") -> Machine:
    """MSI: a memory and caches, of which one is ahead of the memory, or several share what is in it."""
    nodes = tuple(nodes)
    sharers = [frozenset(them) for count in range(len(nodes) + 1) for them in combinations(nodes, count)]

    def shared(them: frozenset[str]) -> str:
        return f"S_{''.join(sorted(them))}" if them else "I"

    rows: list[Row] = []
    for node in nodes:
        own = f"M_{node}"
        for them in sharers:
            fetch = () if node in them else (f"fetch_{node}",)
            rows += [
                Row(f"read_{node}", shared(them), shared(them | {node}), do=fetch),
                Row(f"write_{node}", shared(them), own, do=fetch),
                Row(f"evict_{node}", shared(them), shared(them - {node})),
            ]
        rows += [
            Row(f"read_{node}", own, own),
            Row(f"write_{node}", own, own),
            Row(f"evict_{node}", own, "I", do=f"write_back_{node}"),
        ]
        for other in (it for it in nodes if it != node):
            over = f"write_back_{other}", f"fetch_{node}"
            rows += [
                Row(f"read_{node}", f"M_{other}", shared(frozenset({node, other})), do=over),
                Row(f"write_{node}", f"M_{other}", own, do=over),
                Row(f"evict_{node}", f"M_{other}", f"M_{other}"),
            ]
    return Machine(
        "msi",
        rows,
        sides=("mem", *nodes),
        heads={shared(them): ("mem", *sorted(them)) for them in sharers} | {f"M_{node}": node for node in nodes},
        calls=[Call(f"{does}_{node}", does, node) for node in nodes for does in ("read", "write", "evict")],
        actions=[Action(f"fetch_{node}", "copy", node, "mem") for node in nodes]
        + [Action(f"write_back_{node}", "copy", "mem", node) for node in nodes],
    )


PETSC = _petsc()
MSI = _msi()
MACHINES = (DOOR, TCP, PETSC, MSI)
