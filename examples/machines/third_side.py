"""A Caffe with a private third side: bytes go to the device, and come from it, by way of the host.

intel/caffe, include/caffe/syncedmem.hpp and src/caffe/syncedmem.cpp: HEAD_AT_PRV, SYNCED_PRV, and a layout of its own,
which only the host converts.  What converts to it and from it are actions here.
"""

from collections.abc import Iterator
from itertools import pairwise

from syncedmem.model import Action, Call, Fact, Machine, Row
from syncedmem.spec import Policy

SIDES = ("cpu", "gpu", "prv")
HEADS = {
    "UNINITIALIZED": (),
    "HEAD_AT_CPU": ("cpu",),
    "HEAD_AT_GPU": ("gpu",),
    "HEAD_AT_PRV": ("prv",),
    "SYNCED": ("cpu", "gpu"),
    "SYNCED_PRV": ("cpu", "prv"),
}
_HEADS = {frozenset(fresh): head for head, fresh in HEADS.items()}
_COPIES = (("cpu", "gpu"), ("gpu", "cpu"), ("cpu", "prv"), ("prv", "cpu"))


def _ways(fresh: tuple[str, ...], side: str) -> Iterator[dict[str, list[str]]]:
    """What brings a side up to date, and for which pointers: those that are there are at the first stops of the way."""
    source = "cpu" if "cpu" in fresh else fresh[0]
    stops = [side] if (source, side) in _COPIES else ["cpu", side]
    for known in range(len(stops) + 1):
        steps: list[str] = []
        for k, (here, there) in enumerate(pairwise((source, *stops))):
            steps += [f"{here}_to_{there}"] if k < known else [f"allocate_{there}", f"{here}_to_{there}"]
        has, lacks = ([f"has_{it}" for it in them] for them in (stops[:known][-1:], stops[known:][:1]))
        yield {"do": steps, "when": has, "unless": lacks}


_ROWS: list[Row] = []
for side in SIDES:
    only = _HEADS[frozenset((side,))]
    for head, fresh in HEADS.items():
        both = max((it for it in _HEADS if side in it and it <= {side, "cpu", *fresh}), key=len)
        for call, dest in ((f"{side}_data", _HEADS[both]), (f"mutable_{side}_data", only)):
            if side in fresh:
                _ROWS.append(Row(call, head, head if call == f"{side}_data" else only))
            elif fresh:
                _ROWS += [Row(call, head, dest, **way) for way in _ways(fresh, side)]
            else:
                _ROWS.append(Row(call, head, only, do=(f"allocate_{side}", f"zero_{side}")))

THIRD_SIDE = Machine(
    "third_side",
    _ROWS,
    title="A Caffe with a private third side",
    sides=SIDES,
    heads=HEADS,
    calls=[Call(f"{side}_data", "read", side) for side in SIDES]
    + [Call(f"mutable_{side}_data", "write", side) for side in SIDES],
    facts=[Fact(f"has_{side}", "pointer", side) for side in SIDES],
    actions=[Action(f"allocate_{side}", "allocate", side, sets=(f"has_{side}",)) for side in SIDES]
    + [Action(f"zero_{side}", "zero", side) for side in SIDES]
    + [Action(f"{source}_to_{side}", "copy", side, source) for source, side in _COPIES],
)

POLICY = Policy(
    SIDES,
    lazy=frozenset(SIDES),
    first_touch="zero",
    routes={("gpu", "prv"): ("cpu",), ("prv", "gpu"): ("cpu",)},
    says=tuple(_HEADS),
)
