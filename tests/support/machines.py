"""Machines of others, in their own words: what must work for any machine is tried on these."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING, Any

from syncedmem.model.declaration import Action, Call, Fact, Machine, Row
from syncedmem.spec.memory.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DOOR", "MACHINES", "MSI", "MSI_OF_TWO", "PETSC", "POLICIES", "TCP", "THIRD", "changed", "machine_with"]

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


def _third() -> Machine:
    """A Caffe with a private third side, as Intel's had: bytes go to the device and come from it by way of the host."""
    says = {
        "UNINITIALIZED": (),
        "HEAD_AT_CPU": ("cpu",),
        "HEAD_AT_GPU": ("gpu",),
        "HEAD_AT_PRV": ("prv",),
        "SYNCED": ("cpu", "gpu"),
        "SYNCED_PRV": ("cpu", "prv"),
    }
    heads = {frozenset(fresh): head for head, fresh in says.items()}
    between = {("gpu", "prv"): ("cpu",), ("prv", "gpu"): ("cpu",)}

    def ways(fresh: tuple[str, ...], side: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
        """The actions that bring a side up to date, with the pointers that are there and those that are not."""
        source = "cpu" if "cpu" in fresh else fresh[0]
        stops = (*between.get((source, side), ()), side)
        for known in range(len(stops) + 1):  # who has the pointer of a stop was at all stops before it
            steps = [
                step
                for k, (at, stop) in enumerate(pairwise((source, *stops)))
                for step in (*(() if k < known else (f"allocate_{stop}",)), f"{at}_to_{stop}")
            ]
            yield steps, [f"has_{it}" for it in stops[:known][-1:]], [f"has_{it}" for it in stops[known:][:1]]

    rows: list[Row] = []
    for side in _SIDES:
        for head, fresh in says.items():
            read, write = f"{side}_data", f"mutable_{side}_data"
            only = heads[frozenset((side,))]
            if side in fresh:
                rows += [Row(read, head, head), Row(write, head, only)]
            elif not fresh:
                rows += [Row(call, head, only, do=(f"allocate_{side}", f"zero_{side}")) for call in (read, write)]
            else:
                kept = max((it for it in heads if side in it and it <= {side, "cpu", *fresh}), key=len)
                for steps, when, unless in ways(fresh, side):
                    rows += [
                        Row(call, head, dest, do=steps, when=when, unless=unless)
                        for call, dest in ((read, heads[kept]), (write, only))
                    ]
    return Machine(
        "third",
        rows,
        sides=_SIDES,
        heads=says,
        calls=[Call(f"{side}_data", "read", side) for side in _SIDES]
        + [Call(f"mutable_{side}_data", "write", side) for side in _SIDES],
        facts=[Fact(f"has_{side}", "pointer", side) for side in _SIDES],
        actions=[
            *(Action(f"allocate_{side}", "allocate", side, sets=(f"has_{side}",)) for side in _SIDES),
            *(Action(f"zero_{side}", "zero", side) for side in _SIDES),
            *(
                Action(f"{one}_to_{other}", "copy", other, one)
                for one, other in permutations(_SIDES, 2)
                if (one, other) not in between
            ),
        ],
    )


_SIDES = ("cpu", "gpu", "prv")
PETSC = _petsc()
MSI = _msi()
MSI_OF_TWO = _msi("ab")
THIRD = _third()
MACHINES = (DOOR, TCP, PETSC, MSI)
POLICIES = {
    PETSC: Policy(PETSC.sides, lazy=frozenset(PETSC.sides)),
    **{
        it: Policy(
            it.sides,
            born_fresh=frozenset(("mem",)),
            home="mem",
            routes=dict.fromkeys(permutations(it.sides[1:], 2), ("mem",)),
        )
        for it in (MSI, MSI_OF_TWO)
    },
    THIRD: Policy(
        _SIDES,
        lazy=frozenset(_SIDES),
        first_touch="zero",
        routes={("gpu", "prv"): ("cpu",), ("prv", "gpu"): ("cpu",)},
        says=tuple(frozenset(head.fresh) for head in THIRD.heads.values()),
    ),
}
"""What these memories decide, for an oracle."""


def machine_with(base: Machine, rows: Iterable[Row], *actions: Action, name: str = "wrong") -> Machine:
    """Another machine with the words of this one; some of its actions may be others."""
    words: dict[str, Any] = {
        kind: [*getattr(base, kind).values()] for kind in ("heads", "calls", "facts", "refusals", "settings")
    }
    changed = {**base.actions, **{action.name: action for action in actions}}
    return Machine(name, rows, sides=base.sides, actions=changed.values(), **words)


def changed(base: Machine, call: str, head: str, **parts: Any) -> Machine:
    """A machine with other parts of the rows of a call in a head, except its refusals; a part may be computed."""
    rows: list[Row] = []
    for row in base.rows:
        if row.call != call or head not in row.source or row.refusal:
            rows.append(row)
            continue
        rest = [it for it in row.source if it != head]
        said: dict[str, Any] = {"do": row.actions, "when": row.conditions, "unless": row.unless, "dest": row.dest}
        found: dict[str, Any] = said | {name: it(row) if callable(it) else it for name, it in parts.items()}
        rows += [Row(row.call, rest, **said)] if rest else []
        rows.append(Row(row.call, head, **found))
    return machine_with(base, rows)
