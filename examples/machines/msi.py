"""MSI: a memory and caches, of which one is ahead of the memory, or several share what is in it.

The protocol of three states for each cache (Hennessy and Patterson, Computer Architecture, chapter 5), with the whole
system as one machine: a head for each set of caches that share, and one for each cache that has modified.
"""

from itertools import combinations

from syncedmem.model import Action, Call, Machine, Row
from syncedmem.spec import Policy


def shared(nodes: frozenset[str]) -> str:
    """The head in which these caches have what is in the memory."""
    return f"S_{''.join(sorted(nodes))}" if nodes else "I"


def msi_of(nodes: str) -> Machine:
    """The machine for caches with names of one letter."""
    sharers = [frozenset(some) for count in range(len(nodes) + 1) for some in combinations(nodes, count)]
    rows: list[Row] = []
    for node in nodes:
        own = f"M_{node}"
        for some in sharers:
            fetch = () if node in some else (f"fetch_{node}",)
            rows += [
                Row(f"read_{node}", shared(some), shared(some | {node}), do=fetch),
                Row(f"write_{node}", shared(some), own, do=fetch),
                Row(f"evict_{node}", shared(some), shared(some - {node})),
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
        title=f"MSI over {len(nodes)} nodes",
        sides=("mem", *nodes),
        heads={shared(some): ("mem", *sorted(some)) for some in sharers} | {f"M_{node}": node for node in nodes},
        calls=[Call(f"{does}_{node}", does, node) for node in nodes for does in ("read", "write", "evict")],
        actions=[Action(f"fetch_{node}", "copy", node, "mem") for node in nodes]
        + [Action(f"write_back_{node}", "copy", "mem", node) for node in nodes],
    )


def policy_of(machine: Machine) -> Policy:
    """The memory is there at first, evicted bytes go to it, and what goes from cache to cache goes by way of it."""
    caches = machine.sides[1:]
    routes = {(one, other): ("mem",) for one in caches for other in caches if one != other}
    return Policy(machine.sides, born_fresh=frozenset(("mem",)), first_touch="zero", home="mem", routes=routes)


MSI = msi_of("abc")
POLICY = policy_of(MSI)
